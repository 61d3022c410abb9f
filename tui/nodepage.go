package tui

import (
	"fmt"
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/restartguard"
	"redlockctl/tui/styles"
)

// nodesPage is the table of nodes, and the one under the cursor below it.
func (m *model) nodesPage(h int, now time.Time) []string {
	st := m.st
	c := &m.shown.Cluster
	lines := []string{" " + st.Title.Of("NODES "+view.Count(c.N)) + "   " + st.Dim.Of(fmt.Sprintf("%d serve, a quorum is %d", c.Serving, c.Quorum))}
	m.hits.nodes.from = m.hits.base + 1
	rows := min(len(m.nodes.nodes), max(1, h-3))
	if h < 20 {
		rows = min(rows, max(3, h/2))
	}
	lines = append(lines, m.nodeTableLines(rows, now, m.cursorOf(focusNodes))...)
	if room := h - len(lines) - 1; room >= 3 && m.dialog == nil {
		lines = append(lines, m.ruler())
		d := m.nodePage(m.w, now)
		if len(d) > room {
			d = styles.DropBlank(d)
		}
		lines = append(lines, d[:min(len(d), room)]...)
	}
	return lines
}

// nodePage is all that is known of a node.
func (m *model) nodePage(w int, now time.Time) []string {
	n := m.pickedOnPage()
	if n == nil {
		return []string{m.st.Dim.Of(" there is no such node")}
	}
	return m.nodeFacts(n, w, now, 12)
}

// pickedOnPage is the node that the page is about, also while a dialog is open.
func (m *model) pickedOnPage() *monitor.Node {
	if m.at.view != viewNode {
		return m.nodes.selected()
	}
	for i := range m.shown.Nodes {
		if m.shown.Nodes[i].Name == m.at.node {
			return &m.shown.Nodes[i]
		}
	}
	return nil
}

// nodeDetail is the node under the cursor at the foot of the overview.
func (m *model) nodeDetail(w int) []string {
	n := m.nodes.selected()
	if n == nil {
		return []string{m.st.Dim.Of(" no node under the cursor")}
	}
	return m.nodeFacts(n, w, m.shownNow(), 3)
}

// nodeFacts is what is known of a node, with its last events.
func (m *model) nodeFacts(n *monitor.Node, w int, now time.Time, events int) []string {
	st := m.st
	glyph, p := st.Node(n.State)
	head := " " + st.Strong.Of(st.Escape(n.Name, 20)) + "  " + p.Of(glyph+" "+n.State.String()) + styles.Since(n.Since, now)
	head += "  " + st.Sentence(n.Addr, max(8, w-view.Width(head)-3))
	out := []string{head, ""}
	add := func(label, text string) {
		for _, l := range styles.Wrap(st.Fact(label, text), w-2, styles.FactIndent) {
			out = append(out, " "+l)
		}
	}
	if !n.Err.Empty() {
		add("Error", st.Bad.Of(st.Whole(n.Err.Raw())))
	}
	guard, gp := m.nodeView.guard(n, now, &m.drawn, 200)
	add("Guard", gp.Of(guard))
	if s, ok := m.drawn.status[n.Name]; ok {
		if s.Reason != "" && s.Until.IsZero() && s.Phase != restartguard.PhaseActive {
			add("", st.Whole(s.Reason))
		}
		if !s.Out.IsZero() {
			add("", "without a vote"+styles.Since(s.Out, now))
		}
		if s.BootExposed > 0 {
			add("", fmt.Sprintf("its last start was open for %s at most before it was closed", restartguard.AtMost(s.BootExposed)))
		}
		if s.Exposed > 0 && s.Exposed != s.BootExposed {
			add("", fmt.Sprintf("after its last loss it was open for %s at most", restartguard.AtMost(s.Exposed)))
		}
	}
	server := "version " + st.Whole(n.Version) + ", role " + st.Whole(n.Role) + ", run " + st.Escape(n.RunID, 12) + ", up " + view.Age(n.Uptime)
	if n.Restarts > 0 {
		server += ", " + view.Plural(n.Restarts, "restart") + " seen"
	}
	add("Server", server)
	keeps := "kept in memory alone: a restart forgets every lock"
	if n.Persistent {
		keeps = "persistent (every write is synced)"
	}
	if answers(n.State) {
		keeps += ", " + view.Count(n.Locks) + " copies of locks"
	}
	add("Data", keeps)
	memory := "eviction " + st.Whole(n.Eviction)
	if n.UsedMemory > 0 {
		memory = view.Bytes(n.UsedMemory) + " used, " + memory
	}
	add("Memory", memory+", "+view.Plural(n.Replicas, "replica")+", "+view.Plural(n.Clients, "client"))
	if n.MinReplicasToWrite >= 0 {
		add("Fence", fmt.Sprintf("min-replicas-to-write %d", n.MinReplicasToWrite))
	}
	clockText := st.None
	if n.Offset.Valid {
		clockText = m.nodeView.offset(n.Offset)
		if n.Drift.Valid {
			clockText += fmt.Sprintf(", drift %s %s%.1f ppm", st.Signed(n.Drift.PPM, 1), st.PM, n.Drift.Bound)
		}
	}
	add("Clock", clockText)
	sparks := max(8, min(60, w-styles.FactIndent-30))
	if past := m.past[n.Name]; past != nil && len(past.offsets) > 1 {
		low, high := bounds(past.offsets[max(0, len(past.offsets)-sparks):])
		add("", st.Info.Of(st.Sparkline(past.offsets, min(sparks, len(past.offsets))))+" "+m.nodeView.signedMS(low)+" to "+m.nodeView.signedMS(high))
	}
	if len(n.RTTs) > 1 {
		low, high := bounds(n.RTTs[max(0, len(n.RTTs)-sparks):])
		add("RTT", view.Milliseconds(n.RTT)+"  "+st.Info.Of(st.Sparkline(n.RTTs, min(sparks, len(n.RTTs))))+" "+view.Milliseconds(low)+" to "+view.Milliseconds(high))
	}
	for i, line := range m.hour(n.Minutes, w-styles.FactIndent-2) {
		label := ""
		if i == 0 {
			label = "Hour"
		}
		add(label, line)
	}
	for _, note := range n.Notes {
		add("Note", st.Warn.Of(st.Whole(note)))
	}
	for i := range m.shown.Findings {
		if f := &m.shown.Findings[i]; f.Node == n.Name {
			g, word, fp := st.Severity(f.Severity)
			add("Finding", fp.Of(g+" "+word)+"  "+st.Whole(f.Title))
		}
	}
	if log := lastEvents(m.events.all, events, func(e *monitor.Event) bool {
		return e.Node == n.Name && (m.events.until == 0 || e.Seq <= m.events.until)
	}); len(log) > 0 {
		out = append(out, "")
		for _, e := range log {
			out = append(out, m.eventView.row(e, w, false))
		}
	}
	return out
}

// hour is what was measured of a node in the whole minutes that are kept, in
// lines of at most w cells: round trips and clock, each drawn with a cell for a
// minute, and what it was at the beginning; and how many probes were lost.
func (m *model) hour(minutes []monitor.Minute, w int) (out []string) {
	if len(minutes) < 2 {
		return nil
	}
	st := m.st
	var means, offsets []time.Duration
	var drawn, clocked []bool // which minutes have one
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
		add(offsets, clocked, "clock at "+at(measured)+" "+m.nodeView.offset(measured.Offset))
	}
	if lost > 0 {
		out = append(out, st.Warn.Of(fmt.Sprintf("%s of %s probes unanswered, the last at %s", view.Count(lost), view.Count(probes), at(lossy))))
	}
	return out
}

func bounds(ds []time.Duration) (low, high time.Duration) {
	low, high = ds[0], ds[0]
	for _, d := range ds {
		low, high = min(low, d), max(high, d)
	}
	return low, high
}
