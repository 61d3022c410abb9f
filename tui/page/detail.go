package page

import (
	"fmt"
	"strings"
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/styles"
)

// lockFacts is all that is known of one lock, and what became of it since it is
// looked at.
type lockFacts struct {
	*Screen
	lockView  *lockView
	eventView eventView
	events    *eventTable
	Watched   lockLog
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
	st := m.St
	l := m.Shown.Locks.Get(m.key)
	if l != nil {
		return m.inSight(st, m.lockFacts.lines(l, m.W, h), h)
	}
	m.Watch(m.key)
	out := []string{" " + st.Strong.Of(st.Escape(m.key, max(8, m.W/2))) + "  " + st.Dim.Of(st.Off+" gone: no node has a copy of it"), ""}
	return m.inSight(st, append(out, m.lockEvents(m.W, h-2)...), h)
}

// Watch begins the history of a lock, unless it is watched already.
func (m *lockFacts) Watch(key string) { m.Watched.begin(key, m.events.All) }

// lines draws one lock: what each node knows of it, on one axis of time, and
// at most n of its events.
func (m *lockFacts) lines(l *monitor.Lock, w, n int) []string {
	m.Watch(l.Key.Raw())
	st, now := m.St, m.Now
	out := m.lockHead(l, w, now)
	out = append(out, "")
	out = append(out, m.lockBars(l, w, now)...)
	out = append(out, "")
	add := func(label, text string) {
		for _, line := range styles.Wrap(st.Fact(label, text), w-2, styles.FactIndent) {
			out = append(out, " "+line)
		}
	}
	holder := st.Token(l.Holder, max(16, w-40))
	if l.Form != nil {
		by := "made by " + st.Whole(l.Form.Library)
		if !l.Form.Owner.Empty() {
			by = st.Whole(l.Form.Owner.Raw()) + ", " + by
		}
		if !l.Form.Created.IsZero() {
			by += ", drawn " + view.Clock(l.Form.Created) + " by its clock"
		}
		if !l.Form.Deadline.IsZero() {
			by += ", ends by its value at " + view.Clock(l.Form.Deadline)
		}
		if l.Nobody {
			add("Holder", l.NobodyText())
			add("", "most copies have the token "+holder)
		} else {
			add("Holder", holder)
		}
		add("", by)
	} else if l.Nobody {
		add("Holder", l.NobodyText())
	} else {
		add("Holder", holder+", of a form that is not known")
	}
	if !l.Since.IsZero() {
		add("Since", view.Clock(l.Since)+" ("+view.Age(now.Sub(l.Since))+" ago), as far as it was seen")
	}
	if len(l.Keys) > 1 {
		names := make([]string, 0, len(l.Keys))
		for _, k := range l.Keys {
			names = append(names, st.Text(k, 40))
		}
		add("Keys", strings.Join(names, ", "))
	}
	if l.Form != nil {
		switch {
		case l.Form.Refused != "":
			add("Take away", st.Bad.Of("refused: "+st.Whole(l.Form.Refused)))
		case l.Form.TakingAway != "":
			add("Take away", st.Whole(l.Form.TakingAway))
		}
	}
	if means := meaning(l.State); means != "" && need(l.State) > 0 {
		_, p := st.Lock(l.State)
		if l.State == monitor.LockImmortal {
			means = l.EndlessText()
		}
		add("Means", p.Of(l.State.String())+": "+st.Our(means))
	}
	if log := m.lockEvents(w, n); len(log) > 0 {
		out = append(out, "")
		out = append(out, log...)
	}
	return out
}

// lockEvents are the last n events of the lock that is looked at.
func (m *lockFacts) lockEvents(w, n int) (out []string) {
	for _, e := range lastEvents(m.Watched.Events, n, func(e *monitor.Event) bool { return m.events.until == 0 || e.Seq <= m.events.until }) {
		out = append(out, m.eventView.row(e, w, false))
	}
	return out
}

// lockHead is the lock in a line or two.
func (m *lockFacts) lockHead(l *monitor.Lock, w int, now time.Time) []string {
	st := m.St
	glyph, p := st.Lock(l.State)
	right := ""
	switch {
	case l.State == monitor.LockImmortal && l.MajorityEnd.IsZero():
		right = "no TTL"
	case l.MajorityEnd.IsZero():
		right = "no majority"
	default:
		right = "ends in " + view.Remaining(l.MajorityEnd.Sub(now))
		if l.Held >= m.Shown.Cluster.Quorum {
			right += fmt.Sprintf(" %s can lose %d", st.Sep, l.Margin())
			if l.Margin() <= 0 {
				right += ": one more restart lets another in"
			}
		}
	}
	state := p.Of(glyph+" "+l.State.String()) + ", " + Copies(l) + ", by " + m.lockView.holder(l, m.IsMine(l.Key.Raw(), l.Holder.Raw()), 24)
	left := " " + st.Strong.Of(st.Text(l.Key, max(8, w/3))) + "  " + state
	if n := w - view.Width(left) - view.Width(right) - 1; n >= 2 {
		return []string{left + styles.Blanks(n) + right}
	}
	return []string{st.Cut(left, w), " " + st.Cut(right, w-2)}
}

// lockBars is the time that each copy has left, on one axis.
func (m *lockFacts) lockBars(l *monitor.Lock, w int, now time.Time) []string {
	st := m.St
	_, p := st.Lock(l.State)
	name := 2
	for i := range m.Shown.Nodes {
		name = max(name, min(10, view.Width(st.Whole(m.Shown.Nodes[i].Name))))
	}
	lead := 1 + name + 3
	barW := max(8, w-lead-32)
	var axis time.Duration
	for _, c := range l.Copies.All() {
		if c.State == monitor.CopyPresent && !c.Expires.IsZero() {
			axis = max(axis, c.Expires.Sub(now))
		}
	}
	// The axis never shrinks while one lock is looked at: its bars do.
	if m.axisKey != l.Key.Raw() {
		m.axisKey, m.axis = l.Key.Raw(), 0
	}
	m.axis = max(m.axis, axisLength(axis))
	axis = m.axis
	out := []string{styles.Blanks(lead) + st.Label.Of(axisLabels(axis, barW))}
	cells := func(end time.Time) int {
		return min(barW, int(float64(barW)*float64(max(0, end.Sub(now)))/float64(axis)))
	}
	majority := barW
	if !l.MajorityEnd.IsZero() {
		majority = cells(l.MajorityEnd)
	}
	marked := false
	for i, c := range l.Copies.All() {
		if i >= len(m.Shown.Nodes) {
			break
		}
		n := &m.Shown.Nodes[i]
		g, np := st.Node(n.State)
		line := " " + st.Pad(st.Escape(n.Name, name), name) + " " + np.Of(g) + " "
		switch c.State {
		case monitor.CopyPresent:
			if c.Expires.IsZero() {
				line += st.Bad.Of(strings.Repeat(st.Full, barW)) + " " + st.Endless + " no TTL"
				break
			}
			leftover := c.Expires.Sub(now)
			full := cells(c.Expires)
			bar := strings.Repeat(st.Full, full)
			if full > majority { // a copy that outlives the majority shows where that ends
				bar = strings.Repeat(st.Full, majority) + st.Here + strings.Repeat(st.Full, full-majority-1)
			}
			cell := p
			if c.Token != l.Holder {
				cell = st.Bad
			}
			line += cell.Of(bar) + " " + view.Remaining(leftover)
			switch {
			case c.Token != l.Holder:
				line += " of " + st.Token(c.Token, 16)
			case !marked && !l.MajorityEnd.IsZero() && c.Expires.Equal(l.MajorityEnd):
				line += " " + st.Points + " the majority ends here"
				marked = true
			}
		case monitor.CopyAbsent:
			line += st.Dim.Of("no copy")
			if n.State != monitor.NodeServing {
				line += ", " + n.State.String()
			}
		case monitor.CopyUnread:
			line += st.Warn.Of(st.Ellipsis + " " + UnknownCopy(n, c, m.Shown.Cluster.MaxTTL, now))
		default:
			line += st.Warn.Of("? " + n.State.String() + ": " + UnknownCopy(n, c, m.Shown.Cluster.MaxTTL, now))
		}
		out = append(out, st.Cut(line, w))
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
			return view.Age(d)
		}
		return d.String()
	}
	half, end := label(d/2), label(d)
	s := "now"
	s += styles.Blanks(w/2-len(s)) + half
	return s + styles.Blanks(w-len(s)-len(end)) + end
}

// UnknownCopy says what may be on a node that does not answer; most is the
// cluster's max TTL.
func UnknownCopy(n *monitor.Node, c monitor.Copy, most time.Duration, now time.Time) string {
	if c.State == monitor.CopyUnread && c.Type == "" {
		return "not read yet: a copy may be there"
	}
	end := c.Expires
	if end.IsZero() {
		if !c.Token.Empty() {
			return "the copy that was seen there has no end"
		}
		if most <= 0 || n.Since.IsZero() {
			return "a copy may be there"
		}
		end = n.Since.Add(most) // of a copy set just before we lost sight of the node
	}
	if end.Before(now) {
		return "a copy there, if any, ended by " + view.Clock(end) + ", unless it was extended"
	}
	return "a copy there, if any, ends by " + view.Clock(end) + ", unless it is extended"
}

// Legend says what the states mean and what to do about them.
var Legend = []struct {
	State monitor.LockState
	Means string
}{
	{monitor.LockHeld, "a quorum of copies, and some to lose"},
	{monitor.LockExpiring, "held, ends within a second"},
	{monitor.LockBare, "held with margin 0: one more restart lets another client in"},
	{monitor.LockRevoked, "taken from its holder: nobody gets in before its time is over"},
	{monitor.LockPartial, "copies but no majority: being acquired or released"},
	{monitor.LockNotALock, "a key under the lock pattern that cannot be a lock"},
	{monitor.LockOrphan, "a minority that nobody completes: blocks others until it ends"},
	{monitor.LockOverTTL, "lives longer than the cluster's max TTL: the guard's delay does not cover it"},
	{monitor.LockSplit, "copies of several tokens; ' marks those that are not the holder's"},
	{monitor.LockImmortal, "a copy without TTL: it never ends by itself"},
}

// meaning is what a state of a lock means.
func meaning(s monitor.LockState) string {
	for _, l := range Legend {
		if l.State == s {
			return l.Means
		}
	}
	return ""
}
