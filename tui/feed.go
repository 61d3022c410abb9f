package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/monitor"
	"redlockctl/restartguard"
)

// snapshotMsg is a new picture.
type snapshotMsg struct {
	snap  *monitor.Snapshot
	guard []restartguard.NodeStatus
}

// tickMsg comes once a second: times that run down are whole seconds.
type tickMsg struct{ guard []restartguard.NodeStatus }

// feed brings the outside into the program as messages.
type feed struct {
	ctx    context.Context
	source Source
	guard  Guard
	pace   time.Duration // least time between two pictures
}

func (f feed) status() []restartguard.NodeStatus {
	if f.guard == nil {
		return nil
	}
	return f.guard.Status()
}

// next waits for a picture newer than version. The pause before it lets the
// pictures of a busy cluster be skipped rather than queued.
func (f feed) next(version uint64, pause time.Duration) tea.Cmd {
	return func() tea.Msg {
		if !f.sleep(pause) {
			return nil
		}
		select {
		case <-f.ctx.Done():
			return nil
		case <-f.source.Changed(version):
		}
		return snapshotMsg{f.source.Snapshot(), f.status()}
	}
}

func (f feed) tick() tea.Cmd {
	return func() tea.Msg {
		if !f.sleep(time.Second) {
			return nil
		}
		return tickMsg{f.status()}
	}
}

// sleep tells if d passed before the end.
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
