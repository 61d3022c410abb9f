package redlock

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// forgetful is a wire with whose opening what its stream owes is forgotten.
type forgetful struct {
	memDialer
	on     bool
	stream atomic.Pointer[stream]
}

func (w *forgetful) open(ctx context.Context) (link, error) {
	l, err := w.memDialer.open(ctx)
	if s := w.stream.Load(); s != nil {
		s.mu.Lock()
		s.owed = nil
		s.mu.Unlock()
	}
	return l, err
}

// checkOwed lets a node hang with a SET in its buffer until it is skipped, and
// releases only then.
func checkOwed(t *testing.T, w func(memDialer) *forgetful) (err error) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNodes(1)[0]
		wire := w(memDialer{node: n})
		s := newStream(wire, newPatience(50*time.Millisecond), 500*time.Millisecond, hooks{}).start()
		defer s.close(time.Second)
		synctest.Wait()
		wire.forget(s)
		n.hang()
		s.enqueue(set("a", "t", nil))
		time.Sleep(time.Minute)
		answers := make(inbox, 1)
		s.enqueue(del("a", "t", answers))
		if a := <-answers; a.Status != StatusSkipped {
			t.Errorf("released: %s", a.Status)
		}
		n.resume()
		time.Sleep(2 * backoffMax)
		synctest.Wait()
		err = leftover(n.live())
	})
	return err
}

func (w *forgetful) forget(s *stream) {
	if w.on {
		w.stream.Store(s)
	}
}

func TestSkippedNodeIsToldOfReleases(t *testing.T) {
	if err := checkOwed(t, func(w memDialer) *forgetful { return &forgetful{memDialer: w} }); err != nil {
		t.Error(err)
	}
}

func owedForgotten(t *testing.T, _ uint64) error {
	return checkOwed(t, func(w memDialer) *forgetful { return &forgetful{memDialer: w, on: true} })
}

func noReleaseAfterTheEnd(t *testing.T, seed uint64) error {
	s := tidyHung()
	var end atomic.Pointer[time.Time]
	s.client = func(t testing.TB, nodes []*memNode, opt Options, twist func(*memNode) func([]*call) []*call) *Client {
		if len(nodes) > 0 {
			at := time.Now().Add(3 * time.Second) // as the schedule has it
			end.Store(&at)
		}
		return newMemClient(t, nodes, opt, twist)
	}
	return tidies(t, seed, s, func(*memNode) func([]*call) []*call {
		return func(batch []*call) []*call {
			return without(batch, func(c *call) bool { return c.op == opRelease && !time.Now().Before(*end.Load()) })
		}
	})
}

// checkAdmission sends a storm of calls to a hung node, and looks what that
// costs.
func checkAdmission(t *testing.T, admit func(s *stream, c *call, end <-chan struct{})) (err error) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNodes(1)[0]
		s := newStream(memDialer{node: n}, newPatience(50*time.Millisecond), 500*time.Millisecond, hooks{}).start()
		end := make(chan struct{})
		defer s.close(time.Second)
		defer close(end)
		synctest.Wait()
		n.hang()
		const many = 20_000
		start, before := time.Now(), runtime.NumGoroutine()
		for i := range many {
			admit(s, &call{request: &request{op: []operation{opSet, opRelease}[i%2], key: "a", token: "t", ttl: time.Hour}}, end)
		}
		s.mu.Lock()
		queued, owed := len(s.queue), len(s.owed)
		s.mu.Unlock()
		switch grown := runtime.NumGoroutine() - before; {
		case grown > 0:
			err = fmt.Errorf("%d goroutines more", grown)
		case queued > queueSize+queueReserve:
			err = fmt.Errorf("%d are queued", queued)
		case owed > owedSize:
			err = fmt.Errorf("%d are owed", owed)
		case !time.Now().Equal(start):
			err = fmt.Errorf("blocked for %s", time.Since(start))
		}
	})
	return err
}

func TestAdmission(t *testing.T) {
	if err := checkAdmission(t, func(s *stream, c *call, _ <-chan struct{}) { s.enqueue(c) }); err != nil {
		t.Error(err)
	}
}

func admissionMutant(admit func(s *stream, c *call, end <-chan struct{})) finder {
	return func(t *testing.T, _ uint64) error { return checkAdmission(t, admit) }
}

func waitsForRoom(s *stream, c *call, _ <-chan struct{}) {
	for errors.Is(s.admit(c), errQueueFull) {
		time.Sleep(time.Millisecond)
	}
	poke(s.wake)
}

func alwaysRoom(s *stream, c *call, _ <-chan struct{}) {
	s.mu.Lock()
	s.queue = append(s.queue, c)
	s.mu.Unlock()
	poke(s.wake)
}

func goroutineEach(s *stream, c *call, end <-chan struct{}) {
	answered := make(inbox, 1)
	c.to = answered
	go func() {
		s.enqueue(c)
		select {
		case <-answered:
		case <-end:
		}
	}()
}
