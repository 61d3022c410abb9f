package tui

import (
	"strings"
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/input"
	"redlockctl/tui/styles"
)

// lockPanel is the table of the locks on a page.
type lockPanel struct {
	*screen
	locks    *lockTable
	lockView *lockView
	marks    marks
	height   int      // rows in the last frame
	span     lineSpan // of its rows
}

func (m *lockPanel) mode() mode { return modeLocks }
func (m *lockPanel) move(d int) { m.locks.move(d) }
func (m *lockPanel) rows() int  { return max(1, m.height-1) }

func (m *lockPanel) selected() selection { return selection{lock: m.locks.selected()} }

// click puts the cursor on the lock in a line of the page.
func (m *lockPanel) click(y int) (again bool) {
	i, ok := m.span.at(y)
	if !ok || m.locks.top+i >= m.locks.len() {
		return false
	}
	again = m.locks.pos == m.locks.top+i
	m.locks.chosen = true
	m.locks.place(m.locks.top + i)
	return again
}

func (m *lockPanel) filterLine() *input.Line { return &m.locks.line }
func (m *lockPanel) filterSource() string    { return m.locks.source }

func (m *lockPanel) filter(now time.Time) {
	s := m.locks.line.String()
	m.locks.setFilter(monitor.ParseFilter(s).At(now), s)
}

func (m *lockPanel) filterProblem() string {
	err := m.locks.filter.Check(m.shown.Nodes)
	if err == nil {
		return ""
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return m.st.Whole(strings.TrimPrefix(first, monitor.ErrFilter.Error()+": "))
}

func (m *lockPanel) found() (n, of int, ok bool) {
	return m.locks.len(), m.shown.Locks.Len(), !m.locks.stale
}

// lines are the title, columns and rows in h lines; the first of them is line top
// of the page.
func (m *lockPanel) lines(top, h int, at cursorState) []string {
	m.lockView.arrange(m.w, m.shown.Nodes)
	lines := []string{m.title(), m.lockView.header(m.shown.Nodes, at != cursorAway)}
	m.height = max(0, h-len(lines))
	rows := m.lockView.rows(m.locks, m.height, m.now, m.shown.Cluster.Quorum, at, m.isMine, m.marks)
	m.span = lineSpan{top + 2, len(rows)}
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

// title counts the locks by state and says what is listed and how.
func (m *lockPanel) title() string {
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

// locksPage is the table of the locks alone.
type locksPage struct{ *lockPanel }

func (m *locksPage) place() place         { return place{kind: viewLocks} }
func (m *locksPage) lines(h int) []string { return m.lockPanel.lines(0, h, m.cursor()) }
