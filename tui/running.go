package tui

import (
	"slices"
	"sync"
	"time"

	"redlockctl/redlock"
)

// running counts the actions on their way, so that the program does not end
// between an action and the record of its outcome, and the locks that are kept.
type running struct {
	mu     sync.Mutex
	closed bool
	steps  sync.WaitGroup
	kept   []Kept
}

// begin reports whether an action may start.
func (r *running) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.steps.Add(1)
	}
	return !r.closed
}

func (r *running) end() { r.steps.Done() }

// close lets no further action begin and waits for those that run, at most for
// limit.
func (r *running) close(limit time.Duration) {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	idle := make(chan struct{})
	go func() { r.steps.Wait(); close(idle) }()
	select {
	case <-idle:
	case <-time.After(limit):
	}
}

// keep remembers a lock that is kept, until the program ends.
func (r *running) keep(k Kept) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = append(slices.DeleteFunc(r.kept, ended), k)
}

// stop ends all extensions, and returns the locks that go on without them.
func (r *running) stop() []Kept {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.kept {
		k.Stop()
	}
	return slices.DeleteFunc(r.kept, ended)
}

func ended(k Kept) bool {
	s := k.State()
	return s == redlock.Lost || s == redlock.Released
}
