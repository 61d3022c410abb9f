package page

import "redlockctl/internal/view"

// clustersPage is all configured clusters, a row for each, by its name.
type clustersPage struct {
	*Screen
	table[*view.ClusterRow, string]
}

func newClustersPage(s *Screen) *clustersPage {
	m := &clustersPage{s, newTable(Layout{Of: "clusters", always: "cluster", tells: "verdict"}, view.ClusterColumns(), func(r *view.ClusterRow) string { return r.Name })}
	m.layout.changed = m.list
	return m
}

// Take takes in what is known of the clusters.
func (m *clustersPage) Take(all []view.ClusterRow) { m.set(view.Rows(all)) }

// Empty reports whether nothing is known of them yet.
func (m *clustersPage) Empty() bool { return len(m.given) == 0 }

// Begin puts the cursor on a cluster, where it has not been moved.
func (m *clustersPage) Begin(name string) {
	if m.under == "" {
		m.under = name
	}
}

func (m *clustersPage) Place() Place { return Place{Kind: Clusters} }
func (m *clustersPage) Mode() Mode   { return ModeClusters }

func (m *clustersPage) Selected() Selection { return Selection{Cluster: m.under} }

func (m *clustersPage) Lines(h int) []string {
	st := m.St
	title := Pane{Title: "Clusters " + view.Count(len(m.rows)), More: st.Dim.Of("each is read while this page is shown; enter changes to the one under the cursor"), Focused: true}
	lines := m.lines(m.Screen, 1, h-m.chrome(), m.cursor())
	if m.layout.Unusual() {
		title.Right = m.layout.told(st)
	}
	return m.frame(title, lines, h)
}
