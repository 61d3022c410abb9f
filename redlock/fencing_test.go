package redlock

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func mustFence(t *testing.T, c *Client) *Lock {
	t.Helper()
	l, err := c.AcquireFenced(t.Context(), "a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if l.FencingToken() == 0 {
		t.Fatal("no fencing token")
	}
	return l
}

func TestFencingTokensGrow(t *testing.T) {
	inMemory(t, 5, func(t *testing.T, nodes []*memNode, c *Client) {
		var last uint64
		for i := range 200 {
			l := mustFence(t, c)
			if n := l.FencingToken(); n <= last {
				t.Fatalf("grant %d: %d after %d", i, n, last)
			} else {
				last = n
			}
			if _, err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if l := mustAcquire(t, c, time.Minute); l.FencingToken() != 0 {
			t.Error("a number that nobody asked for")
		}
	})
}

// A master that forgets everything, even with the clocks of all masters
// standing still, must not bring old numbers back: the quorums of writing and
// reading share a second one.
func TestFencingTokensSurviveOneLoss(t *testing.T) {
	inMemory(t, 5, func(t *testing.T, nodes []*memNode, c *Client) {
		for _, n := range nodes {
			n.set(func(n *memNode) { n.still = 1 })
		}
		var last uint64
		for i := range 500 {
			// Each time another node is too far away to count.
			for k, n := range nodes {
				n.away(map[bool]int{true: 40, false: 0}[k == i%5])
			}
			l := mustFence(t, c)
			if n := l.FencingToken(); n <= last {
				t.Fatalf("grant %d: %d after %d", i, n, last)
			} else {
				last = n
			}
			if _, err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
			lost := nodes[rand.IntN(5)]
			lost.set(func(n *memNode) { clear(n.numbers); clear(n.keys) })
		}
	})
}

// When all masters forget, the numbers go on from the time.
func TestFencingTokensSurviveTheLossOfAll(t *testing.T) {
	inMemory(t, 3, func(t *testing.T, nodes []*memNode, c *Client) {
		first := mustFence(t, c)
		if _, err := first.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, n := range nodes {
			n.set(func(n *memNode) { clear(n.numbers); clear(n.keys) })
		}
		time.Sleep(time.Millisecond)
		if second := mustFence(t, c); second.FencingToken() <= first.FencingToken() {
			t.Errorf("%d after %d", second.FencingToken(), first.FencingToken())
		}
	})
}

// A grant whose number cannot be written to a quorum is none, and leaves
// nothing behind.
func TestNoGrantWithoutItsFencingToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := newMemNodes(3)
		c := newMemClient(t, nodes, Options{Retries: -1}, func(*memNode) func([]*call) []*call {
			return func(batch []*call) []*call { // the copies are gone before the number comes
				var kept []*call
				for _, b := range batch {
					if b.op != opFence {
						kept = append(kept, b)
					}
				}
				return kept
			}
		})
		defer c.Close()
		synctest.Wait()
		_, err := c.AcquireFenced(t.Context(), "a", time.Minute)
		if !errors.Is(err, ErrNoQuorum) {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, n := range nodes {
			if n.live() != 0 {
				t.Error("a copy is left")
			}
		}
	})
}

// fencedRun lets clients fight for fenced locks while nodes hang, are far away
// or go down, and returns the numbers in the order of their grants.
func fencedRun(t *testing.T, seed uint64, twist func(*memNode) func([]*call) []*call) (granted []uint64) {
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		nodes := newMemNodes([]int{3, 4, 5}[rnd.IntN(3)])
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		var mu sync.Mutex
		var wg sync.WaitGroup
		var clients []*Client
		for range 3 {
			c := newMemClient(t, nodes, Options{NodeTimeout: 20 * time.Millisecond, RetryDelay: 5 * time.Millisecond}, twist)
			clients = append(clients, c)
			wg.Go(func() {
				for ctx.Err() == nil {
					l, err := c.AcquireFenced(ctx, "a", 300*time.Millisecond)
					if err != nil {
						continue
					}
					mu.Lock()
					granted = append(granted, l.FencingToken())
					mu.Unlock()
					time.Sleep(time.Millisecond)
					_, _ = l.Release(ctx)
				}
			})
		}
		faults(ctx, rnd, nodes, false)
		wg.Wait()
		for _, c := range clients {
			_ = c.Close()
		}
	})
	return granted
}

func ascending(numbers []uint64) bool {
	for i := range numbers[1:] {
		if numbers[i+1] <= numbers[i] {
			return false
		}
	}
	return true
}

func TestFencingUnderFaults(t *testing.T) {
	t.Parallel()
	total := 0
	for seed := range seeds(t, 12) {
		granted := fencedRun(t, seed, nil)
		total += len(granted)
		if len(granted) > 0 && !ascending(granted) {
			t.Fatalf("seed %d: %v", seed, granted)
		}
	}
	if total < 400 {
		t.Errorf("only %d grants: this shows nothing", total)
	}
}

// A twin that does not write the numbers, and whose masters' clocks stand
// still, must be noticed.
func TestFencingTwin(t *testing.T) {
	forgetful := func(n *memNode) func([]*call) []*call {
		return func(batch []*call) []*call { // n.mu is held
			clear(n.numbers)
			n.still = 1
			return batch
		}
	}
	for seed := range uint64(40) {
		if granted := fencedRun(t, seed, forgetful); len(granted) > 1 && !ascending(granted) {
			return
		}
	}
	t.Error("not noticed")
}

// TestNoFencingTokenAfterASleep: a grant is not confirmed when the machine has
// slept beyond its validity, for which the monotonic clock stands still.
func TestNoFencingTokenAfterASleep(t *testing.T) {
	for slept, want := range map[time.Duration]error{time.Second: nil, 10 * time.Second: ErrExpired} {
		synctest.Test(t, func(t *testing.T) {
			var sleep func(time.Duration)
			once := sync.OnceFunc(func() { sleep(slept) })
			c := newMemClient(t, newMemNodes(3), Options{Retries: -1}, func(*memNode) func([]*call) []*call {
				return func(batch []*call) []*call {
					if batch[0].op == opFence {
						once()
					}
					return batch
				}
			})
			defer c.Close()
			sleep = sleepy(c)
			l, err := c.AcquireFenced(t.Context(), "a", 10*time.Second)
			if !errors.Is(err, want) {
				t.Errorf("slept for %s: %v", slept, err)
			}
			if err == nil && time.Until(l.Until()) > 9*time.Second {
				t.Errorf("slept for %s, and it is valid for %s", slept, time.Until(l.Until()))
			}
		})
	}
}

// TestFencingTokenIsWrittenWidely: one more than a quorum has the number when the
// grant is confirmed, so that the next one meets it although a node has lost it.
func TestFencingTokenIsWrittenWidely(t *testing.T) {
	inMemory(t, 3, func(t *testing.T, nodes []*memNode, c *Client) {
		nodes[2].away(10)
		l, err := c.AcquireFenced(t.Context(), "a", 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		nodes[2].set(func(n *memNode) {
			if n.numbers["a"] != l.FencingToken() {
				t.Errorf("n3 has %d, not %d", n.numbers["a"], l.FencingToken())
			}
		})
	})
}

// TestFencingTokenThatNodesRefuse: a node that gave its vote and refuses the
// number is told as what it is.
func TestFencingTokenThatNodesRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newMemClient(t, newMemNodes(3), Options{Retries: -1}, func(n *memNode) func([]*call) []*call {
			return func(batch []*call) []*call { // under n.mu
				n.fenced = batch[0].op == opFence
				return batch
			}
		})
		defer c.Close()
		synctest.Wait()
		_, err := c.AcquireFenced(t.Context(), "a", time.Minute)
		if !errors.Is(err, ErrNoQuorum) || strings.Count(err.Error(), " fenced") < 2 {
			t.Error(err)
		}
	})
}

// TestBlameWhileANumberComes: the number of a node may come at the very moment
// when the attempt gives up for want of numbers. The one who counts it asks the
// run, the one who gives up reads the numbers into the run: neither must wait for
// the other with its own lock in hand. The window is held open until the two have met.
func TestBlameWhileANumberComes(t *testing.T) {
	r := &run{results: make([]NodeResult, 1), copies: make([]remnant, 1)}
	r.results[0].Status = StatusOK
	counting, blamed := make(chan struct{}), make(chan struct{})
	f := newNumbers(1, 1, func(node int) bool {
		close(counting)
		for met := false; !met; runtime.Gosched() {
			select {
			case <-blamed:
				met = true
			default:
				if met = !r.mu.TryLock(); !met {
					r.mu.Unlock()
				}
			}
		}
		return r.voted(node)
	})
	counted := make(chan struct{})
	go func() {
		defer close(counted)
		f.answered(answer{NodeResult: NodeResult{Status: StatusOK}, number: 1})
	}()
	<-counting
	go func() {
		defer close(blamed)
		r.blame(f)
	}()
	for _, done := range []chan struct{}{blamed, counted} {
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatal("each waits for the other")
		}
	}
}
