package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"redlockctl/tui/page"
	"redlockctl/tui/prefs"
)

// lay restores how the rows of each resource were listed. It skips unknown columns and
// says so; it also says if urgent rows are hidden or moved.
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

// keptUnder returns the cluster for which a layout is remembered; "" if for none.
func (m *model) keptUnder(l *page.Layout) string {
	if l == m.Set.Clusters.Layout() {
		return ""
	}
	return m.Shown.Cluster.Name
}

// keepListing remembers how rows of this cluster are listed. Nodes without a cluster name
// are not remembered.
func (m *model) keepListing(l *page.Layout) tea.Cmd {
	name, of, chosen := m.keptUnder(l), l.Of, l.Kept
	switch {
	case !m.lasting || m.Shown.Cluster.Name == "":
		return nil
	case m.replay != nil && m.replay.Only:
		return nil // a replay does not change the layout of the live console
	}
	return m.prefs.Keep(func(p *prefs.Preferences) { p.List(name, of, chosen) })
}

// listed returns the layout of the rows on the shown page, or of the locks if it has none.
func (m *model) listed() *page.Layout {
	if p, ok := m.Page.(page.Listed); ok {
		return p.Layout()
	}
	return m.Layouts()[0]
}

// whyNoSort says why a key does not sort here.
func (m *model) whyNoSort() string {
	if _, ok := m.Page.(page.Listed); !ok {
		return "it is for tables"
	}
	return m.whyNoLayout()
}

func (m *model) whyNoLayout() string {
	if m.listed() == nil {
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
	return m.listed().SortOffers(word)
}

// sortWord sorts by a typed word.
func (m *model) sortWord(word string) tea.Cmd {
	if why := m.whyNoLayout(); why != "" {
		m.say(m.St.Warn, why)
		return nil
	}
	if err := m.listed().SortAs(word); err != nil {
		m.say(m.St.Bad, "sort by: "+m.St.Our(m.St.Whole(err.Error())))
		return nil
	}
	return m.saySorted(m.listed())
}

func (m *model) nextOrder() tea.Cmd {
	m.listed().Sort(m.listed().Next())
	return m.saySorted(m.listed())
}

func (m *model) turnOrder() tea.Cmd {
	m.listed().Sort(m.listed().Turned())
	return m.saySorted(m.listed())
}

func (m *model) saySorted(l *page.Layout) tea.Cmd {
	m.say(m.St.Info, l.Of+" sorted: "+l.Say())
	return m.keepListing(l)
}

func (m *model) toggleWide() tea.Cmd {
	m.listed().Widen()
	return m.keepListing(m.listed())
}

func (m *model) columnWords(string) []string {
	if m.whyNoColumns() != "" {
		return nil
	}
	return m.listed().ColumnOffers()
}

// columnsBy chooses columns: a list, or changes to the present list.
func (m *model) columnsBy(text string) tea.Cmd {
	if why := m.whyNoColumns(); why != "" {
		m.say(m.St.Warn, why)
		return nil
	}
	l, said := m.listed(), strings.Fields(strings.ReplaceAll(text, ",", " "))
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
	return m.keepListing(l)
}
