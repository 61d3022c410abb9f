package page

// cursorState is how a table draws its cursor.
type cursorState uint8

const (
	cursorAway cursorState = iota // the other table has it
	cursorHere
	cursorKept // a dialog is about what it points at
)

// lineSpan is n lines of a page from a line on, w cells wide from a cell on.
type lineSpan struct{ from, n, left, w int }

func (s lineSpan) at(x, y int) (int, bool) {
	return y - s.from, y >= s.from && y < s.from+s.n && x >= s.left && x < s.left+s.w
}

// scrollTo is the first of n rows in sight when h fit: that of before, if the
// cursor at pos is in sight then.
func scrollTo(top, pos, n, h int) int {
	top = min(top, pos)
	top = max(top, pos-h+1)
	return max(0, min(top, n-h))
}
