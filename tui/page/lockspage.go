package page

// locksPage is the table of the locks alone.
type locksPage struct{ *lockPanel }

func (p *locksPage) Place() Place { return Place{Kind: Locks} }

func (p *locksPage) Lines(h int) []string { return p.lockPanel.lines(0, h, p.cursor()) }
