package redlock

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// admission admits an operation when every healthy node has room for its call: first
// come, first served, and operations that keep or release a lock before those that
// acquire one. An operation without room waits here, before the time of its attempt
// begins, until its context ends. So a burst costs its callers time, and not failed
// attempts and late releases. Nobody waits for a node that is not connected or is
// skipped; one that hangs is disconnected after the node timeout.
type admission struct {
	windows []*window    // of the nodes
	waiting atomic.Int32 // who waits; also read without mu

	mu     sync.Mutex
	urgent fifo
	others fifo
}

// fifo holds the waiting operations in the order in which they came. One that has given
// up stays in it until it is the first.
type fifo struct{ waits []*entrant }

// entrant is a waiting operation.
type entrant struct {
	in   chan struct{} // closed when it is admitted
	gone bool          // it has given up
}

func (f *fifo) first() *entrant {
	for len(f.waits) > 0 && f.waits[0].gone {
		f.pop()
	}
	if len(f.waits) == 0 {
		return nil
	}
	return f.waits[0]
}

func (f *fifo) pop() {
	f.waits[0] = nil
	if f.waits = f.waits[1:]; len(f.waits) == 0 {
		f.waits = nil // keep no memory after a burst
	}
}

// enter waits until each node has room for a call, and takes it: the caller must then
// send one admitted call to all nodes. The error is that of ctx, or ErrClosed when
// closing was closed first.
func (a *admission) enter(ctx context.Context, urgent bool, closing <-chan struct{}) error {
	if a.waiting.Load() == 0 && a.take() {
		// Thousands of goroutines that begin at the same time all come here first and
		// wait, before the time of any attempt begins. Otherwise it would end before
		// the reader gets to run.
		runtime.Gosched()
		return nil
	}
	e := &entrant{in: make(chan struct{})}
	a.mu.Lock()
	if urgent {
		a.urgent.waits = append(a.urgent.waits, e)
	} else {
		a.others.waits = append(a.others.waits, e)
	}
	a.waiting.Add(1) // before checking for room: whoever makes room checks this afterwards
	a.admit()
	a.mu.Unlock()
	var err error
	select {
	case <-e.in:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-closing:
		err = ErrClosed
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-e.in: // meanwhile
		return nil
	default:
	}
	e.gone = true
	a.waiting.Add(-1)
	return err
}

// admit admits as many as there is room for; a.mu is held.
func (a *admission) admit() {
	for {
		queue := &a.urgent
		e := queue.first()
		if e == nil {
			queue = &a.others
			e = queue.first()
		}
		if e == nil {
			return
		}
		if !a.take() {
			return
		}
		queue.pop()
		a.waiting.Add(-1)
		close(e.in)
	}
}

// poke is called when there may be room.
func (a *admission) poke() {
	if a.waiting.Load() == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.admit()
}

// take takes room for a call to each healthy node, or none at all.
func (a *admission) take() bool {
	for i, r := range a.windows {
		if r.take() {
			continue
		}
		for _, r := range a.windows[:i+1] {
			r.give()
		}
		return false
	}
	return true
}

// leave gives back room that was taken and is not needed.
func (a *admission) leave() {
	for _, r := range a.windows {
		r.give()
	}
	a.poke()
}
