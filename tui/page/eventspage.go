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
	height    int
	span      lineSpan // of its rows
	detailed  bool
}

func (m *eventsPage) Place() Place        { return Place{Kind: Events} }
func (m *eventsPage) Mode() Mode          { return ModeEvents }
func (m *eventsPage) Detail() *bool       { return &m.detailed }
func (m *eventsPage) Move(d int)          { m.events.move(d) }
func (m *eventsPage) Rows() int           { return max(1, m.height-1) }
func (m *eventsPage) Selected() Selection { return Selection{Event: m.events.Selected()} }

func (m *eventsPage) Click(x, y int) bool {
	if i, ok := m.span.at(x, y); ok {
		m.events.goTo(m.events.top + i)
	}
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
	return len(m.events.List()), len(m.events.All), true
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
	st, t, w := m.St, m.events, m.In()
	list := t.List()
	title := Pane{Title: "Events " + view.Count(len(t.All)), More: st.Dim.Of("newest first"), Focused: true, Right: st.Dim.Of("f: follow")}
	if t.on() {
		title.More = t.title(st, len(list))
	}
	if t.Follow {
		title.Right = st.Good.Of(st.Points + " following")
	}
	room := max(0, h-m.chrome())
	m.height = room
	m.span = m.rowsAt(1, 0)
	pos := max(0, t.pos())
	if t.Follow {
		t.top = pos
	}
	t.top = scrollTo(t.top, pos, len(list), room)
	var lines []string
	for i := t.top; i < min(len(list), t.top+room); i++ {
		line := m.eventView.row(&t.All[list[i]], w-2, true)
		if i == pos {
			line = "  " + st.Pad(styles.Bare(line), w-2)
			line = st.Cursor.Of(" " + st.Pointer + line[2:])
		} else {
			line = "  " + line
		}
		lines = append(lines, line)
		m.span.n++
	}
	switch {
	case len(list) == 0 && t.on():
		lines = nothing(st, "event", t.filter.Hint(), w)
	case len(list) == 0:
		lines = append(lines, styles.Blanks(styles.Lead)+st.Dim.Of("nothing has happened yet"))
	}
	return m.frame(title, lines, h)
}
