package tui

import (
	"context"
	"fmt"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/monitor"
)

func benchModel(locks int) (*model, *time.Time) {
	now := epoch
	s := picture(now)
	for i := range locks {
		s.Locks = append(s.Locks, lockOf(now, fmt.Sprintf("z:%07d", i), monitor.LockHeld, tokenA, "60 60 60 ? 60"))
	}
	sortLocks(s)
	m := newModel(context.Background(), Options{Source: newFakeSource(s), Guard: fakeGuardStatus(now)}, func() time.Time { return now })
	m.Update(tea.WindowSizeMsg{Width: 120, Height: 40})
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

// A frame in which every second has ticked.
func BenchmarkTick(b *testing.B) {
	m, now := benchModel(100_000)
	b.ReportAllocs()
	for b.Loop() {
		*now = now.Add(time.Second)
		m.Update(tickMsg{m.feed.status()})
		m.View()
	}
}

// A new picture of 100,000 locks.
func BenchmarkSnapshot(b *testing.B) {
	m, _ := benchModel(100_000)
	other := *m.snap
	other.Locks = append([]monitor.Lock(nil), m.snap.Locks...)
	pics := []*monitor.Snapshot{m.snap, &other}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		m.Update(snapshotMsg{pics[(i+1)%2], nil})
		m.View()
	}
}
