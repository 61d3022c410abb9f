package observe_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/redlock"
)

// Each dangerous state is an event and the verdict while hundreds of other locks change.
func TestADangerIsAnnouncedOnABusyCluster(t *testing.T) {
	servers := labtest.Servers(t, 5)
	m := watch(t, labtest.Nodes(servers), observe.Options{MaxTTL: time.Minute})
	settled(t, m)
	ctx, cancel := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	defer busy.Wait()
	defer cancel()
	for _, srv := range servers {
		busy.Go(func() {
			c := redlock.Connect(srv.Node(), 1, 10*time.Second)
			defer c.Close()
			for n := 0; ctx.Err() == nil; n++ {
				for k := range 10 {
					_ = c.Set(ctx, fmt.Sprint("other:", (10*n+k)%400), fmt.Sprint("token", n), 50*time.Second).Err()
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	set := func(key, token string, ttl time.Duration, on ...*lab.Server) {
		for _, srv := range on {
			if ttl == 0 {
				do(t, srv, "set", key, token)
			} else {
				do(t, srv, "set", key, token, "px", ttl.Milliseconds())
			}
		}
	}
	for _, c := range []struct {
		key, kind, found string
		do               func(key string)
	}{
		{"unknown", "split", "split-lock", func(key string) {
			set(key, "a", 40*time.Second, servers[0], servers[1])
			set(key, "b", 40*time.Second, servers[2], servers[3])
		}},
		{"overtaken", "split", "split-lock", func(key string) {
			set(key, "a", 40*time.Second, servers[:3]...)
			until(t, m, "the first grant", func(s *monitor.Snapshot) bool { l := lock(s, key); return l != nil && l.Held == 3 })
			do(t, servers[0], "del", key)
			set(key, "b", 40*time.Second, servers[0], servers[3], servers[4])
		}},
		{"endless", "no TTL", "no-ttl-lock", func(key string) { set(key, "a", 0, servers[:3]...) }},
		{"long", "over max TTL", "over-ttl", func(key string) { set(key, "a", time.Hour, servers[:3]...) }},
		{"lost", "lost majority", "exposed-lock", func(key string) {
			set(key, "a", 40*time.Second, servers[:3]...)
			until(t, m, "the grant", func(s *monitor.Snapshot) bool { l := lock(s, key); return l != nil && l.Held == 3 })
			for _, srv := range servers[:2] {
				if err := errors.Join(srv.Kill(), srv.Start()); err != nil {
					t.Fatal(err)
				}
			}
		}},
	} {
		c.do(c.key)
		until(t, m, c.key, func(s *monitor.Snapshot) bool {
			told := slices.ContainsFunc(m.History(c.key), func(e monitor.Event) bool { return e.Kind == c.kind })
			found := slices.ContainsFunc(s.Findings, func(f monitor.Finding) bool {
				return f.ID == c.found && f.Severity == monitor.SeverityDanger
			})
			return told && found && s.Cluster.Verdict == monitor.VerdictDanger
		})
	}
}
