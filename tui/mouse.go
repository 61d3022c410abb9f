package tui

import (
	"redlockctl/tui/page"

	tea "charm.land/bubbletea/v2"
)

// hits is where things are on the last frame, for the mouse.
type hits struct {
	base   int // first line of the page
	tabRow int
	tabs   []tabHit
}

type tabHit struct {
	from, to int // columns
	view     page.Kind
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
			m.page.Move(-wheelStep)
		case tea.MouseWheelDown:
			m.page.Move(wheelStep)
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
	if m.page.Click(y-m.hits.base) && !m.filtering { // a second click is enter
		return m.enter()
	}
	return nil
}
