package page

import (
	"time"

	"redlockctl/internal/view"
	"redlockctl/tui/input"
	"redlockctl/tui/styles"
)

// eventsPage is the events, newest first, and the one under the cursor in full
// where it was asked for.
type eventsPage struct {
	*Screen
	events    *eventTable
	eventView eventView
	detailed  bool
}

func (m *eventsPage) Place() Place        { return Place{Kind: Events} }
func (m *eventsPage) Mode() Mode          { return ModeEvents }
func (m *eventsPage) Detail() *bool       { return &m.detailed }
func (m *eventsPage) Layout() *Layout     { return m.events.table.Layout() }
func (m *eventsPage) Move(d int)          { m.events.List().Move(d) }
func (m *eventsPage) Rows() int           { return m.events.table.Rows() }
func (m *eventsPage) Selected() Selection { return Selection{Event: m.events.Selected()} }

func (m *eventsPage) Click(x, y int) bool {
	m.events.List().Click(x, y)
	return false
}

func (m *eventsPage) FilterLine() *input.Line { return &m.events.line }
func (m *eventsPage) Filter(now time.Time)    { m.events.setFilter(now) }
func (m *eventsPage) FilterSource() string    { return m.events.source }
func (m *eventsPage) FilterProblem() string   { return m.events.problem(m.St) }

func (m *eventsPage) FilterOffers(line string) []string {
	return view.EventLanguage.Offers(line, view.EventValues(m.events.All, m.Shown.Nodes))
}

func (m *eventsPage) FilterLearn() func() Values { return nil }

func (m *eventsPage) Found() (n, of int, ok bool) {
	return len(m.events.List().rows), len(m.events.All), true
}

func (m *eventsPage) Lines(h int) []string {
	e := m.events.Selected()
	if !m.detailed || e == nil {
		return m.list(h)
	}
	if m.wide() {
		return m.beside(m.W*11/20, h, m.list, func(h int) []string {
			title, d := m.eventView.full(e, m.events.All, m.In())
			return m.frame(Pane{Title: title}, d, h)
		})
	}
	title, d := m.eventView.full(e, m.events.All, m.In())
	dock := min(len(d)+m.chrome(), h/2)
	return append(m.list(h-dock), m.frame(Pane{Title: title}, d, dock)...)
}

// list is the events in h lines.
func (m *eventsPage) list(h int) []string {
	st, t := m.St, m.events.List()
	lines := t.lines(m.Screen, 1, h-m.chrome(), m.cursor())
	title := Pane{Title: "Events " + view.Count(len(m.events.All)), Right: t.layout.told(st), Focused: true}
	if m.events.on() {
		title.More = m.events.title(st, len(t.rows))
	}
	if m.events.Follows() {
		title.Right = st.Good.Of(st.Points + " following")
	} else if m.events.WhyNoFollow() == "" {
		title.Right += st.Dim.Of(" " + st.Sep + " f: follow")
	}
	switch {
	case len(t.rows) == 0 && m.events.on():
		lines = nothing(st, "event", m.events.filter.Hint(), m.In())
	case len(t.rows) == 0:
		lines = []string{styles.Blanks(styles.Lead) + st.Dim.Of("nothing has happened yet")}
	}
	return m.frame(title, lines, h)
}
