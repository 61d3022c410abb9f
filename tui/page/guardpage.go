package page

import (
	"strings"
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/restartguard"
	"redlockctl/tui/styles"
)

// timelineMost and timelineLeast bound the time that the guard's page shows.
const (
	timelineMost  = 30 * time.Minute
	timelineLeast = 2 * time.Minute
)

// guardPage is what became of the nodes over time, what keeps them out now, and
// the events of fences and rejoins.
type guardPage struct {
	*nodePanel
	events    *eventTable
	eventView eventView
	past      nodePasts
	began     *time.Time // of what is in it
}

func (m *guardPage) Place() Place { return Place{Kind: Guard} }
func (m *guardPage) Mode() Mode   { return modeGuard }

func (m *guardPage) Lines(h int) []string {
	st, now := m.St, m.Now
	others := m.drawn.elsewhere(st)
	state := "no guard is seen: nothing lets a fenced node rejoin"
	switch _, known := m.Shown.Guards(); {
	case m.drawn.Guarded && others != "":
		state = "a guard runs in this console, and " + others + " watches too"
	case m.drawn.Guarded:
		state = "a guard runs in this console"
	case others != "":
		state = others + " watches; this console runs no guard"
	case !known:
		state = "guards cannot be seen on all nodes, and none runs in this console"
	}
	if m.drawn.Delay > 0 {
		state = "D = " + view.Span(m.drawn.Delay) + ", " + state
	}
	lines := []string{" " + st.Title.Of("GUARD") + "   " + st.Dim.Of(st.Cut(state, max(8, m.W-10)))}
	if o := restartguard.OutlookOf(m.drawn.list, m.Shown.Cluster.N, m.Shown.Cluster.Quorum); len(m.drawn.list) > 0 {
		p := st.Good
		switch {
		case o.Unknown():
			p = st.Warn
		case !o.Possible():
			p = st.Bad
		}
		for _, l := range styles.Wrap(p.Of(st.Whole(o.Text(now))), m.W-2, 2) {
			lines = append(lines, " "+l)
		}
	}

	name := 4
	for i := range m.Shown.Nodes {
		name = max(name, min(10, view.Width(st.Whole(m.Shown.Nodes[i].Name))))
	}
	lead := styles.Lead + name + styles.Gap
	w := m.W - lead - 1
	length := timelineLeast
	if first := *m.began; !first.IsZero() {
		for length < now.Sub(first) && length < timelineMost {
			length *= 2
		}
		length = min(length, timelineMost)
	}
	from := now.Add(-length)
	rows := len(m.Shown.Nodes)
	room := h - len(lines)
	drawLine := room >= 2*rows+6
	if drawLine {
		ago := view.Age(length) + " ago"
		lines = append(lines, "", styles.Blanks(lead)+st.Label.Of(ago+styles.Blanks(w-view.Width(ago)-3)+"now"))
		for i := range m.Shown.Nodes {
			n := &m.Shown.Nodes[i]
			past := m.past[n.Name]
			if past == nil {
				past = &nodePast{}
			}
			lines = append(lines, styles.Blanks(styles.Lead)+st.Pad(st.Escape(n.Name, name), name)+styles.Blanks(styles.Gap)+past.timeline(st, from, now, w))
		}
		lines = append(lines, styles.Blanks(lead)+st.Dim.Of(st.Cut(st.Open+" serves  "+st.Closed+" fenced or held  "+st.Gone+" down  R restarted  ? otherwise", w)), "")
	}
	at := m.cursor()
	m.span = lineSpan{from: len(lines)}
	rows = min(rows, max(1, h-len(lines)-2))
	from2, to := m.nodes.window(rows)
	for i := from2; i < to; i++ {
		lines = append(lines, m.guardRow(&m.nodes.nodes[i], now, name, at))
		m.span.n++
	}
	if room := h - len(lines) - 1; room > 0 {
		lines = append(lines, "")
		var told []string
		for i := len(m.events.All) - 1; i >= 0 && len(told) < room; i-- {
			e := &m.events.All[i]
			// What is told of a node is of its restarts and fences, but for its clock.
			if e.Node != "" && e.Level > monitor.LevelInfo && e.Kind != "clock step" && (m.events.until == 0 || e.Seq <= m.events.until) {
				told = append(told, m.eventView.row(e, m.W, true))
			}
		}
		lines = append(lines, told...)
	}
	return lines[:min(len(lines), max(h, 0))]
}

// guardRow is what the guard makes of one node.
func (m *guardPage) guardRow(n *monitor.Node, now time.Time, name int, at cursorState) string {
	st := m.St
	under := n.Name == m.nodes.Name
	plain := under && at == cursorHere
	paintIf := func(p styles.Paint, s string) string {
		if plain {
			return s
		}
		return p.Of(s)
	}
	glyph, p := st.Node(n.State)
	line := st.Pad(st.Escape(n.Name, name), name) + styles.Blanks(styles.Gap) + paintIf(p, st.Pad(glyph+" "+n.State.String(), styles.StateWidth)) + styles.Blanks(styles.Gap)
	room := m.W - styles.Lead - view.Width(line) - 1
	text, gp := m.nodeView.guard(n, now, &m.drawn, room)
	if s, ok := m.drawn.Status[n.Name]; ok {
		var more []string
		if s.Phase == restartguard.PhaseClosed && s.Proven {
			more = append(more, "a write was refused")
		}
		if !s.Out.IsZero() {
			more = append(more, "out for "+view.Age(now.Sub(s.Out)))
		}
		if len(more) > 0 && view.Width(text)+2 < room {
			text = st.Cut(text+"  "+strings.Join(more, ", "), room)
		}
	}
	line += paintIf(gp, text)
	lead := "  "
	if under {
		lead = " " + st.Pointer
	}
	if plain {
		return st.Cursor.Of(st.Pad(lead+" "+line, m.W))
	}
	return lead + " " + line
}
