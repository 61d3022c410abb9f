package redlock

import (
	"bufio"
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"redlockctl/base/race"
	"redlockctl/redlock/attempt"
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
	total, least := 0, race.Few(uint64(12))
	for seed := range seeds(t, least) {
		granted := fencedRun(t, seed, nil)
		total += len(granted)
		if len(granted) > 0 && !ascending(granted) {
			t.Fatalf("seed %d: %v", seed, granted)
		}
	}
	if 3*total < 100*int(least) {
		t.Errorf("only %d grants: this shows nothing", total)
	}
}

// A mutant that does not write the numbers, while the masters' clocks are stopped, must
// be noticed.
func TestFencingMutant(t *testing.T) {
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

// TestNoFencingTokenAfterASleep: a grant is not confirmed if the machine was suspended
// beyond its validity, which the monotonic clock does not count.
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

// TestFencingTokenThatNodesRefuse: the error names a node that gave its vote and
// refuses the number.
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

// TestBlameWhileANumberComes: the number of a node may arrive at the moment when the
// attempt fails because numbers are missing. One goroutine counts the vote first, the
// other copies the numbers into the run: neither may wait for the other while it holds
// its own mutex.
func TestBlameWhileANumberComes(t *testing.T) {
	machine, _ := attempt.Begin(attempt.Terms{N: 1, Start: time.Now(), TTL: time.Minute, Wait: time.Minute})
	r := &attemptRun{machine: machine, results: make([]NodeResult, 1), copies: make([]leftCopy, 1), decided: make(chan struct{}, 1)}
	r.client = &Client{nodes: []*Node{{}}, suspended: suspended}
	r.reads = newReplies(1, 1, 1)
	waits := func(held, other *sync.Mutex, what func()) {
		t.Helper()
		done := make(chan struct{})
		held.Lock()
		go func() {
			defer close(done)
			what()
		}()
		time.Sleep(20 * time.Millisecond) // it is likely to wait for held by then
		for began := time.Now(); !other.TryLock(); runtime.Gosched() {
			if time.Since(began) > time.Minute {
				t.Fatal("it waits with the other lock in hand")
			}
		}
		other.Unlock()
		held.Unlock()
		<-done
	}
	waits(&r.reads.mu, &r.mu, func() {
		r.answered(answer{NodeResult: NodeResult{Status: StatusOK}, numbers: readResult{status: StatusOK}, number: 1})
	})
	waits(&r.mu, &r.reads.mu, func() { r.blame(r.reads) })
	if got := r.reads.wait(time.Now(), nil); got[0].Status != StatusOK || got[0].number != 1 || r.verdict() != attempt.VerdictGranted {
		t.Errorf("%+v %s", got, r.verdict())
	}
}

// TestFencingNumberIsReadBehindItsVote: the number is read behind the SET on the
// very connection on which the SET was sent: they are one request, of which no
// part is carried over to another connection. If the connection ends between
// their replies, there is neither vote nor number.
func TestFencingNumberIsReadBehindItsVote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var requests atomic.Int32
		c := newMemClient(t, newMemNodes(3), Options{Retries: -1}, func(*memNode) func([]*call) []*call {
			return func(batch []*call) []*call {
				for _, b := range batch {
					if b.op == opSet && b.numbered {
						requests.Add(1)
					} else if b.op != opFence {
						t.Errorf("a request of its own: %d", b.op)
					}
				}
				return batch
			}
		})
		defer c.Close()
		mustFence(t, c)
		if synctest.Wait(); requests.Load() != 3 {
			t.Errorf("%d requests", requests.Load())
		}
	})
	set := &call{request: &request{op: opSet, numbered: true, key: "a", token: "t", ttl: time.Second}}
	sent := string(set.appendTo(nil))
	for _, want := range []string{"SET", "GET", "TIME"} {
		_, behind, ok := strings.Cut(sent, want+"\r\n")
		if !ok {
			t.Fatalf("%q: no %s behind the others", sent, want)
		}
		sent = behind
	}
	for replies, want := range map[string]Status{
		"+OK\r\n$-1\r\n*2\r\n$1\r\n7\r\n$1\r\n5\r\n":            StatusOK,
		"$-1\r\n$-1\r\n*2\r\n$1\r\n7\r\n$1\r\n5\r\n":            StatusHeld,
		"-NOREPLICAS no\r\n$-1\r\n*2\r\n$1\r\n7\r\n$1\r\n5\r\n": StatusFenced,
		"+OK\r\n-NOPERM no\r\n*2\r\n$1\r\n7\r\n$1\r\n5\r\n":     StatusOK,
		"+OK\r\n$-1\r\n": StatusUnanswered,
		"+OK\r\n":        StatusUnanswered,
	} {
		l := &redisLink{in: bufio.NewReader(strings.NewReader(replies))}
		_, a, err := l.receive(func() *call { return set })
		if (err != nil) != (want == StatusUnanswered) || a.Status != want {
			t.Errorf("%q: %s, %v", replies, a.Status, err)
		}
		if counts := want == StatusOK && !strings.Contains(replies, "NOPERM"); (a.numbers.status == StatusOK && a.Status == StatusOK) != counts || counts && a.number != 7_000_005 {
			t.Errorf("%q: number %d, %s", replies, a.number, a.numbers.status)
		}
	}
}
