package page

import (
	"strings"

	"redlockctl/internal/view"
	"redlockctl/tui/styles"
)

// Pane is a part of a page under a title: in a border on a screen that has room for
// one, else under a rule. That of the part that has the focus is heavy.
type Pane struct {
	Title   string // plain
	More    string // beside the title; painted
	Right   string // at the right; painted. It goes first where there is no room
	Focused bool
	Paint   *styles.Paint // of title and border; nil: as the focus says
}

// boxed reports whether panes have borders.
func (p *Screen) boxed() bool { return p.H >= 30 && p.W >= 76 }

// besideFrom is the least width of a screen on which panes stand side by side: each
// has as much room then as on a small one.
const besideFrom = 160

// wide reports whether panes stand side by side.
func (p *Screen) wide() bool { return p.boxed() && p.W >= besideFrom }

// beside draws h lines of two parts of the page side by side, the left one w cells
// wide. Each is drawn as on a screen of its own width.
func (p *Screen) beside(w, h int, left, right func(h int) []string) []string {
	whole, from := p.W, p.left
	defer func() { p.W, p.left = whole, from }()
	p.W = w
	lines := styles.Fill(left(h), h)
	p.W, p.left = whole-w, from+w
	for i, r := range styles.Fill(right(h), h) {
		if r != "" {
			lines[i] = p.St.Pad(lines[i], w) + r
		}
	}
	return lines
}

// rowsAt are n rows from a line of the page on, in the part that is drawn.
func (p *Screen) rowsAt(from, n int) lineSpan { return lineSpan{from, n, p.left, p.W} }

// In is how many cells a pane has for what stands in it.
func (p *Screen) In() int {
	if p.boxed() {
		return p.W - 2
	}
	return p.W
}

// chrome is how many lines a pane takes beside what stands in it.
func (p *Screen) chrome() int {
	if p.boxed() {
		return 2
	}
	return 1
}

// frame draws lines as a pane of h lines: the first of them is its line 1.
func (p *Screen) frame(pn Pane, lines []string, h int) []string {
	switch {
	case h <= 0:
		return nil
	case p.boxed():
		return pn.Box(p.St, lines, p.W, h)
	}
	b, paint, title := pn.looks(p.St)
	top := " " + pn.top(p.St, b.Rule, b.Rule, b.Rule, paint, title, p.W-2)
	return styles.Fill(append([]string{top}, lines...), h)
}

// looks are the border of a pane, its colour and that of the title.
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

// top is the first line of a pane.
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
