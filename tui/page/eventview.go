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

// latest returns at most h events that a person should know of, one for each cause; the
// routine ones are on the page of events.
func (v *eventView) latest(events []monitor.Event, h int) (out []*monitor.Event) {
	told := alarmsOf(events)
	for i := len(events) - 1; i >= 0 && len(out) < h; i-- {
		if e := &events[i]; e.Level > monitor.LevelInfo && !e.Part && !told.says(e) {
			out = append(out, e)
		}
	}
	return out
}

// lockAlarms has the times of the alarms about each lock.
type lockAlarms map[string][]time.Time

// alarmsOf collects the alarms about locks, without those of findings.
func alarmsOf(events []monitor.Event) lockAlarms {
	told := lockAlarms{}
	for i := range events {
		if e := &events[i]; e.Level == monitor.LevelAlarm && !e.Key.Empty() && e.Kind != findingOpened {
			told[e.Key.Raw()] = append(told[e.Key.Raw()], e.At)
		}
	}
	return told
}

const findingOpened = "finding opened"

// says reports whether e is a finding about a lock whose alarm says the same: one cause is
// one line.
func (t lockAlarms) says(e *monitor.Event) bool {
	return e.Kind == findingOpened && !e.Key.Empty() && slices.ContainsFunc(t[e.Key.Raw()], func(at time.Time) bool {
		return e.At.Sub(at).Abs() < partsTime
	})
}

// row draws one event. With named it names the lock or node if the sentence does not.
func (v *eventView) row(e *monitor.Event, w int, named bool) string {
	at := " " + view.Clock(e.At) + " "
	cell := view.EventText(&v.st.Glyphs, e, named)
	return v.st.Dim.Of(at) + v.st.Paint(cell.Tone).Of(v.st.Cut(cell.Sign+" "+cell.Text, w-view.Width(at)-1))
}

// whole draws one event in as many lines as its sentence needs, within bounds.
func (v *eventView) whole(e *monitor.Event, w int, named bool) (lines []string) {
	at := view.Clock(e.At) + " "
	cell := view.EventText(&v.st.Glyphs, e, named)
	text := v.st.Paint(cell.Tone).Of(v.st.Cut(cell.Sign+" "+cell.Text, mostOfEvent*w))
	for _, l := range styles.Wrap(v.st.Dim.Of(at)+text, w-2, view.Width(at)+2) {
		lines = append(lines, " "+l)
	}
	return lines
}

// mostOfEvent is about how many lines an event may take among others.
const mostOfEvent = 3

// full draws one event in full under a title; all are the known events.
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

// partsTime is how far the parts of an event may be from it.
const partsTime = 15 * time.Second

// more returns details of an event: the locks that lost a copy in a restart, and other
// events of its node.
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

// lostLocks names the locks that lost a copy in a restart; empty if none did.
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

// lastEvents returns the last n matching events, newest first.
func lastEvents(events []monitor.Event, n int, want func(*monitor.Event) bool) []*monitor.Event {
	var out []*monitor.Event
	for i := len(events) - 1; i >= 0 && len(out) < n; i-- {
		if want(&events[i]) {
			out = append(out, &events[i])
		}
	}
	return out
}
