package tui

import (
	"strings"

	"redlockctl/internal/view"
	"redlockctl/tui/page"
)

var columns = [][2]string{
	{"COPIES", "how many of the N nodes hold the holder's copy; 2+1/5: one more is another's"},
	{"n1, n2 …", "time left of the copy on each node; ? where the node does not answer"},
	{"ENDS", "time until the holder falls below a quorum"},
	{"MARGIN", "copies that may be lost before another client can reach a quorum"},
	{"OFFSET", "a node's clock to ours, with the bound that the round trip leaves"},
	{"MADE BY", "the library, as far as the form of key and value tells"},
	{"GUARD", "did the node come up closed, and when may it vote again"},
}

// filterHelp is the language of the filter.
var filterHelp = [][2]string{
	{"text", "names with this in them; several words must all match; \"a b\" has blanks"},
	{"state:orphan", "locks in this state: held, bare, split, over-ttl, not-a-lock …"},
	{"node:n2", "with a copy on this node"},
	{"holder:web", "whose token, or the owner that it names, has this in it"},
	{"lib:redsync", "made by this library; lib:unknown by none that is known"},
	{"ttl<5s  ttl>1m", "that end within, or later; age<1h of this holder, too"},
	{"margin:0  copies<3", "by number: also <, <=, >, >="},
	{"!…", "the opposite: !state:held"},
	{"events", "words, kind:restart, node:n2, level:alarm, and ! before them"},
}

// helpLines is the help, made from the key map.
func (m *model) helpLines(w int) []string {
	st := m.St
	var out []string
	add := func(s string) { out = append(out, st.Cut(s, w)) }
	head := func(s string) {
		if len(out) > 0 {
			add("")
		}
		add(" " + st.Title.Of(s))
	}
	for _, g := range []string{groupLook, groupMove, groupAct, groupLab, groupDialog, groupEdit} {
		if g == groupLab && m.lab == nil {
			continue
		}
		head(g)
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
			line := "   " + st.Pad(keys, 12) + text
			if b.danger {
				line += "  (asks first)"
			}
			if where := places(b.in); where != "" && (g == groupAct || g == groupLook || g == groupLab) {
				line += st.Dim.Of("  " + where)
			}
			// What can be pressed behind the help is off or on there.
			if why := m.behind(b); why != "" {
				line += "  " + st.Dim.Of("now off: "+why)
			}
			add(line)
		}
	}
	head("Commands: after a colon, completed by tab")
	for _, c := range m.commands() {
		add("   " + st.Pad(strings.TrimSpace(c.name+" "+c.takes), 24) + c.help)
	}
	head("Filter")
	for _, f := range filterHelp {
		add("   " + st.Pad(f[0], 24) + f[1])
	}
	head("States of a lock")
	for _, l := range page.Legend {
		g, p := st.Lock(l.State)
		add("   " + p.Of(st.Pad(g+" "+l.State.String(), 14)) + l.Means)
	}
	head("Columns")
	for _, c := range columns {
		add("   " + st.Pad(c[0], 14) + c[1])
	}
	if st.ASCII {
		for i, l := range out {
			out[i] = st.Our(l)
		}
	}
	return out
}

// places is where a key is known that is not known everywhere.
func places(in page.Mode) string {
	switch {
	case in == page.ModeLab:
		return "(7 lab)"
	case in == page.ModeOnNode:
		return "(on a node)"
	}
	return ""
}

// behind is why a key is off on the page that the help was opened from.
func (m *model) behind(b *binding) string {
	if b.why == nil || b.in&page.ModeMain == 0 || len(m.trail) == 0 || m.viewed() != page.Help {
		return ""
	}
	here := m.page
	m.page = m.trail[len(m.trail)-1]
	defer func() { m.page = here }()
	if b.in&m.mode() == 0 {
		return ""
	}
	return b.disabled(m)
}

// labLines are the keys of the lab, what each shows or why it is off, and the
// clients that run.
func (m *model) labLines(w int) (lines []string) {
	st := m.St
	for i := range m.keys {
		b := &m.keys[i]
		if b.group != groupLab {
			continue
		}
		k, text := b.help(m)
		line := "   " + st.Strong.Of(st.Pad(k, 4)) + st.Pad(text, 12)
		// While a dialog stands over the page, it alone is why no key acts.
		if why := b.disabled(m); why != "" && m.dialog == nil {
			line += st.Dim.Of("off: " + why)
		} else {
			line += labActions[b.name].shows
		}
		lines = append(lines, st.Cut(line, w))
	}
	kinds := m.lab.ClientKinds()
	if len(kinds) > 0 {
		lines = append(lines, "")
	}
	for _, k := range kinds {
		lines = append(lines, "   "+st.Pad(view.Count(k.Running), 4)+st.Pad(k.Name, 12)+st.Dim.Of(st.Cut(k.Does, w-20)))
	}
	return lines
}
