package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

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

// snapshotMsg is a new picture.
type snapshotMsg struct {
	cluster int // the feed that it is from
	snap    *monitor.Snapshot
	guard   guardState
	// changed are the keys of the locks in which it differs from the picture before,
	// if known.
	changed []string
	known   bool
	// events are those after the last one that was shown.
	events []monitor.Event
}

// historyMsg is what happened to a lock before it was looked at.
type historyMsg struct {
	key    string
	events []monitor.Event
}

// tickMsg comes once a second: times that run down are whole seconds.
type tickMsg struct {
	cluster int
	guard   guardState
}

// guardState is what the guard in this process says.
type guardState struct {
	id     string // empty: none runs
	status []restartguard.NodeStatus
}

// feed brings the outside into the program as messages.
type feed struct {
	ctx     context.Context
	cluster int // grows when another cluster is shown: what the old feed still brings is not shown
	source  Source
	guard   Guard
	pace    time.Duration // least time between two pictures
}

func (f feed) status() guardState {
	if f.guard == nil {
		return guardState{}
	}
	return guardState{f.guard.ID(), f.guard.Status()}
}

// next waits for a picture newer than last; seq is of the last event. The pause
// before it lets the pictures of a busy cluster be skipped rather than queued.
func (f feed) next(last *monitor.Snapshot, seq uint64, pause time.Duration) tea.Cmd {
	return func() tea.Msg {
		if !f.sleep(pause) {
			return nil
		}
		select {
		case <-f.ctx.Done():
			return nil
		case <-f.source.Changed(last.Version):
		}
		msg := snapshotMsg{cluster: f.cluster, snap: f.source.Snapshot(), guard: f.status()}
		msg.changed, msg.known = f.source.ChangedSince(last.Version)
		msg.events, _ = f.source.EventsSince(seq)
		return msg
	}
}

// history brings what happened to a lock.
func (f feed) history(key string) tea.Cmd {
	return func() tea.Msg { return historyMsg{key, f.source.History(key)} }
}

func (f feed) tick() tea.Cmd {
	return func() tea.Msg {
		if !f.sleep(time.Second) {
			return nil
		}
		return tickMsg{f.cluster, f.status()}
	}
}

// sleep reports whether d passed before the end.
func (f feed) sleep(d time.Duration) bool {
	if d <= 0 {
		return f.ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-f.ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
