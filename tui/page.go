package tui

import (
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/input"
	"redlockctl/tui/styles"
)

// screen is what the pages draw from: all of it is of one moment.
type screen struct {
	st     *styles.Styles
	w, h   int               // of the whole screen, in cells
	now    time.Time         // the moment that is shown
	shown  *monitor.Snapshot // what was known then
	drawn  fenceView         // and what the guards said
	asking bool              // a dialog is open: its keys are not the page's
	isMine func(key, token string) bool
}

// cursor is how a table that has the focus draws its cursor.
func (p *screen) cursor() cursorState {
	if p.asking {
		return cursorKept
	}
	return cursorHere
}

// page is one page of the screen. It draws the screen that it was made with and
// keeps its own cursor; it knows no other page, no key and no server.
type page interface {
	place() place
	mode() mode           // which keys are listened to
	lines(h int) []string // at most h
	move(d int)           // the cursor, or what is read, by d rows
	rows() int            // how many rows a key for a whole page moves it
	// click is one on a line of the page; it tells if that is where the cursor was.
	click(y int) (again bool)
	selected() selection
}

// detailed is a page that shows what is under its cursor in full when asked to.
type detailed interface{ detail() *bool }

// filtered is a page whose rows are chosen by a filter.
type filtered interface {
	filterLine() *input.Line     // in which it is typed
	filter(now time.Time)        // lists what it chooses as far as it is typed
	filterSource() string        // what was typed when it was last applied
	filterProblem() string       // what is wrong with it, safe to show
	found() (n, of int, ok bool) // ok: it is known by now
}

// selection is what the cursor is on; nil: nothing of that kind.
type selection struct {
	lock    *monitor.Lock
	node    *monitor.Node
	event   *monitor.Event
	finding *monitor.Finding
}

// about is the lock or the node that it is about.
func (s selection) about() (key, node string) {
	switch {
	case s.lock != nil:
		return s.lock.Key.Raw(), ""
	case s.node != nil:
		return "", s.node.Name
	case s.event != nil:
		return s.event.Key.Raw(), s.event.Node
	case s.finding != nil:
		return s.finding.Key.Raw(), s.finding.Node
	}
	return "", ""
}

// lineSpan is n lines of a page from a line on.
type lineSpan struct{ from, n int }

func (s lineSpan) at(y int) (int, bool) { return y - s.from, y >= s.from && y < s.from+s.n }

// reading is a page that is read: it has no cursor, and is turned where it does
// not fit.
type reading struct{ top, height int }

func (r *reading) move(d int)     { r.top = max(0, min(r.top, 1<<20)+d) }
func (r *reading) rows() int      { return max(1, r.height-1) }
func (r *reading) click(int) bool { return false }

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
	*screen
	text func(w int) []string
	reading
}

func (p *textPage) place() place         { return place{kind: viewHelp} }
func (p *textPage) mode() mode           { return modeHelp }
func (p *textPage) selected() selection  { return selection{} }
func (p *textPage) lines(h int) []string { return p.inSight(p.st, p.text(p.w), h) }
