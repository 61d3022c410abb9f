package tui

import (
	"fmt"
	"strings"
	"time"

	"redlockctl/monitor"
)

// lockDetail draws one lock: what each node knows of it, on one axis of time.
func (m *model) lockDetail(w int) []string {
	st, now := m.st, m.shownNow()
	l := m.locks.selected()
	if l == nil {
		return []string{st.dim.of(" no lock under the cursor")}
	}
	quorum := m.shown.Cluster.Quorum
	glyph, p := st.lock(l.State)
	right := ""
	switch {
	case l.State == monitor.LockImmortal:
		right = "a copy has no end"
	case l.MajorityEnd.IsZero():
		right = "no majority"
	default:
		right = "ends in " + remaining(l.MajorityEnd.Sub(now))
		if l.Held >= quorum {
			right += fmt.Sprintf(" %s can lose %d", st.sep, l.Margin)
			if l.Margin <= 0 {
				right += ": one more restart lets another in"
			}
		}
	}
	state := p.of(glyph+" "+l.State.String()) + ", " + copies(l) + ", by " + m.lockView.holder(l, m.isMine(l.Key.Raw(), l.Holder.Raw()), 24)
	left := " " + st.strong.of(st.text(l.Key, max(8, w/3))) + "  " + state
	head := []string{st.cut(left, w)}
	if n := w - width(left) - width(right) - 1; n >= 2 {
		head[0] = left + blanks(n) + right
	} else {
		head = append(head, " "+st.cut(right, w-2))
	}

	name := 2
	for i := range m.shown.Nodes {
		name = max(name, min(10, width(st.whole(m.shown.Nodes[i].Name))))
	}
	lead := 1 + name + 3
	barW := max(8, w-lead-32)
	var axis time.Duration
	for i := range l.Copies {
		if c := &l.Copies[i]; c.State == monitor.CopyPresent && !c.Expires.IsZero() {
			axis = max(axis, c.Expires.Sub(now))
		}
	}
	// The axis never shrinks while one lock is looked at: its bars do.
	if m.axisKey != l.Key.Raw() {
		m.axisKey, m.axis = l.Key.Raw(), 0
	}
	m.axis = max(m.axis, axisLength(axis))
	axis = m.axis
	out := append(head, "", blanks(lead)+st.label.of(axisLabels(axis, barW)))
	marked := false
	for i := range l.Copies {
		if i >= len(m.shown.Nodes) {
			break
		}
		n, c := &m.shown.Nodes[i], &l.Copies[i]
		g, np := st.node(n.State)
		line := " " + st.pad(st.escape(n.Name, name), name) + " " + np.of(g) + " "
		switch c.State {
		case monitor.CopyPresent:
			if c.Expires.IsZero() {
				line += st.bad.of(strings.Repeat(st.barFull, barW)) + " " + st.infinity + " never ends"
				break
			}
			leftover := c.Expires.Sub(now)
			full := int(float64(barW) * float64(max(0, leftover)) / float64(axis))
			bar := strings.Repeat(st.barFull, min(barW, max(0, full)))
			cell := p
			if c.Token != l.Holder {
				cell = st.bad
			}
			line += cell.of(bar) + " " + remaining(leftover)
			switch {
			case c.Token != l.Holder:
				line += " of " + st.token(c.Token, 16)
			case !marked && !l.MajorityEnd.IsZero() && c.Expires.Equal(l.MajorityEnd):
				line += " " + st.mark + " the majority ends here"
				marked = true
			}
		case monitor.CopyAbsent:
			line += st.dim.of("no copy")
			if n.State != monitor.NodeServing {
				line += ", " + n.State.String()
			}
		default:
			line += st.warn.of("? " + n.State.String() + ": " + m.unknownCopy(n, c))
		}
		out = append(out, st.cut(line, w))
	}
	since := ""
	if !l.Since.IsZero() {
		since = " this holder is seen since " + clock(l.Since) + " (" + age(now.Sub(l.Since)) + ")"
	}
	out = append(out, "", st.label.of(st.cut(since, w)))
	for _, e := range lastEvents(m.shown.Events, 3, func(e *monitor.Event) bool { return e.Key == l.Key }) {
		out = append(out, m.eventView.row(e, w, false))
	}
	return out
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

// axisLength rounds a time up to one whose half is good to read.
func axisLength(d time.Duration) time.Duration {
	const h = time.Hour
	for _, l := range []time.Duration{1, 2, 4, 6, 10, 20, 30, 60, 120, 240, 600, 1200, 1800} {
		if d <= l*time.Second {
			return l * time.Second
		}
	}
	l := h
	for l < d && l < 1<<20*h {
		l *= 2
	}
	return l
}

// axisLabels writes now, the half and the end of an axis of w cells.
func axisLabels(d time.Duration, w int) string {
	label := func(d time.Duration) string {
		if d%time.Second == 0 && d >= 100*time.Second || d >= time.Hour {
			return age(d)
		}
		return d.String()
	}
	half, end := label(d/2), label(d)
	s := "now"
	s += blanks(w/2-len(s)) + half
	return s + blanks(w-len(s)-len(end)) + end
}

// nodeDetail draws what else is known of the node under the cursor.
func (m *model) nodeDetail(w int) []string {
	st, now := m.st, m.shownNow()
	n := m.nodes.selected()
	if n == nil {
		return []string{st.dim.of(" no node under the cursor")}
	}
	glyph, p := st.node(n.State)
	head := " " + st.strong.of(st.escape(n.Name, 20)) + "  " + p.of(glyph+" "+n.State.String())
	if !n.Since.IsZero() {
		head += " since " + clock(n.Since) + " (" + age(now.Sub(n.Since)) + ")"
	}
	head += "  " + st.sentence(n.Addr, max(8, w-width(head)-3))
	out := []string{head, ""}
	add := func(label, text string) {
		for _, l := range wrap(fact(st, label, text), w-2, factIndent) {
			out = append(out, " "+l)
		}
	}
	if !n.Err.Empty() {
		add("Error", st.whole(n.Err.Raw()))
	}
	guard, gp := m.nodeView.guard(n, now, &m.drawn, 200)
	add("Guard", gp.of(guard))
	if s := m.drawn.status[n.Name]; s.Reason != "" && !strings.Contains(guard, st.whole(s.Reason)) {
		add("", st.whole(s.Reason))
	}
	server := "version " + st.whole(n.Version) + ", role " + st.whole(n.Role) + ", run " + st.escape(n.RunID, 12) + ", up " + age(n.Uptime)
	if n.Restarts > 0 {
		server += ", " + plural(n.Restarts, "restart") + " seen"
	}
	add("Server", server)
	keeps := "not persistent: a restart forgets every lock"
	if n.Persistent {
		keeps = "persistent (every write is synced)"
	}
	add("Memory", keeps+", eviction "+st.whole(n.Eviction)+", "+plural(n.Replicas, "replica")+", "+plural(n.Clients, "client"))
	clockText := st.none
	if n.Offset.Valid {
		clockText = m.nodeView.offset(n.Offset)
		if n.Drift.Valid {
			clockText += fmt.Sprintf(", drift %s %s%.1f ppm", st.signed(n.Drift.PPM, 1), st.pm, n.Drift.Bound)
		}
	}
	add("Clock", clockText)
	for _, note := range n.Notes {
		add("Note", st.warn.of(st.whole(note)))
	}
	for _, e := range lastEvents(m.shown.Events, 3, func(e *monitor.Event) bool { return e.Node == n.Name }) {
		out = append(out, m.eventView.row(e, w, false))
	}
	return out
}
