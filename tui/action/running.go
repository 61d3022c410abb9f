package action

import (
	"slices"
	"sync"
	"time"

	"redlockctl/base/crash"
	"redlockctl/internal/operator"
	"redlockctl/redlock"
)

// Running counts the running actions, so that the program does not end before an outcome
// is logged, and remembers the kept locks.
type Running struct {
	mu     sync.Mutex
	closed bool
	steps  sync.WaitGroup
	kept   []Kept
	parted []string // kept locks that were released at quitting
}

// Begin reports whether an action may start.
func (r *Running) Begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.steps.Add(1)
	}
	return !r.closed
}

func (r *Running) End() { r.steps.Done() }

// Close allows no further actions and waits for the running ones, at most for limit.
func (r *Running) Close(limit time.Duration) {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	idle := make(chan struct{})
	crash.Go(func() { r.steps.Wait(); close(idle) })
	select {
	case <-idle:
	case <-time.After(limit):
	}
}

// keep remembers a kept lock.
func (r *Running) keep(k Kept) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = append(slices.DeleteFunc(r.kept, ended), k)
}

// part remembers a lock that was released at quitting.
func (r *Running) part(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parted = append(r.parted, key)
}

// stop stops all extensions. It returns the locks that are still held, and those that were
// released at quitting.
func (r *Running) stop() (left []Kept, released []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.kept {
		k.Stop()
	}
	return slices.DeleteFunc(r.kept, ended), r.parted
}

func ended(k Kept) bool {
	s := k.State()
	return s == redlock.Lost || s == redlock.Released
}

// Grant is a lock that was acquired by hand on this screen.
type Grant struct {
	Key, Token string
	TTL        time.Duration
	Until      time.Time // known end of validity
	// Kept extends it; nil if nothing does. state is the state at the last check.
	Kept  Kept
	state redlock.KeeperState
}

// Extended returns the grant after an extension, which never shortens it.
func (g Grant) Extended(ttl time.Duration, until time.Time) Grant {
	g.TTL = ttl
	if until.After(g.Until) {
		g.Until = until
	}
	return g
}

// loss is a lock that was kept here and is lost.
type loss struct {
	key, why string
	operator.Loss
}
