package page

import (
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/styles"
)

// findingTable is the findings and which one is under the cursor, by what it is.
type findingTable struct {
	all []monitor.Finding
	id  string
	top int
}

func findingID(f *monitor.Finding) string { return f.ID + "\x00" + f.Node }

func (t *findingTable) set(all []monitor.Finding) {
	before := t.pos()
	t.all = all
	if t.pos() < 0 && len(all) > 0 {
		t.id = findingID(&all[max(0, min(before, len(all)-1))])
	}
}

func (t *findingTable) pos() int {
	for i := range t.all {
		if findingID(&t.all[i]) == t.id {
			return i
		}
	}
	return -1
}

func (t *findingTable) move(d int) { t.goTo(max(0, t.pos()) + d) }

func (t *findingTable) goTo(i int) {
	if len(t.all) > 0 {
		t.id = findingID(&t.all[max(0, min(len(t.all)-1, i))])
	}
}

func (t *findingTable) Selected() *monitor.Finding {
	if i := t.pos(); i >= 0 {
		return &t.all[i]
	}
	return nil
}

// findingsPage is which assumptions of Redlock do not hold here, and what that
// means; the one under the cursor in full.
type findingsPage struct {
	*Screen
	findings *findingTable
	height   int
	span     lineSpan // of its rows
	detailed bool
}

func (m *findingsPage) Place() Place        { return Place{Kind: Findings} }
func (m *findingsPage) Mode() Mode          { return ModeFindings }
func (m *findingsPage) Detail() *bool       { return &m.detailed }
func (m *findingsPage) begin()              { m.findings.goTo(0) } // the most severe
func (m *findingsPage) Move(d int)          { m.findings.move(d) }
func (m *findingsPage) Rows() int           { return max(1, m.height-1) }
func (m *findingsPage) Selected() Selection { return Selection{Finding: m.findings.Selected()} }

func (m *findingsPage) Click(x, y int) bool {
	if i, ok := m.span.at(x, y); ok {
		m.findings.goTo(m.findings.top + i)
	}
	return false
}

func (m *findingsPage) Lines(h int) []string {
	st, t := m.St, m.findings
	title := Pane{Title: "Findings " + view.Count(len(t.all)), More: st.Dim.Of("Redlock assumptions that do not hold here"), Focused: true}
	if len(t.all) == 0 {
		glyph, p := st.On, st.Good
		text := "nothing found"
		if m.Shown.Cluster.Verdict == monitor.VerdictUnknown {
			glyph, p, text = st.Wait, st.Dim, "looking"+st.Ellipsis
		}
		return m.frame(title, []string{"", styles.Blanks(styles.Lead) + p.Of(glyph+" "+text)}, h)
	}
	if m.wide() {
		return m.beside(m.W*9/20, h,
			func(h int) []string { return m.frame(title, m.list(h-m.chrome()), h) },
			func(h int) []string {
				name, facts := m.finding(t.Selected())
				return m.frame(Pane{Title: name}, facts, h)
			})
	}
	name, facts := m.finding(t.Selected())
	rows := min(len(t.all), max(3, h-2*m.chrome()-len(facts)))
	dock := max(0, h-rows-m.chrome())
	return append(m.frame(title, m.list(rows), h-dock), m.frame(Pane{Title: name}, facts, dock)...)
}

// list is at most that many findings.
func (m *findingsPage) list(rows int) (lines []string) {
	st, t := m.St, m.findings
	rows = min(rows, len(t.all))
	pos := max(0, t.pos())
	t.top = scrollTo(t.top, pos, len(t.all), rows)
	m.height = rows
	m.span = m.rowsAt(1, rows)
	ctx := m.context()
	g := newGrid(st, view.FindingColumns(), m.In())
	for i := t.top; i < t.top+rows; i++ {
		lines = append(lines, g.row(ctx, &t.all[i], rowLook{under: i == pos, block: true}))
	}
	return lines
}

// finding is one finding in full, under a title.
func (m *findingsPage) finding(f *monitor.Finding) (title string, lines []string) {
	if f == nil {
		return "", nil
	}
	st, ctx := m.St, m.context()
	c := ctx.Severity(f.Severity)
	title = c.Sign + " " + c.Text + "  " + view.FindingTitle(ctx, f) + "  " + st.Whole(f.ID) + styles.Since(f.Since, m.Now)
	return title, m.facts(view.FindingFacts(ctx, f), m.In())
}
