package page

// locksPage shows only the table of locks.
type locksPage struct{ *lockPanel }

func (p *locksPage) Place() Place { return Place{Kind: Locks} }

func (p *locksPage) Lines(h int) []string { return p.lockPanel.lines(0, h, p.cursor()) }
