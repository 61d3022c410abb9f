package page

import (
	"redlockctl/internal/view"
	"redlockctl/tui/input"
	"redlockctl/tui/styles"
)

// overview is the first page: the verdict, the masters, the locks by urgency, and the
// latest events or a detail.
type overview struct {
	*Screen
	Filtered // filters the locks
	locks    *lockPanel
	nodes    *nodePanel
	lock     *lockFacts
	node     *nodeFacts
	events   *eventTable
	latest   *latestEvents
	OnNodes  bool // the table of nodes has the focus
	OnEvents bool // the latest events have the focus
	detailed bool // what is under the cursor is shown below
	below    dock
}

func (o *overview) Place() Place { return Place{Kind: Overview} }

func (o *overview) Detail() *bool {
	if o.split() {
		return nil
	}
	return &o.detailed
}

// Scroll scrolls what is under the cursor in full.
func (o *overview) Scroll(pages int) bool { return o.below.Scroll(pages) }

// TurnFocus moves the focus from the locks to the nodes, to the events, and back.
func (o *overview) TurnFocus() { o.OnNodes, o.OnEvents = !o.OnNodes && !o.OnEvents, o.OnNodes }

// table returns the table with the focus.
func (o *overview) table() list {
	switch {
	case o.OnNodes:
		return o.nodes
	case o.OnEvents:
		return o.latest
	}
	return o.locks
}

// Layout returns the layout of the table with the focus; the latest events have none.
func (o *overview) Layout() *Layout {
	if t, ok := o.table().(Listed); ok {
		return t.Layout()
	}
	return nil
}

func (o *overview) Mode() Mode          { return o.table().Mode() }
func (o *overview) Move(d int)          { o.table().Move(d) }
func (o *overview) Rows() int           { return o.table().Rows() }
func (o *overview) Selected() Selection { return o.table().Selected() }

func (o *overview) Click(x, y int) (again bool) {
	before, under := o.table(), o.at(x, y)
	if under == nil {
		return false
	}
	o.OnNodes, o.OnEvents = under == o.nodes, under == o.latest
	switch under {
	case o.nodes:
		again = o.nodes.Click(x, y)
	case o.latest:
		again = o.latest.Click(x, y)
	default:
		again = o.locks.Click(x, y)
	}
	return again && under == before
}

// at returns the table with rows at a cell of the page; nil if none has.
func (o *overview) at(x, y int) list {
	in := func(s lineSpan) bool { _, ok := s.at(x, y); return ok }
	switch {
	case in(o.locks.span):
		return o.locks
	case in(o.nodes.span):
		return o.nodes
	case in(o.latest.span):
		return o.latest
	}
	return nil
}

func (o *overview) Wheel(x, y, d int) {
	switch under := o.at(x, y); {
	case under != nil:
		under.Move(d)
	case o.below.cut:
		o.below.Move(d)
	default:
		o.Move(d)
	}
}

func (o *overview) FilterLine() *input.Line {
	o.OnNodes, o.OnEvents = false, false
	return o.locks.FilterLine()
}

func (o *overview) Lines(h int) []string {
	o.below.cut = false
	var lines []string
	if spelt(o.H) {
		lines = o.verdict(view.Headlines(o.context()))
		if o.boxed() {
			lines = append([]string{""}, lines...)
		}
	}
	if o.split() {
		return append(lines, o.wideLines(len(lines), h-len(lines))...)
	}
	lines = append(lines, o.nodeLines(len(lines), h-len(lines))...)
	room, top := h-len(lines), len(lines)
	at := o.cursorOf(!o.OnNodes && !o.OnEvents)
	if o.detailed {
		o.latest.span = lineSpan{}
		const least = 3 + 4 // title, columns, rows
		most := room
		if !o.OnNodes && !o.OnEvents && room >= 2*least { // the list stays
			most = room - least
		}
		dock := o.dock(most)
		if n := eventRows(o.H); o.OnEvents && n+len(dock)+least <= room { // keep the detail visible
			dock = append(o.latest.lines(n, h-len(dock)-n, o.W, true), dock...)
		}
		if len(dock)+least > room {
			return append(lines, dock[:min(len(dock), room)]...)
		}
		lines = append(lines, o.locks.lines(top, room-len(dock), at)...)
		return append(lines, dock...)
	}
	n := eventRows(o.H)
	events := o.latest.lines(n, h-n, o.W, o.OnEvents && !o.Asking)
	if o.H >= 24 && !o.boxed() {
		events, n = o.frame(Pane{Title: "Events"}, events, n+1), n+1
	}
	lines = append(lines, o.locks.lines(top, room-n, at)...)
	return append(lines, events...)
}

// split reports whether what is under the cursor and the events are beside the lists: on a
// wide screen, unless all columns of the locks are asked for.
func (o *overview) split() bool { return o.wide() && !o.locks.Layout().Kept.Wide }

// wideLines draws the nodes and the locks, and beside them what is under the cursor and the
// events, in h lines from line top of the page on.
func (o *overview) wideLines(top, h int) []string {
	return o.beside(o.listWidth(), h, func(h int) []string {
		nodes := o.nodes.pane(top, o.nodeRows(h), o.cursorOf(o.OnNodes))
		at := o.cursorOf(!o.OnNodes && !o.OnEvents)
		return append(nodes, o.locks.lines(top+len(nodes), h-len(nodes), at)...)
	}, func(h int) []string {
		var lines []string
		if o.worthIt() {
			title, d := o.detail(12)
			n := min(len(d)+o.chrome(), h-max(o.chrome()+3, h/4))
			lines = o.frame(title, o.below.draw(o.St, o.Selected(), d, n-o.chrome()), n)
		}
		rest := h - len(lines)
		events := o.latest.lines(rest-o.chrome(), top+len(lines)+1, o.In(), o.OnEvents && !o.Asking)
		return append(lines, o.frame(Pane{Title: "Events", Focused: o.OnEvents}, events, rest)...)
	})
}

// worthIt reports whether what is under the cursor is shown in full without a key: not a
// healthy lock that is only the first in the list for the moment.
func (o *overview) worthIt() bool {
	l := o.Selected().Lock
	return l == nil || o.locks.locks.Chosen || view.Needs(l.State) > 0
}

// eventRows returns how many events a screen of h lines shows.
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

// dock draws the detail at the foot of the overview in at most h lines.
func (o *overview) dock(h int) []string {
	if o.Selected().Event != nil {
		h = max(h/2, o.chrome()+3)
	}
	title, d := o.detail(3)
	if len(d)+o.chrome() > h {
		d = styles.DropBlank(d)
	}
	h = min(h, len(d)+o.chrome())
	return o.frame(title, o.below.draw(o.St, o.Selected(), d, h-o.chrome()), h)
}

// detail draws what is under the cursor in full, with at most n of its events.
func (o *overview) detail(n int) (title Pane, lines []string) {
	switch s := o.Selected(); {
	case s.Node != nil:
		title.Title, lines = o.node.pane(s.Node, n, true)
	case s.Event != nil:
		title.Title, lines = o.latest.eventView.full(s.Event, o.events.All, o.In())
	case s.Lock != nil:
		title, lines = o.lock.pane(s.Lock, n)
	default:
		title.Title, lines = "Detail", []string{o.St.Dim.Of(" nothing under the cursor")}
	}
	return title, lines
}

// cursorOf returns how a table draws its cursor.
func (o *overview) cursorOf(focused bool) cursorState {
	if !focused {
		return cursorAway
	}
	return o.cursor()
}

// nodeLines draws the table of nodes, or one line for all of them on a small screen.
func (o *overview) nodeLines(top, room int) []string {
	at := o.cursorOf(o.OnNodes)
	if o.W < 76 || o.H < 20 || o.detailed && !o.OnNodes && !o.boxed() {
		o.nodes.span = lineSpan{}
		return []string{o.nodes.strip(o.Screen, at != cursorAway)}
	}
	return o.nodes.pane(top, o.nodeRows(room), at)
}

// nodeRows returns in how many lines of h the nodes are listed: of many only those that a
// person should look at, and a line that counts the others.
func (o *overview) nodeRows(h int) int {
	n := len(o.nodes.rows)
	if n > mostAsConfigured {
		n = min(n, max(3, o.nodes.needy(o.context())+1))
	}
	return min(n, max(3, h/3))
}
