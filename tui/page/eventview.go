package page

import (
	"slices"
	"strings"
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/styles"
)

// eventView draws the latest events, newest first.
type eventView struct{ st *styles.Styles }

// latest are h of them. Everyday churn fills only the lines that nothing of
// weight needs: a hundred acquisitions a second must not wash a restart away.
func (v *eventView) latest(events []monitor.Event, h int) []*monitor.Event {
	var picked []int
	for i := len(events) - 1; i >= 0 && len(picked) < h; i-- {
		if events[i].Level > monitor.LevelInfo && !events[i].Part {
			picked = append(picked, i)
		}
	}
	for i := len(events) - 1; i >= 0 && len(picked) < h; i-- {
		if events[i].Level == monitor.LevelInfo {
			picked = append(picked, i)
		}
	}
	slices.SortFunc(picked, func(a, b int) int { return b - a })
	out := make([]*monitor.Event, len(picked))
	for n, i := range picked {
		out[n] = &events[i]
	}
	return out
}

// row draws one event; named says what it is about where its sentence does not.
func (v *eventView) row(e *monitor.Event, w int, named bool) string {
	at := " " + view.Clock(e.At) + " "
	cell := view.EventText(&v.st.Glyphs, e, named)
	return v.st.Dim.Of(at) + v.st.Paint(cell.Tone).Of(v.st.Cut(cell.Sign+" "+cell.Text, w-view.Width(at)-1))
}

// full is one event in full, under a title; all are the events that it is one of.
func (v *eventView) full(e *monitor.Event, all []monitor.Event, w int) (title string, lines []string) {
	st := v.st
	title = e.At.Format("2006-01-02 15:04:05.000") + "  " + e.Level.String() + ", " + st.Whole(e.Kind)
	if e.Node != "" {
		title += ", node " + st.Escape(e.Node, 20)
	}
	for _, l := range styles.Wrap(st.Whole(e.Text.Raw()), w-2, 0) {
		lines = append(lines, " "+l)
	}
	if !e.Key.Empty() {
		for _, l := range styles.Wrap("lock "+st.Name(e.Key.Raw()), w-2, 0) {
			lines = append(lines, " "+l)
		}
	}
	for _, text := range v.more(e, all, w) {
		for _, l := range styles.Wrap(text, w-2, 2) {
			lines = append(lines, " "+l)
		}
	}
	return title, lines
}

// partsTime is how far from a cause its parts are looked for.
const partsTime = 15 * time.Second

// more is what else there is to an event: the locks that a restart cost a copy, and
// what else was told of its node.
func (v *eventView) more(e *monitor.Event, all []monitor.Event, w int) (lines []string) {
	if e.Cost == nil {
		return nil
	}
	if names := lostLocks(e, v.st); names != "" {
		lines = append(lines, "locks "+names)
	}
	for i := range all {
		if p := &all[i]; p.Part && p.Node == e.Node && p.At.Sub(e.At).Abs() < partsTime {
			lines = append(lines, v.row(p, w, true))
		}
	}
	return lines
}

// lostLocks names the locks that a restart cost a copy; empty: none did.
func lostLocks(e *monitor.Event, st *styles.Styles) string {
	if e.Cost == nil || len(e.Cost.Locks) == 0 {
		return ""
	}
	names := make([]string, len(e.Cost.Locks))
	for i, l := range e.Cost.Locks {
		names[i] = st.Text(l, 40)
	}
	text := strings.Join(names, ", ")
	if more := e.Cost.Lost - len(names); more > 0 {
		text += " and " + view.Count(more) + " more"
	}
	return text
}

// lastEvents are the last n events that are wanted, oldest first.
func lastEvents(events []monitor.Event, n int, want func(*monitor.Event) bool) []*monitor.Event {
	var out []*monitor.Event
	for i := len(events) - 1; i >= 0 && len(out) < n; i-- {
		if want(&events[i]) {
			out = append([]*monitor.Event{&events[i]}, out...)
		}
	}
	return out
}
