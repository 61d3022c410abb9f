package page

import "redlockctl/internal/view"

// clustersPage lists all configured clusters by name.
type clustersPage struct {
	*Screen
	table[*view.ClusterRow, string]
}

func newClustersPage(s *Screen) *clustersPage {
	m := &clustersPage{s, newTable(Layout{Of: "clusters", always: "cluster", tells: "verdict"}, view.ClusterColumns(), func(r *view.ClusterRow) string { return r.Name })}
	m.layout.changed = m.list
	return m
}

// Take shows the state of the clusters.
func (p *clustersPage) Take(all []view.ClusterRow) { p.set(view.Rows(all)) }

// Empty reports whether nothing is known about the clusters yet.
func (p *clustersPage) Empty() bool { return len(p.given) == 0 }

// Begin puts the cursor on a cluster, unless it was moved.
func (p *clustersPage) Begin(name string) {
	if p.under == "" {
		p.under = name
	}
}

func (p *clustersPage) Place() Place { return Place{Kind: Clusters} }
func (p *clustersPage) Mode() Mode   { return ModeClusters }

func (p *clustersPage) Selected() Selection { return Selection{Cluster: p.under} }

func (p *clustersPage) Lines(h int) []string {
	st := p.St
	title := Pane{Title: "Clusters " + view.Count(len(p.rows)), More: st.Dim.Of("each is read while this page is shown; enter changes to the one under the cursor"), Focused: true}
	lines := p.lines(p.Screen, 1, h-p.chrome(), p.cursor())
	title.Right = p.layout.listing(st)
	return p.frame(title, lines, h)
}
