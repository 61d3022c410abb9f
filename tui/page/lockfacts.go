package page

import (
	"slices"
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/styles"
)

// lockFacts is all that is known of one lock, and what became of it since it is
// looked at.
type lockFacts struct {
	*Screen
	eventView eventView
	events    *eventTable
	Watched   lockLog
	Holders   heldBy
	axisKey   string        // the lock that was drawn last
	axis      time.Duration // the length of its axis
}

// Asks is the lock whose holders are to be read from a record; "": none is.
func (f *lockFacts) Asks(now time.Time) string {
	if !f.Watched.on || !f.Holders.due(f.Watched.key, now) {
		return ""
	}
	return f.Watched.key
}

// Watch begins the history of a lock, unless it is watched already.
func (f *lockFacts) Watch(key string) { f.Watched.begin(key, f.events.All) }

// pane is one lock under a title: what each node knows of it, on one axis of time, and
// at most n of its events.
func (f *lockFacts) pane(l *monitor.Lock, n int) (title string, lines []string) {
	f.Watch(l.Key.Raw())
	ctx, w := f.context(), f.In()
	state := ctx.LockState(l.State)
	title = f.St.Text(l.Key, max(8, w/3)) + " " + f.St.Thin.Rule + " " + state.Sign + " " + state.Text + ", " + view.Copies(l) + ", by " + view.LockHolder(ctx, l).Text
	lines = append(f.lockBars(ctx, l, w), "")
	kept := view.Fact{Label: "Kept", Text: f.Kept(l.Key.Raw(), l.Holder.Raw()), Tone: view.Good}
	lines = append(lines, f.facts(append(append([]view.Fact{kept}, view.LockFacts(ctx, l)...), f.Holders.Maker(ctx, l)...), w)...)
	lines = append(lines, f.Holders.lines(f.Screen, f.Watched.key, w)...)
	if log := f.lockEvents(w, n); len(log) > 0 {
		lines = append(append(lines, ""), log...)
	}
	return title, lines
}

// ends is when a lock ends, for the end of a title.
func (f *lockFacts) ends(l *monitor.Lock) string {
	ctx := f.context()
	return f.St.Dim.Of(view.LockEnd(ctx, l))
}

// lockEvents are the last n events of the lock that is looked at.
func (f *lockFacts) lockEvents(w, n int) (out []string) {
	for _, e := range lastEvents(f.Watched.Events, n, func(e *monitor.Event) bool { return f.events.until == 0 || e.Seq <= f.events.until }) {
		out = append(out, f.eventView.row(e, w, false))
	}
	return out
}

// lockBars is the time that each copy has left, on one axis, which never shrinks
// while one lock is looked at: its bars do. Where none expires there is no axis.
func (f *lockFacts) lockBars(ctx *view.Context, l *monitor.Lock, w int) []string {
	st := f.St
	name := 2
	for i := range f.Shown.Nodes {
		name = max(name, min(10, view.Width(st.Whole(f.Shown.Nodes[i].Name))))
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
	for _, b := range view.LockBars(ctx, l, axis, barW) {
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

// MostWatched bounds the history of the lock that is looked at.
const MostWatched = 200

// lockLog is what happened to one lock since it is looked at: of a busy cluster
// the latest events are over in a moment.
type lockLog struct {
	key    string
	on     bool
	Wants  string // the key of which the history before is wanted; "": it is here
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

// Before puts what happened before in front of what is known.
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

// begin watches a lock, unless it is watched already; all are the events that are
// known.
func (l *lockLog) begin(key string, all []monitor.Event) {
	if l.on && l.key == key {
		return
	}
	*l = lockLog{key: key, on: true, Wants: key}
	l.add(all)
}
