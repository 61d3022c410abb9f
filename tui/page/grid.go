package page

import (
	"slices"
	"strings"

	"redlockctl/internal/view"
	"redlockctl/tui/styles"
)

// grid draws rows under columns.
type grid[T any] struct {
	st      *styles.Styles
	columns []view.Column[T]
	widths  []int // of the columns; 0: not shown
	width   int   // of a row
	heads   []view.Head
	order   Order // of the rows; the zero value: not shown
	usual   bool  // the order is the default
}

// newGrid returns a grid with columns that fit into w cells.
func newGrid[T any](st *styles.Styles, columns []view.Column[T], w int) grid[T] {
	return grid[T]{st: st, columns: columns, widths: view.Fit(columns, w-styles.Lead-1), width: w, heads: view.Heads(columns)}
}

// onScreen are the chosen columns.
func onScreen[T any](l *Layout, all []view.Column[T]) []view.Column[T] {
	return view.OnScreen(all, append([]string{l.always}, l.Chosen...), l.asked())
}

// fitted returns the chosen columns and remembers those without room.
func fitted[T any](l *Layout, st *styles.Styles, columns []view.Column[T], w int) grid[T] {
	g := newGrid(st, columns, w)
	g.order, g.usual = l.Order, l.Order == l.usual
	l.arrow = g.sorted() >= 0
	l.dropped = nil
	if l.asked() {
		chosen := l.Words(false) // default columns without room are not reported
		for i := range columns {
			if word := columns[i].Word(); g.widths[i] == 0 && !slices.Contains(append(chosen, l.dropped...), word) {
				l.dropped = append(l.dropped, word)
			}
		}
	}
	return g
}

// measure fits the widths of columns to their names and cells, for tables with few rows.
// Columns that can grow get no wider than that, except the one that takes the rest.
func measure[T any](ctx *view.Context, columns []view.Column[T], rows []T) []view.Column[T] {
	for i := range columns {
		c := &columns[i]
		if c.Rank == 0 {
			continue
		}
		last := c.Most > 100
		most := max(c.Most, c.Width)
		if last {
			most = 44
		}
		if c.Right {
			most = 20 // wide enough for any number
		}
		least := max(c.Width, 16)
		for _, r := range rows {
			c.Width = max(c.Width, min(cellWidth(c.Cell(ctx, r)), most))
		}
		if !c.Right && c.Width > 20 {
			c.Least = least // a part of a sentence is better than none
		}
		if !last {
			c.Most = 0
		}
		if c.Good > 0 && c.Width > c.Good { // more only if all important columns have room
			c.Width, c.Good, c.Most = c.Good, c.Width, max(c.Most, c.Width)
		}
	}
	return columns
}

func cellWidth(c view.Cell) int {
	w := view.Width(c.Text)
	if c.Sign != "" {
		w += view.Width(c.Sign) + 1
	}
	return w
}

// each calls f with the shown columns and the spaces before them.
func (g *grid[T]) each(f func(c *view.Column[T], w, gap int)) {
	first := true
	for i := range g.columns {
		if g.widths[i] == 0 {
			continue
		}
		gap := view.GapBefore(g.columns, i)
		if first {
			gap, first = 0, false
		}
		f(&g.columns[i], g.widths[i], gap)
	}
}

// room returns the width of the column with this word; 0: it is not shown.
func (g *grid[T]) room(word string) int {
	if i := slices.IndexFunc(g.columns, func(c view.Column[T]) bool { return c.Word() == word }); i >= 0 {
		return g.widths[i]
	}
	return 0
}

// sorted returns the shown column by which the rows are sorted; -1 if there is none.
func (g *grid[T]) sorted() int {
	if g.order == "" {
		return -1
	}
	for i, h := range g.heads {
		if g.widths[i] > 0 && h.Sort == string(g.order.Column()) {
			return i
		}
	}
	return -1
}

// heading is where the name of a column is drawn, in cells from the left edge of the rows.
type heading struct {
	from, to int
	sort     Order // by this column; empty: it cannot be
}

// headings returns where the names of the columns are; each has the gap before it too.
func (g *grid[T]) headings() (all []heading) {
	at := styles.Lead
	for i := range g.columns {
		if w := g.widths[i]; w > 0 {
			if all != nil {
				w += view.GapBefore(g.columns, i)
			}
			all = append(all, heading{at, at + w, Order(g.heads[i].Sort)})
			at += w
		}
	}
	return all
}

// header draws the names of the columns, with an arrow after that of the order: in the
// colour of a warning if it is not the default.
func (g *grid[T]) header(focused bool) string {
	st := g.st
	paint, arrowPaint := st.Label, st.Label
	if focused {
		paint = st.Title
	}
	if !g.usual {
		arrowPaint = st.Warn
	}
	var by *view.Column[T]
	if i := g.sorted(); i >= 0 {
		by = &g.columns[i]
	}
	arrow := st.Up
	if g.order.Column() != g.order {
		arrow = st.Down
	}
	var out, b strings.Builder
	b.WriteString(styles.Blanks(styles.Lead))
	taken := 0 // of the gap after a column
	g.each(func(c *view.Column[T], w, gap int) {
		b.WriteString(styles.Blanks(gap - taken))
		taken = 0
		name := st.Escape(c.Name, w)
		rest := w - view.Width(name)
		if c.Right {
			b.WriteString(styles.Blanks(rest))
			rest = 0
		}
		b.WriteString(name)
		if c == by {
			out.WriteString(paint.Of(b.String()) + arrowPaint.Of(arrow))
			b.Reset()
			rest--
			taken = max(0, -rest)
		}
		b.WriteString(styles.Blanks(rest))
	})
	return out.String() + paint.Of(strings.TrimRight(b.String(), " "))
}

// rowLook is the style of a row.
type rowLook struct {
	under  bool // the cursor is on it
	block  bool // draw the cursor as a block
	marked bool
	gone   bool // it disappeared while the rows were frozen
}

// row draws one row. The row under the cursor keeps its colours on a background.
func (g *grid[T]) row(ctx *view.Context, r T, look rowLook) string {
	st := g.st
	var b strings.Builder
	lead := " "
	if look.marked {
		lead = st.Marked
	}
	b.WriteString(lead)
	if look.under {
		b.WriteString(st.Pointer)
	} else {
		b.WriteByte(' ')
	}
	b.WriteByte(' ')
	head := "" // up to the end of the first cell
	done, last := false, len(g.widths)-1
	for last > 0 && g.widths[last] == 0 {
		last--
	}
	g.each(func(c *view.Column[T], w, gap int) {
		if done {
			return
		}
		cell := c.Cell(ctx, r)
		if look.gone && gap > 0 {
			cell, done = view.Cell{Text: st.Off + " gone", Tone: view.Dim}, true
		}
		text := cell.Text
		if cell.Sign != "" {
			text = cell.Sign + " " + text
		}
		switch {
		case c.Middle:
			text = st.Middle(text, w)
		case c.Clauses:
			text = view.Clauses(text, w)
		case c.Shorten != nil:
			text = c.Shorten(&st.Glyphs, text, w)
		}
		switch {
		case c.Right && !done:
			text = st.PadLeft(text, w)
		case c == &g.columns[last]:
			text = st.Cut(text, w)
		default:
			text = st.Pad(text, w)
		}
		b.WriteString(styles.Blanks(gap))
		if cell.Tone != view.None {
			p := st.Paint(cell.Tone)
			b.WriteString(p.Open)
			b.WriteString(text)
			b.WriteString(p.Close)
		} else {
			b.WriteString(text)
		}
		if head == "" {
			head = b.String()
		}
	})
	line := strings.TrimRight(b.String(), " ")
	if look.under && look.block {
		return st.Selected(head, strings.TrimPrefix(st.Pad(line, g.width), head))
	}
	return line
}
