package page

import (
	"strconv"

	"redlockctl/internal/audit"
	"redlockctl/internal/view"
	"redlockctl/tui/styles"
)

// auditPage is what people and guards did, the newest first, and whether the log of it is
// what was written.
type auditPage struct {
	*Screen
	log      *view.AuditLog // nil: it is being read
	acts     []audit.Entry
	id       string // of the one under the cursor; "": the newest
	was      int    // its place
	top      int
	height   int
	span     lineSpan // of its rows
	detailed bool
}

func auditID(e *audit.Entry) string { return e.ID + " " + e.Phase + " " + strconv.Itoa(e.Line) }

// Take takes in the log.
func (m *auditPage) Take(log *view.AuditLog) {
	m.was = max(0, m.pos())
	m.log, m.acts = log, nil
	if log != nil {
		m.acts = log.Acts()
	}
}

// pos is the place of the cursor: where its entry was, if that is gone.
func (m *auditPage) pos() int {
	if m.id == "" {
		return min(0, len(m.acts)-1)
	}
	for i := range m.acts {
		if auditID(&m.acts[i]) == m.id {
			return i
		}
	}
	return min(m.was, len(m.acts)-1)
}

func (m *auditPage) Place() Place        { return Place{Kind: Audit} }
func (m *auditPage) Mode() Mode          { return ModeAudit }
func (m *auditPage) Detail() *bool       { return &m.detailed }
func (m *auditPage) Rows() int           { return max(1, m.height-1) }
func (m *auditPage) Selected() Selection { return Selection{Audit: m.selected()} }

func (m *auditPage) selected() *audit.Entry {
	if i := m.pos(); i >= 0 {
		return &m.acts[i]
	}
	return nil
}

func (m *auditPage) Move(d int) { m.goTo(max(0, m.pos()) + d) }

// goTo puts the cursor on a place; on the first it stays on the newest.
func (m *auditPage) goTo(i int) {
	if i = max(0, min(len(m.acts)-1, i)); i == 0 {
		m.id = ""
	} else if i > 0 {
		m.id = auditID(&m.acts[i])
	}
}

func (m *auditPage) Click(x, y int) (again bool) {
	i, ok := m.span.at(x, y)
	if !ok || m.top+i >= len(m.acts) {
		return false
	}
	again = m.pos() == m.top+i
	m.goTo(m.top + i)
	return again
}

func (m *auditPage) Lines(h int) []string {
	st, ctx := m.St, m.context()
	title := Pane{Title: "Audit " + view.Count(len(m.acts)), Focused: true}
	if m.log == nil {
		return m.frame(title, []string{"", styles.Blanks(styles.Lead) + st.Dim.Of(st.Wait+" reading the audit log"+st.Ellipsis)}, h)
	}
	head := m.log.Headline(ctx)
	title.More = st.Paint(head.Tone).Of(head.Sign + " " + head.Text)
	if m.W >= 76 { // the verdict on the log has the room first
		title.Right = st.Dim.Of("newest first")
	}
	var dock []string
	if e := m.selected(); e != nil && m.detailed {
		facts := m.facts(m.log.AuditFacts(ctx, e), m.In())
		n := min(len(facts)+m.chrome(), max(0, h-m.chrome()-4))
		dock = m.frame(Pane{Title: ctx.Whole(e.Act) + " " + ctx.Whole(e.Target)}, facts, n)
	}
	pos := max(0, m.pos())
	m.height = max(1, min(len(m.acts), h-1-m.chrome()-len(dock)))
	m.top = scrollTo(m.top, pos, len(m.acts), m.height)
	seen := m.acts[m.top:min(len(m.acts), m.top+m.height)]
	g := newGrid(st, measure(ctx, view.AuditColumns(), seen), m.In())
	lines := []string{g.header(true)}
	for i := range seen {
		lines = append(lines, g.row(ctx, seen[i], rowLook{under: m.top+i == pos, block: true}))
	}
	m.span = m.rowsAt(2, len(seen))
	switch n := m.log.Older; {
	case len(m.acts) == 0:
		lines = []string{"", styles.Blanks(styles.Lead) + st.Dim.Of("nothing is logged")}
	case n > 0 && m.top+len(seen) == len(m.acts) && len(lines) < h-len(dock)-m.chrome():
		lines = append(lines, styles.Blanks(styles.Lead)+st.Dim.Of(view.Plural(n, "older line")+": redlockctl audit show"))
	}
	return append(m.frame(title, lines, h-len(dock)), dock...)
}
