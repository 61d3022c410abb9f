package page

import "redlockctl/monitor"

// nodePage is one node.
type nodePage struct {
	*nodeFacts
	name string
	reading
}

func (p *nodePage) Place() Place        { return Place{Node, p.name} }
func (p *nodePage) Mode() Mode          { return ModeNode }
func (p *nodePage) node() *monitor.Node { return p.Shown.Node(p.name) }
func (p *nodePage) Selected() Selection { return Selection{Node: p.node()} }

func (p *nodePage) Lines(h int) []string {
	frame := func(title string, lines []string, h int) []string {
		return p.frame(Pane{Title: title, Focused: true}, p.inSight(p.St, lines, h-p.chrome()), h)
	}
	if n := p.node(); n != nil && p.wide() {
		return p.besideEvents(n, h, frame)
	}
	title, lines := p.pane(p.node(), 12, true)
	return frame(title, lines, h)
}
