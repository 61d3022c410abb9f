package redlock

import (
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"redlockctl/base/race"
)

// restart lets a node come back as another incarnation, empty.
func (n *memNode) restart() {
	n.set(func(n *memNode) {
		n.incarnation++
		clear(n.keys)
		clear(n.numbers)
		for _, l := range n.links {
			l.close()
		}
		n.links = nil
	})
}

func (n *memNode) has(key string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.get(key).token
}

// keptOn runs a test of a keeper over n masters.
func keptOn(t *testing.T, n int, opt KeepOptions, test func(t *testing.T, nodes []*memNode, c *Client, l *Lock, k *Keeper)) {
	t.Helper()
	inMemory(t, n, func(t *testing.T, nodes []*memNode, c *Client) {
		l := mustFence(t, c)
		synctest.Wait()
		k := mustKeep(t, l, opt)
		defer k.Stop()
		test(t, nodes, c, l, k)
	})
}

// TestAKeptLockOutlivesARestartOfAllMasters, one by one, each fenced for a while.
func TestAKeptLockOutlivesARestartOfAllMasters(t *testing.T) {
	for _, n := range []int{3, 4, 5} {
		var told []string
		opt := KeepOptions{TTL: 30 * time.Second, Repaired: func(nodes []string) { told = append(told, nodes...) }}
		keptOn(t, n, opt, func(t *testing.T, nodes []*memNode, c *Client, l *Lock, k *Keeper) {
			for round := range 2 {
				for i, node := range nodes {
					node.set(func(n *memNode) { n.fenced = true })
					node.restart()
					time.Sleep(31 * time.Second)
					if at := node.has("a"); at != "" {
						t.Fatalf("a copy on a fenced node")
					}
					node.set(func(n *memNode) { n.fenced = false })
					time.Sleep(20 * time.Second)
					if node.has("a") != l.Token() || k.State() != Held {
						t.Fatalf("%d masters, round %d: n%d restarted: %q is there, and the lock %s: %v", n, round, i+1, node.has("a"), k.State(), k.Err())
					}
					node.set(func(n *memNode) {
						if n.numbers["a"] != l.FencingToken() {
							t.Errorf("the fencing counter is %d", n.numbers["a"])
						}
					})
				}
			}
			synctest.Wait()
			if len(told) != 2*n {
				t.Errorf("told of %v", told)
			}
			if _, err := k.Release(t.Context()); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			for _, node := range nodes {
				if node.live() > 0 {
					t.Error("a copy is left")
				}
			}
		})
	}
}

// TestWhatIsDeletedIsNotPutBack: a copy that is gone in the same incarnation was
// deleted by somebody, and so was one whose incarnation is not known.
func TestWhatIsDeletedIsNotPutBack(t *testing.T) {
	keptOn(t, 5, KeepOptions{TTL: 30 * time.Second}, func(t *testing.T, nodes []*memNode, c *Client, l *Lock, k *Keeper) {
		time.Sleep(15 * time.Second)
		nodes[0].set(func(n *memNode) { n.mute = true })
		nodes[0].restart()
		nodes[1].forget()
		time.Sleep(time.Minute)
		if nodes[0].has("a") != "" || nodes[1].has("a") != "" {
			t.Error("a copy was put back that may have been deleted")
		}
		nodes[1].restart()
		time.Sleep(time.Minute)
		if nodes[1].has("a") == "" || k.State() != Held {
			t.Errorf("after a restart: %s", k.State())
		}
		nodes[2].forget()
		time.Sleep(10 * time.Second)
		nodes[3].forget()
		if err := <-lostOf(k); !errors.Is(err, ErrNotHeld) {
			t.Errorf("three of five copies were deleted: %v", err)
		}
	})
}

// TestAKeptLockOutlivesADrainOfAllMasters, one by one, none of which is restarted: each refuses
// to write until the copy has expired there, and serves again. The first drain begins at once.
func TestAKeptLockOutlivesADrainOfAllMasters(t *testing.T) {
	for _, n := range []int{3, 4, 5} {
		keptOn(t, n, KeepOptions{TTL: 30 * time.Second}, func(t *testing.T, nodes []*memNode, c *Client, l *Lock, k *Keeper) {
			for round := range 2 {
				for i, node := range nodes {
					node.set(func(n *memNode) { n.fenced = true })
					time.Sleep(l.TTL() + 11*time.Second)
					if node.has("a") != "" {
						t.Fatal("it has not expired")
					}
					node.set(func(n *memNode) { n.fenced = false })
					time.Sleep(10 * time.Second)
					if node.has("a") != l.Token() || k.State() != Held {
						t.Fatalf("%d masters, round %d: n%d was drained: %q is there, and the lock is %s: %v", n, round, i+1, node.has("a"), k.State(), k.Err())
					}
				}
			}
		})
	}
}

// TestWhatAFencedNodeLosesEarlyIsNotPutBack: a copy that is gone before its own end was deleted, also
// where a fence had refused the extension before that, and no change is reported.
func TestWhatAFencedNodeLosesEarlyIsNotPutBack(t *testing.T) {
	for name, lose := range map[string]func(*memNode){
		"deleted behind the fence":             func(n *memNode) { clear(n.keys) },
		"deleted when the fence is gone":       func(n *memNode) { clear(n.keys); n.fenced = false },
		"no refusal is known from before that": func(n *memNode) { n.down = true },
	} {
		t.Run(name, func(t *testing.T) {
			keptOn(t, 5, KeepOptions{TTL: 30 * time.Second}, func(t *testing.T, nodes []*memNode, c *Client, l *Lock, k *Keeper) {
				time.Sleep(time.Minute)
				nodes[0].set(func(n *memNode) { n.fenced = true })
				time.Sleep(11 * time.Second)
				nodes[0].set(lose)
				time.Sleep(time.Minute)
				nodes[0].set(func(n *memNode) { n.fenced, n.down = false, false })
				time.Sleep(time.Minute)
				if nodes[0].has("a") == l.Token() || k.State() != Held {
					t.Errorf("%q is there, and the lock is %s", nodes[0].has("a"), k.State())
				}
			})
		})
	}
}

func lostOf(k *Keeper) <-chan error {
	c := make(chan error, 1)
	go func() {
		<-k.Context().Done()
		c <- k.Err()
	}()
	return c
}

// TestAnAttemptThatMissedANodeGetsItsCopyThere later, when it answers again.
func TestAnAttemptThatMissedANodeGetsItsCopyThere(t *testing.T) {
	inMemory(t, 3, func(t *testing.T, nodes []*memNode, c *Client) {
		nodes[2].set(func(n *memNode) { n.fenced = true })
		l := mustAcquire(t, c, 30*time.Second)
		k := mustKeep(t, l, KeepOptions{})
		defer k.Stop()
		time.Sleep(15 * time.Second)
		nodes[2].set(func(n *memNode) { n.fenced = false })
		time.Sleep(15 * time.Second)
		if nodes[2].has("a") != l.Token() {
			t.Error("no copy")
		}
	})
}

// takenRun lets an operator take a kept lock away at any moment while masters
// restart, or were drained. It reports whether the lock was held on by an extension that began after the
// operator had been told that it was done.
func takenRun(t *testing.T, seed uint64) (taken, after bool) {
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		nodes := newMemNodes([]int{3, 4, 5}[rnd.IntN(3)])
		c := newMemClient(t, nodes, Options{NodeTimeout: 500 * time.Millisecond}, nil)
		op := newMemClient(t, nodes, Options{NodeTimeout: 500 * time.Millisecond}, nil)
		defer func() { _ = c.Close(); _ = op.Close() }()
		l := mustAcquire(t, c, 9*time.Second)
		synctest.Wait()
		k := mustKeep(t, l, KeepOptions{})
		defer k.Stop()
		time.Sleep(time.Duration(rnd.Int64N(int64(10 * time.Second))))
		for _, i := range rnd.Perm(len(nodes))[:rnd.IntN(len(nodes)-c.Quorum()+1)] {
			if rnd.IntN(2) == 0 {
				nodes[i].restart()
				continue
			}
			nodes[i].set(func(n *memNode) { n.fenced = true })
			time.Sleep(13 * time.Second) // its copy expires
			nodes[i].set(func(n *memNode) { n.fenced = false })
		}
		// At a random time around the extension that puts the copies back, and the ones
		// after it.
		time.Sleep(time.Until(k.due()) - 400*time.Millisecond + time.Duration(rnd.Int64N(int64(900*time.Millisecond))))
		for _, n := range nodes {
			to, back := time.Duration(rnd.Int64N(int64(450*time.Millisecond))), time.Duration(0)
			if rnd.IntN(2) == 0 {
				to = 0
			}
			n.set(func(n *memNode) { n.delay = func() (time.Duration, time.Duration) { return to, back } })
			if rnd.IntN(3) == 0 {
				time.AfterFunc(time.Duration(rnd.Int64N(int64(time.Second))), func() { n.set(func(n *memNode) { n.delay = nil }) })
			}
		}
		_, err := op.ForceRelease(t.Context(), "a", l.Token())
		taken = err == nil
		told := time.Now()
		for range 10 {
			time.Sleep(2 * time.Second)
			if k.State() == Lost {
				return
			}
			after = after || taken && k.Until().After(told.Add(9*time.Second))
		}
	})
	return taken, after
}

// TestAForceReleasedLockIsNotPutBack: what an operator was told is gone stays gone,
// whatever is put back meanwhile.
func TestAForceReleasedLockIsNotPutBack(t *testing.T) {
	taken, least := 0, race.Few(uint64(300))
	for seed := range seeds(t, least) {
		was, after := takenRun(t, seed)
		if was {
			taken++
		}
		if after {
			t.Fatalf("seed %d: extended after it was revoked or force-released", seed)
		}
	}
	if taken < int(least)/3 {
		t.Errorf("only %d were revoked or force-released: this shows nothing", taken)
	}
}
