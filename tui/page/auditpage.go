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
	table[audit.Entry, string]
	choice[*audit.Entry]
	log      *view.AuditLog // nil: it is being read
	all      []audit.Entry  // of it, an act once
	detailed bool
}

func newAuditPage(s *Screen) *auditPage {
	m := &auditPage{Screen: s, choice: newChoice(&view.AuditLanguage)}
	m.table = newTable(Layout{Of: "audit", usual: "time" + desc, tells: "phase"}, view.AuditColumns(),
		func(e audit.Entry) string { return e.ID + " " + e.Phase + " " + strconv.Itoa(e.Line) })
	m.floats, m.layout.changed = true, m.list
	return m
}

// Take takes in the log.
func (m *auditPage) Take(log *view.AuditLog) {
	m.log, m.all = log, nil
	if log != nil {
		m.all = log.Acts()
	}
	m.apply()
}

// apply lists what the filter chooses.
func (m *auditPage) apply() {
	var acts []audit.Entry
	for i := range m.all {
		if m.has(&m.all[i]) {
			acts = append(acts, m.all[i])
		}
	}
	m.set(acts)
}

// tick brings what depends on time alone up to now.
func (m *auditPage) tick(now time.Time) {
	if m.filter.Timed() {
		m.at = now
		m.apply()
	}
}

func (m *auditPage) FilterLine() *input.Line { return &m.line }
func (m *auditPage) FilterSource() string    { return m.source }
func (m *auditPage) FilterProblem() string   { return m.problem(m.St) }

func (m *auditPage) Filter(now time.Time) {
	m.choice.apply(now)
	m.apply()
}

func (m *auditPage) Found() (n, of int, ok bool) { return len(m.rows), len(m.all), m.log != nil }

func (m *auditPage) FilterOffers(line string) []string {
	return view.AuditLanguage.Offers(line, view.AuditValues(m.all))
}

func (m *auditPage) FilterLearn() func() Values { return nil }

func (m *auditPage) Place() Place  { return Place{Kind: Audit} }
func (m *auditPage) Mode() Mode    { return ModeAudit }
func (m *auditPage) Detail() *bool { return &m.detailed }

func (m *auditPage) Selected() (s Selection) {
	if i := m.pos(); i >= 0 {
		s.Audit = &m.rows[i]
	}
	return s
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
		title.More = m.choice.title(st, len(m.rows)) + " " + st.Sep + " " + title.More
	}
	var dock []string
	if e := m.Selected().Audit; e != nil && m.detailed {
		facts := m.facts(m.log.AuditFacts(ctx, e), m.In())
		n := min(len(facts)+m.chrome(), max(0, h-m.chrome()-4))
		dock = m.frame(Pane{Title: ctx.Whole(e.Act) + " " + ctx.Whole(e.Target)}, facts, n)
	}
	lines := m.lines(m.Screen, 1, h-m.chrome()-len(dock), m.cursor())
	if m.W >= 76 || m.layout.Unusual() { // the verdict on the log has the room first
		title.Right = m.layout.told(st)
	}
	switch n := m.log.Older; {
	case len(m.rows) == 0 && m.on():
		lines = nothing(st, "line", m.filter.Hint(), m.In())
	case len(m.rows) == 0:
		lines = []string{"", styles.Blanks(styles.Lead) + st.Dim.Of("nothing is logged")}
	case n > 0 && m.top+m.height == len(m.rows) && len(lines) < h-len(dock)-m.chrome():
		lines = append(lines, styles.Blanks(styles.Lead)+st.Dim.Of(view.Plural(n, "older line")+": redlockctl audit show"))
	}
	return append(m.frame(title, lines, h-len(dock)), dock...)
}
