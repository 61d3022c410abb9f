package page

import (
	"redlockctl/internal/view"
	"redlockctl/monitor"
)

// nodePanel draws the table of nodes on a page.
type nodePanel struct {
	*Screen
	*nodeTable
}

func (m *nodePanel) begin()              { m.top = 0 } // another page may have scrolled it
func (m *nodePanel) Mode() Mode          { return ModeNodes }
func (m *nodePanel) Selected() Selection { return Selection{Node: m.nodeTable.Selected()} }

// fold draws the names of the columns and the nodes in at most h lines from line top of the
// page on; the last line counts those without room.
func (m *nodePanel) fold(top, h int, at cursorState, columns []view.Column[*monitor.Node]) []string {
	if len(m.rows) < h {
		return m.draw(m.Screen, top, h, at, columns)
	}
	lines := m.draw(m.Screen, top, h-1, at, columns)
	return append(lines, m.folded(m.St))
}

func (m *nodePanel) chosen() []view.Column[*monitor.Node] { return onScreen(&m.layout, m.columns) }

// pane draws the table with at most n rows under its title, from line top of the page on.
func (m *nodePanel) pane(top, n int, at cursorState) []string {
	lines := m.fold(top+1, n+1, at, m.chosen())
	return m.frame(m.title(at != cursorAway), lines, len(lines)+m.chrome())
}

// title says how many nodes serve.
func (m *nodePanel) title(focused bool) Pane {
	c := &m.Shown.Cluster
	p := Pane{Title: "Nodes " + view.Count(c.N), Focused: focused}
	if c.Serving < c.N && !m.Shown.InGap() {
		p.More = m.St.Dim.Of(view.Count(c.Serving) + " serving")
	}
	p.Right = m.layout.listing(m.St)
	return p
}
