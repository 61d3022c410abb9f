package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/monitor/filter"
	"redlockctl/tui/command"
	"redlockctl/tui/input"
	"redlockctl/tui/page"
	"redlockctl/tui/prefs"
	"redlockctl/tui/styles"
)

func (m *model) paste(s string) {
	if m.tooSmall() {
		return
	}
	if e := m.editor(); e != nil {
		e.Paste(s)
		m.edited()
	} else if m.Dialog != nil {
		m.Dialog.Stray = true
	}
}

// edited is called when the text field has changed.
func (m *model) edited() {
	switch m.mode() {
	case page.ModeFilter:
		m.refused = false
		m.completes.Typed()
		m.Page.(page.Filtered).Filter(m.shownNow())
	case page.ModeCommand:
		m.line.Typed()
	case page.ModeDialog:
		m.Dialog.Pressed = false
	}
}

// editor returns the text field that receives letters now; nil if none.
func (m *model) editor() *input.Line {
	switch m.mode() {
	case page.ModeFilter:
		return m.Page.(page.Filtered).FilterLine()
	case page.ModeCommand:
		return &m.line.Line
	case page.ModeDialog:
		if f := m.Dialog.Focused(); f != nil && f.Choices == nil {
			return &f.Line
		}
	}
	return nil
}

func (m *model) whyNoFilter() string {
	if _, ok := m.Page.(page.Filtered); !ok {
		return "there is nothing to filter on this page: 2 are the locks, 4 the events, :audit show the log"
	}
	return ""
}

func (m *model) openFilter() tea.Cmd {
	m.Filtering, m.refused = true, false
	m.completes.Typed()
	m.OpenFilter().FilterLine().End()
	return nil
}

// valuesMsg has the values that a filter of locks may name.
type valuesMsg struct{ values page.Values }

// learn collects the values that a filter may name, once per filter, when it has a field; in
// the background if there are many rows.
func (m *model) learn() tea.Cmd {
	if mode := m.mode(); mode != page.ModeFilter && mode != page.ModeCommand {
		m.learnt = false
		return nil
	}
	if m.learnt || !strings.Contains(m.editor().String(), ":") {
		return nil
	}
	m.learnt = true
	look := m.filterPage().FilterLearn()
	if look == nil {
		return nil
	}
	return func() tea.Msg { return valuesMsg{look()} }
}

// know records values that were collected in the background.
func (m *model) know(msg valuesMsg) {
	m.Locks.Know(msg.values)
	if m.Filtering && m.completes.At < 0 {
		m.completes.Typed()
	}
	if m.line != nil && m.line.At < 0 {
		m.line.Typed()
	}
}

// completeFilter shows the next completion of the filter.
func (m *model) completeFilter(d int) {
	f := m.Page.(page.Filtered)
	m.completes.Complete(f.FilterLine(), f.FilterOffers, d)
	f.Filter(m.shownNow())
}

// keepFilter ends the typing. A filter with a problem is refused: its line stays open.
func (m *model) keepFilter() tea.Cmd {
	m.refused = m.Page.(page.Filtered).FilterProblem() != ""
	m.Filtering = m.refused
	return nil
}

func (m *model) clearFilter() tea.Cmd { m.ClearFilter(m.Now()); return nil }

// filterPage returns the page that a command filters: the shown page, or the locks.
func (m *model) filterPage() page.Filtered {
	if f, ok := m.Page.(page.Filtered); ok {
		return f
	}
	return m.Set.At(page.Place{Kind: page.Locks}).(page.Filtered)
}

func (m *model) filterBy(text string) tea.Cmd {
	if _, ok := m.Page.(page.Filtered); !ok {
		m.Open(page.Place{Kind: page.Locks})
	}
	f := m.OpenFilter()
	f.FilterLine().Set(text)
	f.Filter(m.Now())
	if why := f.FilterProblem(); why != "" {
		m.say(m.St.Bad, why)
		f.FilterLine().Set(f.FilterSource())
		f.Filter(m.Now())
	}
	return nil
}

// offers returns completed command lines.
func (m *model) offers(line string) []string { return command.Offers(m.commands(), line) }

func (m *model) openLine() tea.Cmd {
	m.line = input.NewPrompt(m.prefs.History)
	return nil
}

func (m *model) closeLine() tea.Cmd { m.line = nil; return nil }

// doLine runs the typed command, and adds it to the history.
func (m *model) doLine() tea.Cmd {
	line := strings.TrimSpace(m.line.String())
	m.line = nil
	if line == "" {
		return nil
	}
	save := m.prefs.Keep(func(p *prefs.Preferences) { p.Remember(line) })
	c, rest, why := command.Find(m.commands(), line)
	if why != "" {
		m.say(m.St.Bad, why)
		return save
	}
	return tea.Batch(save, c.Do(rest))
}

// prompt draws a line after its sign, its completions, and a painted end.
func (m *model) prompt(left string, line *input.Line, c *input.Completion, offers func(string) []string, right string) string {
	st, w := m.St, m.W
	c.Ask(line, offers)
	var words []string
	for i, o := range c.Offers[:min(len(c.Offers), mostOffered)] {
		word := st.Whole(filter.Line(c.From, o))
		if i == c.At {
			word = st.Cursor.Of(word)
		}
		words = append(words, word)
	}
	hint := strings.Join(words, " ")
	end := view.Width(right)
	if end > 0 {
		end += 2
	}
	room := max((w-end)/2, w-end-view.Width(left)-view.Width(hint)-4)
	text := left + st.Typed(line.View(&st.Glyphs, min(room, max(16, view.Width(st.Whole(line.String()))+2))))
	if hint != "" {
		text += "  " + st.Dim.Of(st.Cut(hint, max(0, w-end-view.Width(text)-3)))
	}
	if end > 0 {
		text += styles.Blanks(max(2, w-1-view.Width(text)-end+2)) + right
	}
	return text
}

// mostOffered is the greatest number of completions shown.
const mostOffered = 12
