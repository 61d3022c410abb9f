package page

import (
	"strings"

	"redlockctl/monitor"
)

// latestEvents has the events at the foot of the overview, and the cursor in them.
type latestEvents struct {
	*Screen
	eventView eventView
	seq       uint64 // of the event under the cursor; 0: the newest
	rows      int    // number of rows drawn last
	span      lineSpan
}

func (l *latestEvents) picked() []*monitor.Event {
	return l.eventView.latest(l.Shown.Events, max(1, l.rows))
}

// pos returns the place of the cursor: the first event that is not newer than its own.
func (l *latestEvents) pos(all []*monitor.Event) int {
	for i, e := range all {
		if l.seq == 0 || e.Seq <= l.seq {
			return i
		}
	}
	return len(all) - 1
}

func (l *latestEvents) Mode() Mode { return ModeEvents }
func (l *latestEvents) Rows() int  { return max(1, l.rows) }

func (l *latestEvents) Move(d int) {
	all := l.picked()
	l.goTo(all, max(0, l.pos(all))+d)
}

// goTo puts the cursor on a place; on the first one it follows the newest event.
func (l *latestEvents) goTo(all []*monitor.Event, i int) {
	if l.seq = 0; i > 0 && len(all) > 0 {
		l.seq = all[min(i, len(all)-1)].Seq
	}
}

func (l *latestEvents) Selected() Selection {
	all := l.picked()
	if i := l.pos(all); i >= 0 {
		return Selection{Event: all[i]}
	}
	return Selection{}
}

func (l *latestEvents) Click(x, y int) (again bool) {
	i, ok := l.span.at(x, y)
	if !ok {
		return false
	}
	all := l.picked()
	again = l.pos(all) == i
	l.goTo(all, i)
	return again
}

// lines draws n events in w cells from line top of the page on.
func (l *latestEvents) lines(n, top, w int, focused bool) (out []string) {
	l.rows = n
	all := l.picked()
	l.span = l.rowsAt(top, len(all))
	if len(all) == 0 && n > 0 {
		why := "nothing here that needs you; 4 has all events"
		if l.Shown.InGap() {
			why = monitor.NothingRecorded
		}
		return []string{" " + l.St.Dim.Of(l.St.Cut(why, w-2))}
	}
	for i, e := range all {
		line := l.eventView.row(e, w, true)
		if focused && i == l.pos(all) {
			line = l.St.Selected(l.St.Pointer, strings.Replace(l.St.Pad(line, w), " ", "", 1))
		}
		out = append(out, line)
	}
	return out
}
