package page

import "redlockctl/internal/view"

// nodePanel draws the table of nodes on a page.
type nodePanel struct {
	*Screen
	*nodeTable
}

func (m *nodePanel) Mode() Mode          { return ModeNodes }
func (m *nodePanel) Selected() Selection { return Selection{Node: m.nodeTable.Selected()} }

// pane draws the table with at most n rows under its title, from line top of the page on.
func (m *nodePanel) pane(top, n int, at cursorState) []string {
	lines := m.lines(m.Screen, top+1, n+1, at)
	return m.frame(m.title(at != cursorAway), lines, len(lines)+m.chrome())
}

// title says how many nodes serve.
func (m *nodePanel) title(focused bool) Pane {
	c := &m.Shown.Cluster
	p := Pane{Title: "Nodes " + view.Count(c.N), Focused: focused}
	if c.Serving < c.N {
		p.More = m.St.Dim.Of(view.Count(c.Serving) + " serving")
	}
	if m.layout.Unusual() {
		p.Right = m.layout.listing(m.St)
	}
	return p
}
