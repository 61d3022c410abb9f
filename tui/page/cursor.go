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
