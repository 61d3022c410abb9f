package tui

import (
	"slices"
	"strings"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/action"
	"redlockctl/tui/page"
	"redlockctl/tui/styles"
)

// filterHelp is the language of the filter: what all have, then the fields of each.
func filterHelp() (terms [][2]string) {
	terms = append(terms, [][2]string{
		{"text", "names with this in them; several words must all match; \"a b\" has blanks"},
		{"orders:*", "with * or ?: all of the name is so"},
		{"~^job:[0-9]+$", "names that match this regular expression"},
	}...)
	terms = append(terms, monitor.FilterTerms()...)
	return append(terms,
		[2]string{"!…", "the opposite: !state:held"},
		[2]string{"of events", strings.Join(view.EventLanguage.Offers("", nil), " ")},
		[2]string{"of the audit log", strings.Join(view.AuditLanguage.Offers("", nil), " ")},
		[2]string{"a|b", "of a field: one of these; tab completes fields and values"})
}

// offWidth is for what a key would do that is off, in lines of w cells.
func offWidth(w int) int {
	if w < 90 {
		return 18
	}
	return 25 // no label is cut
}

// pageKeys are the keys of the page that the help was opened from, as lines: those that
// work there, those that are off with the reason, and those of other pages.
func (m *model) pageKeys(w int) (from string, works, off, away []string) {
	st := m.St
	from = m.behind(func() {
		for i := range m.keys {
			b := &m.keys[i]
			h := b.Help()
			switch keys, text := h.Key, h.Desc; {
			case !slices.Contains([]string{groupLook, groupAct, groupPast, groupLab, groupTour}, b.group) || !m.has(b.group):
			case b.in&m.mode() == 0:
				away = append(away, "   "+st.Pad(keys, 9)+text+st.Dim.Of(places(b.in)))
			case b.disabled(m) != "":
				why := b.disabled(m)
				if name := b.name[strings.LastIndexByte(b.name, ' ')+1:]; name != "" && view.Width(text) > offWidth(w) {
					text = name
				}
				off = append(off, "   "+st.Pad(keys, 9)+st.Pad(text, offWidth(w))+" "+st.Dim.Of(why))
			case b.danger:
				works = append(works, "   "+st.Pad(keys, 9)+text+st.Dim.Of("  asks first"))
			default:
				works = append(works, "   "+st.Pad(keys, 9)+text)
			}
		}
	})
	return from, works, off, away
}

// helpLines is the help, made from the key map: first what works on the page that it
// was opened from, then what is off there and why, then the rest.
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
	from, works, off, away := m.pageKeys(w)
	for _, part := range []struct {
		head  string
		lines []string
	}{{"Works here: " + from, works}, {"Off here, and why", off}, {"On other pages", away}} {
		if len(part.lines) > 0 {
			head(part.head)
		}
		for _, l := range part.lines {
			add(l)
		}
	}
	for _, g := range []string{groupMove, groupDialog, groupEdit} {
		head(g)
		for i := range m.keys {
			if b := &m.keys[i]; b.group == g {
				keys, text := b.Help().Key, b.Help().Desc
				if b.says == nil {
					keys, text = b.help(m)
				}
				add("   " + st.Pad(keys, 12) + text)
			}
		}
	}
	head("Commands: after a colon, completed by tab")
	for _, c := range m.commands() {
		add("   " + st.Pad(strings.TrimSpace(c.name+" "+c.takes), 24) + c.help)
	}
	head("Filter")
	for _, f := range filterHelp() {
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
	switch in {
	case page.ModeLab:
		return "  7 lab"
	case page.ModeList:
		return "  on a list"
	}
	return ""
}

// has reports whether keys of this group may work here at all.
func (m *model) has(group string) bool {
	return (group != groupLab || m.Lab != nil) && (group != groupTour || m.opt.Tour)
}

// behind does something as on the page that the help was opened from, and returns that
// page's name.
func (m *model) behind(do func()) string {
	if m.viewed() == page.Help && len(m.trail) > 0 {
		here, line := m.page, m.line
		m.page, m.line = m.trail[len(m.trail)-1], nil
		defer func() { m.page, m.line = here, line }()
	}
	do()
	return m.viewed().String()
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
