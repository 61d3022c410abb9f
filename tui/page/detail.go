package page

import (
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
	heldBy    heldBy
	axisKey   string        // the lock that was drawn last
	axis      time.Duration // the length of its axis
}

// lockPage is one lock.
type lockPage struct {
	*lockFacts
	key string
	reading
}

func (m *lockPage) Place() Place { return Place{Lock, m.key} }
func (m *lockPage) Mode() Mode   { return ModeLock }

func (m *lockPage) Selected() Selection { return Selection{Lock: m.Shown.Locks.Get(m.key)} }

func (m *lockPage) Lines(h int) []string {
	l, n := m.Shown.Locks.Get(m.key), h-m.chrome()
	if l != nil && m.wide() {
		return m.beside(m.W*3/5, h,
			func(h int) []string {
				title, lines := m.pane(l, 0)
				return m.frame(Pane{Title: title, Right: m.ends(l), Focused: true}, m.inSight(m.St, lines, n), h)
			},
			func(h int) []string {
				return m.eventsPane(m.lockEvents(m.In(), n), h)
			})
	}
	if l != nil {
		title, lines := m.pane(l, n)
		return m.frame(Pane{Title: title, Right: m.ends(l), Focused: true}, m.inSight(m.St, lines, n), h)
	}
	m.Watch(m.key)
	title := m.St.Escape(m.key, max(8, m.W/2)) + " " + m.St.Thin.Rule + " " + m.St.Off + " gone: no node has a copy of it"
	return m.frame(Pane{Title: title, Focused: true}, m.inSight(m.St, append(m.bandLines(m.In()), m.lockEvents(m.In(), n)...), n), h)
}

// Watch begins the history of a lock, unless it is watched already.
func (m *lockFacts) Watch(key string) { m.Watched.begin(key, m.events.All) }

// pane is one lock under a title: what each node knows of it, on one axis of time, and
// at most n of its events.
func (m *lockFacts) pane(l *monitor.Lock, n int) (title string, lines []string) {
	m.Watch(l.Key.Raw())
	ctx, w := m.context(), m.In()
	state := ctx.LockState(l.State)
	title = m.St.Text(l.Key, max(8, w/3)) + " " + m.St.Thin.Rule + " " + state.Sign + " " + state.Text + ", " + view.Copies(l) + ", by " + view.LockHolder(ctx, l).Text
	lines = append(m.lockBars(ctx, l, w), "")
	kept := view.Fact{Label: "Kept", Text: m.Kept(l.Key.Raw(), l.Holder.Raw()), Tone: view.Good}
	lines = append(lines, m.facts(append(append([]view.Fact{kept}, view.LockFacts(ctx, l)...), m.Maker(ctx, l)...), w)...)
	lines = append(lines, m.bandLines(w)...)
	if log := m.lockEvents(w, n); len(log) > 0 {
		lines = append(append(lines, ""), log...)
	}
	return title, lines
}

// ends is when a lock ends, for the end of a title.
func (m *lockFacts) ends(l *monitor.Lock) string {
	ctx := m.context()
	return m.St.Dim.Of(view.LockEnd(ctx, l))
}

// lockEvents are the last n events of the lock that is looked at.
func (m *lockFacts) lockEvents(w, n int) (out []string) {
	for _, e := range lastEvents(m.Watched.Events, n, func(e *monitor.Event) bool { return m.events.until == 0 || e.Seq <= m.events.until }) {
		out = append(out, m.eventView.row(e, w, false))
	}
	return out
}

// lockBars is the time that each copy has left, on one axis, which never shrinks
// while one lock is looked at: its bars do.
func (m *lockFacts) lockBars(ctx *view.Context, l *monitor.Lock, w int) []string {
	st := m.St
	name := 2
	for i := range m.Shown.Nodes {
		name = max(name, min(10, view.Width(st.Whole(m.Shown.Nodes[i].Name))))
	}
	lead := 1 + name + 3
	barW := max(8, w-lead-32)
	if m.axisKey != l.Key.Raw() {
		m.axisKey, m.axis = l.Key.Raw(), 0
	}
	m.axis = max(m.axis, view.Axis(ctx, l))
	out := []string{styles.Blanks(lead) + st.Label.Of(view.AxisLabels(m.axis, barW))}
	paint := func(c view.Cell) string { return st.Paint(c.Tone).Of(c.Text) }
	for _, b := range view.LockBars(ctx, l, m.axis, barW) {
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
