package page

// textPage is a page with text, which may have more of it on request.
type textPage struct {
	*Screen
	text func(w int) []string
	reading
	detailed bool
}

func (p *textPage) Place() Place { return Place{Kind: Help} }

func (p *textPage) begin() { p.top = 0 }

func (p *textPage) Mode() Mode { return ModeHelp }

func (p *textPage) Detail() *bool { return &p.detailed }

func (p *textPage) Selected() Selection { return Selection{} }

func (p *textPage) Lines(h int) []string {
	return p.frame(Pane{Title: "Help", Focused: true}, p.inSight(p.St, p.inColumns(p.text), h-p.chrome()), h)
}
