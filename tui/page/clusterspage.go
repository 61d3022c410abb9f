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
	rows := h - p.chrome()
	row, _ := p.selected()
	name, one := p.one(row)
	if most := 1 + len(p.rows); h-p.chrome()-most >= len(one)+p.chrome() || rows > most+leastCopies {
		rows = most
	}
	lines := p.lines(p.Screen, 1, rows, p.cursor())
	title.Right = p.layout.listing(st)
	list := rows + p.chrome()
	lines = p.frame(title, lines, list)
	if rest := h - list; rest > 0 && name != "" {
		lines = append(lines, p.frame(Pane{Title: name}, one, rest)...)
	}
	return lines
}

// one draws the verdict of a cluster, its nodes and its findings, under its name.
func (p *clustersPage) one(row *view.ClusterRow) (name string, lines []string) {
	if row == nil {
		return "", nil
	}
	st := p.St
	name = st.Escape(row.Name, 40)
	if row.Snap == nil {
		return name, []string{" " + st.Bad.Of(st.Cut(st.Whole(row.Err), p.In()-2))}
	}
	s := *p.Screen
	s.W = p.In()
	if row.Name != p.Shown.Cluster.Name { // the guard that may run here is of the shown one
		s.drawn = view.Guard{}
		s.drawn.See(row.Snap)
	}
	s.Shown = row.Snap
	ctx := s.context()
	lines = append(s.verdict(view.Headlines(ctx)), "")
	nodes := view.NodeColumns()
	g := newGrid(st, measure(ctx, view.OnScreen(nodes, []string{"node", "state", "locks", "rtt", "clock", "guard"}, false), view.Rows(row.Snap.Nodes)), s.W)
	lines = append(lines, g.header(false))
	for i := range row.Snap.Nodes {
		lines = append(lines, g.row(ctx, &row.Snap.Nodes[i], rowLook{}))
	}
	lines = append(lines, "")
	for i := range row.Snap.Findings {
		f := &row.Snap.Findings[i]
		c := ctx.Severity(f.Severity)
		lines = append(lines, " "+st.Paint(c.Tone).Of(c.Sign+" "+st.Pad(c.Text, 8))+" "+st.Cut(view.FindingTitle(ctx, f), s.W-12))
	}
	return name, lines
}
