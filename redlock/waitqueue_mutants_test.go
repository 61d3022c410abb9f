package redlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"redlockctl/base/race"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"text/tabwriter"
	"time"
)

// waiting is a way to wait: the whole of it, or a mutant with one rule broken.
// Nothing in it can make a lock unsafe: what the checks notice is that somebody
// waits too long, or costs the others too much.
type waiting struct {
	hear     func(message) (m message, heard bool) // of what comes over the tracking connections; nil: all
	opt      func(*Options)
	note     func(note) note // what a token tells
	released func(*Client)   // what a client does when it has released
}

func (w waiting) client(t testing.TB, nodes []*memNode, opt Options) *Client {
	if w.opt != nil {
		w.opt(&opt)
	}
	c := wired(t, nodes, opt, nil, nil, func(m *memTracking) trackingConn {
		if w.hear == nil {
			return m
		}
		return bentTap{m, w.hear}
	})
	if w.note != nil {
		c.token = func(n note) string { return newToken(w.note(n)) }
	}
	return c
}

// bentTap changes what is heard, or leaves it out.
type bentTap struct {
	*memTracking
	bend func(message) (message, bool)
}

func (b bentTap) receive() (message, error) {
	for {
		m, err := b.memTracking.receive()
		if err != nil {
			return m, err
		}
		if m, heard := b.bend(m); heard {
			return m, nil
		}
	}
}

// checkWait lets a client wait for a lock that another one has, and then
// releases or lets expire. It is an error if the wait goes on for longer than
// late after that, or costs more than a few reads and SETs.
func checkWait(t *testing.T, w waiting, opt Options, ttl, late time.Duration, spoil func(*memNode), hold func(*Lock) error) (err error) {
	synctest.Test(t, func(t *testing.T) {
		nodes := newMemNodes(5)
		for _, n := range nodes {
			spoil(n)
		}
		first, second := w.client(t, nodes, opt), w.client(t, nodes, opt)
		defer first.Close()
		defer second.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var l *Lock
		if l, err = first.Acquire(ctx, "a", ttl); err != nil {
			return
		}
		synctest.Wait()
		sets := countSets(nodes)
		got := waitFor(ctx, second)
		if err = hold(l); err != nil {
			return
		}
		reads := 0
		for _, n := range nodes {
			n.set(func(n *memNode) { reads += n.reads })
		}
		free := time.Now()
		select {
		case g := <-got:
			err = g.err
		case <-time.After(late):
			err = fmt.Errorf("still waiting %s after the lock became free", time.Since(free))
		}
		if err == nil && opt.RetryDelay == endless.RetryDelay { // no pauses that may cost something
			switch {
			case reads > 30*len(nodes):
				err = fmt.Errorf("%d reads: this is polling", reads)
			case sets() > 4*len(nodes):
				err = fmt.Errorf("%d SETs for one grant", sets())
			}
		}
		cancel()
	})
	return err
}

func well(*memNode) {}

// byRelease: woken by the release.
func byRelease(t *testing.T, w waiting) error {
	return checkWait(t, w, endless, time.Hour, promptly, well, func(l *Lock) error {
		time.Sleep(time.Minute)
		_, err := l.Release(context.Background())
		return err
	})
}

// byExpiry: woken by the end of the TTL, which the nodes do not report.
func byExpiry(t *testing.T, w waiting) error {
	return checkWait(t, w, endless, 3*time.Second, promptly, well, func(l *Lock) error {
		time.Sleep(3 * time.Second)
		return nil
	})
}

// byPauses: the random pauses are left where nodes deny tracking.
func byPauses(t *testing.T, w waiting) error {
	opt := Options{RetryDelay: 200 * time.Millisecond, Retries: 1000}
	return checkWait(t, w, opt, time.Hour, 8*opt.RetryDelay+promptly, func(n *memNode) { n.deaf = true }, func(l *Lock) error {
		time.Sleep(time.Minute)
		_, err := l.Release(context.Background())
		return err
	})
}

// byExtensions: a holder that extends its lock costs those who wait a read each
// time, and not an attempt.
func byExtensions(t *testing.T, w waiting) error {
	return checkWait(t, w, endless, time.Minute, promptly, well, func(l *Lock) error {
		for range 20 {
			time.Sleep(20 * time.Second)
			if err := l.Extend(context.Background(), time.Minute); err != nil {
				return err
			}
		}
		_, err := l.Release(context.Background())
		return err
	})
}

// turns is the result of clients that take turns.
type turns struct {
	grants   int
	attempts float64 // for one grant
	longest  time.Duration
	per      []int // grants of each
}

// take lets clients that hold for 5 ms fight for one key.
func take(t *testing.T, w waiting, clients int, long time.Duration) (is turns, err error) {
	synctest.Test(t, func(t *testing.T) {
		nodes := newMemNodes(5)
		for _, n := range nodes {
			r := rand.New(rand.NewPCG(1, uint64(clients)))
			n.delay = func() (to, back time.Duration) {
				return time.Duration(r.IntN(2e5)), time.Duration(r.IntN(2e5))
			}
		}
		begin := time.Now()
		var mu sync.Mutex
		var wg sync.WaitGroup
		is.per = make([]int, clients)
		for i := range clients {
			c := w.client(t, nodes, Options{Retries: 1 << 20})
			wg.Go(func() {
				defer func() { _ = c.Close() }()
				for time.Since(begin) < long {
					asked := time.Now()
					l, failed := c.Acquire(t.Context(), "a", time.Minute)
					mu.Lock()
					if failed != nil {
						err = failed
						mu.Unlock()
						return
					}
					is.longest = max(is.longest, time.Since(asked))
					is.grants++
					is.per[i]++
					mu.Unlock()
					time.Sleep(5 * time.Millisecond)
					_, _ = l.Release(t.Context())
					if w.released != nil {
						w.released(c)
					}
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Second)
		for _, n := range nodes {
			is.attempts += float64(n.sets) / float64(is.grants*len(nodes))
			if n.live() > 0 {
				err = errors.New("copies are left")
			}
		}
	})
	return is, err
}

// byTurns: eight clients take turns. The lock does not stand idle, attempts are
// few, and nobody waits for much longer than a round.
func byTurns(t *testing.T, w waiting) error {
	const long = 3 * time.Second
	is, err := take(t, w, 8, long)
	switch {
	case err != nil:
		return err
	case float64(is.grants)/long.Seconds() < 160:
		return fmt.Errorf("%d grants in %s", is.grants, long)
	case is.attempts > 1.5:
		return fmt.Errorf("%.2f attempts per grant", is.attempts)
	case is.longest > 120*time.Millisecond:
		return fmt.Errorf("somebody waited for %s", is.longest)
	case 2*slices.Min(is.per) < slices.Max(is.per):
		return fmt.Errorf("between %d and %d grants each", slices.Min(is.per), slices.Max(is.per))
	}
	return nil
}

// brokenWaits are the rules of waiting, each with a mutant that breaks it.
func brokenWaits() []struct {
	rule, broken string
	check        func(*testing.T, waiting) error
	mutant       waiting
} {
	return []struct {
		rule, broken string
		check        func(*testing.T, waiting) error
		mutant       waiting
	}{
		{"a release wakes", "nobody is told of changes", byRelease, waiting{
			hear: func(m message) (message, bool) { return m, !m.changed },
		}},
		{"an expiry wakes", "the TTL is not looked at", byExpiry, waiting{
			hear: func(m message) (message, bool) { m.ttl = -1; return m, true },
		}},
		{"without tracking there are pauses", "they are forgotten", byPauses, waiting{
			opt: func(o *Options) { o.RetryDelay = endless.RetryDelay },
		}},
		{"an extension is no release", "the holder is not told from the one before", byExtensions, waiting{
			hear: func(m message) (message, bool) {
				if m.there {
					m.token = newToken(note{waited: unwaited})
				}
				return m, true
			},
		}},
		{"one goes at a time", "all think that it is their turn", byTurns, waiting{
			note: func(n note) note { n.waited = 0; return n },
		}},
		{"whose turn it is goes at once", "nobody thinks so", byTurns, waiting{
			note: func(n note) note { n.waited = unwaited - 1; return n },
		}},
		{"others go first", "who has just had the lock forgets them, and goes again", byTurns, waiting{
			released: func(c *Client) {
				c.waits.mu.Lock()
				defer c.waits.mu.Unlock()
				clear(c.waits.queues)
				c.waits.some.Store(false)
			},
		}},
	}
}

// TestWaitingMutants expects that the whole passes each check, and that the mutant
// does not.
func TestWaitingMutants(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "rule\tbroken\tnoticed")
	for what, check := range map[string]func(*testing.T, waiting) error{
		"release": byRelease, "expiry": byExpiry, "pauses": byPauses, "extensions": byExtensions, "turns": byTurns,
	} {
		if err := check(t, waiting{}); err != nil {
			t.Errorf("the whole does not pass the check of %s: %v", what, err)
		}
	}
	for _, b := range brokenWaits() {
		t.Run(b.rule, func(t *testing.T) {
			err := b.check(t, b.mutant)
			if err == nil {
				t.Errorf("%s: not noticed", b.broken)
			}
			fmt.Fprintf(w, "%s\t%s\t%v\n", b.rule, b.broken, err)
		})
	}
	_ = w.Flush()
	t.Log("\n" + table.String())
}

// TestFiftyTakeTurns: the order of turns is learnt from nothing in a few seconds,
// and nobody starves meanwhile.
func TestFiftyTakeTurns(t *testing.T) {
	race.Skip(t) // two of them do the same in TestTwoTakeTurns
	t.Parallel()
	const long = 3 * time.Second
	is, err := take(t, waiting{}, 50, long)
	if err != nil {
		t.Fatal(err)
	}
	least, most := slices.Min(is.per), slices.Max(is.per)
	t.Logf("%d grants, %.2f attempts per grant, longest wait %s, between %d and %d each", is.grants, is.attempts, is.longest, least, most)
	if float64(is.grants)/long.Seconds() < 150 {
		t.Errorf("%d grants in %s", is.grants, long)
	}
	if is.attempts > 10 {
		t.Errorf("%.2f attempts per grant", is.attempts)
	}
	// A round takes 0.28 s at best.
	if is.longest > 2*time.Second || 3*least < most {
		t.Errorf("somebody waited for %s; between %d and %d grants each", is.longest, least, most)
	}
}
