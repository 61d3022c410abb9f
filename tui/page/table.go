package page

import (
	"slices"

	"redlockctl/internal/view"
)

// table is rows under columns, and which one is under the cursor: it is known by its key, so that
// whatever is sorted, filtered or gone, the cursor never slides to another one that happens to take
// the row.
type table[T any, K comparable] struct {
	layout  Layout
	columns []view.Column[T]
	key     func(T) K // what a row is known by; never the zero value
	floats  bool      // on the first row the cursor stays there, whichever that is
	given   []T       // the rows as they come
	rows    []T       // as they are listed
	keys    []K       // of these
	under   K         // the key of the one under the cursor; zero: the first
	top     int       // the first row in sight
	height  int       // how many were in the last frame
	span    lineSpan
}

// newTable lists rows under columns; always is the column that is always there.
func newTable[T any, K comparable](l Layout, columns []view.Column[T], key func(T) K) table[T, K] {
	heads := view.Heads(columns)
	l.heads = func() []view.Head { return heads }
	l.Order = l.usual
	l.choose()
	return table[T, K]{layout: l, columns: columns, key: key}
}

// set takes in the rows as they come.
func (t *table[T, K]) set(rows []T) {
	t.given = rows
	t.list()
}

// list puts the rows into their order, and the cursor back on its own.
func (t *table[T, K]) list() {
	t.rows = t.given
	if t.layout.Order != t.layout.usual {
		if compare, _, err := view.Sort(t.columns, string(t.layout.Order)); err == nil {
			t.rows = slices.Clone(t.given)
			slices.SortStableFunc(t.rows, compare)
		}
	}
	before := t.keys
	t.keys = make([]K, len(t.rows))
	for i := range t.rows {
		t.keys[i] = t.key(t.rows[i])
	}
	t.settle(before)
}

// settle puts the cursor back on its row; where that is gone, on the nearest of its former
// neighbours that is left: the next one, else the one before.
func (t *table[T, K]) settle(before []K) {
	var none K
	switch {
	case len(t.keys) == 0 || slices.Contains(t.keys, t.under):
		return
	case t.under == none:
		if !t.floats {
			t.under = t.keys[0]
		}
		return
	}
	left := make(map[K]bool, len(t.keys))
	for _, k := range t.keys {
		left[k] = true
	}
	was := max(0, slices.Index(before, t.under))
	for _, k := range before[was:] {
		if left[k] {
			t.under = k
			return
		}
	}
	for _, k := range slices.Backward(before[:was]) {
		if left[k] {
			t.under = k
			return
		}
	}
	t.goTo(min(was, len(t.keys)-1))
}

// pos is the place of the cursor; -1: there is none.
func (t *table[T, K]) pos() int {
	if i := slices.Index(t.keys, t.under); i >= 0 || len(t.keys) == 0 {
		return i
	}
	return 0
}

func (t *table[T, K]) selected() (row T, ok bool) {
	if i := t.pos(); i >= 0 {
		return t.rows[i], true
	}
	return row, false
}

// Len is how many rows are listed.
func (t *table[T, K]) Len() int { return len(t.rows) }

func (t *table[T, K]) Layout() *Layout { return &t.layout }
func (t *table[T, K]) Rows() int       { return max(1, t.height-1) }
func (t *table[T, K]) Move(d int)      { t.goTo(max(0, t.pos()) + d) }

// goTo puts the cursor on a place, or the nearest that there is.
func (t *table[T, K]) goTo(i int) {
	if len(t.keys) == 0 {
		return
	}
	i = max(0, min(len(t.keys)-1, i))
	if t.under = t.keys[i]; i == 0 && t.floats {
		t.letGo()
	}
}

// letGo has the cursor stay on the first row.
func (t *table[T, K]) letGo() {
	var none K
	t.under = none
}

// Click puts the cursor on the row in a line of the page.
func (t *table[T, K]) Click(x, y int) (again bool) {
	i, ok := t.span.at(x, y)
	if !ok || t.top+i >= len(t.rows) {
		return false
	}
	again = t.pos() == t.top+i
	t.goTo(t.top + i)
	return again
}

// mostMeasured is of how many rows all are measured, so that no column changes its width as they
// are scrolled.
const mostMeasured = 100

// lines are the names of the columns and the rows in at most h lines, the first of them line top of the
// page.
func (t *table[T, K]) lines(s *Screen, top, h int, at cursorState) []string {
	return t.draw(s, top, h, at, onScreen(&t.layout, t.columns))
}

// draw is lines with these columns.
func (t *table[T, K]) draw(s *Screen, top, h int, at cursorState, columns []view.Column[T]) []string {
	pos, ctx := max(0, t.pos()), s.context()
	t.height = max(0, min(len(t.rows), h-1))
	t.top = scrollTo(t.top, pos, len(t.rows), t.height)
	seen := t.rows[t.top : t.top+t.height]
	measured := seen
	if len(t.rows) <= mostMeasured {
		measured = t.rows
	}
	ctx.NoAbout = !slices.Contains(t.layout.Chosen, "about")
	g := fitted(&t.layout, s.St, measure(ctx, columns, measured), s.In())
	lines := []string{g.header(at != cursorAway)}
	for i, r := range seen {
		lines = append(lines, g.row(ctx, r, rowLook{under: t.top+i == pos && at != cursorAway, block: at == cursorHere}))
	}
	t.span = s.rowsAt(top+1, len(seen))
	return lines
}
