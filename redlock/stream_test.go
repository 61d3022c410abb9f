package redlock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/base/race"
	"redlockctl/server/resp"
)

// inStream runs a test of one stream to one node in virtual time.
func inStream(t *testing.T, test func(t *testing.T, n *memNode, s *stream)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := newMemNodes(1)[0]
		s := newStream(memDialer{node: n}, newPatience(50*time.Millisecond), 500*time.Millisecond, hooks{}).start()
		defer s.close(time.Second)
		synctest.Wait()
		test(t, n, s)
	})
}

func set(key, token string, to inbox) *call {
	c := &call{request: &request{op: opSet, key: key, token: token, ttl: time.Hour}}
	if to != nil {
		c.to = to
	}
	return c
}

func del(key, token string, to inbox) *call {
	c := &call{request: &request{op: opRelease, key: key, token: token}}
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
	race.Skip(t)
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
		for range refused {
			if a := <-answers; a.Status != StatusSkipped || !errors.Is(a.Err, errQueueFull) {
				t.Fatalf("%s: %v", a.Status, a.Err)
			}
		}
		// There is still room for releases, and that is bounded too.
		for i := range many {
			s.enqueue(del(fmt.Sprint(i), "t", answers))
		}
		if got, most := many-len(answers), queueSize+queueReserve+flightSize+2*batchSize; got < queueReserve || got > most {
			t.Errorf("%d releases admitted, want %d to %d", got, queueReserve, most)
		}
		s.mu.Lock()
		queued, owed := len(s.queue), len(s.owed)
		s.mu.Unlock()
		if queued > queueSize+queueReserve || owed > owedSize {
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
		n.connect = 20 * time.Millisecond // how long queued calls wait
		s := newStream(memDialer{node: n}, newPatience(50*time.Millisecond), 500*time.Millisecond, hooks{}).start()
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
			s.enqueue(&call{request: &request{op: opInspect, key: "a", to: answers}})
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

// TestHungNodeIsToldOfReleases: the SET that a hung node finds in its buffer when it
// resumes is released.
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
		s := newStream(memDialer{node: n}, newPatience(50*time.Millisecond), 500*time.Millisecond, hooks{}).start()
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
		s = newStream(memDialer{node: n}, newPatience(50*time.Millisecond), 500*time.Millisecond, hooks{}).start()
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

// greeter is a wire to a node that greets whatever its state is, as a server
// does whose disk is stuck, or a proxy in front of a dead one.
type greeter struct {
	memDialer
	refusal *atomic.Pointer[resp.ServerError] // of the greeting; nil within: none
	opened  *atomic.Int64
}

func (w greeter) open(context.Context) (link, error) {
	w.opened.Add(1)
	if err := w.refusal.Load(); err != nil {
		return nil, *err
	}
	return &memLink{memDialer: w.memDialer, kick: make(chan struct{}, 1)}, nil
}

func newGreeter(n *memNode) greeter {
	return greeter{memDialer{node: n}, new(atomic.Pointer[resp.ServerError]), new(atomic.Int64)}
}

// TestBreakerIsNotFooledByAGreeting: a node that lets itself be connected to, and
// answers nothing else, is skipped and is not besieged.
func TestBreakerIsNotFooledByAGreeting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNodes(1)[0]
		w := newGreeter(n)
		s := newStream(w, newPatience(50*time.Millisecond), 500*time.Millisecond, hooks{}).start()
		defer s.close(time.Second)
		n.hang()
		skipped := 0
		const asked = 1000
		for range asked {
			answers := make(inbox, 1)
			s.enqueue(set("a", "t", answers))
			if a := <-answers; a.Status == StatusSkipped {
				skipped++
			}
			time.Sleep(60 * time.Millisecond)
		}
		if skipped < asked*9/10 || w.opened.Load() > 60 {
			t.Errorf("%d of %d skipped, %d connections in a minute", skipped, asked, w.opened.Load())
		}
		n.resume()
		time.Sleep(2 * backoffMax)
		for range 10 {
			answers := make(inbox, 1)
			s.enqueue(&call{request: &request{op: opInspect, key: "b", to: answers}})
			if a := <-answers; a.Status != StatusAbsent {
				t.Fatalf("not asked again: %s %v", a.Status, a.Err)
			}
		}
	})
}

// TestRefusedLoginKeepsOwedReleases: a release that could not be sent, since the node
// refused the greeting, is owed to it like any other.
func TestRefusedLoginKeepsOwedReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNodes(1)[0]
		w := newGreeter(n)
		s := newStream(w, newPatience(50*time.Millisecond), 500*time.Millisecond, hooks{}).start()
		defer s.close(time.Second)
		answers := make(inbox, 2)
		s.enqueue(set("a", "t", answers))
		if a := <-answers; a.Status != StatusOK {
			t.Fatal(a.Status)
		}
		refusal := resp.ServerError("WRONGPASS invalid username-password pair or user is disabled.")
		w.refusal.Store(&refusal)
		s.conn.link.close() // as the server does with a user that is switched off
		synctest.Wait()
		s.enqueue(del("a", "t", answers))
		if a := <-answers; a.Status != StatusDenied || a.sent {
			t.Errorf("%s, sent %t: %v", a.Status, a.sent, a.Err)
		}
		w.refusal.Store(nil)
		time.Sleep(2 * backoffMax)
		synctest.Wait()
		if n.live() != 0 {
			t.Error("the copy is left")
		}
	})
}

// armedLink notes until when its reader waits.
type armedLink struct {
	memLink
	until time.Time
}

func (l *armedLink) expect(by time.Time) { l.until = by }

// TestDeadlineOfAnOlderCall: a deadline that was set for earlier calls does not fail a
// call that was sent as it passed.
func TestDeadlineOfAnOlderCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := new(armedLink)
		l := &nodeConn{link: at, patience: newPatience(50 * time.Millisecond)}
		if now := time.Now(); l.hung(now) || !at.until.IsZero() {
			t.Errorf("nothing is under way, and it waits until %s", at.until)
		}
		now := time.Now()
		l.inFlight, l.heard = []*call{{sentAt: now}}, now
		if l.hung(now) || at.until.After(now.Add(l.patience.set)) {
			t.Errorf("a call that was just sent gets %s", at.until.Sub(now))
		}
		if now := at.until; l.hung(now) || !at.until.Equal(l.inFlight[0].sentAt.Add(l.patience.set)) {
			t.Errorf("it gets %s in all", at.until.Sub(l.inFlight[0].sentAt))
		}
		if !l.hung(at.until) {
			t.Error("a call that is overdue is waited for")
		}
		// While the reader disposes of a call, which may have to be sent again, a
		// closing stream is not idle.
		l.pop()
		if l.idle() {
			t.Error("idle with a call in hand")
		}
		if !l.look(now) || !l.idle() {
			t.Error("not idle after it")
		}
	})
}

// deafServer accepts connections, refuses whatever is asked with the words of
// answer, but answers no SET, and tells how each connection ended.
func deafServer(t *testing.T, answer string) (*Node, <-chan error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ends := make(chan error, 100)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				for b := make([]byte, 4096); ; {
					n, err := c.Read(b)
					if err != nil {
						ends <- err
						return
					}
					if !bytes.Contains(b[:n], []byte("SET")) {
						_, _ = io.WriteString(c, answer+"\r\n")
					}
				}
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	n, err := NewNode("deaf", &redis.Options{Addr: l.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	return n, ends
}

// TestUnansweredConnectionIsReset: the operating system must not go on delivering
// a SET that was given up, since its release goes over the next connection.
func TestUnansweredConnectionIsReset(t *testing.T) {
	n, ends := deafServer(t, "-NOPERM nothing")
	s := newStream(redisWire{n, newPatience(50 * time.Millisecond), time.Second}, newPatience(50*time.Millisecond), time.Second, hooks{}).start()
	answers := make(inbox, 1)
	s.enqueue(set("a", "t", answers))
	if a := <-answers; a.Status != StatusSlow || !a.sent {
		t.Errorf("%s, sent %t: %v", a.Status, a.sent, a.Err)
	}
	if err := <-ends; !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("it ended with %v", err)
	}
	s.close(time.Second)
	for len(ends) > 0 {
		<-ends
	}
	// What is under way when the client is closed may still arrive, in order.
	s = newStream(redisWire{n, newPatience(50 * time.Millisecond), time.Second}, newPatience(50*time.Millisecond), time.Second, hooks{}).start()
	s.enqueue(set("a", "t", nil))
	s.enqueue(del("a", "t", nil))
	s.close(time.Second)
	if err := <-ends; !errors.Is(err, io.EOF) {
		t.Errorf("closed, it ended with %v", err)
	}
}

// TestLoadingIsNotReady: a server that loads its data would refuse the releases
// that are owed to it.
func TestLoadingIsNotReady(t *testing.T) {
	for answer, ready := range map[string]bool{
		"-LOADING Redis is loading the dataset in memory": false,
		"-BUSY Redis is busy running a script":            false,
		"-NOPERM this user has no permissions":            true,
		"-NOREPLICAS not enough":                          true,
	} {
		n, _ := deafServer(t, answer)
		l, err := redisWire{n, newPatience(time.Second), time.Second}.open(t.Context())
		if (err == nil) != ready {
			t.Errorf("%s: %v", answer, err)
		}
		if err == nil {
			l.close()
		} else if got := classifyTransport(err); got != StatusProtocol {
			t.Errorf("%s: %s", answer, got)
		}
	}
}
