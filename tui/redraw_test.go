package tui

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/monitor/monitortest"
)

// After a resize, the margins of the old size are reset, and then the whole screen is
// drawn; at the start they are not touched.
func TestResizeTakesMarginsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var all lockedBuffer
		opt := Options{Cluster: Cluster{Source: newFakeSource(monitortest.Degraded(time.Now()))}, Out: &all}
		m := newModel(ctx, opt, time.Now)
		p := newProgram(m, opt, tea.WithInput(nil), tea.WithWindowSize(80, 24))
		done := make(chan error, 1)
		go func() { _, err := p.Run(); done <- err }()
		time.Sleep(3 * time.Second)
		const back = "\x1b[;r"
		if strings.Contains(all.String(), back) {
			t.Error("margins are taken back at the start")
		}
		for _, w := range []int{100, 100, 90} { // a terminal may report the same size twice
			before := len(all.String())
			p.Send(tea.WindowSizeMsg{Width: w, Height: 30})
			time.Sleep(time.Second)
			wrote := all.String()[before:]
			_, after, ok := strings.Cut(wrote, back)
			if !ok || !strings.Contains(after, "\x1b[2J") || !strings.Contains(after, "LOCKS") {
				t.Errorf("after a resize to %d: %q", w, wrote)
			}
		}
		p.Quit()
		if err := <-done; err != nil {
			t.Error(err)
		}
		cancel()
	})
}
