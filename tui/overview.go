package tui

import (
	"fmt"
	"strings"
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/restartguard"
	"redlockctl/tui/styles"
)

// overview is the first page: the verdict, the masters, the locks that need a
// person first, and the latest events or a detail.
func (m *model) overview(h int, now time.Time) []string {
	roomy := m.h >= 20
	var lines []string
	if m.spelt() {
		for _, l := range m.verdict(now) {
			lines = append(lines, " "+l)
		}
	}
	m.hits.nodes = lineSpan{m.hits.base + len(lines), 0}
	lines = append(lines, m.nodeLines(h-len(lines), roomy, now)...)
	room := h - len(lines)
	if m.detail && m.dialog == nil {
		dock := m.dock(room)
		const least = 2 + 4 // title, columns, rows
		if len(dock)+1+least > room {
			return append(lines, dock...)
		}
		m.hits.locks.from = m.hits.base + len(lines) + 2
		lines = append(lines, m.lockLines(room-len(dock)-1, now)...)
		lines = append(lines, m.ruler())
		return append(lines, dock...)
	}
	m.hits.locks.from = m.hits.base + len(lines) + 2
	if m.dialog != nil {
		return append(lines, m.lockLines(room, now)...)
	}
	space := 0
	if roomy {
		space = 1
	}
	n := eventRows(m.h)
	lines = append(lines, m.lockLines(room-n-space, now)...)
	if roomy {
		lines = append(lines, "")
	}
	return append(lines, m.eventView.rows(m.shown.Events, n, m.w)...)
}

// spelt tells if the page has a line for the verdict.
func (m *model) spelt() bool { return m.at.view == viewOverview && m.h >= 24 }

// verdict is the state of the cluster as a sentence, in two lines where it does
// not fit one.
func (m *model) verdict(now time.Time) []string {
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
		text = word + ": " + m.header.reason(m.shown, now, &m.drawn, true) + "; " + losses()
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
		text += ": " + m.header.reason(m.shown, now, &m.drawn, true) + fmt.Sprintf("; nothing can be locked: %d of %d accept writes, a quorum is %d", c.Serving, c.N, c.Quorum)
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
func (m *model) dock(h int) []string {
	var d []string
	if m.focus == focusNodes {
		d = m.nodeDetail(m.w)
	} else {
		d = m.lockDetail(m.w)
	}
	if len(d) > h {
		d = styles.DropBlank(d)
	}
	return d[:min(len(d), h)]
}

func (m *model) cursorOf(f focus) cursorState {
	switch {
	case m.at.view == viewOverview && m.focus != f:
		return cursorAway
	case m.dialog != nil:
		return cursorKept
	default:
		return cursorHere
	}
}

// nodeLines is the table of nodes, or one line for all of them on a small
// screen.
func (m *model) nodeLines(room int, roomy bool, now time.Time) []string {
	at := m.cursorOf(focusNodes)
	if m.w < 76 || m.h < 20 {
		return []string{m.nodeView.strip(&m.nodes, m.w, now, &m.drawn, at != cursorAway)}
	}
	rows := min(len(m.nodes.nodes), max(3, room/3))
	lines := m.nodeTableLines(rows, now, at)
	if roomy {
		lines = append(lines, "")
	}
	return lines
}

// nodeTableLines is the columns and rows of the node table.
func (m *model) nodeTableLines(rows int, now time.Time, at cursorState) []string {
	m.hits.nodes.from++
	lines := []string{m.nodeView.header(m.nodeView.arrange(m.w, m.nodes.nodes), at != cursorAway)}
	drawn := m.nodeView.rows(&m.nodes, rows, m.w, now, &m.drawn, at)
	m.hits.nodes.n = len(drawn)
	return append(lines, drawn...)
}

// lockLines is the title, columns and rows of the lock table in h lines.
func (m *model) lockLines(h int, now time.Time) []string {
	if m.at.view == viewLocks {
		m.hits.locks.from = m.hits.base + 2
	}
	at := m.cursorOf(focusLocks)
	m.lockView.arrange(m.w, m.shown.Nodes)
	lines := []string{m.lockTitle(), m.lockView.header(m.shown.Nodes, at != cursorAway)}
	m.lockRows = max(0, h-len(lines))
	rows := m.lockView.rows(&m.locks, m.lockRows, now, m.shown.Cluster.Quorum, at, m.isMine, m.marks)
	m.hits.locks.n = len(rows)
	if len(rows) == 0 {
		why := "no locks"
		switch {
		case m.locks.stale:
			why = "looking" + m.st.Ellipsis
		case !m.locks.filter.Empty() && m.shown.Locks.Len() > 0:
			why = "no lock matches the filter: esc clears it"
		case m.shown.Cluster.Verdict == monitor.VerdictUnknown && m.shown.Cluster.Serving < m.shown.Cluster.N:
			why = "waiting for the first look at the nodes" + m.st.Ellipsis
		}
		rows = []string{styles.Blanks(styles.Lead) + m.st.Dim.Of(why)}
	}
	return styles.Fill(append(lines, rows...), h)
}

// lockTitle counts the locks by state and says what is listed and how.
func (m *model) lockTitle() string {
	st := m.st
	left := " " + st.Title.Of("LOCKS "+view.Count(m.shown.Locks.Len()))
	var parts []string
	// Those that are well first, then what needs a person most.
	counts := m.shown.Counts
	for i := range counts {
		s := monitor.LockHeld
		if i > 0 {
			s = monitor.LockState(len(counts) - i)
		}
		if n := counts[s]; n > 0 {
			_, p := st.Lock(s)
			if need(s) == 0 {
				p = styles.Paint{}
			}
			parts = append(parts, p.Of(view.Count(n)+" "+s.String()))
		}
	}
	if len(parts) > 0 {
		left += "   " + strings.Join(parts, " "+st.Sep+" ")
	}
	long := st.Dim.Of("sort: " + m.locks.order.String())
	short := ""
	if m.locks.order != orderNeeds { // named wherever it is: it is remembered, and the usual one expected
		long = st.Info.Of("sort: " + m.locks.order.String())
		short = st.Info.Of("sort: "+m.locks.order.word()) + "  "
	}
	var right string
	if n := len(m.marks); n > 0 {
		right += st.Info.Of(view.Count(n)+" marked") + "  "
	}
	if m.locks.source != "" {
		p := st.Info
		if m.filterProblem() != "" {
			p = st.Bad
		}
		n := view.Count(m.locks.len())
		if m.locks.stale {
			n = st.Ellipsis
		}
		most := 24
		if short != "" {
			most = min(most, max(8, m.w-48))
		}
		right += p.Of("/"+st.Escape(m.locks.source, most)) + " " + n + "  "
	}
	long, right = right+long, right+short
	for _, r := range []string{long, right} {
		if n := m.w - view.Width(left) - view.Width(r) - 1; n >= 2 {
			return left + styles.Blanks(n) + r
		}
	}
	if right == "" {
		return st.Cut(left, m.w)
	}
	return st.Cut(st.Cut(left, max(12, m.w-view.Width(right)-2))+"  "+right, m.w)
}
