package tui

import (
	tea "charm.land/bubbletea/v2"

	"redlockctl/tui/tour"
)

// scene is what the tour checks.
func (m *model) scene() tour.Scene {
	return tour.Scene{St: m.St, Latest: m.Latest, On: m.Viewed(), Asking: m.Dialog != nil, Forced: m.Forced, Past: m.replay != nil}
}

// goOn advances the tour if its step is done.
func (m *model) goOn() {
	if m.tour != nil && m.tour.Done(m.scene()) {
		m.nextStep()
	}
}

func (m *model) nextStep() tea.Cmd {
	if m.tour.Next() {
		m.tour = nil
		m.say(m.St.Good, "that was the tour: ? has all keys, :tour begins it again, q quits")
		return nil
	}
	m.Forced = false
	return nil
}

func (m *model) whyNoTour() string {
	if !m.demo {
		return "the tour is of redlockctl demo"
	}
	return ""
}

func (m *model) whyNoStep() string {
	if why := m.whyNoTour(); why != "" || m.tour != nil {
		return why
	}
	return "the tour has ended: T begins it again"
}

func (m *model) toggleTour() tea.Cmd {
	if m.tour != nil {
		m.tour = nil
		m.say(m.St.Info, "the tour has ended: T begins it again")
	} else {
		m.tour, m.Forced = &tour.Tour{}, false
	}
	return nil
}

// guide returns the lines above the page: the step of the tour, or hints at a first start.
func (m *model) guide(w int) []string {
	switch {
	case m.tour != nil:
		return m.tour.Lines(m.scene(), w)
	case m.hinting():
		return tour.Hints(m.St, w)
	}
	return nil
}
