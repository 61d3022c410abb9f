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
// which it was opened, then the disabled ones, then the rest.
func (m *model) helpLines(w int) []string {
	st := m.St
	var out []string
	add := func(lines ...string) {
		for _, l := range lines {
			out = append(out, st.Cut(l, w))
		}
	}
	head := func(s string) {
		if len(out) > 0 {
			add("")
		}
		add(" " + st.Title.Of(s))
	}
	var from string
	var works, off, away []keys.Entry
	line := m.line
	m.line = nil
	m.Behind(func() {
		from = m.Viewed().String()
		works, off, away = m.keys.Help(m.mode(), m.has)
	})
	m.line = line
	head("Works here: " + from)
	var pairs [][2]string
	for _, e := range works {
		if e.Asks {
			e.Text += st.Dim.Of("  asks first")
		}
		pairs = append(pairs, [2]string{e.Key, e.Text})
	}
	add(m.inTwo(pairs, keyWidth, w)...)
	if len(off) > 0 {
		add(m.disabledLines(off, w)...)
	}
	if len(away) > 0 {
		var names []string
		for i, e := range away {
			if e.Note != "" && (i == len(away)-1 || away[i+1].Note != e.Note) {
				e.Text += " (" + e.Note + ")"
			}
			names = append(names, e.Key+" "+e.Text)
		}
		add(m.folded("On other pages", names, w)...)
	}
	for _, g := range []string{keys.Moving, keys.InDialog, keys.Typing} {
		head(g)
		pairs = nil
		for i := range m.keys {
			if b := &m.keys[i]; b.Group == g && (g != keys.Moving || b.Disabled() == "") { // a page that does not exist here
				k, text := b.Help().Key, b.Help().Desc
				if b.Says == nil {
					k, text = b.Text(st.ASCII)
				}
				pairs = append(pairs, [2]string{k, text})
			}
		}
		add(m.inTwo(pairs, keyWidth, w)...)
	}
	head("Commands: after a colon, completed by tab")
	pairs = nil
	for _, c := range m.commands() {
		pairs = append(pairs, [2]string{strings.TrimSpace(c.Name + " " + c.Takes), c.Help})
	}
	add(m.inTwo(pairs, 24, w)...)
	head("Filter")
	add(m.inTwo(filterHelp(), 24, w)...)
	head("States of a lock")
	for state := range monitor.LockStates() {
		c := st.LockState(state)
		add(styles.Wrap("   "+st.Paint(c.Tone).Of(st.Pad(c.Sign+" "+c.Text, nameWidth))+view.States[state], w-1, 3+nameWidth)...)
	}
	for _, t := range []struct {
		of      string
		columns [][2]string
	}{{"locks", view.Explain(view.LockColumns(make([]monitor.Node, 1)))}, {"nodes", view.Explain(view.NodeColumns())}} {
		head("Columns of " + t.of + ": :columns chooses, s sorts by the next, S the other way round")
		for _, c := range t.columns {
			add(styles.Wrap("   "+st.Pad(c[0], nameWidth)+c[1], w-1, 3+nameWidth)...)
		}
	}
	if st.ASCII {
		for i, l := range out {
			out[i] = st.Our(l)
		}
	}
	return out
}

// Widths in the help: of a key, and of a state or a column.
const (
	keyWidth  = 10
	nameWidth = 16
)

// disabledLines lists the keys that do nothing now: in one line, or unfolded each with the
// reason.
func (m *model) disabledLines(off []keys.Entry, w int) []string {
	st := m.St
	if shown, _ := m.ShowsDetail(); shown {
		lines := []string{"", " " + st.Title.Of("Disabled here, and why")}
		for _, e := range off {
			name := "   " + st.Pad(e.Key, keyWidth)
			if w < 90 {
				name += st.Pad(e.Name, 18) + " "
			} else {
				name += st.Pad(e.Text, 25) + " " // no text is cut
			}
			lines = append(lines, styles.Wrap(name+st.Dim.Of(e.Note), w-1, view.Width(name))...)
		}
		return lines
	}
	var names []string
	for _, e := range off {
		names = append(names, e.Key+" "+e.Name)
	}
	return m.folded("Disabled here", append(names, st.Strong.Of("enter")+" says why"), w)
}

// folded lists keys one after the other below an empty line; none is torn apart.
func (m *model) folded(title string, names []string, w int) []string {
	line, sep := " "+m.St.Title.Of(title)+"  ", " "
	lines := []string{""}
	for _, name := range names {
		if view.Width(line+sep+name) > w-2 {
			lines = append(lines, line)
			line, sep = "  ", " "
		}
		line += sep + name
		sep = " " + m.St.Sep + " "
	}
	return append(lines, line)
}

// inTwo lays out keys of width key and their texts in two columns, one below the other in
// each, or in one where a column would leave too little room for the texts.
func (m *model) inTwo(pairs [][2]string, key, w int) []string {
	const lead, least = 3, 27
	in := w / 2
	if in-lead-key < least {
		in = w
	}
	cell := func(p [2]string) []string {
		return styles.Wrap(styles.Blanks(lead)+m.St.Pad(p[0], key)+p[1], in-1, lead+key)
	}
	var lines []string
	ends := make([]int, len(pairs)) // of each pair
	for i, p := range pairs {
		lines = append(lines, cell(p)...)
		ends[i] = len(lines)
	}
	if in == w {
		return lines
	}
	cut := len(lines)
	for _, end := range ends {
		if 2*end >= len(lines) {
			cut = end
			break
		}
	}
	out := lines[:cut:cut]
	for i, right := range lines[cut:] {
		out[i] = m.St.Pad(out[i], in) + right
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
