package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/tui/page"
)

// wheelStep is how many rows one step of the wheel moves.
const wheelStep = 3

// twice is the longest time between the two clicks of a double click.
const twice = 500 * time.Millisecond

// mouse handles clicks on rows, heads of columns and tabs, and the wheel. No action on a
// server is possible with the mouse.
func (m *model) mouse(msg tea.MouseMsg) tea.Cmd {
	if m.tooSmall() || m.Dialog != nil || m.line != nil {
		return nil
	}
	at := msg.Mouse()
	if at.Mod.Contains(tea.ModShift) { // the terminal selects text with it
		return nil
	}
	switch msg.(type) {
	case tea.MouseWheelMsg:
		d := wheelStep
		switch at.Button {
		case tea.MouseWheelUp:
			d = -d
		case tea.MouseWheelDown:
		default:
			return nil
		}
		if p, ok := m.Page.(page.Wheeled); ok {
			p.Wheel(at.X, at.Y-m.hits.base, d)
		} else {
			m.Page.Move(d)
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
	y -= m.hits.base
	for _, l := range m.Layouts() {
		if l.SortAt(x, y) {
			return m.saySorted(l)
		}
	}
	last := m.clicked
	m.clicked = m.Now()
	if again := m.Page.Click(x, y); !again || m.Filtering || m.clicked.Sub(last) > twice {
		return nil
	}
	m.clicked = time.Time{} // a third click begins anew
	if m.whyNoOpenPicked() == "" {
		return m.openPicked()
	}
	return m.enter()
}
