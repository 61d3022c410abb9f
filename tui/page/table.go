package page

import (
	"slices"

	"redlockctl/internal/view"
)

// table has rows under columns, and a cursor. The row under the cursor is known by its key,
// so sorting, filtering and removals never move the cursor to another row that takes its
// place.
type table[T any, K comparable] struct {
	layout  Layout
	columns []view.Column[T]
	key     func(T) K // identifies a row; never the zero value
	floats  bool      // a cursor on the first row stays on the first row
	given   []T       // unsorted rows
	rows    []T       // listed rows
	keys    []K       // of the listed rows
	under   K         // the key under the cursor; zero: the first row
	top     int       // first visible row
	height  int       // number of rows in the last frame
	span    lineSpan
}

// newTable returns a table; always is the column that is always shown.
func newTable[T any, K comparable](l Layout, columns []view.Column[T], key func(T) K) table[T, K] {
	heads := view.Heads(columns)
	l.heads = func() []view.Head { return heads }
	l.Order = l.usual
	l.choose()
	return table[T, K]{layout: l, columns: columns, key: key}
}

// set sets the rows.
func (t *table[T, K]) set(rows []T) {
	t.given = rows
	t.list()
}

// list sorts the rows, and puts the cursor back on its row.
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

// settle puts the cursor back on its row, or, if that is gone, on the nearest former
// neighbour: the next row, or the previous one.
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
	was := slices.Index(before, t.under)
	if i, ok := nearest(was, len(before), func(i int) bool { return left[before[i]] }); ok {
		t.under = before[i]
		return
	}
	t.goTo(min(max(was, 0), len(t.keys)-1))
}

// pos returns the place of the cursor; -1 if there is none.
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

// Len returns the number of listed rows.
func (t *table[T, K]) Len() int { return len(t.rows) }

func (t *table[T, K]) Layout() *Layout { return &t.layout }
func (t *table[T, K]) Rows() int       { return max(1, t.height-1) }
func (t *table[T, K]) Move(d int)      { t.goTo(max(0, t.pos()) + d) }

// goTo moves the cursor to a place, or the nearest existing one.
func (t *table[T, K]) goTo(i int) {
	if len(t.keys) == 0 {
		return
	}
	i = max(0, min(len(t.keys)-1, i))
	if t.under = t.keys[i]; i == 0 && t.floats {
		t.letGo()
	}
}

// letGo makes the cursor stay on the first row.
func (t *table[T, K]) letGo() {
	var none K
	t.under = none
}

// Click puts the cursor on the row at a line of the page.
func (t *table[T, K]) Click(x, y int) (again bool) {
	i, ok := t.span.at(x, y)
	if !ok || t.top+i >= len(t.rows) {
		return false
	}
	again = t.pos() == t.top+i
	t.goTo(t.top + i)
	return again
}

// mostMeasured is up to how many rows all are measured, so that columns keep their width
// while they are scrolled.
const mostMeasured = 100

// lines draws the names of the columns and the rows in at most h lines, from line top of
// the page on.
func (t *table[T, K]) lines(s *Screen, top, h int, at cursorState) []string {
	return t.draw(s, top, h, at, onScreen(&t.layout, t.columns))
}

// draw draws lines with these columns.
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
	t.layout.head, t.layout.headings = s.headAt(top), g.headings()
	for i, r := range seen {
		lines = append(lines, g.row(ctx, r, rowLook{under: t.top+i == pos && at != cursorAway, block: at == cursorHere}))
	}
	t.span = s.rowsAt(top+1, len(seen))
	return lines
}
