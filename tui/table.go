package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"redlockctl/tui/page"
	"redlockctl/tui/prefs"
)

// lay lists the rows of each resource as they were left the last time. What is not known here is
// left out, and said; so is what hides or moves what needs a person.
func (m *model) lay() {
	var strange []string
	for _, l := range m.Layouts() {
		var kept prefs.Tables
		if m.lasting {
			own, ok := m.prefs.Clusters[m.keptUnder(l)]
			if kept = own; !ok {
				kept = m.prefs.Tables
			}
		}
		strange = append(strange, l.Lay(kept.Of(l.Of))...)
	}
	switch locks := m.Layouts()[0]; {
	case strange != nil:
		m.say(m.St.Warn, "of what you chose last time this is not known here, and left out: "+m.St.Whole(strings.Join(strange, ", ")))
	case locks.Hides() != "":
		m.say(m.St.Warn, "the locks are listed without their "+locks.Hides()+", as you left them: :columns default")
	case locks.Unusual():
		m.say(m.St.Info, "the locks are sorted by "+locks.Say()+", as you left them: :sort default")
	}
}

// keptUnder is the cluster for which a layout is kept; "": it is no cluster's.
func (m *model) keptUnder(l *page.Layout) string {
	if l == m.Set.Clusters.Layout() {
		return ""
	}
	return m.Shown.Cluster.Name
}

// keep keeps how rows of this cluster are listed; nodes that have no name together are none.
func (m *model) keep(l *page.Layout) tea.Cmd {
	name, of, chosen := m.keptUnder(l), l.Of, l.Kept
	switch {
	case !m.lasting || m.Shown.Cluster.Name == "":
		return nil
	case m.replay != nil && m.replay.Only:
		return nil // who looks into a record leaves the console of the cluster as it is
	}
	return m.prefs.Keep(func(p *prefs.Preferences) { p.List(name, of, chosen) })
}

// layout is how the rows of the page that is shown are listed, or the locks where it has none.
func (m *model) layout() *page.Layout {
	if p, ok := m.Page.(page.Listed); ok {
		return p.Layout()
	}
	return m.Layouts()[0]
}

// whyNoSort is why a key does not sort here.
func (m *model) whyNoSort() string {
	if _, ok := m.Page.(page.Listed); !ok {
		return "it is for tables"
	}
	return m.whyNoLayout()
}

func (m *model) whyNoLayout() string {
	if m.layout() == nil {
		return "the latest events stand as they came: 4 has all, in any order"
	}
	return ""
}

func (m *model) whyNoColumns() string {
	if m.Viewed() == page.Guard {
		return "this page has its own columns: 3 has all of the nodes"
	}
	return m.whyNoLayout()
}

func (m *model) whyNoWide() string {
	if why := m.whyNoSort(); why != "" {
		return why
	}
	return m.whyNoColumns()
}

func (m *model) sortWords(word string) []string {
	if m.whyNoLayout() != "" {
		return nil
	}
	return m.layout().SortOffers(word)
}

// sortWord sorts by what was typed.
func (m *model) sortWord(word string) tea.Cmd {
	if why := m.whyNoLayout(); why != "" {
		m.say(m.St.Warn, why)
		return nil
	}
	if err := m.layout().SortAs(word); err != nil {
		m.say(m.St.Bad, "sort by: "+m.St.Our(m.St.Whole(err.Error())))
		return nil
	}
	return m.sorted()
}

func (m *model) nextOrder() tea.Cmd {
	m.layout().Sort(m.layout().Next())
	return m.sorted()
}

func (m *model) turnOrder() tea.Cmd {
	m.layout().Sort(m.layout().Turned())
	return m.sorted()
}

func (m *model) sorted() tea.Cmd {
	l := m.layout()
	m.say(m.St.Info, l.Of+" sorted: "+l.Say())
	return m.keep(l)
}

func (m *model) toggleWide() tea.Cmd {
	m.layout().Widen()
	return m.keep(m.layout())
}

func (m *model) columnWords(string) []string {
	if m.whyNoColumns() != "" {
		return nil
	}
	return m.layout().ColumnOffers()
}

// columnsBy chooses columns: these, or those until now with some more or less.
func (m *model) columnsBy(text string) tea.Cmd {
	if why := m.whyNoColumns(); why != "" {
		m.say(m.St.Warn, why)
		return nil
	}
	l, said := m.layout(), strings.Fields(strings.ReplaceAll(text, ",", " "))
	if len(said) == 0 {
		m.say(m.St.Info, "columns of the "+l.Of+": "+strings.Join(l.Chosen, " "))
		return nil
	}
	if err := l.ChooseAs(said); err != nil {
		m.say(m.St.Bad, m.St.Our(err.Error()))
		return nil
	}
	if w := l.Hides(); w != "" {
		m.say(m.St.Warn, "without "+w+" nobody sees what needs a person: :columns default")
	}
	return m.keep(l)
}
