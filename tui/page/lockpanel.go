package page

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
	*Screen
	locks    *lockTable
	lockView *lockView
	marks    Marks
	height   int      // rows in the last frame
	span     lineSpan // of its rows
}

func (m *lockPanel) Mode() Mode { return ModeLocks }
func (m *lockPanel) Move(d int) { m.locks.Move(d) }
func (m *lockPanel) Rows() int  { return max(1, m.height-1) }

func (m *lockPanel) Layout() *Layout { return &m.lockView.layout }

func (m *lockPanel) Selected() Selection { return Selection{Lock: m.locks.Selected()} }

// Click puts the cursor on the lock in a line of the page.
func (m *lockPanel) Click(x, y int) (again bool) {
	i, ok := m.span.at(x, y)
	if !ok || m.locks.top+i >= m.locks.Len() {
		return false
	}
	again = m.locks.Pos == m.locks.top+i
	m.locks.Chosen = true
	m.locks.place(m.locks.top + i)
	return again
}

func (m *lockPanel) FilterLine() *input.Line { return &m.locks.line }
func (m *lockPanel) FilterSource() string    { return m.locks.Source }

func (m *lockPanel) Filter(now time.Time) {
	s := strings.TrimSpace(m.locks.line.String())
	m.locks.setFilter(monitor.ParseFilter(s).At(now), s)
}

func (m *lockPanel) FilterProblem() string {
	return problem(m.St, m.locks.filter.Check(m.Shown.Nodes))
}

func (m *lockPanel) FilterOffers(line string) []string {
	return monitor.FilterOffers(line, m.locks.values.of)
}

func (m *lockPanel) FilterLearn() func() Values { return m.locks.learn() }

func (m *lockPanel) Found() (n, of int, ok bool) {
	return m.locks.Len(), m.Shown.Locks.Len(), !m.locks.Stale
}

// lines are the title, columns and rows in h lines; the first of them is line top
// of the page.
func (m *lockPanel) lines(top, h int, at cursorState) []string {
	m.lockView.arrange(m.In(), m.Shown.Nodes)
	lines := []string{m.lockView.grid.header(at != cursorAway)}
	m.height = max(0, h-len(lines)-m.chrome())
	rows := m.lockView.rows(m.locks, m.height, m.context(), at, m.marks)
	m.span = m.rowsAt(top+2, len(rows))
	if len(rows) == 0 {
		why := "no locks"
		rows = nil
		switch {
		case m.locks.Stale:
			why = "looking" + m.St.Ellipsis
		case !m.locks.filter.Empty() && m.Shown.Locks.Len() > 0:
			rows = nothing(m.St, "lock", m.locks.filter.Hint(), m.In())
		case m.Shown.Unrecorded():
			why = "locks were not recorded then: " + monitor.AdviceRecordLocks
		case m.Shown.Cluster.Verdict == monitor.VerdictUnknown && m.Shown.Cluster.Serving < m.Shown.Cluster.N:
			why = "waiting for the first look at the nodes" + m.St.Ellipsis
		case !m.Shown.Complete:
			why = "no locks among the keys that have been read"
		}
		if rows == nil {
			rows = []string{styles.Blanks(styles.Lead) + m.St.Dim.Of(why)}
		}
	}
	return m.frame(m.title(at != cursorAway), append(lines, rows...), h)
}

// title counts the locks by state and says what is listed and how.
func (m *lockPanel) title(focused bool) Pane {
	st := m.St
	var parts []string
	// Those that are well first, then what needs a person most.
	counts := m.Shown.Counts
	for i := range counts {
		s := monitor.LockHeld
		if i > 0 {
			s = monitor.LockState(len(counts) - i)
		}
		if n := counts[s]; n > 0 {
			p := st.Paint(st.LockState(s).Tone)
			if view.Needs(s) == 0 {
				p = styles.Paint{}
			}
			parts = append(parts, p.Of(view.Count(n)+" "+s.String()))
		}
	}
	var chosen []string
	if n := len(m.marks); n > 0 {
		chosen = append(chosen, st.Info.Of(view.Count(n)+" marked"))
	}
	if m.locks.Source != "" {
		p, n := st.Info, view.Count(m.locks.Len())
		if m.FilterProblem() != "" {
			p = st.Bad
		}
		if m.locks.Stale {
			n = st.Ellipsis
		}
		chosen = append(chosen, p.Of("/"+st.Escape(m.locks.Source, 24))+" "+n)
	}
	p := Pane{Title: "Locks " + view.Count(m.Shown.Locks.Len()), Focused: focused}
	r, reading := m.Shown.Reading()
	if reading { // first of all: what follows is not all
		line := view.ReadingLine(&st.Glyphs, r, m.Shown, m.W-view.Width(p.Title)-titleChrome)
		chosen = append([]string{st.Info.Of(line)}, chosen...)
	}
	p.More = strings.Join(append(chosen, parts...), " "+st.Sep+" ")
	if m.Layout().Unusual() || !reading || m.W >= 100 {
		p.Right = m.Layout().told(st)
	}
	return p
}

// titleChrome is how many cells of a pane's first line stand around its title and what is
// beside it.
const titleChrome = 10
