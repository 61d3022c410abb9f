package page

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/input"
	"redlockctl/tui/styles"
)

// lockPanel draws the table of locks on a page.
type lockPanel struct {
	*Screen
	locks    *lockTable
	lockView *lockView
	marks    Marks
	height   int      // number of rows in the last frame
	span     lineSpan // position of the rows
}

func (l *lockPanel) begin()     { l.locks.top = 0 } // another page may have scrolled it
func (l *lockPanel) Mode() Mode { return ModeLocks }
func (l *lockPanel) Move(d int) { l.locks.Move(d) }
func (l *lockPanel) Rows() int  { return max(1, l.height-1) }

func (l *lockPanel) Layout() *Layout { return &l.lockView.layout }

func (l *lockPanel) Selected() Selection { return Selection{Lock: l.locks.Selected()} }

// Click puts the cursor on the lock at a line of the page.
func (l *lockPanel) Click(x, y int) (again bool) {
	i, ok := l.span.at(x, y)
	if !ok || l.locks.top+i >= l.locks.Len() {
		return false
	}
	again = l.locks.Pos == l.locks.top+i
	l.locks.choose()
	l.locks.place(l.locks.top + i)
	return again
}

func (l *lockPanel) FilterLine() *input.Line { return &l.locks.line }
func (l *lockPanel) FilterSource() string    { return l.locks.Source }

func (l *lockPanel) Filter(now time.Time) {
	s := strings.TrimSpace(l.locks.line.String())
	f := monitor.ParseFilter(s)
	if l.locks.wrong = f.Check(l.Shown.Nodes); l.locks.wrong != nil {
		s = l.locks.kept
		f = monitor.ParseFilter(s)
	}
	l.locks.setFilter(f.At(now), s)
}

func (l *lockPanel) FilterOpen()           { l.locks.kept = l.locks.Source }
func (l *lockPanel) FilterProblem() string { return problem(l.St, l.locks.wrong) }

func (l *lockPanel) FilterOffers(line string) []string {
	return monitor.FilterOffers(line, l.locks.values.of)
}

func (l *lockPanel) FilterLearn() func() Values { return l.locks.learn() }

func (l *lockPanel) Found() (n, of int, ok bool) {
	return l.locks.Len(), l.Shown.Locks.Len(), !l.locks.Stale
}

// lines draws title, columns and rows in h lines from line top of the page on.
func (l *lockPanel) lines(top, h int, at cursorState) []string {
	l.lockView.arrange(l.In(), l.Shown.Nodes)
	lines := []string{l.lockView.grid.header(at != cursorAway)}
	l.Layout().head, l.Layout().headings = l.headAt(top+1), l.lockView.grid.headings()
	l.height = max(0, h-len(lines)-l.chrome())
	rows := l.lockView.rows(l.locks, l.height, l.context(), at, l.marks)
	l.span = l.rowsAt(top+2, len(rows))
	if len(rows) == 0 {
		why := fmt.Sprintf("no locks: %d of %d nodes are read", view.Answering(l.Shown), l.Shown.Cluster.N)
		rows = nil
		switch {
		case l.locks.Stale:
			why = "looking" + l.St.Ellipsis
		case !l.locks.filter.Empty() && l.Shown.Locks.Len() > 0:
			rows = nothing(l.St, l.wanted(), cmp.Or(l.FilterProblem(), l.locks.filter.Hint()), l.In())
		case l.Shown.InGap():
			why = monitor.NothingRecorded
		case l.Shown.Unrecorded():
			why = "locks were not recorded then: " + monitor.AdviceRecordLocks
		case l.Shown.Cluster.NotSeen:
			why = "what is locked is not seen from here"
		case l.Shown.Cluster.Verdict == monitor.VerdictUnknown && l.Shown.Cluster.Serving < l.Shown.Cluster.N:
			why = "waiting for the first read of the nodes" + l.St.Ellipsis
		case !l.Shown.Complete:
			why = "no locks among the keys that have been read"
		}
		if rows == nil {
			for _, line := range styles.Wrap(why, l.In()-2*styles.Lead, 0) {
				rows = append(rows, styles.Blanks(styles.Lead)+l.St.Dim.Of(line))
			}
		}
	}
	return l.frame(l.title(at != cursorAway), append(lines, rows...), h)
}

// title counts the locks by state and says what is listed and how.
func (l *lockPanel) title(focused bool) Pane {
	st := l.St
	var parts []string
	// Healthy locks first, then by urgency.
	counts := l.Shown.Counts
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
			parts = append(parts, p.Of(view.StateCount(l.Shown, s)))
		}
	}
	var chosen []string
	if n := len(l.marks); n > 0 {
		chosen = append(chosen, st.Info.Of(view.Count(n)+" marked"))
	}
	if l.locks.Source != "" {
		n := view.Count(l.locks.Len())
		if l.locks.Stale {
			n = st.Ellipsis
		}
		chosen = append(chosen, st.Info.Of("/"+st.Escape(l.locks.Source, 24))+" "+n)
	}
	p := Pane{Title: "Locks " + view.Count(l.Shown.Locks.Len()), Focused: focused}
	if l.Shown.Cluster.NotSeen && l.Shown.Locks.Len() == 0 {
		p.Title = "Locks not seen from here"
	}
	if l.Shown.InGap() {
		p.Title = "Locks"
	}
	r, reading := l.Shown.Reading()
	if reading { // the numbers that follow are not complete
		line := view.ReadingLine(&st.Glyphs, r, l.Shown, l.W-view.Width(p.Title)-titleChrome)
		chosen = append([]string{st.Info.Of(line)}, chosen...)
	}
	p.More = strings.Join(append(chosen, parts...), " "+st.Sep+" ")
	p.Right = l.Layout().listing(st)
	return p
}

// titleChrome is how many cells of a pane's first line are not available for text.
const titleChrome = 10

// wanted is what a filter looks for: among some of the locks, while they are being read.
func (l *lockPanel) wanted() string {
	if _, reading := l.Shown.Reading(); reading {
		return "lock read so far"
	}
	return "lock"
}
