// Package page has the pages of the screen. Each draws the [Screen] that it is given and
// keeps its own cursor; it does not know other pages, keys or servers. [Set] has all pages,
// and what they share.
package page

import (
	"redlockctl/internal/audit"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/styles"
)

// Page is one page of the screen.
type Page interface {
	list
	Place() Place
	Lines(h int) []string // at most h
	// Click handles a click on a cell, and reports whether the cursor was already there.
	Click(x, y int) (again bool)
}

// list is the part of a page that the keys move in.
type list interface {
	Mode() Mode // the active keys
	Move(d int) // moves the cursor, or scrolls, by d rows
	Rows() int  // how many rows pgup and pgdn move
	Selected() Selection
}

// Detailed is a page that can show what is under its cursor in full.
type Detailed interface{ Detail() *bool }

// Selection is what is under the cursor; nil: nothing of that kind.
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

// reading is a page of text: it has no cursor and scrolls.
type reading struct{ top, height int }

func (r *reading) Move(d int)          { r.top = max(0, min(r.top, 1<<20)+d) }
func (r *reading) Rows() int           { return max(1, r.height-1) }
func (r *reading) Click(int, int) bool { return false }

// inSight returns the visible lines, and how many more there are.
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
