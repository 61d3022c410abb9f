package page

import (
	"slices"
	"strings"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/styles"
)

// nodeTable lists the masters by name.
type nodeTable struct {
	table[*monitor.Node, string]
}

func newNodeTable() nodeTable {
	return nodeTable{newTable(Layout{Of: "nodes", always: "node", tells: "state"}, view.NodeColumns(), func(n *monitor.Node) string { return n.Name })}
}

// take updates the nodes. Round trips and clock offsets change many times a second, which
// nobody can read, so they are updated once a second; states are updated at once.
func (t *nodeTable) take(nodes []monitor.Node, tick bool) {
	nodes = slices.Clone(nodes)
	for i := range nodes {
		n := &nodes[i]
		for _, old := range t.given {
			if tick || old.Name != n.Name || old.State != n.State || old.RunID != n.RunID || !old.Offset.Valid && n.Offset.Valid {
				continue
			}
			n.Uptime, n.Locks, n.RTT, n.RTTs, n.Offset, n.Drift = old.Uptime, old.Locks, old.RTT, old.RTTs, old.Offset, old.Drift
		}
	}
	t.set(view.Rows(nodes))
}

// Pick puts the cursor on a node.
func (t *nodeTable) Pick(name string) { t.under = name }

// Selected returns the node under the cursor; nil if there is none.
func (t *nodeTable) Selected() *monitor.Node {
	n, _ := t.selected()
	return n
}

// strip draws the nodes in one line; if not all fit, those that do not serve come first.
func (t *nodeTable) strip(s *Screen, focused bool) string {
	st := s.St
	cells := make([]string, len(t.rows))
	total, pos := 1, t.pos()
	for i, n := range t.rows {
		state := st.NodeState(n.State)
		text := st.Escape(n.Name, 10) + " " + state.Sign
		if left, ok := s.drawn.Countdown(n, s.Now); ok {
			text += view.Remaining(left)
		} else if n.State != monitor.NodeServing && n.State != monitor.NodeDown && n.State != monitor.NodeFenced {
			text += n.State.String()
		}
		total += view.Width(text) + view.Gap
		if focused && i == pos {
			cells[i] = st.Cursor.Of(text)
		} else {
			cells[i] = st.Paint(state.Tone).Of(text)
		}
	}
	if total > s.W {
		var trouble, calm []string
		for i, n := range t.rows {
			switch {
			case focused && i == pos:
				trouble = append([]string{cells[i]}, trouble...)
			case n.State != monitor.NodeServing:
				trouble = append(trouble, cells[i])
			default:
				calm = append(calm, cells[i])
			}
		}
		cells = append(trouble, calm...)
	}
	return st.Cut(" "+strings.Join(cells, styles.Blanks(view.Gap)), s.W)
}
