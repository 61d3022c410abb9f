package tui

// labPage is the demo's masters, and what can be done to them.
type labPage struct {
	*nodePanel
	text func(w int) []string
}

func (m *labPage) place() place { return place{kind: viewLab} }
func (m *labPage) mode() mode   { return modeLab }

func (m *labPage) lines(h int) []string {
	st := m.st
	lines := []string{" " + st.Title.Of("THE LAB") + "   " + st.Dim.Of(st.Cut("masters of your own: nothing here can hurt anybody", m.w-11)), ""}
	lines = append(lines, m.nodePanel.lines(len(lines), min(len(m.nodes.nodes), max(3, h-14)), m.cursor())...)
	lines = append(append(lines, ""), m.text(m.w)...)
	return lines[:min(len(lines), max(h, 0))]
}
