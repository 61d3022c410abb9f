package page

import "redlockctl/tui/styles"

// nodesPage shows the table of nodes, and below it the one under the cursor.
type nodesPage struct {
	*nodePanel
	facts *nodeFacts
}

func (p *nodesPage) Place() Place { return Place{Kind: Nodes} }

func (p *nodesPage) Lines(h int) []string {
	rows := min(len(p.rows), max(1, h-3))
	if h < 20 {
		rows = min(rows, max(3, h/2))
	}
	lines := p.nodePanel.pane(0, rows, p.cursor())
	room := h - len(lines)
	if n := p.nodeTable.Selected(); n != nil && room >= 4 && p.wide() {
		return append(lines, p.facts.besideEvents(n, room, func(title string, lines []string, h int) []string {
			return p.frame(Pane{Title: title}, lines, h)
		})...)
	}
	if room >= 4 {
		title, d := p.facts.pane(p.nodeTable.Selected(), 12)
		if len(d)+p.chrome() > room {
			d = styles.DropBlank(d)
		}
		lines = append(lines, p.frame(Pane{Title: title}, d, room)...)
	}
	return lines
}
