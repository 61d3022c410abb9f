package redlock

import (
	"context"
	"sync"
	"time"
)

// warmup lets the first operations of a client wait for the connections, so that
// opening them does not use up their node timeout. It ends for good when all nodes have
// been tried, or when a node has delayed an operation once.
type warmup struct {
	mu      sync.Mutex
	untried int
	up      int
	need    int
	ready   chan struct{} // closed when a quorum is up
	over    chan struct{}
	end     func() // closes over
}

func newWarmup(n int) *warmup {
	w := &warmup{untried: n, need: Quorum(n), ready: make(chan struct{}), over: make(chan struct{})}
	w.end = sync.OnceFunc(func() { close(w.over) })
	return w
}

// tried is called when a node's first try to connect has ended.
func (w *warmup) tried(up bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if up {
		if w.up++; w.up == w.need {
			close(w.ready)
		}
	}
	if w.untried--; w.untried == 0 {
		w.end()
	}
}

// wait waits until all nodes have been tried, but not longer than connecting may take,
// and when a quorum is up not longer than a node timeout.
func (w *warmup) wait(ctx context.Context, closing <-chan struct{}, connect time.Duration, reply func() time.Duration) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	select {
	case <-w.over:
		return nil
	default:
	}
	timer := time.NewTimer(connect)
	defer timer.Stop()
	ready := w.ready
	for {
		select {
		case <-w.over:
			return nil
		case <-ready:
			ready = nil
			timer.Reset(reply())
		case <-timer.C:
			w.end()
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-closing:
			return ErrClosed
		}
	}
}
