package page

import (
	"redlockctl/monitor"
	"redlockctl/tui/styles"
)

// nodesPage shows the table of nodes, and below it the one under the cursor.
type nodesPage struct {
	*nodePanel
	facts *nodeFacts
	below dock
}

func (p *nodesPage) Place() Place { return Place{Kind: Nodes} }

// Scroll scrolls what is under the cursor in full.
func (p *nodesPage) Scroll(pages int) bool { return p.below.Scroll(pages) }

func (p *nodesPage) Wheel(x, y, d int) { p.below.wheel(p.nodePanel, p.span, x, y, d) }

func (p *nodesPage) Lines(h int) []string {
	p.below.cut = false
	n := p.nodeTable.Selected()
	if n != nil && p.wide() && !p.layout.Kept.Wide {
		return p.wideLines(n, h)
	}
	rows := min(len(p.rows), max(1, h-3))
	if h < 20 {
		rows = min(rows, max(3, h/2))
	}
	lines := p.nodePanel.pane(0, rows, p.cursor())
	room := h - len(lines)
	if room >= 4 {
		title, d := p.facts.pane(n, 12, true)
		if len(d)+p.chrome() > room {
			d = styles.DropBlank(d)
		}
		lines = append(lines, p.frame(Pane{Title: title}, p.below.draw(p.St, p.Selected(), d, room-p.chrome()), room)...)
	}
	return lines
}

// wideLines draws the nodes and the events of the one under the cursor, and beside them all
// that is known of it, and the locks that have a copy there.
func (p *nodesPage) wideLines(n *monitor.Node, h int) []string {
	return p.beside(p.listWidth(), h, func(h int) []string {
		lines := p.nodePanel.pane(0, min(len(p.rows), max(3, h*2/3)), p.cursor())
		rest := h - len(lines)
		return append(lines, p.eventsPane("Events of "+p.St.Escape(n.Name, 20), p.facts.nodeEvents(n, rest-p.chrome(), p.In()), rest)...)
	}, func(h int) []string {
		return p.facts.above(n, h, func(title string, lines []string, h int) []string {
			return p.frame(Pane{Title: title}, p.below.draw(p.St, p.Selected(), lines, h-p.chrome()), h)
		})
	})
}
