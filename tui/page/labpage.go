package page

// labPage is the demo's masters, and what can be done to them.
type labPage struct {
	*nodePanel
	text func(w int) []string
}

func (m *labPage) Place() Place { return Place{Kind: Lab} }
func (m *labPage) Mode() Mode   { return ModeLab }

func (m *labPage) Lines(h int) []string {
	st := m.St
	lines := []string{" " + st.Title.Of("THE LAB") + "   " + st.Dim.Of(st.Cut("masters of your own: nothing here can hurt anybody", m.W-11)), ""}
	lines = append(lines, m.nodePanel.lines(len(lines), min(len(m.nodes.nodes), max(3, h-14)), m.cursor())...)
	lines = append(append(lines, ""), m.text(m.W)...)
	return lines[:min(len(lines), max(h, 0))]
}
