package redlock

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// gate lets operations in when there is room on the way to every node that is
// well, first come, first served, those that keep or give back a lock before those
// that want one. Who finds no room waits here, before the time of its attempt
// begins, within its own context: so a burst costs its callers time, instead of
// attempts that fail and releases that are late. A node that is not well (not
// connected, skipped) is not waited for; one that hangs is not connected any more
// after the node timeout.
type gate struct {
	rooms   []*room      // of the nodes
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
func (g *gate) enter(ctx context.Context, urgent bool, closing <-chan struct{}) error {
	if g.waiting.Load() == 0 && g.take() {
		// Thousands that begin at the same time come here first, and wait, before the
		// time of any attempt begins. It would be over before they let anyone read.
		runtime.Gosched()
		return nil
	}
	e := &entrant{in: make(chan struct{})}
	g.mu.Lock()
	if urgent {
		g.urgent.waits = append(g.urgent.waits, e)
	} else {
		g.others.waits = append(g.others.waits, e)
	}
	g.waiting.Add(1) // before the look at the room: whoever makes room looks here after
	g.admit()
	g.mu.Unlock()
	var err error
	select {
	case <-e.in:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-closing:
		err = ErrClosed
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-e.in: // meanwhile
		return nil
	default:
	}
	e.gone = true
	g.waiting.Add(-1)
	return err
}

// admit lets in who can be; g.mu is held.
func (g *gate) admit() {
	for {
		line := &g.urgent
		e := line.first()
		if e == nil {
			line = &g.others
			e = line.first()
		}
		if e == nil {
			return
		}
		if !g.take() {
			return
		}
		line.pop()
		g.waiting.Add(-1)
		close(e.in)
	}
}

// poke is told that there may be room.
func (g *gate) poke() {
	if g.waiting.Load() == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.admit()
}

// take takes room for a call on the way to each node that is well, or none.
func (g *gate) take() bool {
	for i, r := range g.rooms {
		if r.take() {
			continue
		}
		for _, r := range g.rooms[:i+1] {
			r.give()
		}
		return false
	}
	return true
}

// leave gives back room that was taken and is not needed.
func (g *gate) leave() {
	for _, r := range g.rooms {
		r.give()
	}
	g.poke()
}

const (
	roomFirst = 256  // calls under way to a node that nothing is known of
	roomLeast = 64   // however slow it is
	roomMost  = 1024 // more make no node faster
	// roomDelay is how much longer than its fastest reply the replies of a node may
	// take until there shall be less under way. It is a small part of the node timeout:
	// what is under way must be answered within that.
	roomDelay = 10 * time.Millisecond
)

// room is how much may be under way to one node: as much as it answers without
// delay. Releases that are owed to it count, so that they go before new attempts.
type room struct {
	patience time.Duration // the node timeout
	most     atomic.Int32
	used     atomic.Int32 // calls queued, or sent and not answered
	owed     atomic.Int32 // releases
	well     atomic.Bool  // connected, and not skipped

	// Of the reader of the node alone, which is one at a time:
	fastest time.Duration
	shrunk  time.Time
}

func newRoom(patience time.Duration) *room {
	r := &room{patience: patience}
	r.most.Store(roomFirst)
	return r
}

// take takes room for a call, and reports whether there was any, or none is waited
// for. If not, the caller gives back what it took.
func (r *room) take() bool {
	return r.used.Add(1)+r.owed.Load() <= r.most.Load() || !r.well.Load()
}

// give gives room back.
func (r *room) give() { r.used.Add(-1) }

// begin is told that the node is connected anew.
func (r *room) begin() {
	r.fastest = 0
	r.most.Store(roomFirst)
	r.well.Store(true)
}

// end is told that it cannot be used.
func (r *room) end() { r.well.Store(false) }

// answered is told that a reply came at now, took after it was asked for. So much
// may be under way as is answered without delay.
func (r *room) answered(took time.Duration, now time.Time) {
	if r.fastest == 0 || took < r.fastest {
		r.fastest = took
	}
	most := r.most.Load()
	delay := min(roomDelay, (r.patience-r.fastest)/2)
	switch late := took - r.fastest; {
	case late > delay:
		// What is under way already will be as late: it is no reason to shrink again.
		if now.Sub(r.shrunk) > took {
			r.shrunk = now
			r.most.Store(max(most/2, roomLeast))
		}
	case late < delay/2 && most < roomMost && 2*r.used.Load() > most:
		r.most.Store(most + 1)
	}
}
