// Package source is where the snapshots come from: a cluster as it is now, or a record that
// stands at a moment. What they bring reaches the program as messages.
package source

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/base/sleep"
	"redlockctl/monitor"
	"redlockctl/restartguard"
)

// Source is where the snapshots come from; *observe.Monitor is one.
type Source interface {
	Snapshot() *monitor.Snapshot
	Changed(version uint64) <-chan struct{}
	// ChangedSince is the keys of the locks that may have changed since the snapshot
	// of this version; false: it is too long ago to know.
	ChangedSince(version uint64) (keys []string, ok bool)
	// EventsSince is the events after the one with this Seq, oldest first, and how
	// many more there were that are not kept any longer.
	EventsSince(seq uint64) (events []monitor.Event, missed uint64)
	// History is the latest events of one lock, oldest first.
	History(key string) []monitor.Event
}

// Guard tells what the guard in this process thinks; nil where there is none.
type Guard interface {
	// ID is that of its announcements; empty: none runs, for the moment or at all.
	ID() string
	Status() []restartguard.NodeStatus
}

// SnapshotMsg is a new snapshot.
type SnapshotMsg struct {
	Turn  int // of the feed, when it was asked
	Snap  *monitor.Snapshot
	Guard GuardState
	// Changed are the keys of the locks in which it differs from the snapshot before,
	// if Known.
	Changed []string
	Known   bool
	// Events are those after the last one that was shown.
	Events []monitor.Event
}

// HistoryMsg is what happened to a lock before it was looked at.
type HistoryMsg struct {
	Key    string
	Events []monitor.Event
}

// TickMsg comes once a second: times that run down are whole seconds.
type TickMsg struct {
	Turn  int
	Guard GuardState
}

// GuardState is what the guard in this process says.
type GuardState struct {
	ID     string // empty: none runs
	Status []restartguard.NodeStatus
}

// Feed brings what is outside into the program as messages.
type Feed struct {
	Source Source
	Guard  Guard         // nil: none runs in this process
	Pace   time.Duration // least time between two snapshots
	Turn   int           // grows when something else is shown: what was asked before is not shown
	ctx    context.Context
}

// NewFeed is the feed of a source until ctx ends.
func NewFeed(ctx context.Context, s Source, g Guard, pace time.Duration) Feed {
	return Feed{Source: s, Guard: g, Pace: pace, ctx: ctx}
}

// Show shows another source from now on.
func (f *Feed) Show(s Source, g Guard) {
	f.Source, f.Guard = s, g
	f.Turn++
}

// Status is what the guard says now.
func (f Feed) Status() GuardState {
	if f.Guard == nil {
		return GuardState{}
	}
	return GuardState{f.Guard.ID(), f.Guard.Status()}
}

// Begin waits for what is newer than last, and for the next second; seq is of the last
// event.
func (f Feed) Begin(last *monitor.Snapshot, seq uint64) tea.Cmd {
	return tea.Batch(f.Next(last, seq, 0), f.Tick())
}

// Next waits for a snapshot newer than last; seq is of the last event. The pause
// before it lets the snapshots of a busy cluster be skipped rather than queued.
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

// History brings what happened to a lock.
func (f Feed) History(key string) tea.Cmd {
	return func() tea.Msg { return HistoryMsg{key, f.Source.History(key)} }
}

// Tick brings the next second.
func (f Feed) Tick() tea.Cmd {
	return func() tea.Msg {
		if sleep.For(f.ctx, time.Second) != nil {
			return nil
		}
		return TickMsg{f.Turn, f.Status()}
	}
}
