package page

// labPage shows the demo's masters and the actions on them.
type labPage struct {
	*nodePanel
	text func(w int) []string
}

func (p *labPage) Place() Place { return Place{Kind: Lab} }
func (p *labPage) Mode() Mode   { return ModeLab }

func (p *labPage) Lines(h int) []string {
	lines := p.fold(1, 1+max(3, h-14), p.cursor(), p.chosen())
	lines = append(append(lines, ""), p.inColumns(p.text)...)
	return p.frame(Pane{Title: "Lab", More: p.St.Dim.Of("nodes of your own: nothing here can hurt anybody"), Focused: true}, lines, h)
}
