// Package source provides the snapshots: of the live cluster, or of a record at some
// time. They reach the program as messages.
package source

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/base/sleep"
	"redlockctl/monitor"
	"redlockctl/restartguard"
)

// Source provides snapshots; *observe.Monitor implements it.
type Source interface {
	Snapshot() *monitor.Snapshot
	Changed(version uint64) <-chan struct{}
	// ChangedSince returns the keys of the locks that may have changed since the snapshot
	// with this version; false: that is too long ago.
	ChangedSince(version uint64) (keys []string, ok bool)
	// EventsSince returns the events after the one with this Seq, oldest first, and how
	// many more are no longer kept.
	EventsSince(seq uint64) (events []monitor.Event, missed uint64)
	// History returns the latest events of one lock, oldest first.
	History(key string) []monitor.Event
}

// Guard is the guard in this process; nil if none runs.
type Guard interface {
	// ID is the id in its announcements; empty: no guard runs now.
	ID() string
	Status() []restartguard.NodeStatus
}

// SnapshotMsg is a new snapshot.
type SnapshotMsg struct {
	Turn  int // of the feed, when it was requested
	Snap  *monitor.Snapshot
	Guard GuardState
	// Changed are the keys of the locks that differ from the previous snapshot, if Known.
	Changed []string
	Known   bool
	// Events are those after the last one shown.
	Events []monitor.Event
}

// HistoryMsg has the events of a lock from before its page was opened.
type HistoryMsg struct {
	Turn    int    // of the feed, when it was requested
	Version uint64 // of the snapshot that was shown then
	Key     string
	Events  []monitor.Event
}

// TickMsg arrives once a second, because countdowns show whole seconds.
type TickMsg struct {
	Turn  int
	Guard GuardState
}

// GuardState is the state of the guard in this process.
type GuardState struct {
	ID     string // empty: no guard runs
	Status []restartguard.NodeStatus
}

// Feed sends snapshots and ticks to the program as messages.
type Feed struct {
	Source Source
	Guard  Guard         // nil: no guard in this process
	Pace   time.Duration // minimum time between two snapshots
	Turn   int           // grows when another source is shown: replies to earlier requests are ignored
	ctx    context.Context
}

// NewFeed makes the feed of a source, until ctx ends.
func NewFeed(ctx context.Context, s Source, g Guard, pace time.Duration) Feed {
	return Feed{Source: s, Guard: g, Pace: pace, ctx: ctx}
}

// Show switches to another source.
func (f *Feed) Show(s Source, g Guard) {
	f.Source, f.Guard = s, g
	f.Turn++
}

// Status returns the present state of the guard.
func (f Feed) Status() GuardState {
	if f.Guard == nil {
		return GuardState{}
	}
	return GuardState{f.Guard.ID(), f.Guard.Status()}
}

// Begin waits for a snapshot newer than last, and for the next second; seq is the last
// event.
func (f Feed) Begin(last *monitor.Snapshot, seq uint64) tea.Cmd {
	return tea.Batch(f.Next(last, seq, 0), f.Tick())
}

// Next waits for a snapshot newer than last; seq is the last event. The pause before it
// skips snapshots of a busy cluster instead of queueing them.
func (f Feed) Next(last *monitor.Snapshot, seq uint64, pause time.Duration) tea.Cmd {
	return func() tea.Msg {
		if sleep.For(f.ctx, pause) != nil {
			return nil
		}
		select {
		case <-f.ctx.Done():
			return nil
		case <-f.Source.Changed(last.Version):
		}
		msg := SnapshotMsg{Turn: f.Turn, Snap: f.Source.Snapshot(), Guard: f.Status()}
		msg.Changed, msg.Known = f.Source.ChangedSince(last.Version)
		msg.Events, _ = f.Source.EventsSince(seq)
		return msg
	}
}

// History reads the events of a lock, for the page that shows a snapshot.
func (f Feed) History(key string, shown *monitor.Snapshot) tea.Cmd {
	return func() tea.Msg { return HistoryMsg{f.Turn, shown.Version, key, f.Source.History(key)} }
}

// Tick waits for the next second.
func (f Feed) Tick() tea.Cmd {
	return func() tea.Msg {
		if sleep.For(f.ctx, time.Second) != nil {
			return nil
		}
		return TickMsg{f.Turn, f.Status()}
	}
}
