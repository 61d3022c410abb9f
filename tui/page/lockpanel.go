package page

import (
	"slices"
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

func (m *lockPanel) Selected() Selection { return Selection{Lock: m.locks.Selected()} }

// Click puts the cursor on the lock in a line of the page.
func (m *lockPanel) Click(y int) (again bool) {
	i, ok := m.span.at(y)
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
	s := m.locks.line.String()
	m.locks.setFilter(monitor.ParseFilter(s).At(now), s)
}

func (m *lockPanel) FilterProblem() string {
	err := m.locks.filter.Check(m.Shown.Nodes)
	if err == nil {
		return ""
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return m.St.Whole(strings.TrimPrefix(first, monitor.ErrFilter.Error()+": "))
}

func (m *lockPanel) Found() (n, of int, ok bool) {
	return m.locks.Len(), m.Shown.Locks.Len(), !m.locks.Stale
}

// lines are the title, columns and rows in h lines; the first of them is line top
// of the page.
func (m *lockPanel) lines(top, h int, at cursorState) []string {
	m.lockView.arrange(m.W, m.Shown.Nodes)
	lines := []string{m.title(), m.lockView.grid.header(at != cursorAway)}
	m.height = max(0, h-len(lines))
	rows := m.lockView.rows(m.locks, m.height, m.context(), at, m.marks)
	m.span = lineSpan{top + 2, len(rows)}
	if len(rows) == 0 {
		why := "no locks"
		switch {
		case m.locks.Stale:
			why = "looking" + m.St.Ellipsis
		case !m.locks.filter.Empty() && m.Shown.Locks.Len() > 0:
			why = "no lock matches the filter: esc clears it"
		case m.Shown.Cluster.Verdict == monitor.VerdictUnknown && m.Shown.Cluster.Serving < m.Shown.Cluster.N:
			why = "waiting for the first look at the nodes" + m.St.Ellipsis
		}
		rows = []string{styles.Blanks(styles.Lead) + m.St.Dim.Of(why)}
	}
	return styles.Fill(append(lines, rows...), h)
}

// title counts the locks by state and says what is listed and how.
func (m *lockPanel) title() string {
	st := m.St
	left := " " + st.Title.Of("LOCKS "+view.Count(m.Shown.Locks.Len()))
	var parts []string
	// Those that are well first, then what needs a person most.
	counts := m.Shown.Counts
	for i := range counts {
		s := monitor.LockHeld
		if i > 0 {
			s = monitor.LockState(len(counts) - i)
		}
		if n := counts[s]; n > 0 {
			_, p := st.Lock(s)
			if view.Needs(s) == 0 {
				p = styles.Paint{}
			}
			parts = append(parts, p.Of(view.Count(n)+" "+s.String()))
		}
	}
	if len(parts) > 0 {
		left += "   " + strings.Join(parts, " "+st.Sep+" ")
	}
	long := st.Dim.Of("sort: " + m.locks.Order.String())
	short := ""
	if m.locks.Order != OrderNeeds { // named wherever it is: it is remembered, and the usual one expected
		long = st.Info.Of("sort: " + m.locks.Order.String())
		short = st.Info.Of("sort: "+string(m.locks.Order)) + "  "
	}
	var right string
	if n := len(m.marks); n > 0 {
		right += st.Info.Of(view.Count(n)+" marked") + "  "
	}
	if m.locks.Source != "" {
		p := st.Info
		if m.FilterProblem() != "" {
			p = st.Bad
		}
		n := view.Count(m.locks.Len())
		if m.locks.Stale {
			n = st.Ellipsis
		}
		most := 24
		if short != "" {
			most = min(most, max(8, m.W-48))
		}
		right += p.Of("/"+st.Escape(m.locks.Source, most)) + " " + n + "  "
	}
	long, right = right+long, right+short
	for _, r := range []string{long, right} {
		if n := m.W - view.Width(left) - view.Width(r) - 1; n >= 2 {
			return left + styles.Blanks(n) + r
		}
	}
	if right == "" {
		return st.Cut(left, m.W)
	}
	return st.Cut(st.Cut(left, max(12, m.W-view.Width(right)-2))+"  "+right, m.W)
}

// locksPage is the table of the locks alone.
type locksPage struct{ *lockPanel }

func (m *locksPage) Place() Place         { return Place{Kind: Locks} }
func (m *locksPage) Lines(h int) []string { return m.lockPanel.lines(0, h, m.cursor()) }

// Marks are the keys of the locks that a person has marked, to act on several.
type Marks map[string]bool

// MostMarks bounds them: nobody reads the results of more.
const MostMarks = 1000

// Sorted are the marked keys in order.
func (k Marks) Sorted() []string {
	keys := make([]string, 0, len(k))
	for key := range k {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// keep forgets the marks of locks that are gone: one that comes again under the
// same name is another one.
func (k Marks) keep(locks monitor.Locks) {
	for key := range k {
		if locks.Get(key) == nil {
			delete(k, key)
		}
	}
}
