package watch

import (
	"context"
	"time"

	"redlockctl/restartguard"
	"redlockctl/restartguard/wire"
)

// countEvery is the pause between two counts of a cordoned node's copies.
const countEvery = 500 * time.Millisecond

// countCopies goes on to count the copies of a cordoned node, until the next observation. It
// reports whether the connection still works.
func (w *watcher) countCopies(ctx context.Context, l *wire.Conn) bool {
	patterns := w.guard.cfg.Patterns
	if !w.state.Basis.Cordoned() {
		w.copies.Begun = false
		return true
	}
	if !w.state.Basis.Proven || w.state.Basis.Empty || len(patterns) == 0 || time.Now().Before(w.countAt) {
		return true
	}
	if s := &w.copies; !s.Begun || s.RunID != w.state.Basis.RunID {
		s.Begin(restartguard.Question{}, w.state.Basis.RunID)
	}
	until := time.Now().Add(w.pause() / wire.ScanShares)
	for s := &w.copies; ctx.Err() == nil && time.Now().Before(until); {
		if err := s.Step(ctx, l, patterns); err != nil {
			s.Begun = false
			w.countAt = time.Now().Add(countEvery)
			return false
		}
		if !s.Done && len(s.Copies) == 0 {
			continue
		}
		s.Begun = false
		w.countAt = time.Now().Add(countEvery)
		if s.Doubt == "" {
			w.decide(restartguard.Observation{About: restartguard.Scanned, RunID: s.RunID, Sent: s.Began, Copies: len(s.Copies)})
		}
		return true
	}
	return true
}
