package redlock

import (
	"sync/atomic"
	"time"
)

const (
	windowFirst = 256  // calls under way to a node at first
	windowLeast = 64   // even if it is slow
	windowMost  = 1024 // more do not make a node faster
	// windowDelay is how much longer than the fastest reply a node's replies may take
	// before the window shrinks. It is a small part of the node timeout, within which
	// all calls under way must be answered.
	windowDelay = 10 * time.Millisecond
)

// window bounds the calls under way to one node: as many as it answers without delay.
// Owed releases count too, so that they go before new attempts. No fixed bound does as
// well when 10,000 callers acquire at once: 64 takes 13 times as long over a round trip
// of 2 to 40 ms, 256 lets extensions fail on a busy machine, and with 1024 kept locks
// were lost there.
type window struct {
	patience *patience // the node timeout
	most     atomic.Int32
	used     atomic.Int32 // calls queued, or sent and not answered
	owed     atomic.Int32 // releases
	well     atomic.Bool  // connected, and not skipped

	// Used only by the node's reader, which is one goroutine at a time:
	fastest time.Duration
	shrunk  time.Time
}

func newWindow(patience *patience) *window {
	r := &window{patience: patience}
	r.most.Store(windowFirst)
	return r
}

// take takes room for a call, and reports whether the caller may send: there was room,
// or the node is not healthy and nobody waits for it. Otherwise the caller gives the
// room back.
func (w *window) take() bool {
	return w.used.Add(1)+w.owed.Load() <= w.most.Load() || !w.well.Load()
}

// give gives room back.
func (w *window) give() { w.used.Add(-1) }

// begin is called when the node is connected again.
func (w *window) begin() {
	w.fastest = 0
	w.most.Store(windowFirst)
	w.well.Store(true)
}

// end is called when the node cannot be used.
func (w *window) end() { w.well.Store(false) }

// answered adapts the window to a reply that came at now, took after its request.
func (w *window) answered(took time.Duration, now time.Time) {
	if w.fastest == 0 || took < w.fastest {
		w.fastest = took
	}
	most := w.most.Load()
	delay := min(windowDelay, (w.patience.lasts()-w.fastest)/2)
	switch late := took - w.fastest; {
	case late > delay:
		// The calls already under way will be just as late: do not shrink again for
		// them.
		if now.Sub(w.shrunk) > took {
			w.shrunk = now
			w.most.Store(max(most/2, windowLeast))
		}
	case late < delay/2 && most < windowMost && 2*w.used.Load() > most:
		w.most.Store(most + 1)
	}
}
