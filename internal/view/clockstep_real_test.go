package view_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/lab/labtest"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
)

// The page of a lock on real masters names the clock step that cut one of its copies short.
func TestTheClockStepIsOnTheLocksPage(t *testing.T) {
	t.Parallel()
	servers := labtest.ClockServers(t, 3)
	m, err := observe.New(named(labtest.Nodes(servers), "console"), observe.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); m.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	if err := m.Settled(ctx); err != nil {
		t.Fatal(err)
	}
	var facts []view.Fact
	await := func(what string, is func(*monitor.Snapshot) bool) {
		t.Helper()
		for until := time.Now().Add(30 * time.Second); !is(m.Snapshot()); time.Sleep(100 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("%s: not within 30 s: %+v", what, facts)
			}
		}
	}
	await("its clock is known", func(s *monitor.Snapshot) bool { return s.Nodes[1].Drift.Valid })
	for _, s := range servers {
		if _, err := s.Do(ctx, "SET", "job", "token", "PX", "60000"); err != nil {
			t.Fatal(err)
		}
	}
	await("the lock is held", func(s *monitor.Snapshot) bool { l := s.Locks.Get("job"); return l != nil && l.Held == 3 })
	if err := servers[1].SetClock(20*time.Second, 1); err != nil {
		t.Fatal(err)
	}
	await("the step is named", func(s *monitor.Snapshot) bool {
		l := s.Locks.Get("job")
		if l == nil {
			return false
		}
		facts = view.LockFacts(&view.Context{Glyphs: view.Plain(true), Snap: s, Now: time.Now()}, l)
		return slices.ContainsFunc(facts, func(f view.Fact) bool {
			return f.Label == "Clock" && strings.HasPrefix(f.Text, s.Nodes[1].Name+" was stepped by +") && strings.HasSuffix(f.Text, ": its copy ends early")
		})
	})
}
