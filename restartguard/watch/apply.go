package watch

import (
	"context"
	"errors"

	"redlockctl/restartguard"
	"redlockctl/restartguard/wire"
	"redlockctl/server/resp"
)

// apply carries out actions, and what is decided on their outcomes, on the connection whose
// observation led to them. It reports whether that connection still works.
func (w *watcher) apply(ctx context.Context, conn *wire.Conn, todo []restartguard.Action) bool {
	for n := 0; len(todo) > 0 && n < restartguard.MaxActions; n++ {
		if ctx.Err() != nil {
			return false
		}
		outcome, err := w.perform(ctx, conn, todo[0])
		if err != nil {
			w.manyClients = w.manyClients || todo[0].Kind == restartguard.Kill && errors.Is(err, resp.ErrLong)
			return false
		}
		todo = append(todo[1:], w.decide(outcome)...)
	}
	return true
}

// perform carries out one action to its end, within the timeout, even if ctx ends meanwhile:
// nobody knows whether a fencing that was cut short has happened.
func (w *watcher) perform(ctx context.Context, conn *wire.Conn, a restartguard.Action) (restartguard.Observation, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.guard.cfg.Timeout)
	defer cancel()
	return conn.Perform(ctx, a)
}
