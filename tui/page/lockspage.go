package page

// locksPage is the table of the locks alone.
type locksPage struct{ *lockPanel }

func (m *locksPage) Place() Place { return Place{Kind: Locks} }

func (m *locksPage) Lines(h int) []string { return m.lockPanel.lines(0, h, m.cursor()) }
