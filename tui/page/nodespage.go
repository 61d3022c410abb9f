package page

import "redlockctl/tui/styles"

// nodesPage is the table of nodes, and the one under the cursor below it.
type nodesPage struct {
	*nodePanel
	facts *nodeFacts
}

func (m *nodesPage) Place() Place { return Place{Kind: Nodes} }

func (m *nodesPage) Lines(h int) []string {
	rows := min(len(m.rows), max(1, h-3))
	if h < 20 {
		rows = min(rows, max(3, h/2))
	}
	lines := m.nodePanel.pane(0, rows, m.cursor())
	room := h - len(lines)
	if n := m.nodeTable.Selected(); n != nil && room >= 4 && m.wide() {
		return append(lines, m.facts.besideEvents(n, room, func(title string, lines []string, h int) []string {
			return m.frame(Pane{Title: title}, lines, h)
		})...)
	}
	if room >= 4 {
		title, d := m.facts.pane(m.nodeTable.Selected(), 12)
		if len(d)+m.chrome() > room {
			d = styles.DropBlank(d)
		}
		lines = append(lines, m.frame(Pane{Title: title}, d, room)...)
	}
	return lines
}
