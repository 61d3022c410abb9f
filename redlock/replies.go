package redlock

import (
	"sync"
	"time"
)

// replies collects the nodes' answers to one request for a caller that waits.
type replies struct {
	ready chan struct{} // has room for one
	need  int           // how many yes are enough

	mu        sync.Mutex // a leaf: see the package's order of locks in client.go
	byNode    []answer   // at is zero: no answer yet
	yes, left int
	over      bool
}

// newReplies is for n nodes; asked of them get the request.
func newReplies(n, asked, need int) *replies {
	return &replies{ready: make(chan struct{}, 1), need: need, byNode: make([]answer, n), left: asked}
}

func (s *replies) answered(a answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.byNode[a.node] = a
	s.left--
	if a.Status == StatusOK {
		s.yes++
	}
	if s.yes >= s.need || s.left == 0 {
		poke(s.ready)
	}
}

// wait waits until enough nodes have said yes, all have answered, by, or stop is closed.
func (s *replies) wait(by time.Time, stop <-chan struct{}) []answer {
	timer := time.NewTimer(time.Until(by))
	defer timer.Stop()
	select {
	case <-s.ready:
	case <-timer.C:
	case <-stop:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	return s.byNode
}

// poke wakes the goroutine that waits for wake, now or when it next waits; wake has
// room for one.
func poke(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
