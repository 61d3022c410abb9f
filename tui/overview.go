package tui

import (
	"fmt"
	"strings"
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/restartguard"
	"redlockctl/tui/input"
	"redlockctl/tui/styles"
)

// overview is the first page: the verdict, the masters, the locks that need a
// person first, and the latest events or a detail.
type overview struct {
	*screen
	locks    *lockPanel
	nodes    *nodePanel
	lock     *lockFacts
	node     *nodeFacts
	onNodes  bool // the table of nodes has the focus
	detailed bool // what is under the cursor is shown below
}

func (m *overview) place() place  { return place{kind: viewOverview} }
func (m *overview) detail() *bool { return &m.detailed }
func (m *overview) turnFocus()    { m.onNodes = !m.onNodes }

// table is the one that has the focus.
func (m *overview) table() interface {
	mode() mode
	move(d int)
	rows() int
	selected() selection
} {
	if m.onNodes {
		return m.nodes
	}
	return m.locks
}

func (m *overview) mode() mode          { return m.table().mode() }
func (m *overview) move(d int)          { m.table().move(d) }
func (m *overview) rows() int           { return m.table().rows() }
func (m *overview) selected() selection { return m.table().selected() }

func (m *overview) click(y int) (again bool) {
	before := m.onNodes
	if _, ok := m.locks.span.at(y); ok {
		m.onNodes = false
		return m.locks.click(y) && !before
	}
	if _, ok := m.nodes.span.at(y); ok {
		m.onNodes = true
		return m.nodes.click(y) && before
	}
	return false
}

func (m *overview) filterLine() *input.Line     { m.onNodes = false; return m.locks.filterLine() }
func (m *overview) filter(now time.Time)        { m.locks.filter(now) }
func (m *overview) filterSource() string        { return m.locks.filterSource() }
func (m *overview) filterProblem() string       { return m.locks.filterProblem() }
func (m *overview) found() (n, of int, ok bool) { return m.locks.found() }

func (m *overview) lines(h int) []string {
	roomy := m.h >= 20
	var lines []string
	if spelt(m.h) {
		for _, l := range m.verdict(m.now) {
			lines = append(lines, " "+l)
		}
	}
	lines = append(lines, m.nodeLines(len(lines), h-len(lines), roomy)...)
	room, top := h-len(lines), len(lines)
	at := m.cursorOf(!m.onNodes)
	if m.asking {
		return append(lines, m.locks.lines(top, room, at)...)
	}
	if m.detailed {
		dock := m.dock(room)
		const least = 2 + 4 // title, columns, rows
		if len(dock)+1+least > room {
			return append(lines, dock...)
		}
		lines = append(lines, m.locks.lines(top, room-len(dock)-1, at)...)
		lines = append(lines, m.st.Ruler(m.w))
		return append(lines, dock...)
	}
	space := 0
	if roomy {
		space = 1
	}
	n := eventRows(m.h)
	lines = append(lines, m.locks.lines(top, room-n-space, at)...)
	if roomy {
		lines = append(lines, "")
	}
	return append(lines, m.lock.eventView.rows(m.shown.Events, n, m.w)...)
}

// spelt tells if a screen of h lines has one for the verdict in words.
func spelt(h int) bool { return h >= 24 }

// verdict is the state of the cluster as a sentence, in two lines where it does
// not fit one.
func (m *overview) verdict(now time.Time) []string {
	st, c := m.st, &m.shown.Cluster
	glyph, word, p := st.Verdict(m.shown)
	word = strings.ToLower(word)
	losses := func() string {
		switch n := c.CanLose + 1; {
		case n <= 1:
			return "one more loss stops all locks"
		default:
			return fmt.Sprintf("any %d more losses stop all locks", n)
		}
	}
	var text string
	switch c.Verdict {
	case monitor.VerdictSafe:
		text = fmt.Sprintf("%s: all %d masters serve; %s", word, c.N, strings.Replace(losses(), "more ", "", 1))
	case monitor.VerdictUnprotected:
		text = fmt.Sprintf("%s: %d of %d masters serve; %s; %s", word, c.Serving, c.N, st.Sentence(c.Missing, 300), losses())
	case monitor.VerdictDegraded, monitor.VerdictDanger:
		text = word + ": " + (&header{st}).reason(m.shown, now, &m.drawn, true) + "; " + losses()
	case monitor.VerdictUnavailable:
		text = word
		o := restartguard.OutlookOf(m.drawn.list, c.N, c.Quorum)
		if len(m.drawn.list) > 0 && !o.Possible() {
			if !o.Until.IsZero() {
				text += " until " + view.Clock(o.Until)
			}
			text += ": " + strings.TrimPrefix(st.Whole(o.Text(now)), "NOTHING CAN BE LOCKED: ")
			break
		}
		text += ": " + (&header{st}).reason(m.shown, now, &m.drawn, true) + fmt.Sprintf("; nothing can be locked: %d of %d accept writes, a quorum is %d", c.Serving, c.N, c.Quorum)
	default:
		text = "looking"
		if c.Reason != "" {
			text += ": " + st.Sentence(c.Reason, 300)
		}
		text += st.Ellipsis
	}
	if n := len(m.shown.Findings); n > 0 && view.Width(text)+30 < m.w {
		text += "; " + view.Plural(n, "finding") + " (5)"
	}
	lines := styles.Wrap(glyph+" "+text, m.w-2, 2)
	if len(lines) > 2 {
		lines = []string{lines[0], st.Cut(styles.Blanks(2)+strings.TrimLeft(strings.TrimPrefix(glyph+" "+text, lines[0]), " "), m.w-2)}
	}
	for i := range lines {
		lines[i] = p.Of(lines[i])
	}
	return lines
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

// dock is the detail at the foot of the overview.
func (m *overview) dock(h int) []string {
	var d []string
	switch s := m.selected(); {
	case s.node != nil:
		d = m.node.lines(s.node, m.w, 3)
	case s.lock != nil:
		d = m.lock.lines(s.lock, m.w, 3)
	case m.onNodes:
		d = []string{m.st.Dim.Of(" no node under the cursor")}
	default:
		d = []string{m.st.Dim.Of(" no lock under the cursor")}
	}
	if len(d) > h {
		d = styles.DropBlank(d)
	}
	return d[:min(len(d), h)]
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
func (m *overview) nodeLines(top, room int, roomy bool) []string {
	at := m.cursorOf(m.onNodes)
	if m.w < 76 || m.h < 20 {
		return []string{m.nodes.nodeView.strip(m.nodes.nodes, m.w, m.now, &m.drawn, at != cursorAway)}
	}
	lines := m.nodes.lines(top, min(len(m.nodes.nodes.nodes), max(3, room/3)), at)
	if roomy {
		lines = append(lines, "")
	}
	return lines
}
