package observe_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"redlockctl/internal/lab/labtest"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/redlock"
)

// On a clean cluster with busy clients, there is only advice, no alarm, and no clock
// step. REDLOCKCTL_WATCH sets the duration, for example 24h; default a few seconds.
func TestACleanClusterIsClean(t *testing.T) {
	span := 3 * time.Second
	if v := os.Getenv("REDLOCKCTL_WATCH"); v != "" {
		var err error
		if span, err = time.ParseDuration(v); err != nil {
			t.Fatal(err)
		}
	}
	servers := labtest.Servers(t, 5, "--save", "", "--appendonly", "yes", "--appendfsync", "always") // durable, so safe without a guard
	nodes := labtest.Nodes(servers)
	const patience = 5 * time.Second // a disk that hangs for a second is the machine's problem, not the cluster's
	opt := observe.Options{MaxTTL: 30 * time.Second, Timeout: patience, Redlock: redlock.Options{NodeTimeout: patience}}
	m := watch(t, nodes, opt)
	settled(t, m)

	ctx, cancel := context.WithTimeout(t.Context(), span)
	defer cancel()
	var work sync.WaitGroup
	defer work.Wait()
	grants := make([]int, 8)
	for i := range grants {
		c, err := redlock.New(nodes, redlock.Options{NodeTimeout: patience, Retries: 20})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		work.Go(func() {
			for ctx.Err() == nil {
				l, err := c.Acquire(ctx, fmt.Sprint("job:", rand.IntN(4)), 10*time.Second)
				if err != nil {
					continue
				}
				grants[i]++
				for range rand.IntN(3) {
					time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
					_ = l.Extend(ctx, 10*time.Second)
				}
				_, _ = l.Release(context.WithoutCancel(ctx))
			}
		})
	}
	seen, version := uint64(0), m.Snapshot().Version
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-m.Changed(version):
		}
		version = m.Snapshot().Version
		events, missed := m.EventsSince(seen)
		if missed > 0 {
			t.Errorf("%d events missed", missed)
		}
		for _, e := range events {
			seen = e.Seq
			if e.Level > monitor.LevelInfo && e.Kind != "missed grants" { // on a busy machine some are too short
				t.Errorf("%s %s %s %s: %s", e.Level, e.Kind, e.Node, e.Key, e.Text)
			}
		}
	}
	work.Wait()
	s := m.Snapshot()
	for _, f := range s.Findings {
		if f.Severity > monitor.SeverityInfo {
			t.Errorf("%s %s: %s", f.Severity, f.ID, f.Evidence)
		}
	}
	all := 0
	for _, n := range grants {
		all += n
	}
	if all == 0 {
		t.Error("nobody got a lock")
	}
	until(t, m, "what a direct read says", func(s *monitor.Snapshot) bool { return equal(t, s, servers) })
	t.Logf("%d grants, %d events in %s", all, seen, span)
}
