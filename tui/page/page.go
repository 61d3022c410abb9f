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

// Detailed is a page that can show what is under its cursor in full; nil: it always does.
type Detailed interface{ Detail() *bool }

// Scroller is a page that shows what is under its cursor in full, with perhaps more lines
// than have room. Scroll moves in them by pages, and reports whether there are more.
type Scroller interface{ Scroll(pages int) bool }

// Wheeled is a page with several parts: the wheel moves in the one under the pointer.
type Wheeled interface{ Wheel(x, y, d int) }

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

// same reports whether o selects the same.
func (s Selection) same(o Selection) bool {
	key, node := s.About()
	oldKey, oldNode := o.About()
	event := func(s Selection) (seq uint64) {
		if s.Event != nil {
			seq = s.Event.Seq
		}
		return seq
	}
	finding := func(s Selection) (id string) {
		if s.Finding != nil {
			id = s.Finding.ID
		}
		return id
	}
	return key == oldKey && node == oldNode && event(s) == event(o) && finding(s) == finding(o)
}

// reading is a page of text: it has no cursor and scrolls.
type reading struct{ top, height int }

func (r *reading) Move(d int)          { r.top = max(0, min(r.top, 1<<20)+d) }
func (r *reading) Rows() int           { return max(1, r.height-1) }
func (r *reading) Click(int, int) bool { return false }

// dock is what is under a cursor, in full.
type dock struct {
	reading
	of  Selection
	cut bool // not all lines have room
}

// draw returns the visible lines of those about a selection, and how many more there are.
func (d *dock) draw(st *styles.Styles, of Selection, lines []string, h int) []string {
	if h = max(0, h); !of.same(d.of) {
		d.top = 0
	}
	d.of, d.cut = of, len(lines) > h && h > 1
	if !d.cut {
		d.top = 0
		return lines[:min(len(lines), h)]
	}
	return d.inSight(st, lines, h)
}

func (d *dock) Scroll(pages int) bool {
	if d.cut {
		d.Move(pages * d.reading.Rows())
	}
	return d.cut
}

// wheel moves in a list by d rows, or in the lines of d if the pointer is elsewhere.
func (d *dock) wheel(list list, over lineSpan, x, y, n int) {
	if _, on := over.at(x, y); !on && d.cut {
		d.Move(n)
	} else {
		list.Move(n)
	}
}

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
