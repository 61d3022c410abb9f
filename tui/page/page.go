// Package page is the pages of the screen. Each draws the [Screen] that it is given,
// keeps a cursor of its own, and knows no other page, no key and no server. [Set] has
// them all, and what they share.
package page

import (
	"time"

	"redlockctl/internal/audit"
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
func (p *Screen) context() *view.Context {
	return &view.Context{Glyphs: &p.St.Glyphs, Snap: p.Shown, Now: p.Now, Guard: p.drawn, Own: p.IsMine, Known: p.known, Short: true}
}

// known is the answer that was given of a token; nil: none was.
func (p *Screen) known(token string) *who.Answer { return p.Answers[token] }

// facts draws facts, in lines of at most w cells.
func (p *Screen) facts(facts []view.Fact, w int) (lines []string) {
	for _, f := range facts {
		if f.Text == "" {
			continue
		}
		for _, l := range styles.Wrap(p.St.Fact(f.Label, p.St.Paint(f.Tone).Of(f.Text)), w-2, styles.FactIndent) {
			lines = append(lines, " "+l)
		}
	}
	return lines
}

// cursor is how a table that has the focus draws its cursor.
func (p *Screen) cursor() cursorState {
	if p.Asking {
		return cursorKept
	}
	return cursorHere
}

// Page is one page of the screen. It draws the screen that it was made with and
// keeps its own cursor; it knows no other page, no key and no server.
type Page interface {
	list
	Place() Place
	Lines(h int) []string // at most h
	// Click is one on a cell of the page; it reports whether the cursor was there.
	Click(x, y int) (again bool)
}

// list is the part of a page that the keys move in.
type list interface {
	Mode() Mode // which keys are listened to
	Move(d int) // the cursor, or what is read, by d rows
	Rows() int  // how many rows a key for a whole page moves it
	Selected() Selection
}

// Detailed is a page that shows what is under its cursor in full when asked to.
type Detailed interface{ Detail() *bool }

// Selection is what the cursor is on; nil: nothing of that kind.
type Selection struct {
	Lock    *monitor.Lock
	Node    *monitor.Node
	Event   *monitor.Event
	Finding *monitor.Finding
	Cluster string // its name
	Audit   *audit.Entry
}

// About is the lock or the node that it is about.
func (s Selection) About() (key, node string) {
	switch {
	case s.Lock != nil:
		return s.Lock.Key.Raw(), ""
	case s.Node != nil:
		return "", s.Node.Name
	case s.Event != nil:
		return s.Event.Key.Raw(), s.Event.Node
	case s.Finding != nil:
		return s.Finding.Key.Raw(), s.Finding.Node
	}
	return "", ""
}

// lineSpan is n lines of a page from a line on, w cells wide from a cell on.
type lineSpan struct{ from, n, left, w int }

func (s lineSpan) at(x, y int) (int, bool) {
	return y - s.from, y >= s.from && y < s.from+s.n && x >= s.left && x < s.left+s.w
}

// reading is a page that is read: it has no cursor, and is turned where it does
// not fit.
type reading struct{ top, height int }

func (r *reading) Move(d int)          { r.top = max(0, min(r.top, 1<<20)+d) }
func (r *reading) Rows() int           { return max(1, r.height-1) }
func (r *reading) Click(int, int) bool { return false }

// inSight is the part in sight of all lines, and how many more there are.
func (r *reading) inSight(st *styles.Styles, all []string, h int) []string {
	r.height = h
	if len(all) <= h {
		r.top = 0
		return all
	}
	r.top = max(0, min(r.top, len(all)-h+1))
	out := append([]string(nil), all[r.top:min(len(all), r.top+h-1)]...)
	more := " pgup"
	if n := len(all) - r.top - h + 1; n > 0 {
		more = " " + view.Plural(n, "more line") + ": pgdn"
	}
	return append(out, st.Dim.Of(more))
}

// scrollTo is the first of n rows in sight when h fit: that of before, if the
// cursor at pos is in sight then.
func scrollTo(top, pos, n, h int) int {
	top = min(top, pos)
	top = max(top, pos-h+1)
	return max(0, min(top, n-h))
}

// textPage is a text that is read.
type textPage struct {
	*Screen
	text func(w int) []string
	reading
}

func (p *textPage) Place() Place        { return Place{Kind: Help} }
func (p *textPage) Mode() Mode          { return ModeHelp }
func (p *textPage) Selected() Selection { return Selection{} }
func (p *textPage) Lines(h int) []string {
	return p.frame(Pane{Title: "Help", Focused: true}, p.inSight(p.St, p.inColumns(p.text), h-p.chrome()), h)
}

// inColumns is a text in as many columns as have room in a pane: two on a wide screen,
// the second from the blank line on that is nearest to the middle.
func (p *Screen) inColumns(text func(w int) []string) []string {
	if !p.wide() {
		return text(p.In())
	}
	w := p.In() / 2
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
		out[i] = p.St.Pad(out[i], w) + r
	}
	return out
}
