package page

import (
	"cmp"
	"time"

	"redlockctl/internal/view"
	"redlockctl/tui/input"
	"redlockctl/tui/styles"
)

// eventsPage lists the events, newest first, and on request shows the one under the cursor
// in full.
type eventsPage struct {
	*Screen
	events    *eventTable
	eventView eventView
	detailed  bool
}

func (p *eventsPage) Place() Place        { return Place{Kind: Events} }
func (p *eventsPage) Mode() Mode          { return ModeEvents }
func (p *eventsPage) Layout() *Layout     { return p.events.table.Layout() }
func (p *eventsPage) Move(d int)          { p.events.List().Move(d) }
func (p *eventsPage) Rows() int           { return p.events.table.Rows() }
func (p *eventsPage) Selected() Selection { return Selection{Event: p.events.Selected()} }

func (p *eventsPage) Click(x, y int) (again bool) {
	return p.events.List().Click(x, y)
}

func (p *eventsPage) FilterLine() *input.Line { return &p.events.line }
func (p *eventsPage) FilterOpen()             { p.events.FilterOpen() }
func (p *eventsPage) Filter(now time.Time)    { p.events.setFilter(now) }
func (p *eventsPage) FilterSource() string    { return p.events.source }
func (p *eventsPage) FilterProblem() string   { return p.events.problem(p.St) }

func (p *eventsPage) FilterOffers(line string) []string {
	return view.EventLanguage.Offers(line, view.EventValues(p.events.All, p.Shown.Nodes))
}

func (p *eventsPage) FilterLearn() func() Values { return nil }

func (p *eventsPage) Found() (n, of int, ok bool) {
	return len(p.events.List().rows), len(p.events.All), true
}

func (p *eventsPage) Detail() *bool {
	if p.wide() {
		return nil
	}
	return &p.detailed
}

func (p *eventsPage) Lines(h int) []string {
	e := p.events.Selected()
	if e == nil || !p.detailed && !p.wide() {
		return p.list(h)
	}
	if p.wide() {
		return p.beside(p.listWidth(), h, p.list, func(h int) []string {
			title, d := p.eventView.full(e, p.events.All, p.In())
			return p.frame(Pane{Title: title}, d, h)
		})
	}
	title, d := p.eventView.full(e, p.events.All, p.In())
	dock := min(len(d)+p.chrome(), h/2)
	return append(p.list(h-dock), p.frame(Pane{Title: title}, d, dock)...)
}

// list draws the events in h lines.
func (p *eventsPage) list(h int) []string {
	st, t := p.St, p.events.List()
	lines := t.lines(p.Screen, 1, h-p.chrome(), p.cursor())
	title := Pane{Title: "Events " + view.Count(len(p.events.All)), Right: t.layout.listing(st), Focused: true}
	if p.events.on() {
		title.More = p.events.title(st, len(t.rows))
	}
	if p.events.Follows() {
		title.Right = st.Good.Of(st.Points + " following")
	} else if p.events.WhyNoFollow() == "" {
		if title.Right != "" {
			title.Right += " " + st.Sep + " "
		}
		title.Right += st.Dim.Of("f: follow")
	}
	switch {
	case len(t.rows) == 0 && p.events.on():
		lines = nothing(st, "event", cmp.Or(p.FilterProblem(), p.events.filter.Hint()), p.In())
	case len(t.rows) == 0:
		lines = []string{styles.Blanks(styles.Lead) + st.Dim.Of("nothing has happened yet: "+view.Plural(p.Shown.Cluster.N, "node is", "nodes are")+" watched, and all changes of locks")}
	}
	return p.frame(title, lines, h)
}
