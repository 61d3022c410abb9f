package page

import (
	"slices"
	"strings"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/styles"
)

// nodeTable is the masters and which one is under the cursor, by its name.
type nodeTable struct {
	nodes []monitor.Node
	Name  string
	top   int
	grid  grid[*monitor.Node] // of these nodes; width 0: not yet
	ascii bool
}

// set takes in nodes. Round trips and clock offsets change many times a second, which
// nobody can read, so they are taken in only with a tick. What a node's state tells is
// never old.
func (t *nodeTable) set(nodes []monitor.Node, tick bool) {
	nodes = slices.Clone(nodes)
	for i := range nodes {
		n := &nodes[i]
		for j := range t.nodes {
			old := &t.nodes[j]
			if tick || old.Name != n.Name || old.State != n.State || old.RunID != n.RunID || !old.Offset.Valid && n.Offset.Valid {
				continue
			}
			n.Uptime, n.Locks, n.RTT, n.RTTs, n.Offset, n.Drift = old.Uptime, old.Locks, old.RTT, old.RTTs, old.Offset, old.Drift
		}
	}
	t.nodes, t.grid.width = nodes, 0
	if t.pos() < 0 && len(nodes) > 0 {
		t.Name = nodes[0].Name
	}
}

func (t *nodeTable) pos() int {
	for i := range t.nodes {
		if t.nodes[i].Name == t.Name {
			return i
		}
	}
	return -1
}

func (t *nodeTable) move(d int) {
	if len(t.nodes) > 0 {
		t.Name = t.nodes[max(0, min(len(t.nodes)-1, max(t.pos(), 0)+d))].Name
	}
}

func (t *nodeTable) Selected() *monitor.Node {
	if i := t.pos(); i >= 0 {
		return &t.nodes[i]
	}
	return nil
}

// window is the range of nodes in sight when h fit; the cursor is in it.
func (t *nodeTable) window(h int) (from, to int) {
	t.top = scrollTo(t.top, max(t.pos(), 0), len(t.nodes), h)
	return t.top, min(len(t.nodes), t.top+h)
}

// fit fits the columns of nodes into rows of w cells, once for each set of nodes.
func (t *nodeTable) fit(ctx *view.Context, st *styles.Styles, w int) *grid[*monitor.Node] {
	if t.grid.width != w || t.ascii != st.ASCII {
		t.grid, t.ascii = newGrid(st, measure(ctx, view.NodeColumns(), t.pointers()), w), st.ASCII
	}
	return &t.grid
}

func (t *nodeTable) pointers() []*monitor.Node {
	all := make([]*monitor.Node, len(t.nodes))
	for i := range t.nodes {
		all[i] = &t.nodes[i]
	}
	return all
}

// strip is the nodes in one line: those that do not serve first where not all
// fit.
func (t *nodeTable) strip(s *Screen, focused bool) string {
	st := s.St
	cells := make([]string, len(t.nodes))
	total := 1
	for i := range t.nodes {
		n := &t.nodes[i]
		state := st.NodeState(n.State)
		text := st.Escape(n.Name, 10) + " " + state.Sign
		if left, ok := s.drawn.Countdown(n, s.Now); ok {
			text += view.Remaining(left)
		} else if n.State != monitor.NodeServing && n.State != monitor.NodeDown && n.State != monitor.NodeFenced {
			text += n.State.String()
		}
		total += view.Width(text) + view.Gap
		if focused && n.Name == t.Name {
			cells[i] = st.Cursor.Of(text)
		} else {
			cells[i] = st.Paint(state.Tone).Of(text)
		}
	}
	if total > s.W {
		var trouble, calm []string
		for i := range t.nodes {
			switch {
			case focused && t.nodes[i].Name == t.Name:
				trouble = append([]string{cells[i]}, trouble...)
			case t.nodes[i].State != monitor.NodeServing:
				trouble = append(trouble, cells[i])
			default:
				calm = append(calm, cells[i])
			}
		}
		cells = append(trouble, calm...)
	}
	return st.Cut(" "+strings.Join(cells, styles.Blanks(view.Gap)), s.W)
}

// NodeOf is the node with this name in a snapshot; nil: there is none.
func NodeOf(s *monitor.Snapshot, name string) *monitor.Node {
	for i := range s.Nodes {
		if s.Nodes[i].Name == name {
			return &s.Nodes[i]
		}
	}
	return nil
}
