// Package tour has the tour of the demo, and the hints at a first start.
package tour

import (
	"fmt"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/page"
	"redlockctl/tui/styles"
)

// Scene is what a step checks.
type Scene struct {
	St     *styles.Styles
	Latest *monitor.Snapshot
	On     page.Kind // the shown page
	Asking bool      // a dialog is open
	Forced bool      // a lock was force-released since the step began
	Past   bool      // a replay is shown
}

// Tour is the tour of the demo: each step says what to do, and ends when it is done.
type Tour struct {
	at   int
	node string // the crashed node
	back bool   // a replay was shown
}

// step ends when done returns true.
type step struct {
	says func(*Tour, Scene) string
	done func(*Tour, Scene) bool
}

// steps are the steps of the demo: about a minute.
var steps = []step{
	{
		says: func(*Tour, Scene) string {
			return "Crash a node: tab to the nodes, c, enter. It loses its copies and comes back empty"
		},
		done: func(t *Tour, s Scene) bool {
			t.node = away(s.Latest)
			return t.node != ""
		},
	},
	{
		says: func(t *Tour, s Scene) string {
			name := s.St.Escape(t.node, 20)
			if s.On == page.Guard {
				return "The bar runs for D, a little longer than the longest TTL; then " + name + " rejoins. The other nodes keep granting"
			}
			return name + " forgot the locks that it granted, so it started fenced: it grants none until all of them have expired. See when it rejoins: 6"
		},
		done: func(t *Tour, s Scene) bool {
			n := s.Latest.Node(t.node)
			return n == nil || n.State == monitor.NodeServing
		},
	},
	{
		says: func(t *Tour, s Scene) string {
			if s.Asking {
				return "Type a reason for the audit log, tab, the name, enter"
			}
			text := "Clients die too: force-release a lock as if its holder were dead: 2, pick a lock, X"
			if t.node != "" {
				text = "It rejoined. " + text
			}
			return text
		},
		done: func(_ *Tour, s Scene) bool { return s.Forced },
	},
	{
		says: func(*Tour, Scene) string {
			return "The lock is free. All of it was recorded: [ goes back, event by event, and again; . returns to now"
		},
		done: func(t *Tour, s Scene) bool {
			t.back = t.back || s.Past
			return t.back && !s.Past
		},
	},
}

// away returns a node that is down or fenced; empty: none.
func away(s *monitor.Snapshot) string {
	for i := range s.Nodes {
		switch n := &s.Nodes[i]; n.State {
		case monitor.NodeDown, monitor.NodeFenced:
			return n.Name
		}
	}
	return ""
}

// Done reports whether the present step is done.
func (t *Tour) Done(s Scene) bool { return steps[t.at].done(t, s) }

// Next goes to the next step, and reports whether there is none.
func (t *Tour) Next() (over bool) {
	t.at++
	return t.at == len(steps)
}

// Lines returns the step in lines of w cells.
func (t *Tour) Lines(s Scene, w int) (lines []string) {
	st := s.St
	head := fmt.Sprintf(" TOUR %d/%d ", t.at+1, len(steps))
	keys := st.Dim.Of("  N next  T end the tour")
	room := w - view.Width(head) - view.Width(keys) - 1
	for i, l := range styles.Wrap(steps[t.at].says(t, s), room, 0) {
		if i == 0 {
			l = st.Banner.Of(head) + " " + st.Pad(l, room) + keys
		} else {
			l = styles.Blanks(view.Width(head)+1) + l
		}
		lines = append(lines, l)
	}
	return lines
}

// hints are shown at the first start.
var hints = [...]string{
	"?      what works on this page, and why other keys are disabled",
	"enter  show details of the selected row; o opens its page",
	":      commands, named as those of redlockctl; tab completes them",
}

// Hints returns the hints in lines of w cells.
func Hints(st *styles.Styles, w int) (lines []string) {
	for i, h := range hints {
		l := " " + st.Info.Of(h)
		if i == len(hints)-1 {
			l = st.Pad(l, w-12) + st.Dim.Of("esc: close")
		}
		lines = append(lines, l)
	}
	return lines
}
