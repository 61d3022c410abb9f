package tui

import "redlockctl/internal/view"

// labPage is the demo's masters, and what can be done to them.
type labPage struct {
	*nodePanel
	lab   Lab
	hints func() []labHint
}

// labHint is a key of the lab: what it does, what that shows, and why it is off.
type labHint struct{ key, does, shows, off string }

func (m *labPage) place() place { return place{kind: viewLab} }
func (m *labPage) mode() mode   { return modeLab }

func (m *labPage) lines(h int) []string {
	st := m.st
	lines := []string{" " + st.Title.Of("THE LAB") + "   " + st.Dim.Of(st.Cut("masters of your own: nothing here can hurt anybody", m.w-11)), ""}
	lines = append(lines, m.nodePanel.lines(len(lines), min(len(m.nodes.nodes), max(3, h-14)), m.cursor())...)
	lines = append(lines, "")
	for _, k := range m.hints() {
		line := "   " + st.Strong.Of(st.Pad(k.key, 4)) + st.Pad(k.does, 12)
		// While a dialog stands over the page, it alone is why no key acts.
		if k.off != "" && !m.asking {
			line += st.Dim.Of("off: " + k.off)
		} else {
			line += k.shows
		}
		lines = append(lines, st.Cut(line, m.w))
	}
	if c, ok := m.lab.(LabClients); ok {
		lines = append(lines, "")
		for _, k := range c.ClientKinds() {
			lines = append(lines, "   "+st.Pad(view.Count(k.Running), 4)+st.Pad(k.Name, 12)+st.Dim.Of(st.Cut(k.Does, m.w-20)))
		}
	}
	return lines[:min(len(lines), max(h, 0))]
}
