package page

import "redlockctl/monitor"

// nodePage is one node.
type nodePage struct {
	*nodeFacts
	name string
	reading
}

func (m *nodePage) Place() Place        { return Place{Node, m.name} }
func (m *nodePage) Mode() Mode          { return ModeNode }
func (m *nodePage) node() *monitor.Node { return m.Shown.Node(m.name) }
func (m *nodePage) Selected() Selection { return Selection{Node: m.node()} }

func (m *nodePage) Lines(h int) []string {
	frame := func(title string, lines []string, h int) []string {
		return m.frame(Pane{Title: title, Focused: true}, m.inSight(m.St, lines, h-m.chrome()), h)
	}
	if n := m.node(); n != nil && m.wide() {
		return m.besideEvents(n, h, frame)
	}
	title, lines := m.pane(m.node(), 12)
	return frame(title, lines, h)
}
