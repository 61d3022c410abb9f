package tui

import (
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/tui/styles"
)

// mostTrail bounds how far back one can go.
const mostTrail = 20

// open goes to a place; esc comes back from it.
func (m *model) open(to place) tea.Cmd {
	if m.page.place() == to {
		return nil
	}
	// Where one was before is not gone to a second time: esc would walk in circles.
	for i, p := range m.trail {
		if p.place() == to {
			m.trail = m.trail[:i]
			return m.arrive(p)
		}
	}
	m.trail = append(m.trail, m.page)
	if len(m.trail) > mostTrail {
		m.trail = m.trail[1:]
	}
	return m.arrive(m.pages.at(to))
}

func (m *model) arrive(p page) tea.Cmd {
	m.page = p
	m.filtering = false
	if d, ok := p.(detailed); ok {
		*d.detail() = false
	}
	if m.viewed() == viewFindings {
		m.findings.goTo(0) // the gravest
	}
	return nil
}

// viewed is what kind of page is shown.
func (m *model) viewed() pageKind { return m.page.place().kind }

// goTo is open for one of the pages that have a number.
func (m *model) goTo(v pageKind) tea.Cmd {
	if why := m.whyNoView(v); why != "" {
		m.say(m.st.Warn, v.String()+": "+why)
		return nil
	}
	return m.open(place{kind: v})
}

func (m *model) whyNoView(v pageKind) string {
	if v == viewLab && m.opt.Lab == nil {
		return "there is a lab only in redlockctl demo"
	}
	return ""
}

// turn goes to the page d tabs further; from the page of one lock or node back to
// its list, or on from there.
func (m *model) turn(d int) tea.Cmd {
	v := m.viewed()
	if v >= numTabs {
		if v = v.tab(); d < 0 {
			return m.goTo(v)
		}
	}
	for {
		v = (v + pageKind(d) + numTabs) % numTabs
		if m.whyNoView(v) == "" {
			return m.goTo(v)
		}
	}
}

// back closes what is open: a detail, the page, a filter.
func (m *model) back() tea.Cmd {
	if d, ok := m.page.(detailed); ok && *d.detail() {
		*d.detail() = false
		return nil
	}
	home := m.viewed() == viewOverview
	switch f, ok := m.page.(filtered); {
	case ok && f.filterSource() != "":
		return m.clearFilter()
	case home:
		return nil
	case len(m.trail) == 0:
		return m.arrive(m.overview)
	}
	last := m.trail[len(m.trail)-1]
	m.trail = m.trail[:len(m.trail)-1]
	return m.arrive(last)
}

// mode is which keys are listened to.
func (m *model) mode() mode {
	switch {
	case m.dialog != nil:
		return m.dialog.mode()
	case m.line != nil:
		return modeCommand
	case m.filtering:
		return modeFilter
	}
	return m.page.mode()
}

// selected is what the cursor of the page is on, while the page has the keys.
func (m *model) selected() selection {
	if m.dialog != nil || m.line != nil || m.filtering {
		return selection{}
	}
	return m.page.selected()
}

// tabs is the line of pages: their names as far as they fit, else their numbers.
func (m *model) tabs(w int) string {
	for _, pad := range []int{1, 0} {
		if line := m.tabLine(pad, true); view.Width(line) <= w {
			return line
		}
	}
	return m.st.Cut(m.tabLine(0, false), w)
}

func (m *model) tabLine(pad int, names bool) string {
	st := m.st
	current := m.viewed().tab()
	line := " "
	m.hits.tabs = m.hits.tabs[:0]
	for v := range numTabs {
		if m.whyNoView(v) != "" {
			continue
		}
		label := strconv.Itoa(int(v) + 1)
		if names || v == current {
			label += " " + v.String()
		}
		n := len(m.shown.Findings)
		if v == viewFindings && n > 0 {
			label += " (" + view.Count(n) + ")"
		}
		label = styles.Blanks(pad) + label + styles.Blanks(pad)
		from := view.Width(line)
		switch {
		case v == current:
			line += st.Cursor.Of(label)
		case v == viewFindings && n > 0:
			_, _, p := st.Severity(m.shown.Findings[0].Severity)
			line += p.Of(label)
		default:
			line += st.Dim.Of(label)
		}
		m.hits.tabs = append(m.hits.tabs, tabHit{from, from + view.Width(label), v})
		line += " "
	}
	return strings.TrimRight(line, " ")
}
