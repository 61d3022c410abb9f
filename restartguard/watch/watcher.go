package watch

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"redlockctl/base/sleep"
	"redlockctl/restartguard"
	"redlockctl/restartguard/wire"
	"redlockctl/server/announce"
	"redlockctl/server/fences"
	"redlockctl/server/resp"
	"redlockctl/server/safetext"
)

// watcher watches one node: it observes, decides and applies, again and again. Its own fields
// belong to its goroutine; other goroutines read the member.
type watcher struct {
	guard *Guard
	*member

	// When the announcements of other guards were last read, why they could not be read, and
	// what was read in the last observation.
	guardsReadAt time.Time
	guardsErr    string
	guardsHere   []announce.Guard
	// noGuardsUntil is set when more was announced than a guard reads.
	noGuardsUntil time.Time

	// The state as it was last written to the memory, when, and why that failed.
	written   restartguard.State
	writtenAt time.Time
	writeErr  string

	manyClients bool // CLIENT LIST is longer than a guard reads

	// How far the copies of a cordoned node are counted, and when to count next.
	copies  wire.Scan
	countAt time.Time
}

// run keeps one connection to the node at a time, until ctx ends.
func (w *watcher) run(ctx context.Context) {
	for ctx.Err() == nil {
		_ = sleep.For(ctx, w.watchConn(ctx))
	}
}

// watchConn observes the node through one connection, and applies what is decided, until the
// connection ends. It returns the pause before the next one.
func (w *watcher) watchConn(ctx context.Context) (pause time.Duration) {
	conn := w.dial()
	defer conn.Close()
	var scan wire.Scan // of the copies that another node needs to know
	for first := true; ; first = false {
		w.countRound()
		asked := time.Now()
		seen, err := w.observe(ctx, &conn, first)
		switch {
		case ctx.Err() != nil:
			return 0
		case errors.Is(err, wire.ErrBroken):
			return w.connEnded(err, asked, first)
		case err != nil: // the node answers, but not what a guard needs
			w.decide(unreached(asked, err))
		case !w.apply(ctx, &conn, w.decide(seen)):
			return w.reconnectPause()
		}
		if w.nameMoved(conn.At()) {
			w.reportMoved(conn.At())
			return 0
		}
		if err != nil {
			_ = sleep.For(ctx, w.pause())
		} else if !w.untilNext(ctx, &conn, &scan) {
			return w.reconnectPause()
		}
	}
}

func (w *watcher) dial() wire.Conn {
	conn := wire.Dial(w.node, w.method, w.guard.cfg.Timeout)
	conn.Counter = w.guard.cfg.CountEvery > 0 && w.method.Kind != fences.None
	conn.ManyClients = w.manyClients
	if m := w.guard.cfg.Memory; m != nil {
		conn.Name += ":" + m.ID()
	}
	return conn
}

func (w *watcher) countRound() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lastRound = time.Now()
}

// connEnded decides what the end of a connection says about the node, and returns the pause before
// the next connection. If a connection that worked has ended, the next one tells at once whether
// the node is there. Silence, or no connection from the start, means that it is not.
func (w *watcher) connEnded(err error, asked time.Time, first bool) time.Duration {
	if first || isTimeout(err) {
		w.decide(unreached(asked, err))
	}
	switch {
	case !first:
		return 0
	case refusesGuard(err):
		return w.guard.cfg.Poll // no reason to hurry
	default:
		return w.reconnectPause()
	}
}

func unreached(asked time.Time, err error) restartguard.Observation {
	o := restartguard.Observation{About: restartguard.Unreached, Sent: asked, Refused: wire.IsRefused(err), Denied: wire.IsDenied(err), Absent: wire.AbsentOf(err), Err: strings.TrimPrefix(safetext.Error(err), wire.ErrBroken.Error()+": ")}
	if o.Absent == restartguard.AbsentSlow {
		o.Err = "no answer in time"
	}
	return o
}

// refusesGuard reports whether the node is there and does not serve the guard.
func refusesGuard(err error) bool {
	return wire.Answered(err) || errors.Is(err, resp.ErrFull) || errors.Is(err, resp.ErrBad)
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout() || errors.Is(err, context.DeadlineExceeded)
}

// reconnectPause is short, because D counts from when a restart is first seen.
func (w *watcher) reconnectPause() time.Duration { return min(reconnect, w.guard.cfg.Poll) }

const reconnect = 25 * time.Millisecond

// untilNext waits until the next observation, and meanwhile counts the node's copies, or reads
// those that another node needs to know. It reports whether the connection still works.
func (w *watcher) untilNext(ctx context.Context, conn *wire.Conn, scan *wire.Scan) bool {
	until := time.Now().Add(w.pause())
	return w.countCopies(ctx, conn) && w.answerSurvey(ctx, conn, scan, until)
}

// pause returns the time until the next observation: the poll interval, or less if the node may
// rejoin earlier.
func (w *watcher) pause() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	poll, b := w.guard.cfg.Poll, &w.state.Basis
	if b.Phase != restartguard.PhaseFenced || b.Deadline.IsZero() {
		return poll
	}
	if d := time.Until(b.Deadline); d > 0 {
		return min(d, poll)
	}
	return poll
}

// report emits an event for a problem once, however often it comes again.
func (w *watcher) report(last *string, err error, what string) {
	why := ""
	if err != nil {
		why = what + ": " + safetext.Error(err)
	}
	if why != *last && why != "" {
		w.guard.emit(w.node.Name(), []restartguard.Event{{At: time.Now(), Kind: "announce", Text: why, Alarm: true}})
	}
	*last = why
}
