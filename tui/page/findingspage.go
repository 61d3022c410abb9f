package page

import (
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/finding"
	"redlockctl/tui/styles"
)

// newFindings returns the table of findings.
func newFindings() table[*monitor.Finding, string] {
	return newTable(Layout{Of: "findings", always: "finding", tells: "severity", usual: "severity"}, view.FindingColumns(),
		func(f *monitor.Finding) string { return f.ID + "\x00" + f.Node })
}

// findingsPage lists the findings, with the one under the cursor in full.
type findingsPage struct {
	*Screen
	*table[*monitor.Finding, string]
	below dock
}

// Scroll scrolls the finding under the cursor.
func (m *findingsPage) Scroll(pages int) bool { return m.below.Scroll(pages) }

func (m *findingsPage) Wheel(x, y, d int) { m.below.wheel(m, m.span, x, y, d) }

func (m *findingsPage) Place() Place { return Place{Kind: Findings} }
func (m *findingsPage) Mode() Mode   { return ModeFindings }
func (m *findingsPage) begin()       { m.goTo(0) } // the most severe

func (m *findingsPage) Selected() Selection {
	f, _ := m.selected()
	return Selection{Finding: f}
}

func (m *findingsPage) Lines(h int) []string {
	st := m.St
	m.below.cut = false
	title := Pane{Title: "Findings " + view.Count(len(m.rows)), More: st.Dim.Of("Redlock assumptions that do not hold here"), Focused: true}
	title.Right = m.layout.listing(st)
	if len(m.rows) == 0 {
		glyph, p := st.On, st.Good
		text := "nothing found"
		if m.Shown.Cluster.Verdict == monitor.VerdictUnknown {
			glyph, p, text = st.Wait, st.Dim, "looking"+st.Ellipsis
		}
		if m.Shown.InGap() {
			title.Title, text = "Findings", monitor.NothingRecorded
			return m.frame(title, []string{"", styles.Blanks(styles.Lead) + p.Of(glyph+" "+text)}, h)
		}
		lines := []string{"", styles.Blanks(styles.Lead) + p.Of(glyph+" "+text), "", styles.Blanks(styles.Lead) + st.Label.Of("Checked")}
		w, per := m.In(), 1
		if m.wide() {
			per = 2
		}
		checks := finding.Checks()
		rows := (len(checks) + per - 1) / per
		for i := range rows {
			line := styles.Blanks(styles.Lead) + st.Dim.Of(st.Pad(st.Our(checks[i]), w/per))
			if k := i + rows; k < len(checks) {
				line += st.Dim.Of(st.Our(checks[k]))
			}
			lines = append(lines, st.Cut(line, w))
		}
		return m.frame(title, lines[:min(len(lines), max(0, h-m.chrome()))], h)
	}
	if m.wide() {
		return m.beside(m.listWidth(), h,
			func(h int) []string {
				lines := m.lines(m.Screen, 1, h-m.chrome(), m.cursor())
				return m.frame(title, lines, h)
			},
			func(h int) []string {
				name, facts := m.finding(m.Selected().Finding)
				return m.frame(Pane{Title: name}, m.below.draw(st, m.Selected(), facts, h-m.chrome()), h)
			})
	}
	name, facts := m.finding(m.Selected().Finding)
	rows := 1 + min(len(m.rows), max(3, h-1-2*m.chrome()-len(facts)))
	lines := m.lines(m.Screen, 1, rows, m.cursor())
	dock := max(0, h-rows-m.chrome())
	return append(m.frame(title, lines, h-dock), m.frame(Pane{Title: name}, m.below.draw(st, m.Selected(), facts, dock-m.chrome()), dock)...)
}

// finding draws one finding in full under a title.
func (m *findingsPage) finding(f *monitor.Finding) (title string, lines []string) {
	if f == nil {
		return "", nil
	}
	st, ctx := m.St, m.context()
	c := ctx.Severity(f.Severity)
	title = c.Sign + " " + c.Text + "  " + view.FindingTitle(ctx, f) + "  " + st.Whole(f.ID) + styles.Since(f.Since, m.Now)
	return title, m.facts(view.FindingFacts(ctx, f), m.In())
}
