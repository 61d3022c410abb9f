package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// endless are options with which nobody gets anywhere by the pauses between
// attempts: who gets the lock was woken.
var endless = Options{RetryDelay: 24 * time.Hour, Retries: 1000}

// promptly is how much later than it could have been a grant may be.
const promptly = 100 * time.Millisecond

// contest runs a test of clients of the same nodes in virtual time. first has
// the lock.
func contest(t *testing.T, opt Options, ttl time.Duration, test func(t *testing.T, nodes []*memNode, lock *Lock, next func() *Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		nodes := newMemNodes(5)
		next := func() *Client {
			c := newMemClient(t, nodes, opt, nil)
			t.Cleanup(func() { _ = c.Close() })
			return c
		}
		lock, err := next().Acquire(t.Context(), "a", ttl)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		test(t, nodes, lock, next)
	})
}

// grant is the outcome of a waiting acquisition.
type grant struct {
	lock *Lock
	err  error
	at   time.Time
}

func waitFor(ctx context.Context, c *Client) <-chan grant {
	got := make(chan grant, 1)
	go func() {
		l, err := c.Acquire(ctx, "a", time.Hour)
		got <- grant{l, err, time.Now()}
	}()
	return got
}

func giveBack(t *testing.T, l *Lock) {
	t.Helper()
	if _, err := l.Release(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestWaiterIsWokenByTheRelease(t *testing.T) {
	contest(t, endless, time.Hour, func(t *testing.T, nodes []*memNode, lock *Lock, next func() *Client) {
		got := waitFor(t.Context(), next())
		time.Sleep(10 * time.Minute)
		reads := 0
		for _, n := range nodes {
			n.set(func(n *memNode) { reads += n.reads })
		}
		if reads > 3*len(nodes) {
			t.Errorf("%d reads while nothing changed: this is polling", reads)
		}
		giveBack(t, lock)
		released := time.Now()
		if g := <-got; g.err != nil || g.at.Sub(released) > promptly {
			t.Errorf("%v, after %s", g.err, g.at.Sub(released))
		}
	})
}

// TestWaiterIsWokenByTheExpiry: the nodes do not report it.
func TestWaiterIsWokenByTheExpiry(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		t.Run(fmt.Sprint("tracking denied: ", deaf), func(t *testing.T) {
			begin := time.Now()
			contest(t, endless, 3*time.Second, func(t *testing.T, nodes []*memNode, _ *Lock, next func() *Client) {
				begin = time.Now()
				for _, n := range nodes {
					n.deaf = deaf
				}
				if g := <-waitFor(t.Context(), next()); g.err != nil || g.at.Sub(begin) > 3*time.Second+promptly {
					t.Errorf("%v, after %s", g.err, g.at.Sub(begin))
				}
			})
		})
	}
}

// TestWaiterWithoutTracking: the pauses are what is left.
func TestWaiterWithoutTracking(t *testing.T) {
	for what, spoil := range map[string]func(*memNode){
		"tracking denied": func(n *memNode) { n.deaf = true },
		"no connection":   func(n *memNode) { n.trackingDown = true },
	} {
		t.Run(what, func(t *testing.T) {
			opt := Options{RetryDelay: 200 * time.Millisecond, Retries: 1000}
			contest(t, opt, time.Hour, func(t *testing.T, nodes []*memNode, lock *Lock, next func() *Client) {
				for _, n := range nodes {
					n.set(spoil)
				}
				got := waitFor(t.Context(), next())
				time.Sleep(time.Minute)
				giveBack(t, lock)
				released := time.Now()
				if g := <-got; g.err != nil || g.at.Sub(released) > 8*opt.RetryDelay+promptly {
					t.Errorf("%v, after %s", g.err, g.at.Sub(released))
				}
				for i, n := range nodes {
					n.set(func(n *memNode) {
						if n.opened > 1 {
							t.Errorf("node %d: %d connections", i, n.opened)
						}
					})
				}
			})
		})
	}
}

func TestAnExtensionCostsOneAttempt(t *testing.T) {
	contest(t, endless, time.Minute, func(t *testing.T, nodes []*memNode, lock *Lock, next func() *Client) {
		sets := countSets(nodes)
		got := waitFor(t.Context(), next())
		for range 20 {
			time.Sleep(20 * time.Second)
			if err := lock.Extend(t.Context(), time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if n := sets(); n > 3*len(nodes) {
			t.Errorf("%d SETs while one holder extended its lock", n)
		}
		giveBack(t, lock)
		released := time.Now()
		if g := <-got; g.err != nil || g.at.Sub(released) > promptly {
			t.Errorf("%v, after %s", g.err, g.at.Sub(released))
		}
	})
}

func countSets(nodes []*memNode) func() int {
	sum := func() (n int) {
		for _, m := range nodes {
			m.set(func(m *memNode) { n += m.sets })
		}
		return n
	}
	before := sum()
	return func() int { return sum() - before }
}

func TestWaitersOfOneClientGoInOrder(t *testing.T) {
	contest(t, endless, time.Hour, func(t *testing.T, _ []*memNode, lock *Lock, next func() *Client) {
		c := next()
		const many = 20
		order := make(chan int, many)
		var wg sync.WaitGroup
		defer wg.Wait()
		for i := range many {
			wg.Go(func() {
				l, err := c.Acquire(t.Context(), "a", time.Hour)
				if err != nil {
					t.Error(err)
				} else {
					order <- i
					time.Sleep(time.Millisecond)
					giveBack(t, l)
				}
			})
			time.Sleep(time.Millisecond)
		}
		giveBack(t, lock)
		released := time.Now()
		for i := range many {
			if got := <-order; got != i {
				t.Errorf("waiter %d is number %d", got, i)
			}
		}
		if took := time.Since(released); took > many*20*time.Millisecond {
			t.Errorf("%d took %s", many, took)
		}
	})
}

func TestNothingIsLeftOfWaiting(t *testing.T) {
	contest(t, endless, time.Hour, func(t *testing.T, nodes []*memNode, lock *Lock, next func() *Client) {
		c := next()
		nodes[4].set(func(n *memNode) { n.trackingDown = true })
		nodes[3].hang()
		ctx, cancel := context.WithCancel(t.Context())
		var gots []<-chan grant
		for range 10 {
			gots = append(gots, waitFor(ctx, c))
		}
		time.Sleep(time.Second)
		if n := trackings(nodes[0]); n != 1 {
			t.Errorf("%d connections", n)
		}
		cancel()
		for _, got := range gots {
			if g := <-got; !errors.Is(g.err, context.Canceled) {
				t.Error(g.err)
			}
		}
		nodes[3].resume()
		time.Sleep(trackerIdle + 2*backoffMax)
		synctest.Wait()
		for i, n := range nodes {
			e := c.waits.trackers[i]
			e.mu.Lock()
			if trackings(n) != 0 || e.state != trackerClosed {
				t.Errorf("node %d: %d connections, state %d", i, trackings(n), e.state)
			}
			e.mu.Unlock()
		}
		// And it can be waited again.
		got := waitFor(t.Context(), c)
		time.Sleep(time.Second)
		giveBack(t, lock)
		released := time.Now()
		if g := <-got; g.err != nil || g.at.Sub(released) > promptly {
			t.Errorf("%v, after %s", g.err, g.at.Sub(released))
		} else {
			giveBack(t, g.lock)
		}
		time.Sleep(2 * queueIdle)
		_, _ = c.Acquire(t.Context(), "b", time.Hour)
		if n := len(c.waits.queues); n != 0 {
			t.Errorf("%d lines are remembered", n)
		}
	})
}

func trackings(n *memNode) (open int) {
	n.set(func(n *memNode) { open = len(n.trackings) })
	return open
}

func TestHungNodesDoNotDelayWaiters(t *testing.T) {
	for _, before := range []bool{true, false} {
		t.Run(fmt.Sprint("before: ", before), func(t *testing.T) {
			contest(t, endless, time.Hour, func(t *testing.T, nodes []*memNode, lock *Lock, next func() *Client) {
				c := next()
				if before {
					nodes[0].hang()
					nodes[1].set(func(n *memNode) { n.down = true })
				}
				got := waitFor(t.Context(), c)
				time.Sleep(time.Minute)
				if !before {
					nodes[0].hang()
					nodes[1].set(func(n *memNode) { n.down = true })
				}
				released := time.Now()
				giveBack(t, lock)
				if g := <-got; g.err != nil || g.at.Sub(released) > 50*time.Millisecond+promptly {
					t.Errorf("%v, after %s", g.err, g.at.Sub(released))
				}
				nodes[0].resume()
			})
		})
	}
}

func TestContextEndsTheWaitOfOneAlone(t *testing.T) {
	contest(t, endless, time.Hour, func(t *testing.T, _ []*memNode, lock *Lock, next func() *Client) {
		c := next()
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		first := waitFor(ctx, c)
		time.Sleep(time.Second)
		second := waitFor(ctx, c)
		time.Sleep(time.Second)
		third := waitFor(t.Context(), c)
		time.Sleep(time.Second)
		cancel(why)
		ended := time.Now()
		for _, got := range []<-chan grant{first, second} {
			if g := <-got; !errors.Is(g.err, why) || !g.at.Equal(ended) {
				t.Errorf("%v, after %s", g.err, g.at.Sub(ended))
			}
		}
		time.Sleep(time.Second)
		giveBack(t, lock)
		released := time.Now()
		if g := <-third; g.err != nil || g.at.Sub(released) > promptly {
			t.Errorf("%v, after %s", g.err, g.at.Sub(released))
		}
	})
}

// TestPatienceEndsInTheLine: a waiter that was never the first in the queue also gets
// an answer when its pauses have ended.
func TestPatienceEndsInTheLine(t *testing.T) {
	opt := Options{RetryDelay: time.Second, Retries: 2}
	contest(t, opt, time.Hour, func(t *testing.T, _ []*memNode, _ *Lock, next func() *Client) {
		c := next()
		begin := time.Now()
		for _, got := range []<-chan grant{waitFor(t.Context(), c), waitFor(t.Context(), c), waitFor(t.Context(), c)} {
			g := <-got
			if took := g.at.Sub(begin); !errors.Is(g.err, ErrContended) || took < time.Second || took > 3*time.Second {
				t.Errorf("%v, after %s", g.err, took)
			}
		}
	})
}

// TestTwoTakeTurns: the smallest round; those of eight and fifty are with the
// mutants.
func TestTwoTakeTurns(t *testing.T) {
	t.Parallel()
	is, err := take(t, waiting{}, 2, 2*time.Second)
	if err != nil || is.attempts > 1.2 || is.longest > 100*time.Millisecond || 10*slices.Min(is.per) < 9*slices.Max(is.per) {
		t.Errorf("%+v, %v", is, err)
	}
}
