package page

import (
	"fmt"

	"redlockctl/internal/view"
)

// nodePanel is the table of the nodes on a page.
type nodePanel struct {
	*Screen
	nodes *nodeTable
	span  lineSpan // of its rows
}

// lines are the columns and at most n rows; the first of them is line top of
// the page.
func (m *nodePanel) lines(top, n int, at cursorState) []string {
	ctx := m.context()
	g := m.nodes.fit(ctx, m.St, m.In())
	lines := []string{g.header(at != cursorAway)}
	var rows []string
	from, to := m.nodes.window(n)
	for i := from; i < to; i++ {
		one := &m.nodes.nodes[i]
		rows = append(rows, g.row(ctx, one, rowLook{under: one.Name == m.nodes.Name && at != cursorAway, block: at == cursorHere}))
	}
	m.span = m.rowsAt(top+1, len(rows))
	return append(lines, rows...)
}

// pane is the table with at most n rows under its title, from line top of the page on.
func (m *nodePanel) pane(top, n int, at cursorState) []string {
	lines := m.lines(top+1, n, at)
	return m.frame(m.title(at != cursorAway), lines, len(lines)+m.chrome())
}

// title says how many nodes serve.
func (m *nodePanel) title(focused bool) Pane {
	c := &m.Shown.Cluster
	serving := fmt.Sprintf("%d serve, a quorum is %d", c.Serving, c.Quorum)
	return Pane{Title: "Nodes " + view.Count(c.N), Right: m.St.Dim.Of(serving), Focused: focused}
}

func (m *nodePanel) Mode() Mode { return ModeNodes }
func (m *nodePanel) Move(d int) { m.nodes.move(d) }
func (m *nodePanel) Rows() int  { return max(1, len(m.nodes.nodes)) }

func (m *nodePanel) Selected() Selection { return Selection{Node: m.nodes.Selected()} }

// Click puts the cursor on the node in a line of the page.
func (m *nodePanel) Click(x, y int) (again bool) {
	i, ok := m.span.at(x, y)
	if !ok || m.nodes.top+i >= len(m.nodes.nodes) {
		return false
	}
	name := m.nodes.nodes[m.nodes.top+i].Name
	again = m.nodes.Name == name
	m.nodes.Name = name
	return again
}
