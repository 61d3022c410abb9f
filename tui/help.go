package tui

import (
	"redlockctl/monitor"
)

// legend says what the states mean and what to do about them.
var legend = []struct {
	state monitor.LockState
	means string
}{
	{monitor.LockHeld, "a quorum of copies, and some to lose"},
	{monitor.LockExpiring, "held, ends within a second"},
	{monitor.LockBare, "held with margin 0: one more restart lets another client in"},
	{monitor.LockPartial, "copies but no majority: being acquired or released"},
	{monitor.LockNotALock, "a key under the lock pattern that cannot be a lock"},
	{monitor.LockOrphan, "a minority that nobody completes: blocks others until it ends"},
	{monitor.LockOverTTL, "lives longer than the cluster's max TTL: the guard's delay does not cover it"},
	{monitor.LockSplit, "copies of several tokens; ' marks those that are not the holder's"},
	{monitor.LockImmortal, "a copy without an end: it blocks until it is taken away"},
}

var columns = [][2]string{
	{"COPIES", "how many of the N nodes hold the holder's copy; 2+1/5: one more is another's"},
	{"n1, n2 …", "time left of the copy on each node; ? where the node does not answer"},
	{"ENDS", "time until the holder falls below a quorum"},
	{"MARGIN", "copies that may be lost before another client can reach a quorum"},
	{"OFFSET", "a node's clock to ours, with the bound that the round trip leaves"},
	{"GUARD", "did the node come up closed, and when may it vote again"},
}

// helpLines is the help, made from the key map.
func (m *model) helpLines(w int) []string {
	st := m.st
	var out []string
	add := func(s string) { out = append(out, st.cut(s, w)) }
	for _, g := range []string{groupLook, groupMove, groupAct, groupDialog, groupEdit} {
		if len(out) > 0 {
			add("")
		}
		add(" " + st.title.of(g))
		for i := range m.keys {
			b := &m.keys[i]
			if b.group != g {
				continue
			}
			h := b.Help()
			keys, text := h.Key, h.Desc
			if b.says == nil {
				keys, text = b.help(m)
			}
			line := "   " + st.pad(keys, 12) + text
			if b.danger {
				line += "  (asks first)"
			}
			// Only what can be pressed behind the help is known to be off or on.
			if why := ""; b.in == modeOverview {
				if why = b.disabled(m); why != "" {
					line += "  " + st.dim.of("now off: "+why)
				}
			}
			add(line)
		}
	}
	add("")
	add(" " + st.title.of("Filter"))
	add("   " + st.pad("text", 20) + "names with this in them; several words must all match")
	add("   " + st.pad("state:orphan", 20) + "locks in this state")
	add("   " + st.pad("node:n2", 20) + "locks with a copy on this node")
	add("   " + st.pad("holder:web", 20) + "locks whose token has this in it")
	add("   " + st.pad("!…", 20) + "the opposite: !state:held")
	add("")
	add(" " + st.title.of("States of a lock"))
	for _, l := range legend {
		g, p := st.lock(l.state)
		add("   " + p.of(st.pad(g+" "+l.state.String(), 14)) + l.means)
	}
	add("")
	add(" " + st.title.of("Columns"))
	for _, c := range columns {
		add("   " + st.pad(c[0], 14) + c[1])
	}
	if st.ascii {
		for i, l := range out {
			out[i] = st.onlyASCII(l)
		}
	}
	return out
}
