package page

import (
	"strings"

	"redlockctl/internal/view"
	"redlockctl/tui/styles"
)

// Pane is a part of a page with a title: in a border if the screen has room, otherwise
// under a rule. The focused pane has a heavy line.
type Pane struct {
	Title   string // plain
	More    string // beside the title; painted
	Right   string // at the right; painted. It is the first to be dropped
	Focused bool
	Paint   *styles.Paint // of title and border; nil: by focus
}

// looks returns the border of a pane and the colours of border and title.
func (pn Pane) looks(st *styles.Styles) (b *styles.Border, border, title styles.Paint) {
	b, border, title = &st.Thin, st.Dim, st.Label
	if pn.Focused {
		b, border, title = &st.Heavy, st.Info, st.Strong
	}
	if pn.Paint != nil {
		border, title = *pn.Paint, *pn.Paint
	}
	return b, border, title
}

// Box draws lines in a border of w by h cells.
func (pn Pane) Box(st *styles.Styles, lines []string, w, h int) []string {
	b, paint, title := pn.looks(st)
	out := append(make([]string, 0, h), pn.top(st, b.TopLeft, b.Rule, b.TopRight, paint, title, w))
	side, in := paint.Of(b.Side), w-2
	for i := range h - 2 {
		line := ""
		if i < len(lines) {
			line = lines[i]
		}
		n := view.Width(line)
		if n > in {
			line = st.Cut(line, in)
			n = view.Width(line)
		}
		out = append(out, side+line+styles.Blanks(in-n)+side)
	}
	if h > 1 {
		out = append(out, paint.Of(b.BottomLeft+strings.Repeat(b.Rule, in)+b.BottomRight))
	}
	return out
}

// top draws the first line of a pane.
func (pn Pane) top(st *styles.Styles, left, rule, right string, border, title styles.Paint, w int) string {
	head := border.Of(left+rule) + " " + title.Of(st.Cut(pn.Title, w-6)) + " "
	room := w - view.Width(head) - 1
	end := border.Of(right)
	if n := view.Width(pn.Right); pn.Right != "" && n+4 <= room {
		end = " " + pn.Right + " " + border.Of(rule+right)
		room -= n + 3
	}
	if n := view.Width(pn.More); pn.More != "" && room >= 12 {
		more := pn.More
		if n+3 > room {
			more = st.Cut(more, room-3)
		}
		more = border.Of(rule) + " " + more + " "
		head += more
		room -= view.Width(more)
	}
	return head + border.Of(strings.Repeat(rule, max(0, room))) + end
}
