package redlock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"redlockctl/base/race"
)

// belief is a time during which a client may act as the holder.
type belief struct {
	client   int
	from, to time.Time
}

// faults plays faults on the nodes until ctx ends, then makes all well.
func faults(ctx context.Context, rnd *rand.Rand, nodes []*memNode, forget bool) {
	for ctx.Err() == nil {
		n := nodes[rnd.IntN(len(nodes))]
		if rnd.IntN(2) == 0 {
			heal(n)
			continue
		}
		switch rnd.IntN(6) {
		case 0:
			n.hang()
		case 1:
			n.resume()
		case 2:
			down := rnd.IntN(3) == 0
			n.set(func(n *memNode) {
				n.down = down
				if down && forget {
					clear(n.keys)
				}
			})
		case 3:
			fenced := rnd.IntN(4) == 0
			n.set(func(n *memNode) { n.fenced = fenced })
		default:
			most := []int{0, 2, 30, 300}[rnd.IntN(4)] // milliseconds
			seed := rnd.Uint64()
			n.set(func(n *memNode) {
				if most == 0 {
					n.delay = nil
					return
				}
				r := rand.New(rand.NewPCG(seed, 0)) // used under n.mu
				n.delay = func() (to, back time.Duration) {
					return time.Duration(r.IntN(most * 1e6)), time.Duration(r.IntN(most * 1e6))
				}
			})
		}
		select {
		case <-time.After(time.Duration(rnd.IntN(60)) * time.Millisecond):
		case <-ctx.Done():
		}
	}
	for _, n := range nodes {
		heal(n)
	}
}

func heal(n *memNode) {
	n.resume()
	n.set(func(n *memNode) { n.down, n.fenced, n.delay = false, false, nil })
}

// schedule is one random run of several clients that fight for one lock while
// nodes fail. It returns all beliefs.
type schedule struct {
	opt    Options
	ttl    time.Duration
	faulty bool
	forget bool // nodes lose their memory when they go down
	twist  func(*memNode) func([]*call) []*call
	hold   func(l *Lock, rnd *rand.Rand) // what a holder does
	// client makes a client, as newMemClient does, which is the default.
	client func(testing.TB, []*memNode, Options, func(*memNode) func([]*call) []*call) *Client
}

func (s schedule) run(t *testing.T, seed uint64) (beliefs []belief, left int) {
	synctest.Test(t, func(t *testing.T) {
		client := s.client
		if client == nil {
			client = newMemClient
		}
		rnd := rand.New(rand.NewPCG(seed, 1))
		nodes := newMemNodes([]int{1, 2, 3, 3, 4, 5, 5, 9}[rnd.IntN(8)])
		for _, n := range nodes {
			n.rate = (2*rnd.Float64() - 1) * 0.004
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		var mu sync.Mutex
		var wg, playing sync.WaitGroup
		var clients []*Client
		for i := range 2 + rnd.IntN(3) {
			c := client(t, nodes, s.opt, s.twist)
			clients = append(clients, c)
			mine := rand.New(rand.NewPCG(seed, uint64(i)+2))
			wg.Go(func() {
				for ctx.Err() == nil {
					l, err := c.Acquire(ctx, "a", s.ttl)
					if err != nil {
						if errors.Is(err, ErrInvalid) {
							t.Error(err)
							return
						}
						continue
					}
					from := time.Now()
					s.hold(l, mine)
					to := time.Now()
					if u := l.Until(); u.Before(to) {
						to = u
					}
					mu.Lock()
					beliefs = append(beliefs, belief{i, from, to})
					mu.Unlock()
					_, _ = l.Release(ctx)
				}
			})
		}
		if s.faulty {
			playing.Go(func() { faults(ctx, rnd, nodes, s.forget) })
		}
		wg.Wait()
		playing.Wait()
		time.Sleep(20 * time.Second) // for all that is under way
		for _, n := range nodes {
			left += n.live()
		}
		for _, c := range clients {
			_ = c.Close()
		}
	})
	return beliefs, left
}

// overlap looks for two beliefs of different clients at the same time.
func overlap(beliefs []belief) error {
	for i, a := range beliefs {
		for _, b := range beliefs[:i] {
			if a.client != b.client && a.from.Before(b.to) && b.from.Before(a.to) {
				return fmt.Errorf("client %d from %s to %s, client %d from %s to %s", a.client,
					a.from.Format(time.StampNano), a.to.Format(time.StampNano), b.client,
					b.from.Format(time.StampNano), b.to.Format(time.StampNano))
			}
		}
	}
	return nil
}

func contenders() schedule {
	return schedule{
		opt: Options{NodeTimeout: 20 * time.Millisecond, RetryDelay: 10 * time.Millisecond, Retries: 5},
		ttl: 300 * time.Millisecond, faulty: true,
		hold: func(l *Lock, rnd *rand.Rand) {
			for rnd.IntN(3) == 0 {
				time.Sleep(time.Duration(rnd.Int64N(int64(400 * time.Millisecond))))
				if l.Extend(context.Background(), time.Duration(100+rnd.IntN(400))*time.Millisecond) != nil {
					break
				}
			}
			// Many hold on to the very end.
			time.Sleep(time.Duration(rnd.Int64N(int64(400 * time.Millisecond))))
		},
	}
}

// tidy is a schedule after which nothing must be left on any node, although
// no copy expires.
func tidy() schedule {
	s := contenders()
	s.ttl = time.Hour
	s.opt.Retries = 2
	s.hold = func(l *Lock, rnd *rand.Rand) { time.Sleep(time.Duration(rnd.Int64N(int64(20 * time.Millisecond)))) }
	return s
}

// safetySeeds is how many schedules are played at least; the environment
// variable says for how long to go on, for a campaign.
const (
	safetySeeds    = 60
	safetyVariable = "REDLOCKCTL_SAFETY"
)

// seeds are the schedules to play, of which there are some at least.
func seeds(t *testing.T, least uint64) iter.Seq[uint64] {
	t.Helper()
	var long time.Duration
	if text := os.Getenv(safetyVariable); text != "" {
		var err error
		if long, err = time.ParseDuration(text); err != nil || long <= 0 {
			t.Fatalf("%s=%q is not a positive duration", safetyVariable, text)
		}
	}
	return func(yield func(uint64) bool) {
		begin, seed := time.Now(), uint64(0)
		for ; seed < least || time.Since(begin) < long; seed++ {
			if !yield(seed) {
				return
			}
		}
		t.Logf("%d schedules", seed)
	}
}

func TestExclusion(t *testing.T) {
	t.Parallel()
	grants := 0
	least := race.Few(uint64(safetySeeds))
	for seed := range seeds(t, least) {
		beliefs, _ := contenders().run(t, seed)
		grants += len(beliefs)
		if err := overlap(beliefs); err != nil {
			t.Fatalf("seed %d: two holders: %v", seed, err)
		}
	}
	if grants < int(least)*5 {
		t.Errorf("only %d grants in all: this shows nothing", grants)
	}
}

func TestNothingLeftBehind(t *testing.T) {
	t.Parallel()
	grants := 0
	least := race.Few(uint64(safetySeeds))
	for seed := range seeds(t, least) {
		beliefs, left := tidyHung().run(t, seed)
		if err := overlap(beliefs); err != nil {
			t.Fatalf("seed %d: two holders: %v", seed, err)
		}
		if left > 0 {
			t.Fatalf("seed %d: %d copies are left", seed, left)
		}
		grants += len(beliefs)
	}
	if grants < int(least)*20 {
		t.Errorf("only %d grants in all: this shows nothing", grants)
	}
}

// tidyHung hangs and resumes nodes in turn. (A request that the network delivers after
// its connection was closed may arrive after its release, and a fenced node keeps its
// copies: no client can prevent that.)
func tidyHung() schedule {
	s := tidy()
	s.faulty = false
	s.twist = func(n *memNode) func([]*call) []*call {
		rnd := rand.New(rand.NewPCG(7, 7))
		return func(batch []*call) []*call { // under n.mu
			if rnd.IntN(20) == 0 && !n.hung {
				n.hung, n.resumed = true, make(chan struct{})
				time.AfterFunc(time.Duration(1+rnd.IntN(300))*time.Millisecond, n.resume)
			}
			return batch
		}
	}
	return s
}

func leftover(n int) error {
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%d copies are left", n)
}
