package view_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/lab/labtest"
	"redlockctl/internal/view"
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
	time.Sleep(2 * time.Second) // its clock is known
	for _, s := range servers {
		if _, err := s.Do(ctx, "SET", "job", "token", "PX", "60000"); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(time.Second)
	if err := servers[1].SetClock(20*time.Second, 1); err != nil {
		t.Fatal(err)
	}
	var facts []view.Fact
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		s := m.Snapshot()
		l := s.Locks.Get("job")
		if l == nil {
			continue
		}
		facts = view.LockFacts(&view.Context{Glyphs: view.Plain(true), Snap: s, Now: time.Now()}, l)
		if slices.ContainsFunc(facts, func(f view.Fact) bool {
			return f.Label == "Clock" && strings.HasPrefix(f.Text, s.Nodes[1].Name+" was stepped by +") && strings.HasSuffix(f.Text, ": its copy ends early")
		}) {
			return
		}
	}
	t.Errorf("%+v", facts)
}
