package page

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
	*Screen
	locks    *lockPanel
	nodes    *nodePanel
	lock     *lockFacts
	node     *nodeFacts
	OnNodes  bool // the table of nodes has the focus
	detailed bool // what is under the cursor is shown below
}

func (m *overview) Place() Place  { return Place{Kind: Overview} }
func (m *overview) Detail() *bool { return &m.detailed }
func (m *overview) TurnFocus()    { m.OnNodes = !m.OnNodes }

// table is the one that has the focus.
func (m *overview) table() list {
	if m.OnNodes {
		return m.nodes
	}
	return m.locks
}

func (m *overview) Mode() Mode          { return m.table().Mode() }
func (m *overview) Move(d int)          { m.table().Move(d) }
func (m *overview) Rows() int           { return m.table().Rows() }
func (m *overview) Selected() Selection { return m.table().Selected() }

func (m *overview) Click(y int) (again bool) {
	before := m.OnNodes
	if _, ok := m.locks.span.at(y); ok {
		m.OnNodes = false
		return m.locks.Click(y) && !before
	}
	if _, ok := m.nodes.span.at(y); ok {
		m.OnNodes = true
		return m.nodes.Click(y) && before
	}
	return false
}

func (m *overview) FilterLine() *input.Line     { m.OnNodes = false; return m.locks.FilterLine() }
func (m *overview) Filter(now time.Time)        { m.locks.Filter(now) }
func (m *overview) FilterSource() string        { return m.locks.FilterSource() }
func (m *overview) FilterProblem() string       { return m.locks.FilterProblem() }
func (m *overview) Found() (n, of int, ok bool) { return m.locks.Found() }

func (m *overview) Lines(h int) []string {
	roomy := m.H >= 20
	var lines []string
	if spelt(m.H) {
		for _, l := range m.verdict(m.Now) {
			lines = append(lines, " "+l)
		}
	}
	lines = append(lines, m.nodeLines(len(lines), h-len(lines), roomy)...)
	room, top := h-len(lines), len(lines)
	at := m.cursorOf(!m.OnNodes)
	if m.Asking {
		return append(lines, m.locks.lines(top, room, at)...)
	}
	if m.detailed {
		dock := m.dock(room)
		const least = 2 + 4 // title, columns, rows
		if len(dock)+1+least > room {
			return append(lines, dock...)
		}
		lines = append(lines, m.locks.lines(top, room-len(dock)-1, at)...)
		lines = append(lines, m.St.Ruler(m.W))
		return append(lines, dock...)
	}
	space := 0
	if roomy {
		space = 1
	}
	n := eventRows(m.H)
	lines = append(lines, m.locks.lines(top, room-n-space, at)...)
	if roomy {
		lines = append(lines, "")
	}
	return append(lines, m.lock.eventView.rows(m.Shown.Events, n, m.W)...)
}

// spelt reports whether a screen of h lines has one for the verdict in words.
func spelt(h int) bool { return h >= 24 }

// verdict is the state of the cluster as a sentence, in two lines where it does
// not fit one.
func (m *overview) verdict(now time.Time) []string {
	st, c := m.St, &m.Shown.Cluster
	glyph, word, p := st.Verdict(m.Shown)
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
		text = word + ": " + (&header{st}).reason(m.Shown, now, &m.drawn, true) + "; " + losses()
	case monitor.VerdictUnavailable:
		text = word
		o := restartguard.OutlookOf(m.drawn.List, c.N, c.Quorum)
		if len(m.drawn.List) > 0 && !o.Possible() {
			if !o.Until.IsZero() {
				text += " until " + view.Clock(o.Until)
			}
			text += ": " + strings.TrimPrefix(st.Whole(o.Text(now)), "NOTHING CAN BE LOCKED: ")
			break
		}
		text += ": " + (&header{st}).reason(m.Shown, now, &m.drawn, true) + fmt.Sprintf("; nothing can be locked: %d of %d accept writes, a quorum is %d", c.Serving, c.N, c.Quorum)
	default:
		text = "looking"
		if c.Reason != "" {
			text += ": " + st.Sentence(c.Reason, 300)
		}
		text += st.Ellipsis
	}
	if n := len(m.Shown.Findings); n > 0 && view.Width(text)+30 < m.W {
		text += "; " + view.Plural(n, "finding") + " (5)"
	}
	lines := styles.Wrap(glyph+" "+text, m.W-2, 2)
	if len(lines) > 2 {
		lines = []string{lines[0], st.Cut(styles.Blanks(2)+strings.TrimLeft(strings.TrimPrefix(glyph+" "+text, lines[0]), " "), m.W-2)}
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
	switch s := m.Selected(); {
	case s.Node != nil:
		d = m.node.lines(s.Node, m.W, 3)
	case s.Lock != nil:
		d = m.lock.lines(s.Lock, m.W, 3)
	case m.OnNodes:
		d = []string{m.St.Dim.Of(" no node under the cursor")}
	default:
		d = []string{m.St.Dim.Of(" no lock under the cursor")}
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
	at := m.cursorOf(m.OnNodes)
	if m.W < 76 || m.H < 20 {
		return []string{m.nodes.nodes.strip(m.Screen, at != cursorAway)}
	}
	lines := m.nodes.lines(top, min(len(m.nodes.nodes.nodes), max(3, room/3)), at)
	if roomy {
		lines = append(lines, "")
	}
	return lines
}
