// Package page is the pages of the screen. Each draws the [Screen] that it is given,
// keeps a cursor of its own, and knows no other page, no key and no server. [Set] has
// them all, and what they share.
package page

import (
	"redlockctl/internal/audit"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/styles"
)

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
