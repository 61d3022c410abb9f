package page

import (
	"redlockctl/monitor"
	"redlockctl/tui/styles"
)

// latestEvents are the events at the foot of the overview, and which one is under the
// cursor.
type latestEvents struct {
	*Screen
	eventView eventView
	seq       uint64 // of the one under the cursor; 0: the newest
	rows      int    // how many there were when they were drawn
	span      lineSpan
}

func (m *latestEvents) picked() []*monitor.Event {
	return m.eventView.latest(m.Shown.Events, max(1, m.rows))
}

// pos is the place of the cursor: the first that is no newer than what it was on.
func (m *latestEvents) pos(all []*monitor.Event) int {
	for i, e := range all {
		if m.seq == 0 || e.Seq <= m.seq {
			return i
		}
	}
	return len(all) - 1
}

func (m *latestEvents) Mode() Mode { return ModeEvents }
func (m *latestEvents) Rows() int  { return max(1, m.rows) }

func (m *latestEvents) Move(d int) {
	all := m.picked()
	m.goTo(all, max(0, m.pos(all))+d)
}

// goTo puts the cursor on a place; on the first it stays on the newest.
func (m *latestEvents) goTo(all []*monitor.Event, i int) {
	if m.seq = 0; i > 0 && len(all) > 0 {
		m.seq = all[min(i, len(all)-1)].Seq
	}
}

func (m *latestEvents) Selected() Selection {
	all := m.picked()
	if i := m.pos(all); i >= 0 {
		return Selection{Event: all[i]}
	}
	return Selection{}
}

func (m *latestEvents) Click(x, y int) (again bool) {
	i, ok := m.span.at(x, y)
	if !ok {
		return false
	}
	all := m.picked()
	again = m.pos(all) == i
	m.goTo(all, i)
	return again
}

// lines draws n of them in w cells; the first is line top of the page.
func (m *latestEvents) lines(n, top, w int, focused bool) (out []string) {
	m.rows = n
	all := m.picked()
	m.span = m.rowsAt(top, len(all))
	for i, e := range all {
		line := m.eventView.row(e, w, true)
		if focused && i == m.pos(all) {
			line = m.St.Cursor.Of(m.St.Pointer + m.St.Pad(styles.Bare(line), w)[1:])
		}
		out = append(out, line)
	}
	return out
}
