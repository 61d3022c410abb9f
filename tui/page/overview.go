package page

import (
	"redlockctl/internal/view"
	"redlockctl/tui/input"
	"redlockctl/tui/styles"
)

// overview is the first page: the verdict, the masters, the locks that need a
// person first, and the latest events or a detail.
type overview struct {
	*Screen
	Filtered // the locks are
	locks    *lockPanel
	nodes    *nodePanel
	lock     *lockFacts
	node     *nodeFacts
	events   *eventTable
	latest   *latestEvents
	OnNodes  bool // the table of nodes has the focus
	OnEvents bool // the latest events have it
	detailed bool // what is under the cursor is shown below
}

func (m *overview) Place() Place  { return Place{Kind: Overview} }
func (m *overview) Detail() *bool { return &m.detailed }

// TurnFocus is from the locks to the nodes, to the events, and back.
func (m *overview) TurnFocus() { m.OnNodes, m.OnEvents = !m.OnNodes && !m.OnEvents, m.OnNodes }

// table is the one that has the focus.
func (m *overview) table() list {
	switch {
	case m.OnNodes:
		return m.nodes
	case m.OnEvents:
		return m.latest
	}
	return m.locks
}

// Layout is that of the table with the focus; the latest events have none.
func (m *overview) Layout() *Layout {
	if t, ok := m.table().(Listed); ok {
		return t.Layout()
	}
	return nil
}

func (m *overview) Mode() Mode          { return m.table().Mode() }
func (m *overview) Move(d int)          { m.table().Move(d) }
func (m *overview) Rows() int           { return m.table().Rows() }
func (m *overview) Selected() Selection { return m.table().Selected() }

func (m *overview) Click(x, y int) (again bool) {
	before := m.table()
	in := func(s lineSpan) bool { _, ok := s.at(x, y); return ok }
	switch {
	case in(m.locks.span):
		m.OnNodes, m.OnEvents = false, false
		again = m.locks.Click(x, y)
	case in(m.nodes.span):
		m.OnNodes, m.OnEvents = true, false
		again = m.nodes.Click(x, y)
	case in(m.latest.span):
		m.OnNodes, m.OnEvents = false, true
		again = m.latest.Click(x, y)
	}
	return again && m.table() == before
}

func (m *overview) FilterLine() *input.Line {
	m.OnNodes, m.OnEvents = false, false
	return m.locks.FilterLine()
}

func (m *overview) Lines(h int) []string {
	var lines []string
	if spelt(m.H) {
		lines = m.verdict(view.Headlines(m.context()))
		if m.boxed() {
			lines = append([]string{""}, lines...)
		}
	}
	if m.wide() {
		return append(lines, m.wideLines(len(lines), h-len(lines))...)
	}
	lines = append(lines, m.nodeLines(len(lines), h-len(lines))...)
	room, top := h-len(lines), len(lines)
	at := m.cursorOf(!m.OnNodes && !m.OnEvents)
	if m.detailed {
		dock := m.dock(room)
		m.latest.span = lineSpan{}
		const least = 3 + 4                                               // title, columns, rows
		if n := eventRows(m.H); m.OnEvents && n+len(dock)+least <= room { // what is unfolded stays in sight
			dock = append(m.latest.lines(n, h-len(dock)-n, m.W, true), dock...)
		}
		if len(dock)+least > room {
			return append(lines, dock[:min(len(dock), room)]...)
		}
		lines = append(lines, m.locks.lines(top, room-len(dock), at)...)
		return append(lines, dock...)
	}
	n := eventRows(m.H)
	events := m.latest.lines(n, h-n, m.W, m.OnEvents && !m.Asking)
	if m.H >= 24 && !m.boxed() {
		events, n = m.frame(Pane{Title: "Events"}, events, n+1), n+1
	}
	lines = append(lines, m.locks.lines(top, room-n, at)...)
	return append(lines, events...)
}

// leastBand is how many lines the nodes and the events beside them have at least.
const leastBand = 8

// wideLines are the nodes beside the events, and the locks below, in h lines from line
// top of the page on; a detail stands beside the locks.
func (m *overview) wideLines(top, h int) []string {
	rows := min(len(m.nodes.rows), max(3, h/3))
	band := max(leastBand, rows+1+m.chrome())
	lines := m.beside(m.W*29/50, band,
		func(h int) []string {
			lines := m.nodes.lines(m.Screen, top+1, rows+1, m.cursorOf(m.OnNodes))
			return m.frame(m.nodes.title(m.OnNodes), lines, h)
		},
		func(h int) []string {
			events := m.latest.lines(h-m.chrome(), top+1, m.In(), m.OnEvents && !m.Asking)
			return m.frame(Pane{Title: "Events", Focused: m.OnEvents}, events, h)
		})
	top, h = top+band, h-band
	at := m.cursorOf(!m.OnNodes && !m.OnEvents)
	locks := func(h int) []string { return m.locks.lines(top, h, at) }
	if !m.detailed {
		return append(lines, locks(h)...)
	}
	return append(lines, m.beside(m.W*11/20, h, locks, func(h int) []string {
		title, d := m.detail(h)
		return m.frame(title, d, h)
	})...)
}

// eventRows is how many events a screen of h lines shows.
func eventRows(h int) int {
	switch {
	case h >= 50:
		return 10
	case h >= 40:
		return 7
	case h >= 30:
		return 5
	case h >= 24:
		return 3
	default:
		return 1
	}
}

// dock is the detail at the foot of the overview, of at most h lines.
func (m *overview) dock(h int) []string {
	if m.Selected().Event != nil {
		h = max(h/2, m.chrome()+3)
	}
	title, d := m.detail(3)
	if len(d)+m.chrome() > h {
		d = styles.DropBlank(d)
	}
	return m.frame(title, d, min(h, len(d)+m.chrome()))
}

// detail is what is under the cursor in full, with at most n events of it.
func (m *overview) detail(n int) (title Pane, lines []string) {
	switch s := m.Selected(); {
	case s.Node != nil:
		title.Title, lines = m.node.pane(s.Node, n)
	case s.Event != nil:
		title.Title, lines = m.latest.eventView.full(s.Event, m.events.All, m.In())
	case s.Lock != nil:
		title.Title, lines = m.lock.pane(s.Lock, n)
		title.Right = m.lock.ends(s.Lock)
	default:
		title.Title, lines = "Detail", []string{m.St.Dim.Of(" nothing under the cursor")}
	}
	return title, lines
}

// cursorOf is how a table draws its cursor.
func (m *overview) cursorOf(focused bool) cursorState {
	if !focused {
		return cursorAway
	}
	return m.cursor()
}

// nodeLines is the table of nodes, or one line for all of them on a small
// screen.
func (m *overview) nodeLines(top, room int) []string {
	at := m.cursorOf(m.OnNodes)
	if m.W < 76 || m.H < 20 {
		return []string{m.nodes.strip(m.Screen, at != cursorAway)}
	}
	return m.nodes.pane(top, min(len(m.nodes.rows), max(3, room/3)), at)
}
