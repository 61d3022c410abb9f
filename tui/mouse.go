package tui

import tea "charm.land/bubbletea/v2"

// hits is where things are on the last frame, for the mouse.
type hits struct {
	base                           int // first line of the page
	tabRow                         int
	tabs                           []tabHit
	locks, nodes, events, findings lineSpan // their rows
}

// lineSpan is n lines from a line on.
type lineSpan struct{ from, n int }

func (s lineSpan) at(y int) (int, bool) { return y - s.from, y >= s.from && y < s.from+s.n }

type tabHit struct {
	from, to int // columns
	view     page
}

func (h *hits) reset() { *h = hits{tabRow: -1, tabs: h.tabs[:0]} }

// wheelStep is how many rows a notch of the wheel moves.
const wheelStep = 3

// mouse takes clicks on rows and tabs, and the wheel. Nothing that changes a
// server can be reached by it.
func (m *model) mouse(msg tea.MouseMsg) tea.Cmd {
	if m.tooSmall() || m.dialog != nil || m.line != nil {
		return nil
	}
	at := msg.Mouse()
	switch msg.(type) {
	case tea.MouseWheelMsg:
		switch at.Button {
		case tea.MouseWheelUp:
			m.moveCursor(-wheelStep)
		case tea.MouseWheelDown:
			m.moveCursor(wheelStep)
		}
	case tea.MouseClickMsg:
		if at.Button == tea.MouseLeft {
			return m.click(at.X, at.Y)
		}
	}
	return nil
}

// focusOn puts the focus of the overview on a table; the other pages have one.
func (m *model) focusOn(f focus) {
	if m.at.view == viewOverview {
		m.focus = f
	}
}

func (m *model) click(x, y int) tea.Cmd {
	if y == m.hits.tabRow {
		for _, t := range m.hits.tabs {
			if x >= t.from && x < t.to {
				return m.goTo(t.view)
			}
		}
		return nil
	}
	if i, ok := m.hits.locks.at(y); ok && m.locks.top+i < m.locks.len() {
		again := m.locks.pos == m.locks.top+i && m.mode() == modeLocks
		m.focusOn(focusLocks)
		m.locks.chosen = true
		m.locks.place(m.locks.top + i)
		if again { // a second click is enter
			return m.enter()
		}
	}
	if i, ok := m.hits.nodes.at(y); ok && m.nodes.top+i < len(m.nodes.nodes) {
		name := m.nodes.nodes[m.nodes.top+i].Name
		again := m.nodes.name == name && m.mode()&modeOnNode != 0
		m.focusOn(focusNodes)
		m.nodes.name = name
		if again {
			return m.enter()
		}
	}
	if i, ok := m.hits.events.at(y); ok {
		m.events.click(i)
	}
	if i, ok := m.hits.findings.at(y); ok {
		m.findings.click(i)
	}
	return nil
}
