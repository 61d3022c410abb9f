package redlock

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// admission lets operations in when there is room on the way to every node that is
// well, first come, first served, those that keep or give back a lock before those
// that want one. Who finds no room waits here, before the time of its attempt
// begins, within its own context: so a burst costs its callers time, instead of
// attempts that fail and releases that are late. A node that is not well (not
// connected, skipped) is not waited for; one that hangs is not connected any more
// after the node timeout.
type admission struct {
	windows []*window    // of the nodes
	waiting atomic.Int32 // who waits; also read without mu

	mu     sync.Mutex
	urgent fifo
	others fifo
}

// fifo are those who wait, in the order in which they came. Who has given up stays
// in it until it is the first.
type fifo struct{ waits []*entrant }

// entrant is one who waits.
type entrant struct {
	in   chan struct{} // closed when it is let in
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
		f.waits = nil // of a burst nothing is kept
	}
}

// enter waits until there is room for a call to each node, and takes it: the
// caller must send one to all nodes that is admitted. An error is
// that of ctx, or ErrClosed when closing was closed first.
func (a *admission) enter(ctx context.Context, urgent bool, closing <-chan struct{}) error {
	if a.waiting.Load() == 0 && a.take() {
		// Thousands that begin at the same time come here first, and wait, before the
		// time of any attempt begins. It would be over before they let anyone read.
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
	a.waiting.Add(1) // before the look at the room: whoever makes room looks here after
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

// admit lets in who can be; a.mu is held.
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

// poke is told that there may be room.
func (a *admission) poke() {
	if a.waiting.Load() == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.admit()
}

// take takes room for a call on the way to each node that is well, or none.
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
