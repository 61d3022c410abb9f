package tui

import (
	"strings"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/action"
	"redlockctl/tui/keys"
	"redlockctl/tui/styles"
)

// filterHelp explains filters: the common syntax, then the fields of each page.
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

// helpLines makes the help from the key map: first the keys that work on the page from
// which it was opened, then the disabled ones and why, then the rest.
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
	var from string
	var works, off, away []string
	line := m.line
	m.line = nil
	m.Behind(func() {
		from = m.Viewed().String()
		works, off, away = m.keys.Help(st, m.mode(), w, m.has)
	})
	m.line = line
	for _, part := range []struct {
		head  string
		lines []string
	}{{"Works here: " + from, works}, {"Disabled here, and why", off}, {"On other pages", away}} {
		if len(part.lines) > 0 {
			head(part.head)
		}
		for _, l := range part.lines {
			add(l)
		}
	}
	for _, g := range []string{keys.Moving, keys.InDialog, keys.Typing} {
		head(g)
		for i := range m.keys {
			if b := &m.keys[i]; b.Group == g {
				k, text := b.Help().Key, b.Help().Desc
				if b.Says == nil {
					k, text = b.Text(st.ASCII)
				}
				add("   " + st.Pad(k, 12) + text)
			}
		}
	}
	head("Commands: after a colon, completed by tab")
	for _, c := range m.commands() {
		add("   " + st.Pad(strings.TrimSpace(c.Name+" "+c.Takes), 24) + c.Help)
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
	for _, t := range []struct {
		of      string
		columns [][2]string
	}{{"locks", view.Explain(view.LockColumns(make([]monitor.Node, 1)))}, {"nodes", view.Explain(view.NodeColumns())}} {
		head("Columns of " + t.of + ": :columns chooses, s sorts by the next, S the other way round")
		for _, c := range t.columns {
			for _, l := range styles.Wrap("   "+st.Pad(c[0], 14)+c[1], w-1, 17) {
				add(l)
			}
		}
	}
	if st.ASCII {
		for i, l := range out {
			out[i] = st.Our(l)
		}
	}
	return out
}

// labLines lists the keys of the lab, with what each shows or why it is disabled.
func (m *model) labLines(w int) (lines []string) {
	st := m.St
	for i := range m.keys {
		b := &m.keys[i]
		if b.Group != keys.Lab {
			continue
		}
		k, text := b.Text(st.ASCII)
		line := "   " + st.Strong.Of(st.Pad(k, 4)) + st.Pad(text, 12)
		// An open dialog or prompt disables all keys: it would be the reason for each.
		if why := b.Disabled(); why != "" && m.Dialog == nil && m.line == nil {
			line += st.Dim.Of("off: " + why)
		} else {
			line += action.LabActions[b.Name].Shows
		}
		lines = append(lines, st.Cut(line, w))
	}
	return lines
}
