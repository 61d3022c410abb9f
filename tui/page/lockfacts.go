package page

import (
	"slices"
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/styles"
)

// lockFacts has what is known about one lock, and its events since it is shown.
type lockFacts struct {
	*Screen
	eventView eventView
	events    *eventTable
	Watched   lockLog
	Holders   heldBy
	Removal   removal
	axisKey   string        // the lock drawn last
	axis      time.Duration // the length of its axis
}

// Asks returns the lock whose holders should be read from the record; "" if none.
func (f *lockFacts) Asks(now time.Time) string {
	if !f.Watched.on || !f.Holders.due(f.Watched.key, now) {
		return ""
	}
	return f.Watched.key
}

// Watch starts to collect the events of a lock, unless it is already watched.
func (f *lockFacts) Watch(key string) { f.Watched.begin(key, f.events.All) }

// pane draws a lock under a title: its copies on an axis of time, and at most n events. In
// the title a long name is cut before its end is left out.
func (f *lockFacts) pane(l *monitor.Lock, n int) (pn Pane, lines []string) {
	f.Watch(l.Key.Raw())
	ctx, w := f.context(), f.In()
	state, ends := ctx.LockStateOf(l), view.LockEnd(ctx, l)
	is := " " + f.St.Thin.Rule + " " + state.Sign + " " + state.Text + ", " + view.Copies(l)
	room := w - titleChrome - 1 - view.Width(is)
	if n := room - view.Width(ends); n >= leastName {
		room = n
	}
	pn = Pane{Title: f.St.Text(l.Key, max(8, room)) + is, Right: f.St.Dim.Of(ends)}
	ctx.Holders = f.Holders.of(l)
	lines = append(f.lockBars(ctx, l, w), "")
	kept := view.Fact{Label: "Kept", Text: f.Kept(l.Key.Raw(), l.Holder.Raw()), Tone: view.Good}
	lines = append(lines, f.facts(append(append(append(f.Removal.Facts(&f.St.Glyphs, l.Key.Raw()), kept), view.LockFacts(ctx, l)...), f.Holders.Maker(ctx, l)...), w)...)
	lines = append(lines, f.Holders.lines(f.Screen, f.Watched.key, f.Watched.Events, w)...)
	if log := f.lockEvents(w, n); len(log) > 0 {
		lines = append(append(lines, ""), log...)
	}
	return pn, lines
}

// leastName is how much of a name in a title is worth more than when the lock ends.
const leastName = 16

// lockEvents returns the last n events of the shown lock.
func (f *lockFacts) lockEvents(w, n int) (out []string) {
	for _, e := range lastEvents(f.Watched.Events, n, func(e *monitor.Event) bool { return f.events.until == 0 || e.Seq <= f.events.until }) {
		out = append(out, f.eventView.whole(e, w, false)...)
	}
	return out
}

// lockBars draws the remaining time of each copy on one axis. The axis never shrinks while
// the same lock is shown, so that the bars do. Without an expiry there is no axis. Of many
// nodes, those with like copies share a line.
func (f *lockFacts) lockBars(ctx *view.Context, l *monitor.Lock, w int) []string {
	st := f.St
	name := 2
	for i := range f.Shown.Nodes {
		name = max(name, min(10, view.Width(st.Whole(f.Shown.Nodes[i].Name))))
	}
	many := len(f.Shown.Nodes) > mostAsConfigured
	if many {
		name = max(name, len("99 nodes"))
	}
	lead := 1 + name + 3
	barW := max(8, w-lead-32)
	if f.axisKey != l.Key.Raw() {
		f.axisKey, f.axis = l.Key.Raw(), 0
	}
	axis := view.Axis(ctx, l)
	var out []string
	if axis > 0 {
		axis = max(f.axis, axis)
		out = []string{styles.Blanks(lead) + st.Label.Of(view.AxisLabels(axis, barW))}
	}
	f.axis = axis
	paint := func(c view.Cell) string { return st.Paint(c.Tone).Of(c.Text) }
	bars := view.LockBars(ctx, l, axis, barW)
	if many {
		bars = view.FoldBars(bars)
	}
	for _, b := range bars {
		line := " " + st.Pad(st.Middle(b.Node, name), name) + " " + st.Paint(b.State.Tone).Of(b.State.Sign) + " "
		if b.Bar.Text != "" {
			line += paint(b.Bar) + " "
		}
		if b.Held {
			line += paint(b.Left) + " "
		}
		out = append(out, st.Cut(line+paint(b.Note), w))
	}
	return out
}

// MostWatched bounds the events of the shown lock.
const MostWatched = 200

// lockLog has the events of one lock since it is shown: on a busy cluster they would be
// gone from the list of latest events in a moment.
type lockLog struct {
	key    string
	on     bool
	Wants  string // the key whose earlier events are needed; "" if they are there
	seq    uint64
	Events []monitor.Event
}

func (l *lockLog) add(events []monitor.Event) {
	if !l.on {
		return
	}
	for i := range events {
		if e := &events[i]; e.Seq > l.seq {
			l.seq = e.Seq
			if e.Key.Raw() == l.key {
				l.Events = append(l.Events, *e)
			}
		}
	}
	if len(l.Events) > 2*MostWatched {
		l.Events = slices.Clone(l.Events[len(l.Events)-MostWatched:])
	}
}

// Before adds earlier events.
func (l *lockLog) Before(key string, events []monitor.Event) {
	if !l.on || l.key != key {
		return
	}
	first := uint64(1<<64 - 1)
	if len(l.Events) > 0 {
		first = l.Events[0].Seq
	}
	older := slices.DeleteFunc(slices.Clone(events), func(e monitor.Event) bool { return e.Seq >= first })
	l.Events = append(older, l.Events...)
}

// All replaces the events.
func (l *lockLog) All(key string, events []monitor.Event) {
	if l.on && l.key == key {
		l.Events = events
	}
}

// begin watches a lock, unless it is already watched; all are the known events.
func (l *lockLog) begin(key string, all []monitor.Event) {
	if l.on && l.key == key {
		return
	}
	*l = lockLog{key: key, on: true, Wants: key}
	l.add(all)
}
