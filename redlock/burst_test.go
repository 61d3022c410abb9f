package redlock_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
)

// unhurried are options with which no node is late because this process is: ten
// thousand goroutines that begin at the same time, under the race detector and beside
// other tests, keep the readers of the nodes from their turn for a second and more.
func unhurried() redlock.Options {
	opt := patient()
	opt.NodeTimeout = 30 * time.Second
	return opt
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
// released, nothing is left.
func TestBurst(t *testing.T) {
	const many = 10_000
	servers := labtest.Servers(t, 5)
	c := open(t, servers, unhurried())
	locks := make([]*redlock.Lock, many)
	if failed, err := atOnce(many, func(i int) (err error) {
		locks[i], err = c.Acquire(t.Context(), fmt.Sprint("burst:", i), time.Hour)
		return err
	}); failed > 0 {
		t.Fatalf("%d of %d were not granted: %v", failed, many, err)
	}
	if failed, err := atOnce(many, func(i int) error { return locks[i].Extend(t.Context(), 2*time.Hour) }); failed > 0 {
		t.Errorf("%d of %d were not extended: %v", failed, many, err)
	}
	if failed, err := atOnce(many, func(i int) error {
		_, err := locks[i].Release(t.Context())
		return err
	}); failed > 0 {
		t.Errorf("%d of %d were not released: %v", failed, many, err)
	}
	settled(t, servers)
}

// TestSteadyLoad: thousands of callers that take and give back without a pause,
// some of them the same locks, leave nothing behind and all get what they want.
func TestSteadyLoad(t *testing.T) {
	const callers, rounds = 4000, 5
	servers := labtest.Servers(t, 5)
	opt := unhurried()
	opt.Retries = 1000
	c := open(t, servers, opt)
	before := runtime.NumGoroutine()
	var most atomic.Int64
	failed, err := atOnce(callers, func(i int) error {
		for round := range rounds {
			l, err := c.Acquire(t.Context(), fmt.Sprint("steady:", i%(callers*9/10), ":", round), time.Hour)
			if err != nil {
				return err
			}
			if n := int64(runtime.NumGoroutine()); n > most.Load() {
				most.Store(n)
			}
			if _, err := l.Release(context.Background()); err != nil {
				return err
			}
		}
		return nil
	})
	if failed > 0 {
		t.Errorf("%d of %d failed: %v", failed, callers, err)
	}
	if most.Load() > int64(before+callers+100) {
		t.Errorf("%d goroutines for %d callers", most.Load(), callers)
	}
	settled(t, servers)
}
