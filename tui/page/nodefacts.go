package page

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/styles"
)

// nodeFacts draws what is known about a node.
type nodeFacts struct {
	*Screen
	eventView eventView
	events    *eventTable
	past      nodePasts
}

// besideEvents draws what is known about a node, and its last events beside it, in h lines.
func (m *nodeFacts) besideEvents(n *monitor.Node, h int, frame func(title string, lines []string, h int) []string) []string {
	return m.beside(m.listWidth(), h,
		func(h int) []string { return m.above(n, h, frame) },
		func(h int) []string {
			events, room := m.nodeEvents(n, h, m.In()), max(0, h-m.chrome())
			return m.eventsPane("Events", events[:min(len(events), room)], h)
		})
}

// leastCopies is the least height of the pane of locks with a copy on a node.
const leastCopies = 6

// above draws what is known about a node in h lines, and, if there is room, the locks with
// a copy there below it.
func (m *nodeFacts) above(n *monitor.Node, h int, frame func(title string, lines []string, h int) []string) []string {
	if n != nil {
		title, lines := m.pane(n, 0, false)
		if top := len(lines) + m.chrome(); h-top >= leastCopies {
			return append(frame(title, lines, top), m.copies(n, h-top)...)
		}
	}
	title, lines := m.pane(n, 0, true)
	return frame(title, lines, h)
}

// pane draws what is known about a node under a title, with at most that many events, and
// with the names of locks that have a copy there.
func (m *nodeFacts) pane(n *monitor.Node, events int, locks bool) (title string, lines []string) {
	if n == nil {
		return "Node", []string{m.St.Dim.Of(" there is no such node")}
	}
	st, ctx, w := m.St, m.context(), m.In()
	state := ctx.NodeState(n.State)
	title = st.Escape(n.Name, 20) + " " + st.Thin.Rule + " " + state.Sign + " " + state.Text + view.NodeSince(ctx, n) + " " + st.Thin.Rule + " " + st.Sentence(n.Addr, 40)
	facts := view.NodeFacts(ctx, n)
	sparks := max(8, min(60, w-styles.FactIndent-45))
	for i := range facts {
		switch f := &facts[i]; {
		case f.Label == "Locks" && locks:
			f.Text += m.copiesOn(n)
		case f.Label == "RTT" && len(n.RTTs) > 1:
			last := n.RTTs[max(0, len(n.RTTs)-sparks):]
			f.Text = st.Dim.Of(st.RTTs(last, len(last))) + " " + f.Text
		}
	}
	add := func(label, text string, tone view.Tone) {
		facts = append(facts, view.Fact{Label: label, Text: text, Tone: tone})
	}
	if past := m.past[n.Name]; past != nil && len(past.Offsets) > 1 {
		last := past.Offsets[max(0, len(past.Offsets)-sparks):]
		span := st.SignedMS(slices.Min(last))
		if most := st.SignedMS(slices.Max(last)); most != span {
			span += " to " + most
		}
		add("Clocks", st.Info.Of(st.Sparkline(last, len(last)))+" "+span, view.None)
	}
	label := "Hour"
	for _, line := range m.Hour(n.Minutes, w-styles.FactIndent-2) {
		add(label, line, view.None)
		label = ""
	}
	for i := range m.Shown.Findings {
		if f := &m.Shown.Findings[i]; f.Node == n.Name {
			c := ctx.Severity(f.Severity)
			add("Finding", c.Sign+" "+c.Text+"  "+st.Whole(f.Title), c.Tone)
		}
	}
	out := m.facts(facts, w)
	if log := m.nodeEvents(n, events, w); len(log) > 0 {
		out = append(append(out, ""), log...)
	}
	return title, out
}

// How many locks copiesOn searches, and how many it names.
const (
	copiesSought = 1000
	copiesNamed  = 12
)

// copiesOn names locks with a copy on a node.
func (m *nodeFacts) copiesOn(n *monitor.Node) string {
	here := m.locksOn(n)
	if len(here) == 0 {
		return ""
	}
	var names []string
	for _, l := range here[:min(len(here), copiesNamed)] {
		names = append(names, m.St.Text(l.Key, 40))
	}
	text := ": " + strings.Join(names, ", ")
	if more := n.Locks - len(names); more > 0 {
		text += " and " + view.Count(more) + " more"
	}
	return text
}

// locksOn returns the locks with a copy on a node, the most urgent first, among the first
// thousand by name.
func (m *nodeFacts) locksOn(n *monitor.Node) (here []*monitor.Lock) {
	at := slices.IndexFunc(m.Shown.Nodes, func(o monitor.Node) bool { return o.Name == n.Name })
	sought := 0
	for l := range m.Shown.Locks.All() {
		if sought++; sought > copiesSought {
			break
		}
		if l.Copies.At(at).State == monitor.CopyPresent {
			here = append(here, l)
		}
	}
	slices.SortStableFunc(here, func(a, b *monitor.Lock) int { return view.Needs(b.State) - view.Needs(a.State) })
	return here
}

// copies draws the most urgent locks with a copy on a node as a pane of h lines: what its
// loss would hit.
func (m *nodeFacts) copies(n *monitor.Node, h int) []string {
	here, title := m.locksOn(n), Pane{Title: "Locks with a copy on " + m.St.Escape(n.Name, 20)}
	if len(here) == 0 {
		return m.frame(title, []string{m.St.Dim.Of(" none is known")}, h)
	}
	title.More = m.St.Dim.Of(view.Count(n.Locks) + ", most urgent first")
	here = here[:max(0, min(len(here), h-m.chrome()-1))]
	ctx := m.context()
	ctx.NoAt = true
	columns := view.OnScreen(view.LockColumns(m.Shown.Nodes), []string{"name", "state", "copies", "ends", "margin", "owner"}, false)
	g := newGrid(m.St, measure(ctx, columns, here), m.In())
	lines := []string{g.header(false)}
	for _, l := range here {
		lines = append(lines, g.row(ctx, l, rowLook{}))
	}
	return m.frame(title, lines, h)
}

// nodeEvents returns the last events of a node, at most that many, with the locks that lost
// a copy, in lines of at most w cells.
func (m *nodeFacts) nodeEvents(n *monitor.Node, most, w int) (out []string) {
	for _, e := range lastEvents(m.events.All, most, func(e *monitor.Event) bool {
		return e.Node == n.Name && !e.Part && (m.events.until == 0 || e.Seq <= m.events.until)
	}) {
		out = append(out, m.eventView.whole(e, w, false)...)
		if names := lostLocks(e, m.St); names != "" {
			for _, l := range styles.Wrap(names, w-14, 0)[:1] {
				out = append(out, styles.Blanks(12)+m.St.Dim.Of(l))
			}
		}
	}
	return out
}

// Hour draws the measurements of a node per minute, in lines of at most w cells: round
// trips and clock offsets, a cell per minute with the first value, and the number of lost
// probes.
func (m *nodeFacts) Hour(minutes []monitor.Minute, w int) (out []string) {
	if len(minutes) < 2 {
		return nil
	}
	st := m.St
	var means, offsets []time.Duration
	var drawn, clocked []bool // which minutes have a value
	var lost, probes int
	var worst, first, measured, lossy *monitor.Minute
	for i := range minutes {
		one := &minutes[i]
		probes += one.Answered + one.Failed
		if one.Failed > 0 {
			lost += one.Failed
			lossy = one
		}
		answered := one.Answered > 0
		if drawn = append(drawn, answered); answered {
			means = append(means, one.Mean)
			if first == nil {
				first = one
			}
			if worst == nil || one.Most > worst.Most {
				worst = one
			}
		}
		if clocked = append(clocked, one.Offset.Valid); one.Offset.Valid {
			offsets = append(offsets, one.Offset.Offset)
			if measured == nil {
				measured = one
			}
		}
	}
	add := func(ds []time.Duration, known []bool, text string) {
		cells := []rune(st.Sparkline(ds, len(ds)))
		line := ""
		for _, ok := range known {
			if ok {
				line, cells = line+string(cells[0]), cells[1:]
			} else {
				line += " "
			}
		}
		line = view.CutLeft(line, min(w, len(known)))
		if out = append(out, st.Info.Of(line)); view.Width(line)+1+view.Width(text) <= w {
			out[len(out)-1] += " " + text
		} else {
			out = append(out, text)
		}
	}
	at := func(one *monitor.Minute) string { return one.At.Format("15:04") }
	if first != nil {
		add(means, drawn, "RTT at "+at(first)+" "+view.Milliseconds(first.Least)+" to "+view.Milliseconds(first.Most)+", mean "+view.Milliseconds(first.Mean)+
			"; the longest "+view.Milliseconds(worst.Most)+" at "+at(worst))
	}
	if measured != nil {
		add(offsets, clocked, "clock at "+at(measured)+" "+st.Offset(measured.Offset))
	}
	if lost > 0 {
		out = append(out, st.Warn.Of(fmt.Sprintf("%s of %s probes unanswered, the last at %s", view.Count(lost), view.Count(probes), at(lossy))))
	}
	return out
}
