package page

// labPage shows the demo's masters, the actions on them, and what happened then.
type labPage struct {
	*nodePanel
	latest *latestEvents
	text   func(w int) []string
}

func (p *labPage) Place() Place { return Place{Kind: Lab} }
func (p *labPage) Mode() Mode   { return ModeLab }

func (p *labPage) Lines(h int) []string {
	lines := p.fold(1, 1+max(3, h-14), p.cursor(), p.chosen())
	lines = append(append(lines, ""), p.inColumns(p.text)...)
	lab := min(h, len(lines)+p.chrome())
	if h-lab < leastEvents+p.chrome() {
		lab = h
	}
	pane := Pane{Title: "Lab", More: p.St.Dim.Of("nodes of your own: nothing here can hurt anybody"), Focused: true}
	lines = p.frame(pane, lines, lab)
	if rest := h - lab; rest > 0 {
		lines = append(lines, p.frame(Pane{Title: "Events"}, p.latest.lines(rest-p.chrome(), lab+1, p.In(), false), rest)...)
	}
	return lines
}

// leastEvents is how many events make a pane of them worth its title.
const leastEvents = 3
