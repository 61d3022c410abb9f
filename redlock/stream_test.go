package redlock

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// inStream runs a test of one stream to one node in virtual time.
func inStream(t *testing.T, test func(t *testing.T, n *memNode, s *stream)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := newMemNodes(1)[0]
		s := newStream(memWire{node: n}, 50*time.Millisecond, 500*time.Millisecond, func(bool) {})
		defer s.close(time.Second)
		synctest.Wait()
		test(t, n, s)
	})
}

func set(key, token string, to inbox) *call {
	c := &call{op: opSet, key: key, token: token, ttl: time.Hour}
	if to != nil {
		c.to = to
	}
	return c
}

func del(key, token string, to inbox) *call {
	c := &call{op: opRelease, key: key, token: token}
	if to != nil {
		c.to = to
	}
	return c
}

func TestStreamKeepsOrder(t *testing.T) {
	inStream(t, func(t *testing.T, n *memNode, s *stream) {
		n.set(func(n *memNode) {
			n.delay = func() (time.Duration, time.Duration) { return time.Millisecond, time.Millisecond }
		})
		const rounds = 300 // more than fit into one pipeline
		answers := make(inbox, 2*rounds)
		for i := range rounds {
			s.enqueue(set("a", fmt.Sprint(i), answers))
			s.enqueue(del("a", fmt.Sprint(i), answers))
		}
		for range 2 * rounds {
			if a := <-answers; a.Status != StatusOK {
				t.Fatalf("%s: %v", a.Status, a.Err)
			}
		}
		if n.live() != 0 {
			t.Error("a copy is left")
		}
	})
}

func TestStreamNeverBlocksAndIsBounded(t *testing.T) {
	inStream(t, func(t *testing.T, n *memNode, s *stream) {
		n.hang()
		const many = 20_000
		answers := make(inbox, 2*many)
		s.enqueue(set("first", "t", nil))
		synctest.Wait() // it is sent, and hangs
		start, before := time.Now(), runtime.NumGoroutine()
		for i := range many {
			s.enqueue(set(fmt.Sprint(i), "t", answers))
		}
		refused := len(answers)
		if most := queueSize + flightSize + 2*batchSize; many-refused > most {
			t.Errorf("%d admitted, want %d at most", many-refused, most)
		}
		for i := 0; i < refused; i++ {
			if a := <-answers; a.Status != StatusSkipped || !errors.Is(a.Err, errQueueFull) {
				t.Fatalf("%s: %v", a.Status, a.Err)
			}
		}
		// There is room for releases still, and that has an end too.
		for i := range many {
			s.enqueue(del(fmt.Sprint(i), "t", answers))
		}
		if got, most := many-len(answers), queueSize+queueReserve+flightSize+2*batchSize; got < queueReserve || got > most {
			t.Errorf("%d releases admitted, want %d to %d", got, queueReserve, most)
		}
		s.mu.Lock()
		queued, owed := len(s.queue), len(s.owed)
		s.mu.Unlock()
		if queued > queueSize+queueReserve || owed > debtSize {
			t.Errorf("%d queued, %d owed", queued, owed)
		}
		if grown := runtime.NumGoroutine() - before; grown > 0 {
			t.Errorf("%d goroutines more", grown)
		}
		if !time.Now().Equal(start) {
			t.Errorf("blocked for %s", time.Since(start))
		}
	})
}

func TestStreamDropsWhatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNodes(1)[0]
		n.connect = 20 * time.Millisecond // what is queued waits for so long
		s := newStream(memWire{node: n}, 50*time.Millisecond, 500*time.Millisecond, func(bool) {})
		defer s.close(time.Second)
		answers := make(inbox, 3)
		over := new(atomic.Bool)
		given, late := set("given up", "t", answers), set("late", "t", answers)
		given.over, late.notAfter = over, time.Now().Add(15*time.Millisecond)
		s.enqueue(given)
		s.enqueue(late)
		s.enqueue(del("given up", "t", answers))
		over.Store(true)
		for _, want := range []struct {
			status Status
			err    error
			sent   bool
		}{{StatusSkipped, errOver, false}, {StatusSlow, errTooLate, false}, {StatusAbsent, nil, true}} {
			if a := <-answers; a.Status != want.status || a.Err != want.err || a.sent != want.sent {
				t.Errorf("%s %v sent %t, want %+v", a.Status, a.Err, a.sent, want)
			}
		}
	})
}

func TestBreaker(t *testing.T) {
	inStream(t, func(t *testing.T, n *memNode, s *stream) {
		ask := func() answer {
			answers := make(inbox, 1)
			start := time.Now()
			s.enqueue(&call{op: opInspect, key: "a", to: answers})
			a := <-answers
			if a.Status == StatusSkipped && !time.Now().Equal(start) {
				t.Errorf("skipped after %s", time.Since(start))
			}
			return a
		}
		if a := ask(); a.Status != StatusAbsent {
			t.Fatal(a.Status)
		}
		n.set(func(n *memNode) { n.down = true })
		for i := range breakAfter {
			if a := ask(); a.Status != StatusDown {
				t.Fatalf("failure %d: %s", i, a.Status)
			}
		}
		synctest.Wait()
		for range 1000 {
			if a := ask(); a.Status != StatusSkipped || a.Err == nil {
				t.Fatal(a.Status, a.Err)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if s.failures < 20 || s.failures > 50 { // one try every two seconds or so
			t.Errorf("%d tries in a minute", s.failures)
		}
		n.set(func(n *memNode) { n.down = false })
		time.Sleep(backoffMax)
		synctest.Wait()
		if a := ask(); a.Status != StatusAbsent {
			t.Errorf("not asked again: %s %v", a.Status, a.Err)
		}
	})
}

// TestHungNodeIsToldOfReleases: the SET that a hung node finds in its buffer
// when it goes on is taken away again.
func TestHungNodeIsToldOfReleases(t *testing.T) {
	for _, hang := range []time.Duration{10 * time.Millisecond, 200 * time.Millisecond, time.Minute} {
		t.Run(hang.String(), func(t *testing.T) {
			inStream(t, func(t *testing.T, n *memNode, s *stream) {
				n.hang()
				s.enqueue(set("a", "t", nil))
				synctest.Wait()
				s.enqueue(del("a", "t", nil))
				time.Sleep(hang)
				n.resume()
				time.Sleep(2 * backoffMax)
				synctest.Wait()
				if n.sent == 0 || n.live() != 0 {
					t.Errorf("%d copies are left, %d pipelines arrived", n.live(), n.sent)
				}
			})
		})
	}
}

func TestStreamClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNodes(1)[0]
		s := newStream(memWire{node: n}, 50*time.Millisecond, 500*time.Millisecond, func(bool) {})
		synctest.Wait()
		answers := make(inbox, 10)
		s.enqueue(set("a", "t", answers))
		s.enqueue(del("a", "t", answers))
		s.close(time.Second)
		if n.live() != 0 || len(answers) != 2 {
			t.Errorf("closed with %d copies and %d answers", n.live(), len(answers))
		}
		s.enqueue(set("a", "t", answers))
		<-answers
		<-answers
		if a := <-answers; a.Status != StatusSkipped || !errors.Is(a.Err, ErrClosed) {
			t.Errorf("after it: %s, %v", a.Status, a.Err)
		}

		n.hang()
		s = newStream(memWire{node: n}, 50*time.Millisecond, 500*time.Millisecond, func(bool) {})
		for range 5 {
			s.enqueue(set("a", "t", answers))
		}
		start := time.Now()
		s.close(100 * time.Millisecond)
		if took := time.Since(start); took > 110*time.Millisecond {
			t.Errorf("a hung node held it up for %s", took)
		}
		if len(answers) != 5 {
			t.Errorf("%d of 5 answered", len(answers))
		}
	})
}

// TestMemLinkKeepsOrder is about the nodes in memory: whatever befalls them, no
// request overtakes another, and none gets the reply to another.
func TestMemLinkKeepsOrder(t *testing.T) {
	slow := func(n *memNode) {
		n.delay = func() (time.Duration, time.Duration) { return 5 * time.Millisecond, 0 }
	}
	t.Run("hung on the way", func(t *testing.T) {
		inStream(t, func(t *testing.T, n *memNode, s *stream) {
			n.set(slow)
			in := make(inbox, 2)
			s.enqueue(set("a", "t", in))
			time.Sleep(time.Millisecond)
			n.hang()
			n.set(func(n *memNode) { n.delay = nil })
			s.enqueue(del("a", "t", in))
			time.Sleep(10 * time.Millisecond)
			n.resume()
			if a, b := <-in, <-in; a.Status != StatusOK || b.Status != StatusOK || n.live() != 0 {
				t.Errorf("%s, %s, %d copies are left", a.Status, b.Status, n.live())
			}
		})
	})
	t.Run("down on the way", func(t *testing.T) {
		inStream(t, func(t *testing.T, n *memNode, s *stream) {
			n.set(slow)
			in := make(inbox, 2)
			s.enqueue(set("a", "t", in))
			time.Sleep(4 * time.Millisecond)
			n.set(func(n *memNode) { n.down = true })
			time.Sleep(2 * time.Millisecond)
			n.set(func(n *memNode) { n.down, n.delay = false, nil })
			s.enqueue(set("b", "t", in))
			if a := <-in; a.Status != StatusDown {
				t.Errorf("a request that did not arrive: %s", a.Status)
			}
			if b := <-in; b.Status != StatusOK {
				t.Errorf("the next one: %s, %v", b.Status, b.Err)
			}
		})
	})
}
