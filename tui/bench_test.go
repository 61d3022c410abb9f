package tui

import (
	"context"
	"fmt"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/monitor"
)

// benchModel shows many locks, all listed.
func benchModel(locks int) (*model, *time.Time) {
	now := epoch
	s := picture(now)
	var more []monitor.Lock
	for i := range locks {
		more = append(more, lockOf(now, fmt.Sprintf("z:%07d", i), monitor.LockHeld, tokenA, "60 60 60 ? 60"))
	}
	put(s, more...)
	m := newModel(context.Background(), Options{Source: newFakeSource(s), Guard: fakeGuardStatus(now)}, func() time.Time { return now })
	m.Update(tea.WindowSizeMsg{Width: 120, Height: 40})
	if build := m.sorting(); build != nil {
		m.Update(build())
	}
	m.View()
	return m, &now
}

// A frame of which nothing has changed but the cursor.
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
		m.Update(tickMsg{guard: m.feed.status()})
		m.View()
	}
}

// A new picture of 100,000 locks of which 67 changed: 1,000 changes a second.
func BenchmarkSnapshot(b *testing.B) {
	m, _ := benchModel(100_000)
	var keys []string
	var changed []monitor.Lock
	for i := range 67 {
		key := fmt.Sprintf("z:%07d", i*1000)
		keys = append(keys, key)
		changed = append(changed, lockOf(epoch, key, monitor.LockBare, tokenB, "60 60 60 ? -"))
	}
	other := *m.snap
	put(&other, changed...)
	pics := []*monitor.Snapshot{m.snap, &other}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		m.Update(snapshotMsg{snap: pics[(i+1)%2], changed: keys, known: true})
		m.View()
	}
}

// What is done aside when the order or the filter changes.
func BenchmarkBuild(b *testing.B) {
	m, _ := benchModel(100_000)
	for b.Loop() {
		newLockIndex(m.snap.Locks, m.snap.Nodes, orderEnds, monitor.ParseFilter("z !x"))
	}
}
