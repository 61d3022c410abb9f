package page

import (
	"time"

	"redlockctl/internal/view"
	"redlockctl/internal/who"
	"redlockctl/monitor"
	"redlockctl/tui/styles"
)

// Screen is what the pages draw from: all of it is of one moment.
type Screen struct {
	St     *styles.Styles
	W, H   int               // of the whole screen, in cells; W: of the part that is drawn
	left   int               // the first cell of that part
	Now    time.Time         // the moment that is shown
	Shown  *monitor.Snapshot // what was known then
	drawn  view.Guard        // and what the guards said
	Asking bool              // a dialog is open: its keys are not the page's
	IsMine func(key, token string) bool
	// Kept says who keeps a lock here and for how long still; "": nobody does.
	Kept func(key, token string) string
	// Answers are who holds locks, as far as it was asked for, by their tokens.
	Answers map[string]*who.Answer
}

// context is what cells and facts are made of.
func (s *Screen) context() *view.Context {
	return &view.Context{Glyphs: &s.St.Glyphs, Snap: s.Shown, Now: s.Now, Guard: s.drawn, Own: s.IsMine, Known: s.known, Short: true}
}

// known is the answer that was given of a token; nil: none was.
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

// cursor is how a table that has the focus draws its cursor.
func (s *Screen) cursor() cursorState {
	if s.Asking {
		return cursorKept
	}
	return cursorHere
}

// boxed reports whether panes have borders.
func (s *Screen) boxed() bool { return s.H >= 30 && s.W >= 76 }

// besideFrom is the least width of a screen on which panes stand side by side: each
// has as much room then as on a small one.
const besideFrom = 160

// wide reports whether panes stand side by side.
func (s *Screen) wide() bool { return s.boxed() && s.W >= besideFrom }

// beside draws h lines of two parts of the page side by side, the left one w cells
// wide. Each is drawn as on a screen of its own width.
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

// rowsAt are n rows from a line of the page on, in the part that is drawn.
func (s *Screen) rowsAt(from, n int) lineSpan { return lineSpan{from, n, s.left, s.W} }

// In is how many cells a pane has for what stands in it.
func (s *Screen) In() int {
	if s.boxed() {
		return s.W - 2
	}
	return s.W
}

// chrome is how many lines a pane takes beside what stands in it.
func (s *Screen) chrome() int {
	if s.boxed() {
		return 2
	}
	return 1
}

// frame draws lines as a pane of h lines: the first of them is its line 1.
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

// inColumns is a text in as many columns as have room in a pane: two on a wide screen,
// the second from the blank line on that is nearest to the middle.
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

// eventsPane is a pane of events beside what they are about.
func (s *Screen) eventsPane(events []string, h int) []string {
	if len(events) == 0 {
		events = []string{s.St.Dim.Of(" nothing of note since this screen began")}
	}
	return s.frame(Pane{Title: "Events"}, events, h)
}
