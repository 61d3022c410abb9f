package tui

import (
	"slices"
	"strings"

	"redlockctl/monitor"
)

// eventView draws the latest events, newest first.
type eventView struct{ st *styles }

// rows draws h of them. Everyday churn fills only the lines that nothing of
// weight needs: a hundred acquisitions a second must not wash a restart away.
func (v *eventView) rows(events []monitor.Event, h, w int) []string {
	var picked []int
	for i := len(events) - 1; i >= 0 && len(picked) < h; i-- {
		if events[i].Level > monitor.LevelInfo {
			picked = append(picked, i)
		}
	}
	for i := len(events) - 1; i >= 0 && len(picked) < h; i-- {
		if events[i].Level == monitor.LevelInfo {
			picked = append(picked, i)
		}
	}
	slices.SortFunc(picked, func(a, b int) int { return b - a })
	out := make([]string, len(picked))
	for n, i := range picked {
		out[n] = v.row(&events[i], w, true)
	}
	return out
}

// row draws one event; named says what it is about where its sentence does not.
func (v *eventView) row(e *monitor.Event, w int, named bool) string {
	st := v.st
	mark, p := " ", st.dim
	switch e.Level {
	case monitor.LevelNotice:
		mark, p = st.sep, paint{}
	case monitor.LevelAlarm:
		mark, p = "!", st.bad
	}
	at := " " + clock(e.At) + " "
	about := ""
	switch {
	case !named:
	case !e.Key.Empty() && !strings.HasPrefix(e.Text.Raw(), e.Key.Raw()+" "):
		about = st.text(e.Key, max(8, w/4)) + ": "
	case e.Node != "" && !strings.Contains(e.Text.Raw(), e.Node):
		about = st.escape(e.Node, 12) + ": "
	}
	return st.dim.of(at) + p.of(mark+" "+about+st.sentence(e.Text.Raw(), max(1, w-width(at)-width(about)-3)))
}
