package page

import (
	"strconv"
	"time"

	"redlockctl/internal/audit"
	"redlockctl/internal/view"
	"redlockctl/tui/input"
	"redlockctl/tui/styles"
)

// auditPage is what people and guards did, the newest first, and whether the log of it is
// what was written.
type auditPage struct {
	*Screen
	log  *view.AuditLog // nil: it is being read
	all  []audit.Entry  // of it, an act once
	acts []audit.Entry  // those that the filter chooses
	choice[*audit.Entry]
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
	m.log, m.all = log, nil
	if log != nil {
		m.all = log.Acts()
	}
	m.list()
}

// list lists what the filter chooses.
func (m *auditPage) list() {
	m.was = max(0, m.pos())
	m.acts = nil
	for i := range m.all {
		if m.has(&m.all[i]) {
			m.acts = append(m.acts, m.all[i])
		}
	}
}

// tick brings what depends on time alone up to now.
func (m *auditPage) tick(now time.Time) {
	if m.filter.Timed() {
		m.at = now
		m.list()
	}
}

func (m *auditPage) FilterLine() *input.Line { return &m.line }
func (m *auditPage) FilterSource() string    { return m.source }
func (m *auditPage) FilterProblem() string   { return m.problem(m.St) }

func (m *auditPage) Filter(now time.Time) {
	m.apply(now)
	m.list()
}

func (m *auditPage) Found() (n, of int, ok bool) { return len(m.acts), len(m.all), m.log != nil }

func (m *auditPage) FilterOffers(line string) []string {
	return view.AuditLanguage.Offers(line, view.AuditValues(m.all))
}

func (m *auditPage) FilterLearn() func() Values { return nil }

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
	title := Pane{Title: "Audit " + view.Count(len(m.all)), Focused: true}
	if m.log == nil {
		return m.frame(title, []string{"", styles.Blanks(styles.Lead) + st.Dim.Of(st.Wait+" reading the audit log"+st.Ellipsis)}, h)
	}
	head := m.log.Integrity(ctx)
	title.More = st.Paint(head.Tone).Of(head.Sign + " " + head.Text)
	if m.on() {
		title.More = m.choice.title(st, len(m.acts)) + " " + st.Sep + " " + title.More
	}
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
	case len(m.acts) == 0 && m.on():
		lines = nothing(st, "line", m.filter.Hint(), m.In())
	case len(m.acts) == 0:
		lines = []string{"", styles.Blanks(styles.Lead) + st.Dim.Of("nothing is logged")}
	case n > 0 && m.top+len(seen) == len(m.acts) && len(lines) < h-len(dock)-m.chrome():
		lines = append(lines, styles.Blanks(styles.Lead)+st.Dim.Of(view.Plural(n, "older line")+": redlockctl audit show"))
	}
	return append(m.frame(title, lines, h-len(dock)), dock...)
}
