package tui

import (
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/tui/page"
	"redlockctl/tui/styles"
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

// viewed is what kind of page is shown.
func (m *model) viewed() page.Kind { return m.page.Place().Kind }

// goTo is open for one of the pages that have a number.
func (m *model) goTo(v page.Kind) tea.Cmd {
	if why := m.whyNoView(v); why != "" {
		m.say(m.St.Warn, v.String()+": "+why)
		return nil
	}
	return m.open(page.Place{Kind: v})
}

func (m *model) whyNoView(v page.Kind) string {
	if v == page.Lab && m.opt.Lab == nil {
		return "there is a lab only in redlockctl demo"
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

// mode is which keys are listened to.
func (m *model) mode() page.Mode {
	switch {
	case m.dialog != nil:
		return m.dialog.mode()
	case m.line != nil:
		return page.ModeCommand
	case m.filtering:
		return page.ModeFilter
	}
	return m.page.Mode()
}

// selected is what the cursor of the page is on, while the page has the keys.
func (m *model) selected() page.Selection {
	if m.dialog != nil || m.line != nil || m.filtering {
		return page.Selection{}
	}
	return m.page.Selected()
}

// tabs is the line of pages: their names as far as they fit, else their numbers.
func (m *model) tabs(w int) string {
	for _, pad := range []int{1, 0} {
		if line := m.tabLine(pad, true); view.Width(line) <= w {
			return line
		}
	}
	return m.St.Cut(m.tabLine(0, false), w)
}

func (m *model) tabLine(pad int, names bool) string {
	st := m.St
	current := m.viewed().Tab()
	line := " "
	m.hits.tabs = m.hits.tabs[:0]
	for v := range page.NumTabs {
		if m.whyNoView(v) != "" {
			continue
		}
		label := strconv.Itoa(int(v) + 1)
		if names || v == current {
			label += " " + v.String()
		}
		n := len(m.Shown.Findings)
		if v == page.Findings && n > 0 {
			label += " (" + view.Count(n) + ")"
		}
		label = styles.Blanks(pad) + label + styles.Blanks(pad)
		from := view.Width(line)
		switch {
		case v == current:
			line += st.Cursor.Of(label)
		case v == page.Findings && n > 0:
			_, _, p := st.Severity(m.Shown.Findings[0].Severity)
			line += p.Of(label)
		default:
			line += st.Dim.Of(label)
		}
		m.hits.tabs = append(m.hits.tabs, tabHit{from, from + view.Width(label), v})
		line += " "
	}
	return strings.TrimRight(line, " ")
}
