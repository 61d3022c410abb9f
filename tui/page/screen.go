package page

import (
	"time"

	"redlockctl/internal/view"
	"redlockctl/internal/who"
	"redlockctl/monitor"
	"redlockctl/tui/styles"
)

// Screen is the input of all pages, at one moment.
type Screen struct {
	St     *styles.Styles
	W, H   int               // W: width of the part that is drawn; H: height of the screen
	left   int               // first cell of that part
	Now    time.Time         // the moment that is shown
	Shown  *monitor.Snapshot // at that moment
	drawn  view.Guard        // guards at that moment
	Asking bool              // a dialog has the keys
	IsMine func(key, token string) bool
	// Kept says who keeps a lock here and until when; "" if nobody does.
	Kept func(key, token string) string
	// Answers has the known holders, by token.
	Answers map[string]*who.Answer
}

// context returns the context for making cells and facts.
func (s *Screen) context() *view.Context {
	return &view.Context{Glyphs: &s.St.Glyphs, Snap: s.Shown, Now: s.Now, Guard: s.drawn, Own: s.IsMine, Known: s.known, Short: true}
}

// known returns the answer for a token; nil if there is none.
func (s *Screen) known(token string) *who.Answer { return s.Answers[token] }

// facts draws facts, in lines of at most w cells.
func (s *Screen) facts(facts []view.Fact, w int) (lines []string) {
	for _, f := range facts {
		if f.Text == "" {
			continue
		}
		for _, l := range styles.Wrap(s.St.Fact(f.Label, s.St.Paint(f.Tone).Of(f.Text)), w-2, styles.FactIndent) {
			lines = append(lines, " "+l)
		}
	}
	return lines
}

// cursor returns how a focused table draws its cursor.
func (s *Screen) cursor() cursorState {
	if s.Asking {
		return cursorKept
	}
	return cursorHere
}

// boxed reports whether panes have borders.
func (s *Screen) boxed() bool { return s.H >= 30 && s.W >= leastBoxed }

// leastBoxed is the least width of panes with borders.
const leastBoxed = 76

// besideFrom is the least width of a screen for panes side by side: each then has as much
// room as on a small screen.
const besideFrom = 160

// listWidth returns the width of a list beside what is under its cursor.
func (s *Screen) listWidth() int { return min(s.W*14/25, s.W-leastBoxed) }

// wide reports whether panes are side by side.
func (s *Screen) wide() bool { return s.boxed() && s.W >= besideFrom }

// beside draws two parts of the page side by side in h lines, the left one w cells wide,
// each as on a screen of its width.
func (s *Screen) beside(w, h int, left, right func(h int) []string) []string {
	whole, from := s.W, s.left
	defer func() { s.W, s.left = whole, from }()
	s.W = w
	lines := styles.Fill(left(h), h)
	s.W, s.left = whole-w, from+w
	for i, r := range styles.Fill(right(h), h) {
		if r != "" {
			lines[i] = s.St.Pad(lines[i], w) + r
		}
	}
	return lines
}

// rowsAt returns the position of n rows from a line of the page on.
func (s *Screen) rowsAt(from, n int) lineSpan { return lineSpan{from, n, s.left, s.W} }

// headAt returns the position of the names of columns in a line of the page, from the first
// cell inside the pane on.
func (s *Screen) headAt(line int) lineSpan {
	return lineSpan{line, 1, s.left + (s.W-s.In())/2, s.In()}
}

// In returns the inner width of a pane.
func (s *Screen) In() int {
	if s.boxed() {
		return s.W - 2
	}
	return s.W
}

// chrome returns how many lines a pane takes besides its content.
func (s *Screen) chrome() int {
	if s.boxed() {
		return 2
	}
	return 1
}

// frame draws lines as a pane of h lines; lines begin at its line 1.
func (s *Screen) frame(pn Pane, lines []string, h int) []string {
	switch {
	case h <= 0:
		return nil
	case s.boxed():
		return pn.Box(s.St, lines, s.W, h)
	}
	b, paint, title := pn.looks(s.St)
	top := " " + pn.top(s.St, b.Rule, b.Rule, b.Rule, paint, title, s.W-2)
	return styles.Fill(append([]string{top}, lines...), h)
}

// inColumns draws a text in two columns on a wide screen; the second begins at the empty
// line nearest to the middle.
func (s *Screen) inColumns(text func(w int) []string) []string {
	if !s.wide() {
		return text(s.In())
	}
	w := s.In() / 2
	lines := text(w)
	cut := len(lines)
	for i, l := range lines {
		if l == "" && max(i, len(lines)-i) < max(cut, len(lines)-cut) {
			cut = i
		}
	}
	left, right := lines[:cut], lines[min(len(lines), cut+1):]
	out := make([]string, max(len(left), len(right)))
	copy(out, left)
	for i, r := range right {
		out[i] = s.St.Pad(out[i], w) + r
	}
	return out
}

// eventsPane draws events beside their subject.
func (s *Screen) eventsPane(title string, events []string, h int) []string {
	if len(events) == 0 {
		events = []string{s.St.Dim.Of(" nothing of note since this screen began")}
	}
	return s.frame(Pane{Title: title}, events, h)
}
