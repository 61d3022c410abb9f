package tui

import (
	"redlockctl/monitor"
)

// nodePanel is the table of the nodes on a page.
type nodePanel struct {
	*screen
	nodes    *nodeTable
	nodeView nodeView
	span     lineSpan // of its rows
}

// lines are the columns and at most n rows; the first of them is line top of
// the page.
func (m *nodePanel) lines(top, n int, at cursorState) []string {
	lines := []string{m.nodeView.header(m.nodeView.arrange(m.w, m.nodes.nodes), at != cursorAway)}
	rows := m.nodeView.rows(m.nodes, n, m.w, m.now, &m.drawn, at)
	m.span = lineSpan{top + 1, len(rows)}
	return append(lines, rows...)
}

func (m *nodePanel) mode() mode { return modeNodes }
func (m *nodePanel) move(d int) { m.nodes.move(d) }
func (m *nodePanel) rows() int  { return max(1, len(m.nodes.nodes)) }

func (m *nodePanel) selected() selection { return selection{node: m.nodes.selected()} }

// click puts the cursor on the node in a line of the page.
func (m *nodePanel) click(y int) (again bool) {
	i, ok := m.span.at(y)
	if !ok || m.nodes.top+i >= len(m.nodes.nodes) {
		return false
	}
	name := m.nodes.nodes[m.nodes.top+i].Name
	again = m.nodes.name == name
	m.nodes.name = name
	return again
}

// nodeOf is the node with this name in a snapshot; nil: there is none.
func nodeOf(s *monitor.Snapshot, name string) *monitor.Node {
	for i := range s.Nodes {
		if s.Nodes[i].Name == name {
			return &s.Nodes[i]
		}
	}
	return nil
}
