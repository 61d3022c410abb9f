package redlock

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// checkExtension extends a grant whose copies may have disappeared or been replaced,
// and checks the copies afterwards.
func checkExtension(t *testing.T, seed uint64, twist func(*memNode) func([]*call) []*call) (err error) {
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		nodes := newMemNodes(1 + rnd.IntN(7))
		c := newMemClient(t, nodes, Options{Retries: -1}, twist)
		defer c.Close()
		l := mustAcquire(t, c, 10*time.Second)
		synctest.Wait()
		there, want := 0, make([]string, len(nodes))
		for i, n := range nodes {
			switch rnd.IntN(3) {
			case 0:
			case 1:
				want[i] = "another"
			default:
				want[i] = l.Token()
				there++
			}
			n.set(func(n *memNode) {
				delete(n.keys, "a")
				if want[i] != "" {
					n.keys["a"] = memCopy{want[i], time.Now().Add(5 * time.Second)}
				}
			})
		}
		var failed error
		if rnd.IntN(2) == 0 {
			failed = l.Extend(t.Context(), 20*time.Second)
		} else {
			_, failed = c.Extend(t.Context(), "a", l.Token(), 20*time.Second)
		}
		synctest.Wait()
		switch {
		case there >= c.Quorum() && failed != nil:
			err = fmt.Errorf("%d of %d copies are there: %w", there, len(nodes), failed)
		case there < c.Quorum() && !errors.Is(failed, ErrNotHeld):
			err = fmt.Errorf("%d of %d copies are there, and it says %w", there, len(nodes), failed)
		}
		for i, n := range nodes {
			n.set(func(n *memNode) {
				if got := n.get("a").token; got != want[i] {
					err = fmt.Errorf("n%d has %q, and had %q", i+1, got, want[i])
				}
			})
		}
	})
	return err
}

func TestExtendsWhatIsThere(t *testing.T) {
	for seed := range uint64(200) {
		if err := checkExtension(t, seed, nil); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// onExtension does something to a node before an extension gets there.
func onExtension(do func(n *memNode, c *call, at memCopy)) finder {
	return func(t *testing.T, seed uint64) error {
		return checkExtension(t, seed, func(n *memNode) func([]*call) []*call {
			return func(batch []*call) []*call {
				for _, c := range batch {
					if c.op == opExtend {
						do(n, c, n.get(c.key))
					}
				}
				return batch
			}
		})
	}
}

func extensionRevives(t *testing.T, seed uint64) error {
	return onExtension(func(n *memNode, c *call, at memCopy) {
		if at.token == "" {
			n.keys[c.key] = memCopy{c.token, n.expiry(c.ttl)}
		}
	})(t, seed)
}

func extensionTakes(t *testing.T, seed uint64) error {
	return onExtension(func(n *memNode, c *call, at memCopy) {
		if at.token != "" {
			n.keys[c.key] = memCopy{c.token, at.expires}
		}
	})(t, seed)
}

func extensionShortens(t *testing.T, seed uint64) error {
	s := contenders()
	s.twist = func(n *memNode) func([]*call) []*call {
		return func(batch []*call) []*call {
			for _, c := range batch {
				if at := n.get(c.key); c.op == opExtend && at.token == c.token {
					if e := n.expiry(c.ttl); e.Before(at.expires) {
						n.keys[c.key] = memCopy{at.token, e}
					}
				}
			}
			return batch
		}
	}
	return excludes(t, seed, s)
}
