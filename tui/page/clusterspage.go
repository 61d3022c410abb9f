package page

import (
	"slices"

	"redlockctl/internal/view"
)

// clustersPage is all configured clusters, a row for each; the one under the cursor is
// told by its name.
type clustersPage struct {
	*Screen
	All    []view.ClusterRow
	Name   string // of the one under the cursor
	top    int
	height int
	span   lineSpan // of its rows
}

// Take takes in what is known of the clusters.
func (m *clustersPage) Take(all []view.ClusterRow) {
	if m.All = all; m.pos() < 0 && len(all) > 0 {
		m.Name = all[0].Name
	}
}

func (m *clustersPage) pos() int {
	return slices.IndexFunc(m.All, func(r view.ClusterRow) bool { return r.Name == m.Name })
}

func (m *clustersPage) Place() Place        { return Place{Kind: Clusters} }
func (m *clustersPage) Mode() Mode          { return ModeClusters }
func (m *clustersPage) Rows() int           { return max(1, m.height-1) }
func (m *clustersPage) Selected() Selection { return Selection{Cluster: m.Name} }

func (m *clustersPage) Move(d int) {
	if n := len(m.All); n > 0 {
		m.Name = m.All[max(0, min(n-1, max(0, m.pos())+d))].Name
	}
}

func (m *clustersPage) Click(x, y int) (again bool) {
	i, ok := m.span.at(x, y)
	if !ok || m.top+i >= len(m.All) {
		return false
	}
	again = m.Name == m.All[m.top+i].Name
	m.Name = m.All[m.top+i].Name
	return again
}

func (m *clustersPage) Lines(h int) []string {
	st, ctx := m.St, m.context()
	title := Pane{Title: "Clusters " + view.Count(len(m.All)), More: st.Dim.Of("each is read while this page is shown; enter changes to the one under the cursor"), Focused: true}
	rows := make([]*view.ClusterRow, len(m.All))
	for i := range m.All {
		rows[i] = &m.All[i]
	}
	g := newGrid(st, measure(ctx, view.ClusterColumns(), rows), m.In())
	lines := []string{g.header(true)}
	pos := max(0, m.pos())
	m.height = max(1, min(len(rows), h-len(lines)-m.chrome()))
	m.top = scrollTo(m.top, pos, len(rows), m.height)
	m.span = m.rowsAt(len(lines)+1, m.height)
	for i := m.top; i < min(len(rows), m.top+m.height); i++ {
		lines = append(lines, g.row(ctx, rows[i], rowLook{under: i == pos, block: true}))
	}
	return m.frame(title, lines, h)
}
