package tui

import (
	"fmt"
	"strconv"
	"time"

	"redlockctl/monitor"
	"redlockctl/restartguard"
)

// nodesPage is the table of nodes, and the one under the cursor below it.
func (m *model) nodesPage(h int, now time.Time) []string {
	st := m.st
	c := &m.shown.Cluster
	lines := []string{" " + st.title.of("NODES "+count(c.N)) + "   " + st.dim.of(fmt.Sprintf("%d serve, a quorum is %d", c.Serving, c.Quorum))}
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
			d = dropBlank(d)
		}
		lines = append(lines, d[:min(len(d), room)]...)
	}
	return lines
}

// nodePage is all that is known of a node.
func (m *model) nodePage(w int, now time.Time) []string {
	n := m.pickedOnPage()
	if n == nil {
		return []string{m.st.dim.of(" there is no such node")}
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
		return []string{m.st.dim.of(" no node under the cursor")}
	}
	return m.nodeFacts(n, w, m.shownNow(), 3)
}

// nodeFacts is what is known of a node, with its last events.
func (m *model) nodeFacts(n *monitor.Node, w int, now time.Time, events int) []string {
	st := m.st
	glyph, p := st.node(n.State)
	head := " " + st.strong.of(st.escape(n.Name, 20)) + "  " + p.of(glyph+" "+n.State.String()) + since(n.Since, now)
	head += "  " + st.sentence(n.Addr, max(8, w-width(head)-3))
	out := []string{head, ""}
	add := func(label, text string) {
		for _, l := range wrap(fact(st, label, text), w-2, factIndent) {
			out = append(out, " "+l)
		}
	}
	if !n.Err.Empty() {
		add("Error", st.bad.of(st.whole(n.Err.Raw())))
	}
	guard, gp := m.nodeView.guard(n, now, &m.drawn, 200)
	add("Guard", gp.of(guard))
	if s, ok := m.drawn.status[n.Name]; ok {
		if s.Reason != "" && s.Until.IsZero() && s.Phase != restartguard.PhaseActive {
			add("", st.whole(s.Reason))
		}
		if !s.Out.IsZero() {
			add("", "without a vote"+since(s.Out, now))
		}
		if s.BootExposed > 0 {
			add("", fmt.Sprintf("its last start was open for %s at most before it was closed", restartguard.AtMost(s.BootExposed)))
		}
		if s.Exposed > 0 && s.Exposed != s.BootExposed {
			add("", fmt.Sprintf("after its last loss it was open for %s at most", restartguard.AtMost(s.Exposed)))
		}
	}
	server := "version " + st.whole(n.Version) + ", role " + st.whole(n.Role) + ", run " + st.escape(n.RunID, 12) + ", up " + age(n.Uptime)
	if n.Restarts > 0 {
		server += ", " + plural(n.Restarts, "restart") + " seen"
	}
	add("Server", server)
	keeps := "kept in memory alone: a restart forgets every lock"
	if n.Persistent {
		keeps = "persistent (every write is synced)"
	}
	if answers(n.State) {
		keeps += ", " + count(n.Locks) + " copies of locks"
	}
	add("Data", keeps)
	memory := "eviction " + st.whole(n.Eviction)
	if n.UsedMemory > 0 {
		memory = bytesOf(n.UsedMemory) + " used, " + memory
	}
	add("Memory", memory+", "+plural(n.Replicas, "replica")+", "+plural(n.Clients, "client"))
	if n.MinReplicasToWrite >= 0 {
		add("Fence", fmt.Sprintf("min-replicas-to-write %d", n.MinReplicasToWrite))
	}
	clockText := st.none
	if n.Offset.Valid {
		clockText = m.nodeView.offset(n.Offset)
		if n.Drift.Valid {
			clockText += fmt.Sprintf(", drift %s %s%.1f ppm", st.signed(n.Drift.PPM, 1), st.pm, n.Drift.Bound)
		}
	}
	add("Clock", clockText)
	sparks := max(8, min(60, w-factIndent-30))
	if past := m.past[n.Name]; past != nil && len(past.offsets) > 1 {
		low, high := bounds(past.offsets[max(0, len(past.offsets)-sparks):])
		add("", st.info.of(st.sparkline(past.offsets, min(sparks, len(past.offsets))))+" "+m.nodeView.signedMS(low)+" to "+m.nodeView.signedMS(high))
	}
	if len(n.RTTs) > 1 {
		low, high := bounds(n.RTTs[max(0, len(n.RTTs)-sparks):])
		add("RTT", milliseconds(n.RTT)+"  "+st.info.of(st.sparkline(n.RTTs, min(sparks, len(n.RTTs))))+" "+milliseconds(low)+" to "+milliseconds(high))
	}
	for i, line := range m.hour(n.Minutes, w-factIndent-2) {
		label := ""
		if i == 0 {
			label = "Hour"
		}
		add(label, line)
	}
	for _, note := range n.Notes {
		add("Note", st.warn.of(st.whole(note)))
	}
	for i := range m.shown.Findings {
		if f := &m.shown.Findings[i]; f.Node == n.Name {
			g, word, fp := st.severity(f.Severity)
			add("Finding", fp.of(g+" "+word)+"  "+st.whole(f.Title))
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
		cells := []rune(st.sparkline(ds, len(ds)))
		line := ""
		for _, ok := range known {
			if ok {
				line, cells = line+string(cells[0]), cells[1:]
			} else {
				line += " "
			}
		}
		line = cutLeft(line, min(w, len(known)))
		if out = append(out, st.info.of(line)); width(line)+1+width(text) <= w {
			out[len(out)-1] += " " + text
		} else {
			out = append(out, text)
		}
	}
	at := func(one *monitor.Minute) string { return one.At.Format("15:04") }
	if first != nil {
		add(means, drawn, "RTT at "+at(first)+" "+milliseconds(first.Least)+" to "+milliseconds(first.Most)+", mean "+milliseconds(first.Mean)+
			"; the longest "+milliseconds(worst.Most)+" at "+at(worst))
	}
	if measured != nil {
		add(offsets, clocked, "clock at "+at(measured)+" "+m.nodeView.offset(measured.Offset))
	}
	if lost > 0 {
		out = append(out, st.warn.of(fmt.Sprintf("%s of %s probes unanswered, the last at %s", count(lost), count(probes), at(lossy))))
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

// bytesOf is a size as a person says it.
func bytesOf(n int64) string {
	f, unit := float64(n), 0
	for f >= 1024 && unit < 4 {
		f /= 1024
		unit++
	}
	if unit == 0 {
		return strconv.FormatInt(n, 10) + " B"
	}
	return strconv.FormatFloat(f, 'f', 1, 64) + " " + [...]string{"", "kB", "MB", "GB", "TB"}[unit]
}
