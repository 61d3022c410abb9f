package redlock_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlockctl/base/race"
	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
)

// atDefaults runs a test of load on five real servers with the default node timeout, that
// reports how many operations failed, and the first failure. None may, unless the
// machine had no time for the servers or for this process: one that was kept from
// running for half of that was not healthy, and the test is run again.
func atDefaults(t *testing.T, opt redlock.Options, load func(c *redlock.Client) (failed int, first error)) {
	t.Helper()
	for range 10 {
		servers := labtest.Servers(t, 5)
		c := open(t, servers, opt)
		starved := watchStarved(servers, redlock.DefaultNodeTimeout/2)
		failed, err := load(c)
		if most := starved(); most > 0 && failed > 0 {
			t.Logf("run again: a server or this process was kept from running for %s, and %d failed: %v", most, failed, err)
			continue
		}
		if failed > 0 {
			t.Errorf("%d failed: %v", failed, err)
		}
		settled(t, servers)
		return
	}
	const why = "this machine has no time for five servers: each of ten runs had one that was kept from running"
	if os.Getenv("CI") != "" || os.Getenv("REDLOCKCTL_TEST_ALL") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// watchStarved watches until it is asked for the longest time above least for which
// the kernel has kept a server, able to run, or this process from running; 0: none.
func watchStarved(servers []*lab.Server, least time.Duration) (longest func() time.Duration) {
	const every = 5 * time.Millisecond
	waited := func(s *lab.Server) time.Duration {
		var ran, waited int64
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", s.Pid()))
		_, _ = fmt.Sscan(string(b), &ran, &waited)
		return time.Duration(waited)
	}
	end, most := make(chan struct{}), make(chan time.Duration)
	before := make([]time.Duration, len(servers))
	for i, s := range servers {
		before[i] = waited(s)
	}
	go func() {
		longest, last := time.Duration(0), time.Now()
		for ended := false; !ended; {
			select {
			case <-end:
				ended = true
			case <-time.After(every):
			}
			passed := time.Since(last)
			last = last.Add(passed)
			if stood := passed - every; stood > least {
				longest = max(longest, stood)
			}
			for i, s := range servers {
				now := waited(s)
				// It is counted, as a whole, when it runs again.
				if d := now - before[i]; d > max(least, passed/2) {
					longest = max(longest, d)
				}
				before[i] = now
			}
		}
		most <- longest
	}()
	return func() time.Duration { close(end); return <-most }
}

// atOnce does n things at the same time, and returns the first error and how
// many there were.
func atOnce(n int, do func(i int) error) (failed int, first error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	begin := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-begin
			if err := do(i); err != nil {
				mu.Lock()
				defer mu.Unlock()
				if failed++; first == nil {
					first = err
				}
			}
		})
	}
	close(begin)
	wg.Wait()
	return failed, first
}

// TestBurst: ten thousand locks that are wanted at the same time wait for room on
// the way to healthy nodes, within the callers' contexts; all are granted, all are
// released, nothing is left. The race detector, which makes each many times as slow, sees
// as much in a tenth.
func TestBurst(t *testing.T) {
	many := 10_000
	if race.Enabled {
		many /= 10
	}
	atDefaults(t, redlock.Options{}, func(c *redlock.Client) (failed int, first error) {
		locks := make([]*redlock.Lock, many)
		for _, do := range []func(i int) error{
			func(i int) (err error) {
				locks[i], err = c.TryAcquire(t.Context(), fmt.Sprint("burst:", i), time.Hour)
				return err
			},
			func(i int) error { return locks[i].Extend(t.Context(), 2*time.Hour) },
			func(i int) error {
				_, err := locks[i].Release(t.Context())
				return err
			},
		} {
			if failed, first = atOnce(many, do); failed > 0 {
				return failed, first
			}
		}
		return 0, nil
	})
}

// goroutines is how many there are. While the collector frees the stacks of those
// that have ended the runtime counts them in, so the least of some readings counts.
func goroutines() int64 {
	least := runtime.NumGoroutine()
	for range 3 {
		runtime.Gosched()
		least = min(least, runtime.NumGoroutine())
	}
	return int64(least)
}

// TestSteadyLoad: thousands of callers that take and give back without a pause,
// some of them the same locks, leave nothing behind and all get what they want.
func TestSteadyLoad(t *testing.T) {
	callers, rounds := 4000, 5
	if race.Enabled {
		callers /= 10
	}
	atDefaults(t, redlock.Options{Retries: 1000}, func(c *redlock.Client) (failed int, first error) {
		before := runtime.NumGoroutine()
		var most atomic.Int64
		failed, first = atOnce(callers, func(i int) error {
			for round := range rounds {
				l, err := c.Acquire(t.Context(), fmt.Sprint("steady:", i%(callers*9/10), ":", round), time.Hour)
				if err != nil {
					return err
				}
				if n := goroutines(); n > most.Load() {
					most.Store(n)
				}
				if _, err := l.Release(context.Background()); err != nil {
					return err
				}
			}
			return nil
		})
		if most.Load() > int64(before+callers+100) {
			t.Errorf("%d goroutines for %d callers", most.Load(), callers)
		}
		return failed, first
	})
}
