package tui

import (
	"fmt"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/page"
	"redlockctl/tui/styles"
)

// tour leads through the demo: each step says what to do, and ends when it was done.
type tour struct {
	at   int
	node string // that was crashed
	back bool   // the past was shown
}

// tourStep is a step; it is passed when done reports true.
type tourStep struct {
	says func(*model) string
	done func(*model) bool
}

// tourSteps are those of the demo: about a minute.
var tourSteps = []tourStep{
	{
		says: func(*model) string {
			return "Crash a node: tab to the nodes, c, enter. It loses its copies and comes back empty"
		},
		done: func(m *model) bool {
			m.tour.node = m.tourNode()
			return m.tour.node != ""
		},
	},
	{
		says: func(m *model) string {
			text := m.St.Escape(m.tour.node, 20) + " forgot the locks that it granted, so it started fenced: it grants none until all of them have expired. See when it rejoins: 6"
			if m.viewed() == page.Guard {
				text = "The bar runs for D, a little longer than the longest TTL; then " + m.St.Escape(m.tour.node, 20) + " rejoins. The other nodes go on granting"
			}
			return text
		},
		done: func(m *model) bool {
			n := page.NodeOf(m.Latest, m.tour.node)
			return n == nil || n.State == monitor.NodeServing
		},
	},
	{
		says: func(m *model) string {
			if m.Dialog != nil {
				return "Type a reason for the audit log, tab, the name, enter"
			}
			text := "Clients die too: force-release a lock as if its holder were dead: 2, pick a lock, X"
			if m.tour.node != "" {
				text = "It rejoined. " + text
			}
			return text
		},
		done: func(m *model) bool { return m.Forced },
	},
	{
		says: func(*model) string {
			return "The lock is free. All of it was recorded: [ goes back, event by event, and again; . returns to now"
		},
		done: func(m *model) bool {
			m.tour.back = m.tour.back || m.replay != nil
			return m.tour.back && m.replay == nil
		},
	},
}

// tourNode is a node that is away or fenced; empty: none is.
func (m *model) tourNode() string {
	for i := range m.Latest.Nodes {
		switch n := &m.Latest.Nodes[i]; n.State {
		case monitor.NodeDown, monitor.NodeFenced:
			return n.Name
		}
	}
	return ""
}

// goOn passes the steps that are done.
func (m *model) goOn() {
	if m.tour != nil && tourSteps[m.tour.at].done(m) {
		m.nextStep()
	}
}

func (m *model) nextStep() tea.Cmd {
	if m.tour.at++; m.tour.at == len(tourSteps) {
		m.tour = nil
		m.say(m.St.Good, "that was the tour: ? has all keys, :tour begins it again, q quits")
		return nil
	}
	m.Forced = false
	return nil
}

func (m *model) whyNoTour() string {
	if !m.opt.Tour {
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
		m.tour, m.Forced = &tour{}, false
	}
	return nil
}

// hints are for the first start.
var hints = [...]string{
	"?      what works on the page that you see, and why the rest is off",
	"enter  a look at what the cursor is on; o opens it on a page of its own",
	":      commands, named as those of redlockctl; tab completes them",
}

// hinting reports whether the hints are on the screen: on the first page alone, where
// esc has nothing else to do.
func (m *model) hinting() bool {
	return m.hints && m.H >= 20 && m.viewed() == page.Overview && m.replay == nil
}

// guide is the step of the tour, or the hints of a first start: lines above the page.
func (m *model) guide(w int) (lines []string) {
	st := m.St
	switch {
	case m.tour != nil:
		head := fmt.Sprintf(" TOUR %d/%d ", m.tour.at+1, len(tourSteps))
		keys := st.Dim.Of("  N next  T end the tour")
		for i, l := range styles.Wrap(tourSteps[m.tour.at].says(m), w-view.Width(head)-view.Width(keys)-1, 0) {
			if i == 0 {
				l = st.Banner.Of(head) + " " + st.Pad(l, w-view.Width(head)-view.Width(keys)-1) + keys
			} else {
				l = styles.Blanks(view.Width(head)+1) + l
			}
			lines = append(lines, l)
		}
	case m.hinting():
		for i, h := range hints {
			l := " " + st.Info.Of(h)
			if i == len(hints)-1 {
				l = st.Pad(l, w-12) + st.Dim.Of("esc: seen")
			}
			lines = append(lines, l)
		}
	}
	return lines
}
