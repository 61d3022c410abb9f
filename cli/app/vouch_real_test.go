package app

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/internal/record"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/restartguard"
	"redlockctl/restartguard/watch"
	"redlockctl/server/announce"
)

// A holder has a lock on n1, n2 and n3; n1 is killed and comes back fenced, then all three. A
// monitor that starts then reports the lock as the guard that watched all along, also when no copy
// is left anywhere.
func TestAFirstLookSaysWhatTheGuardKnows(t *testing.T) {
	servers := labtest.Servers(t, 5)
	nodes := labtest.Nodes(servers)
	opt := observe.Options{MaxTTL: 30 * time.Second, LockPatterns: []string{"job:*"}}
	run := func(m *observe.Monitor, err error) *observe.Monitor {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); m.Run(ctx) }()
		t.Cleanup(func() { stop(); <-done })
		return m
	}
	mon := run(observe.New(nodes, opt))
	guard, err := watch.New(nodes, watch.Config{Delay: 31 * time.Second, Cluster: "c", N: 5, Poll: 50 * time.Millisecond, FirstContact: restartguard.AdoptYoung})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{}, 2)
	go func() { _ = guard.Run(ctx); done <- struct{}{} }()
	go func() { vouch(ctx, mon, guard); done <- struct{}{} }()
	defer func() { stop(); <-done; <-done }()
	until := func(m *observe.Monitor, what string, is func(l *monitor.Lock) bool) *monitor.Lock {
		t.Helper()
		s := m.Snapshot()
		for end := time.After(25 * time.Second); ; s = m.Snapshot() {
			if l := s.Locks.Get("job:1"); !s.Settled.IsZero() && l != nil && is(l) {
				return l
			}
			select {
			case <-m.Changed(s.Version):
			case <-end:
				t.Fatalf("not %s: %+v", what, s.Locks.Get("job:1"))
			}
		}
	}
	for _, s := range servers[:3] {
		if _, err := s.Do(t.Context(), "set", "job:1", "token-of-a", "px", 29500); err != nil {
			t.Fatal(err)
		}
	}
	until(mon, "held", func(l *monitor.Lock) bool { return l.Held == 3 })
	for lost, s := range servers[:3] {
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := s.Start(lab.BootFence...); err != nil {
			t.Fatal(err)
		}
		want := until(mon, "a lost majority", func(l *monitor.Lock) bool { return l.State == monitor.LockLostMajority && l.Lost == lost+1 })
		first := run(observe.New(nodes, opt))
		got := until(first, "what the guard says", func(l *monitor.Lock) bool {
			return l.State == want.State && l.Held == want.Held && l.Lost == want.Lost && l.HeldUntil().Sub(want.HeldUntil()).Abs() < time.Second
		})
		if want.Held > 0 && got.Holder != want.Holder {
			t.Errorf("%s, not %s", got.Holder, want.Holder)
		}
	}
}

// A holder's copies are deleted on n1, n2 and n3. A monitor that starts then says that somebody may
// rely on the lock, as the record on this machine knows of its grant; not so of another minority,
// of which nothing is recorded.
func TestAFirstLookKnowsWhatIsRecorded(t *testing.T) {
	const maxTTL = 6 * time.Second
	servers, started := labtest.Servers(t, 5), time.Now()
	nodes := labtest.Nodes(servers)
	path := filepath.Join(t.TempDir(), "record.db")
	run := func(opt observe.Options) *observe.Monitor {
		t.Helper()
		opt.ClusterName, opt.MaxTTL = "c", maxTTL
		m, err := observe.New(nodes, opt)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); m.Run(ctx) }()
		t.Cleanup(func() { stop(); <-done })
		return m
	}
	do := func(from int, args ...any) {
		t.Helper()
		for _, s := range servers[from:] {
			if _, err := s.Do(t.Context(), args...); err != nil {
				t.Fatal(err)
			}
		}
	}
	recorder := record.New(record.Options{Path: path, By: "test"})
	mon := run(observe.Options{})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); recorder.Run(ctx, mon) }()
	defer func() { stop(); <-done }()
	time.Sleep(time.Until(started.Add(maxTTL + 4*time.Second))) // then they have nothing to forget, by their uptime
	for attempt := range 5 {                                    // a busy machine may take longer than the locks last
		held, left := fmt.Sprint("held:", attempt), fmt.Sprint("left:", attempt)
		ends := time.Now().Add(5900 * time.Millisecond)
		do(0, "set", held, "token-of-a", "px", 5900)
		do(3, "set", left, "token-of-b", "px", 5900)
		for len(recordedGrants(path, "c", []string{held})) == 0 && time.Now().Before(ends) {
			time.Sleep(50 * time.Millisecond)
		}
		for _, s := range servers[:3] {
			if _, err := s.Do(t.Context(), "del", held); err != nil {
				t.Fatal(err)
			}
		}
		unknown := run(observe.Options{})
		known := run(observe.Options{Recorded: func(keys []string) []announce.Lock { return recordedGrants(path, "c", keys) }})
		looks := map[bool]*monitor.Snapshot{}
		for relied, m := range map[bool]*observe.Monitor{true: known, false: unknown} {
			if err := m.Assessed(t.Context()); err != nil {
				t.Fatal(err)
			}
			looks[relied] = m.Snapshot()
		}
		if time.Now().After(ends) {
			continue
		}
		for relied, s := range looks {
			if l := s.Locks.Get(held); l == nil || l.ReliedOn() != relied || l.Held != 2 {
				t.Errorf("recorded %t: %+v", relied, l)
			}
			if l := s.Locks.Get(left); l == nil || l.State != monitor.LockOrphaned {
				t.Errorf("recorded %t: %+v", relied, l)
			}
		}
		return
	}
	t.Fatal("no look came before the locks had ended")
}
