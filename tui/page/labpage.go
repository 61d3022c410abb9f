package page

// labPage is the demo's masters, and what can be done to them.
type labPage struct {
	*nodePanel
	text func(w int) []string
}

func (m *labPage) Place() Place { return Place{Kind: Lab} }
func (m *labPage) Mode() Mode   { return ModeLab }

func (m *labPage) Lines(h int) []string {
	lines := m.lines(m.Screen, 1, 1+max(3, h-14), m.cursor())
	lines = append(append(lines, ""), m.inColumns(m.text)...)
	return m.frame(Pane{Title: "Lab", More: m.St.Dim.Of("nodes of your own: nothing here can hurt anybody"), Focused: true}, lines, h)
}
