package page

import (
	"slices"
	"strings"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/styles"
)

// nodeTable lists the masters as configured; many of them by how soon a person should look.
type nodeTable struct {
	table[*monitor.Node, string]
}

func newNodeTable() nodeTable {
	return nodeTable{newTable(Layout{Of: "nodes", always: "node", tells: "state"}, view.NodeColumns(), func(n *monitor.Node) string { return n.Name })}
}

// take updates the nodes. Round trips and clock offsets change many times a second, which
// nobody can read, so they are updated once a second; states are updated at once.
func (t *nodeTable) take(ctx *view.Context, nodes []monitor.Node, tick bool) {
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
	rows, usual := view.Rows(nodes), Order("")
	if len(rows) > mostAsConfigured {
		usual = OrderNeeds
		slices.SortStableFunc(rows, func(a, b *monitor.Node) int { return view.NodeNeeds(ctx, b) - view.NodeNeeds(ctx, a) })
	}
	t.floats = usual == OrderNeeds
	t.layout.setUsual(usual)
	t.set(rows)
}

// mostAsConfigured is up to how many nodes the usual order is that of the configuration.
const mostAsConfigured = 7

// needy returns how many nodes a person should look at.
func (t *nodeTable) needy(ctx *view.Context) (n int) {
	for _, one := range t.rows {
		if view.NodeNeeds(ctx, one) > 0 {
			n++
		}
	}
	return n
}

// folded returns the nodes that are not among the drawn rows, counted by state.
func (t *nodeTable) folded(st *styles.Styles) string {
	counts := map[monitor.NodeState]int{}
	var states []monitor.NodeState
	for i, n := range t.rows {
		if i >= t.top && i < t.top+t.height {
			continue
		}
		if counts[n.State]++; counts[n.State] == 1 {
			states = append(states, n.State)
		}
	}
	if len(states) == 0 {
		return ""
	}
	slices.SortFunc(states, func(a, b monitor.NodeState) int { return b.Urgency() - a.Urgency() })
	if len(states) == 1 {
		c := st.NodeState(states[0])
		return styles.Blanks(styles.Lead) + st.Dim.Of(c.Sign+" "+view.Count(counts[states[0]])+" more "+c.Text)
	}
	parts := []string{st.Dim.Of(view.Count(len(t.rows)-t.height) + " more:")}
	for _, s := range states {
		c := st.NodeState(s)
		paint := st.Paint(c.Tone)
		if s == monitor.NodeServing {
			paint = st.Dim
		}
		parts = append(parts, paint.Of(c.Sign+" "+view.Count(counts[s])+" "+c.Text))
	}
	return styles.Blanks(styles.Lead) + strings.Join(parts, styles.Blanks(view.Gap))
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
