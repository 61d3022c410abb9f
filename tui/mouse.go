package tui

import tea "charm.land/bubbletea/v2"

// wheelStep is how many rows one step of the wheel moves.
const wheelStep = 3

// mouse handles clicks on rows and tabs, and the wheel. No action on a server is possible
// with the mouse.
func (m *model) mouse(msg tea.MouseMsg) tea.Cmd {
	if m.tooSmall() || m.Dialog != nil || m.line != nil {
		return nil
	}
	at := msg.Mouse()
	switch msg.(type) {
	case tea.MouseWheelMsg:
		switch at.Button {
		case tea.MouseWheelUp:
			m.Page.Move(-wheelStep)
		case tea.MouseWheelDown:
			m.Page.Move(wheelStep)
		}
	case tea.MouseClickMsg:
		if at.Button == tea.MouseLeft {
			return m.click(at.X, at.Y)
		}
	}
	return nil
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
	if m.Page.Click(x, y-m.hits.base) && !m.Filtering { // a second click acts as enter
		return m.enter()
	}
	return nil
}
