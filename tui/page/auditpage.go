package page

import (
	"cmp"
	"strconv"
	"time"

	"redlockctl/internal/audit"
	"redlockctl/internal/view"
	"redlockctl/tui/input"
	"redlockctl/tui/styles"
)

// auditPage shows the audit log, the newest first, and whether its chain is intact.
type auditPage struct {
	*Screen
	table[audit.Entry, string]
	choice[*audit.Entry]
	log      *view.AuditLog // nil: not read yet
	all      []audit.Entry  // one per action
	detailed bool
}

func newAuditPage(s *Screen) *auditPage {
	m := &auditPage{Screen: s, choice: newChoice(&view.AuditLanguage)}
	m.table = newTable(Layout{Of: "audit", usual: "time" + desc, tells: "phase"}, view.AuditColumns(),
		func(e audit.Entry) string { return e.ID + " " + e.Phase + " " + strconv.Itoa(e.Line) })
	m.floats, m.layout.changed = true, m.list
	return m
}

// Take shows a new read of the log.
func (p *auditPage) Take(log *view.AuditLog) {
	p.log, p.all = log, nil
	if log != nil {
		p.all = log.Acts()
	}
	p.apply()
}

// apply lists the rows that match the filter.
func (p *auditPage) apply() {
	var acts []audit.Entry
	for i := range p.all {
		if p.has(&p.all[i]) {
			acts = append(acts, p.all[i])
		}
	}
	p.set(acts)
}

// tick updates what depends only on time.
func (p *auditPage) tick(now time.Time) {
	if p.filter.Timed() {
		p.at = now
		p.apply()
	}
}

func (p *auditPage) FilterLine() *input.Line { return &p.line }
func (p *auditPage) FilterSource() string    { return p.source }
func (p *auditPage) FilterProblem() string   { return p.problem(p.St) }

func (p *auditPage) Filter(now time.Time) {
	p.choice.apply(now)
	p.apply()
}

func (p *auditPage) Found() (n, of int, ok bool) { return len(p.rows), len(p.all), p.log != nil }

func (p *auditPage) FilterOffers(line string) []string {
	return view.AuditLanguage.Offers(line, view.AuditValues(p.all))
}

func (p *auditPage) FilterLearn() func() Values { return nil }

func (p *auditPage) Place() Place { return Place{Kind: Audit} }
func (p *auditPage) Mode() Mode   { return ModeAudit }

func (p *auditPage) Detail() *bool {
	if p.wide() {
		return nil
	}
	return &p.detailed
}

func (p *auditPage) Selected() (s Selection) {
	if i := p.pos(); i >= 0 {
		s.Audit = &p.rows[i]
	}
	return s
}

func (p *auditPage) Lines(h int) []string {
	st, ctx := p.St, p.context()
	title := Pane{Title: "Audit " + view.Count(len(p.all)), Focused: true}
	if p.log == nil {
		return p.frame(title, []string{"", styles.Blanks(styles.Lead) + st.Dim.Of(st.Wait+" reading the audit log"+st.Ellipsis)}, h)
	}
	head := p.log.Integrity(ctx)
	title.More = st.Paint(head.Tone).Of(head.Sign + " " + head.Text)
	if p.on() {
		title.More = p.choice.title(st, len(p.rows)) + " " + st.Sep + " " + title.More
	}
	e := p.Selected().Audit
	if p.wide() && e != nil {
		return p.beside(p.listWidth(), h, func(h int) []string { return p.logged(title, nil, h) }, func(h int) []string {
			return p.frame(Pane{Title: ctx.Whole(e.Act) + " " + ctx.Whole(e.Target)}, p.facts(p.log.AuditFacts(ctx, e), p.In()), h)
		})
	}
	var dock []string
	if e != nil && p.detailed {
		facts := p.facts(p.log.AuditFacts(ctx, e), p.In())
		n := min(len(facts)+p.chrome(), max(0, h-p.chrome()-4))
		dock = p.frame(Pane{Title: ctx.Whole(e.Act) + " " + ctx.Whole(e.Target)}, facts, n)
	}
	return p.logged(title, dock, h)
}

// logged draws the log and what is below it in h lines.
func (p *auditPage) logged(title Pane, dock []string, h int) []string {
	st := p.St
	lines := p.lines(p.Screen, 1, h-p.chrome()-len(dock), p.cursor())
	title.Right = p.layout.listing(st)
	switch n := p.log.Older; {
	case len(p.rows) == 0 && p.on():
		lines = nothing(st, "line", cmp.Or(p.FilterProblem(), p.filter.Hint()), p.In())
	case len(p.rows) == 0:
		lines = []string{"", styles.Blanks(styles.Lead) + st.Dim.Of("nothing is logged")}
	case n > 0 && p.top+p.height == len(p.rows) && len(lines) < h-len(dock)-p.chrome():
		lines = append(lines, styles.Blanks(styles.Lead)+st.Dim.Of(view.Plural(n, "older line")+": redlockctl audit show"))
	}
	return append(p.frame(title, lines, h-len(dock)), dock...)
}
