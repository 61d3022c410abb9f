package tui

import (
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/tui/styles"
)

// view is one page of the program.
type page uint8

const (
	viewOverview page = iota
	viewLocks
	viewNodes
	viewEvents
	viewFindings
	viewGuard
	viewLab
	viewHelp
	numTabs

	viewLock = iota - 1 // one lock
	viewNode            // one node
)

var viewNames = [...]string{"overview", "locks", "nodes", "events", "findings", "guard", "lab", "help", "lock", "node"}

// String is the view's name: in the line of tabs, and as a command.
func (v page) String() string { return viewNames[v] }

// place is where a person is.
type place struct {
	view page
	lock string // of viewLock: its key
	node string // of viewNode: its name
	top  int    // the first line in sight, of a page that is read
}

// mostTrail bounds how far back one can go.
const mostTrail = 20

// open goes to a place; esc comes back from it.
func (m *model) open(to place) tea.Cmd {
	from := m.at
	if from.view == to.view && from.lock == to.lock && from.node == to.node {
		return nil
	}
	// Where one was before is not gone to a second time: esc would walk in circles.
	for i, p := range m.trail {
		if p.view == to.view && p.lock == to.lock && p.node == to.node {
			m.trail = m.trail[:i]
			m.at = p
			return m.arrived()
		}
	}
	m.trail = append(m.trail, from)
	if len(m.trail) > mostTrail {
		m.trail = m.trail[1:]
	}
	m.at = to
	return m.arrived()
}

func (m *model) arrived() tea.Cmd {
	m.filtering = false
	m.detail = false
	m.watchLock()
	if m.at.view == viewFindings {
		m.findings.goTo(0) // the gravest
	}
	return nil
}

// goTo is open for one of the pages that have a number.
func (m *model) goTo(v page) tea.Cmd {
	if why := m.whyNoView(v); why != "" {
		m.say(m.st.Warn, v.String()+": "+why)
		return nil
	}
	return m.open(place{view: v})
}

func (m *model) whyNoView(v page) string {
	if v == viewLab && m.opt.Lab == nil {
		return "there is a lab only in redlockctl demo"
	}
	return ""
}

// turn goes to the page d tabs further.
func (m *model) turn(d int) tea.Cmd {
	v := m.at.view
	if v >= numTabs {
		v = map[page]page{viewLock: viewLocks, viewNode: viewNodes}[v]
		d = min(0, d) // back to its list, or on from there
		if d < 0 {
			return m.goTo(v)
		}
		d = 1
	}
	for {
		v = (v + page(d) + numTabs) % numTabs
		if m.whyNoView(v) == "" {
			return m.goTo(v)
		}
	}
}

// back closes what is open: a detail, the page, a filter.
func (m *model) back() tea.Cmd {
	switch {
	case m.detail:
		m.detail = false
	case m.at.view == viewOverview || len(m.trail) == 0 || m.filterHere() && m.at.view < numTabs:
		if m.filterHere() {
			return m.clearFilter()
		}
		if m.at.view != viewOverview {
			m.at = place{}
			return m.arrived()
		}
	default:
		m.at = m.trail[len(m.trail)-1]
		m.trail = m.trail[:len(m.trail)-1]
		return m.arrived()
	}
	return nil
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
	switch m.at.view {
	case viewOverview:
		if m.focus == focusNodes {
			return modeNodes
		}
		return modeLocks
	case viewLocks:
		return modeLocks
	case viewNodes:
		return modeNodes
	case viewLock:
		return modeLock
	case viewNode:
		return modeNode
	case viewEvents:
		return modeEvents
	case viewFindings:
		return modeFindings
	case viewGuard:
		return modeGuard
	case viewLab:
		return modeLab
	default:
		return modeHelp
	}
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
	current := m.at.view
	switch current {
	case viewLock:
		current = viewLocks
	case viewNode:
		current = viewNodes
	}
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
