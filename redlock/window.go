package redlock

import (
	"sync/atomic"
	"time"
)

const (
	windowFirst = 256  // calls under way to a node that nothing is known of
	windowLeast = 64   // however slow it is
	windowMost  = 1024 // more make no node faster
	// windowDelay is how much longer than its fastest reply the replies of a node may
	// take until there shall be less under way. It is a small part of the node timeout:
	// what is under way must be answered within that.
	windowDelay = 10 * time.Millisecond
)

// window is how much may be under way to one node: as much as it answers without
// delay. Releases that are owed to it count, so that they go before new attempts.
type window struct {
	patience time.Duration // the node timeout
	most     atomic.Int32
	used     atomic.Int32 // calls queued, or sent and not answered
	owed     atomic.Int32 // releases
	well     atomic.Bool  // connected, and not skipped

	// Of the reader of the node alone, which is one at a time:
	fastest time.Duration
	shrunk  time.Time
}

func newWindow(patience time.Duration) *window {
	r := &window{patience: patience}
	r.most.Store(windowFirst)
	return r
}

// take takes room for a call, and reports whether there was any, or none is waited
// for. If not, the caller gives back what it took.
func (w *window) take() bool {
	return w.used.Add(1)+w.owed.Load() <= w.most.Load() || !w.well.Load()
}

// give gives room back.
func (w *window) give() { w.used.Add(-1) }

// begin is told that the node is connected anew.
func (w *window) begin() {
	w.fastest = 0
	w.most.Store(windowFirst)
	w.well.Store(true)
}

// end is told that it cannot be used.
func (w *window) end() { w.well.Store(false) }

// answered is told that a reply came at now, took after it was asked for. So much
// may be under way as is answered without delay.
func (w *window) answered(took time.Duration, now time.Time) {
	if w.fastest == 0 || took < w.fastest {
		w.fastest = took
	}
	most := w.most.Load()
	delay := min(windowDelay, (w.patience-w.fastest)/2)
	switch late := took - w.fastest; {
	case late > delay:
		// What is under way already will be as late: it is no reason to shrink again.
		if now.Sub(w.shrunk) > took {
			w.shrunk = now
			w.most.Store(max(most/2, windowLeast))
		}
	case late < delay/2 && most < windowMost && 2*w.used.Load() > most:
		w.most.Store(most + 1)
	}
}
