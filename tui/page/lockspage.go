package page

// locksPage shows the table of locks, on a wide screen beside the one under the cursor.
type locksPage struct {
	*lockPanel
	lock  *lockFacts
	below dock
}

func (p *locksPage) Place() Place { return Place{Kind: Locks} }

// Scroll scrolls what is under the cursor in full.
func (p *locksPage) Scroll(pages int) bool { return p.below.Scroll(pages) }

func (p *locksPage) Wheel(x, y, d int) { p.below.wheel(p.lockPanel, p.lockPanel.span, x, y, d) }

func (p *locksPage) Lines(h int) []string {
	p.below.cut = false
	list := func(h int) []string { return p.lockPanel.lines(0, h, p.cursor()) }
	l := p.Selected().Lock
	if !p.wide() || l == nil || p.Layout().Kept.Wide {
		return list(h)
	}
	return p.beside(p.listWidth(), h, list, func(h int) []string {
		pn, lines := p.lock.pane(l, h)
		return p.frame(pn, p.below.draw(p.St, p.Selected(), lines, h-p.chrome()), h)
	})
}
