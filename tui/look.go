package tui

import (
	tea "charm.land/bubbletea/v2"
	"slices"

	"redlockctl/tui/page"
)

func (m *model) tab() tea.Cmd {
	if m.viewed() != page.Overview {
		return m.turn(1)
	}
	m.Overview.TurnFocus()
	return nil
}

// enter opens what is under the cursor: below it where there is a place for it,
// else on a page of its own.
func (m *model) enter() tea.Cmd {
	d, ok := m.page.(page.Detailed)
	if !ok {
		return m.openPicked()
	}
	*d.Detail() = !*d.Detail()
	if l := m.selected().Lock; l != nil && *d.Detail() {
		m.Locks.Chosen = true // what is looked at stays under the cursor
		m.Lock.Watch(l.Key.Raw())
	}
	return nil
}

func (m *model) whyNoOpenPicked() string {
	mode := m.mode()
	if mode&(page.ModeLock|page.ModeNode|page.ModeHelp) != 0 {
		return "it is open"
	}
	switch key, node := m.selected().About(); {
	case key != "" || node != "":
		return ""
	case mode == page.ModeLocks && m.selected().Lock == nil:
		return "no lock under the cursor"
	case mode&page.ModeOnNode != 0:
		return "no node under the cursor"
	case mode&(page.ModeEvents|page.ModeFindings) != 0:
		return "it is about no lock and no node"
	}
	return ""
}

// openPicked opens what is under the cursor on a page of its own.
func (m *model) openPicked() tea.Cmd {
	if m.whyNoOpenPicked() != "" {
		return nil
	}
	s := m.selected()
	key, node := s.About()
	if key != "" || s.Lock != nil {
		return m.open(page.Place{Kind: page.Lock, Name: key})
	}
	return m.open(page.Place{Kind: page.Node, Name: node})
}

func (m *model) whyNoFilter() string {
	if _, ok := m.page.(page.Filtered); !ok {
		return "there is nothing to filter on this page: 2 are the locks, 4 the events"
	}
	return ""
}

func (m *model) openFilter() tea.Cmd {
	m.filtering = true
	m.page.(page.Filtered).FilterLine().End()
	return nil
}

func (m *model) keepFilter() tea.Cmd { m.filtering = false; return nil }

func (m *model) clearFilter() tea.Cmd {
	m.filtering = false
	f := m.page.(page.Filtered)
	f.FilterLine().Set("")
	f.Filter(m.now())
	return nil
}

func (m *model) whyNoSort() string {
	if m.mode()&page.ModeLocks == 0 {
		return "it is for the table of locks"
	}
	return ""
}

func (m *model) nextOrder() tea.Cmd {
	all := page.Orders()
	return m.sortBy(all[(slices.Index(all, m.Locks.Order)+1)%len(all)])
}

func (m *model) sortBy(o page.Order) tea.Cmd {
	m.Locks.SetOrder(o)
	m.say(m.St.Info, "sorted: "+o.String())
	m.prefs.Sort = string(o)
	return m.save()
}

func (m *model) toggleFreeze() tea.Cmd {
	if m.Frozen.On() {
		m.Thaw()
	} else {
		m.Freeze(m.now())
	}
	return nil
}

func (m *model) toggleFollow() tea.Cmd {
	m.Events.Follow = !m.Events.Follow
	if m.Events.Follow {
		m.say(m.St.Info, "following the newest event")
	}
	return nil
}

func (m *model) whyNoFollow() string {
	if m.viewed() != page.Events {
		return "events are followed (4); a node is fenced (tab, 3); the cursor follows its lock by itself"
	}
	return ""
}

func (m *model) toggleWide() tea.Cmd {
	m.prefs.Wide = !m.prefs.Wide
	m.LockView.Choose(m.prefs.Columns, m.prefs.Wide)
	return m.save()
}

// escape is esc on a page: first of all what was lost has been seen.
func (m *model) escape() tea.Cmd {
	if len(m.losses) > 0 {
		m.losses = nil
		return nil
	}
	return m.back()
}

// save keeps the preferences as they are now.
func (m *model) save() tea.Cmd { return m.saver.save(m.prefs, &m.running) }
