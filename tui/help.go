package tui

import (
	"strings"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/action"
	"redlockctl/tui/page"
	"redlockctl/tui/styles"
)

// filterHelp is the language of the filter.
var filterHelp = [][2]string{
	{"text", "names with this in them; several words must all match; \"a b\" has blanks"},
	{"~^job:[0-9]+$", "names that match this regular expression; job:* the whole name, with stars"},
	{"state:split|orphaned", "one of these; so with node, holder, lib, margin and copies"},
	{"state:orphaned", "locks in this state: held, bare, split, over, no-ttl, not-a-lock …"},
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
	for _, g := range []string{groupLook, groupMove, groupPast, groupAct, groupLab, groupDialog, groupEdit} {
		if g == groupLab && m.Lab == nil {
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
	for state := range monitor.LockStates() {
		c := st.LockState(state)
		add("   " + st.Paint(c.Tone).Of(st.Pad(c.Sign+" "+c.Text, 14)) + view.States[state])
	}
	head("Columns")
	for _, c := range append(view.Explain(view.LockColumns(make([]monitor.Node, 1))), view.Explain(view.NodeColumns())...) {
		for _, l := range styles.Wrap("   "+st.Pad(c[0], 14)+c[1], w-1, 17) {
			add(l)
		}
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
		if why := b.disabled(m); why != "" && m.Dialog == nil {
			line += st.Dim.Of("off: " + why)
		} else {
			line += action.LabActions[b.name].Shows
		}
		lines = append(lines, st.Cut(line, w))
	}
	kinds := m.Lab.ClientKinds()
	if len(kinds) > 0 {
		lines = append(lines, "")
	}
	for _, k := range kinds {
		lines = append(lines, "   "+st.Pad(view.Count(k.Running), 4)+st.Pad(k.Name, 12)+st.Dim.Of(st.Cut(k.Does, w-20)))
	}
	return lines
}
