package tui

import (
	tea "charm.land/bubbletea/v2"

	"redlockctl/tui/page"
)

// mostTrail bounds how far back one can go.
const mostTrail = 20

// open goes to a place; esc comes back from it.
func (m *model) open(to page.Place) tea.Cmd {
	if m.page.Place() == to {
		return nil
	}
	// Where one was before is not gone to a second time: esc would walk in circles.
	for i, p := range m.trail {
		if p.Place() == to {
			m.trail = m.trail[:i]
			return m.arrive(p)
		}
	}
	m.trail = append(m.trail, m.page)
	if len(m.trail) > mostTrail {
		m.trail = m.trail[1:]
	}
	return m.arrive(m.Set.At(to))
}

func (m *model) arrive(p page.Page) tea.Cmd {
	m.page = p
	m.filtering = false
	if d, ok := p.(page.Detailed); ok {
		*d.Detail() = false
	}
	if m.viewed() == page.Findings {
		m.Findings.GoTo(0) // the gravest
	}
	return nil
}

// goTo is open for one of the pages that have a number.
func (m *model) goTo(v page.Kind) tea.Cmd {
	if why := m.whyNoView(v); why != "" {
		m.say(m.St.Warn, v.String()+": "+why)
		return nil
	}
	return m.open(page.Place{Kind: v})
}

func (m *model) whyNoView(v page.Kind) string {
	if v == page.Lab && m.lab == nil {
		return noLab
	}
	return ""
}

// turn goes to the page d tabs further; from the page of one lock or node back to
// its list, or on from there.
func (m *model) turn(d int) tea.Cmd {
	v := m.viewed()
	if v >= page.NumTabs {
		if v = v.Tab(); d < 0 {
			return m.goTo(v)
		}
	}
	for {
		v = (v + page.Kind(d) + page.NumTabs) % page.NumTabs
		if m.whyNoView(v) == "" {
			return m.goTo(v)
		}
	}
}

// back closes what is open: a detail, the page, a filter.
func (m *model) back() tea.Cmd {
	if d, ok := m.page.(page.Detailed); ok && *d.Detail() {
		*d.Detail() = false
		return nil
	}
	home := m.viewed() == page.Overview
	switch f, ok := m.page.(page.Filtered); {
	case ok && f.FilterSource() != "":
		return m.clearFilter()
	case home:
		return nil
	case len(m.trail) == 0:
		return m.arrive(m.Overview)
	}
	last := m.trail[len(m.trail)-1]
	m.trail = m.trail[:len(m.trail)-1]
	return m.arrive(last)
}
