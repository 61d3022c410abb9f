package tui

import (
	"context"
	"fmt"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/tui/page"
	"redlockctl/tui/source"
)

// benchModel shows many locks, all listed.
func benchModel(locks int) (*model, *time.Time) {
	now := monitortest.Epoch
	s := monitortest.Degraded(now)
	var more []monitor.Lock
	for i := range locks {
		more = append(more, monitortest.LockOf(now, fmt.Sprintf("z:%07d", i), monitor.LockHeld, monitortest.TokenA, "60 60 60 ? 60"))
	}
	monitortest.Put(s, more...)
	m := newModel(context.Background(), Options{Cluster: Cluster{Source: newFakeSource(s), Guard: fakeGuardStatus(now)}}, func() time.Time { return now })
	if _, build := m.Update(tea.WindowSizeMsg{Width: 120, Height: 40}); build != nil {
		m.Update(build())
	}
	m.View()
	return m, &now
}

// A frame in which only the cursor has changed.
func BenchmarkKey(b *testing.B) {
	m, _ := benchModel(100_000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		m.Update(keyPress([]string{"j", "k"}[i%2]))
		m.View()
	}
}

// The cursor from one end to the other.
func BenchmarkEnds(b *testing.B) {
	m, _ := benchModel(100_000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		m.Update(keyPress([]string{"G", "g"}[i%2]))
		m.View()
	}
}

// A frame in which every second has ticked.
func BenchmarkTick(b *testing.B) {
	m, now := benchModel(100_000)
	b.ReportAllocs()
	for b.Loop() {
		*now = now.Add(time.Second)
		m.Update(source.TickMsg{Guard: m.feed.Status()})
		m.View()
	}
}

// A new snapshot of 100,000 locks of which 67 changed: 1,000 changes per second.
func BenchmarkSnapshot(b *testing.B) {
	m, _ := benchModel(100_000)
	var keys []string
	var changed []monitor.Lock
	for i := range 67 {
		key := fmt.Sprintf("z:%07d", i*1000)
		keys = append(keys, key)
		changed = append(changed, monitortest.LockOf(monitortest.Epoch, key, monitor.LockBareMajority, monitortest.TokenB, "60 60 60 ? -"))
	}
	other := *m.Latest
	monitortest.Put(&other, changed...)
	pics := []*monitor.Snapshot{m.Latest, &other}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		m.Update(source.SnapshotMsg{Snap: pics[(i+1)%2], Changed: keys, Known: true})
		m.View()
	}
}

// The background work when the order or the filter changes.
func BenchmarkBuild(b *testing.B) {
	m, _ := benchModel(100_000)
	for b.Loop() {
		page.NewLockIndex(b.Context(), m.Latest.Locks, m.Latest.Nodes, page.OrderEnds, monitor.ParseFilter("z !x"))
	}
}
