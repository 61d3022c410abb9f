package page

// cursorState is how a table draws its cursor.
type cursorState uint8

const (
	cursorAway cursorState = iota // another table has the focus
	cursorHere
	cursorKept // a dialog is about this row
)

// lineSpan is a rectangle of a page, in lines and cells.
type lineSpan struct{ from, n, left, w int }

func (s lineSpan) at(x, y int) (int, bool) {
	return y - s.from, y >= s.from && y < s.from+s.n && x >= s.left && x < s.left+s.w
}

// scrollTo returns the first visible one of n rows if h fit; it keeps the old one while the
// cursor at pos stays visible.
func scrollTo(top, pos, n, h int) int {
	top = min(top, pos)
	top = max(top, pos-h+1)
	return max(0, min(top, n-h))
}

// mostSteps bounds the search for a neighbour.
const mostSteps = 2000

// nearest returns the nearest of n former rows to the one at was that is still listed: one
// of the next rows, or else one of the previous ones. ok is false if none is.
func nearest(was, n int, listed func(i int) bool) (i int, ok bool) {
	for i := was + 1; i < n && i <= was+mostSteps; i++ {
		if listed(i) {
			return i, true
		}
	}
	for i := min(was, n) - 1; i >= 0 && i >= was-mostSteps; i-- {
		if listed(i) {
			return i, true
		}
	}
	return 0, false
}
