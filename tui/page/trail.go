package page

import "time"

// MostBefore bounds the number of places for esc.
const MostBefore = 20

// Trail has the shown page, and the places to which esc returns.
type Trail struct {
	Page      Page
	Filtering bool // its filter is being typed
	Before    []Page
	home      Page
	// filterLast reports whether the filter of the page was opened after its detail.
	filterLast bool
}

// Viewed returns the kind of the shown page.
func (t *Trail) Viewed() Kind { return t.Page.Place().Kind }

// show shows a page without its detail.
func (t *Trail) show(p Page) {
	t.Page, t.Filtering, t.filterLast = p, false, false
	if d, ok := p.(Detailed); ok && d.Detail() != nil {
		*d.Detail() = false
	}
}

// begin shows a page from its top.
func (t *Trail) begin(p Page) {
	t.show(p)
	if f, ok := p.(fresh); ok {
		f.begin()
	}
}

// fresh is a page that is scrolled to its top when it is opened, not when esc returns to it.
type fresh interface{ begin() }

// Home opens the first page and clears the trail.
func (t *Trail) Home() {
	t.Before = nil
	t.show(t.home)
}

// open opens a place; at makes its page.
func (t *Trail) open(to Place, at func(Place) Page) {
	// A place is not added twice: esc would go in circles.
	for i, p := range t.Before {
		if p.Place() == to {
			t.Before = t.Before[:i]
			t.begin(p)
			return
		}
	}
	t.Before = append(t.Before, t.Page)
	if len(t.Before) > MostBefore {
		t.Before = t.Before[1:]
	}
	t.begin(at(to))
}

// ShowsDetail reports whether the detail of the page is shown; ok is false if it has none.
func (t *Trail) ShowsDetail() (shown, ok bool) {
	d, ok := t.Page.(Detailed)
	if !ok || d.Detail() == nil {
		return false, false
	}
	return *d.Detail(), true
}

// ToggleDetail shows or hides the detail of the page, and reports whether it is shown now;
// ok is false if the page has none.
func (t *Trail) ToggleDetail() (shown, ok bool) {
	if shown, ok = t.ShowsDetail(); !ok {
		return false, false
	}
	t.filterLast = false
	*t.Page.(Detailed).Detail() = !shown
	return !shown, true
}

// OpenFilter prepares the filter of the page for typing.
func (t *Trail) OpenFilter() Filtered {
	f := t.Page.(Filtered)
	f.FilterOpen()
	t.filterLast = true
	return f
}

// Back closes what was opened last: a detail or a filter, then the page. It reports whether
// anything was open.
func (t *Trail) Back(now time.Time) bool {
	n := len(t.Before)
	detailed, _ := t.ShowsDetail()
	switch f, ok := t.Page.(Filtered); {
	case ok && f.FilterSource() != "" && (t.filterLast || !detailed):
		t.ClearFilter(now)
	case detailed:
		t.ToggleDetail()
	case t.Page == t.home:
		return false
	case n == 0: // nothing is remembered
		t.show(t.home)
	default:
		last := t.Before[n-1]
		t.Before = t.Before[:n-1]
		t.show(last)
	}
	return true
}

// ClearFilter lists all rows of the page again.
func (t *Trail) ClearFilter(now time.Time) {
	t.Filtering = false
	f := t.Page.(Filtered)
	f.FilterLine().Set("")
	f.Filter(now)
}

// Behind runs do as on the page from which the help was opened.
func (t *Trail) Behind(do func()) {
	if n := len(t.Before); t.Viewed() == Help && n > 0 {
		here := t.Page
		t.Page = t.Before[n-1]
		defer func() { t.Page = here }()
	}
	do()
}
