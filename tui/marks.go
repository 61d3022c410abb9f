package tui

import (
	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/tui/page"
)

func (m *model) whyNoMark() string {
	switch {
	case m.mode()&page.ModeOnLock == 0:
		return "only locks are marked"
	case m.selected().Lock == nil:
		return "no lock under the cursor"
	case len(m.Marks) >= page.MostMarks && !m.Marks[m.selected().Lock.Key.Raw()]:
		return view.Count(page.MostMarks) + " are marked, and no more can be"
	}
	return ""
}

func (m *model) toggleMark() tea.Cmd {
	key := m.selected().Lock.Key.Raw()
	if m.Marks[key] {
		delete(m.Marks, key)
	} else {
		m.Marks[key] = true
	}
	if m.mode() == page.ModeLocks {
		m.Locks.Move(1)
	}
	return nil
}

func (m *model) whyNoMarks() string {
	if len(m.Marks) == 0 {
		return "none is marked"
	}
	return ""
}

func (m *model) clearMarks() tea.Cmd {
	clear(m.Marks)
	return nil
}

// markAll marks the listed locks up to the limit, and says how many.
func (m *model) markAll() int {
	n := 0
	for i := 0; i < m.Locks.Len() && len(m.Marks) < page.MostMarks; i++ {
		if key := m.Locks.Listing().At(i).Key.Raw(); !m.Marks[key] {
			m.Marks[key] = true
			n++
		}
	}
	return n
}

func (m *model) markBy(what string) tea.Cmd {
	switch what {
	case "":
		if why := m.whyNoMark(); why != "" {
			m.say(m.St.Warn, why)
			return nil
		}
		return m.toggleMark()
	case "all":
		n := m.markAll()
		m.say(m.St.Info, view.Plural(n, "lock")+" more marked")
	case "none":
		return m.clearMarks()
	default:
		m.say(m.St.Bad, "mark what? all, none, or nothing for the one under the cursor")
	}
	return nil
}
