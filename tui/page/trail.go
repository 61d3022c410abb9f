package page

import "time"

// MostBefore bounds how far back one can go.
const MostBefore = 20

// Trail is which page is shown, and where esc leads back to.
type Trail struct {
	Page      Page
	Filtering bool // its filter is being typed
	Before    []Page
	home      Page
}

// Viewed is what kind of page is shown.
func (t *Trail) Viewed() Kind { return t.Page.Place().Kind }

// show shows a page as it is when it is come to.
func (t *Trail) show(p Page) {
	t.Page, t.Filtering = p, false
	if d, ok := p.(Detailed); ok {
		*d.Detail() = false
	}
	if f, ok := p.(fresh); ok {
		f.begin()
	}
}

// fresh is a page that is not left as it was.
type fresh interface{ begin() }

// Home goes to the first page, from where nothing leads back.
func (t *Trail) Home() {
	t.Before = nil
	t.show(t.home)
}

// open goes to a place; at makes its page.
func (t *Trail) open(to Place, at func(Place) Page) {
	// Where one was before is not gone to a second time: esc would walk in circles.
	for i, p := range t.Before {
		if p.Place() == to {
			t.Before = t.Before[:i]
			t.show(p)
			return
		}
	}
	t.Before = append(t.Before, t.Page)
	if len(t.Before) > MostBefore {
		t.Before = t.Before[1:]
	}
	t.show(at(to))
}

// Back closes what is open: a detail, a filter, the page.
func (t *Trail) Back(now time.Time) {
	if d, ok := t.Page.(Detailed); ok && *d.Detail() {
		*d.Detail() = false
		return
	}
	n := len(t.Before)
	switch f, ok := t.Page.(Filtered); {
	case ok && f.FilterSource() != "":
		t.ClearFilter(now)
	case t.Page == t.home:
	case n == 0: // further back than is remembered
		t.show(t.home)
	default:
		last := t.Before[n-1]
		t.Before = t.Before[:n-1]
		t.show(last)
	}
}

// ClearFilter lists all rows of the page again.
func (t *Trail) ClearFilter(now time.Time) {
	t.Filtering = false
	f := t.Page.(Filtered)
	f.FilterLine().Set("")
	f.Filter(now)
}

// Behind does something as on the page that the help was opened from.
func (t *Trail) Behind(do func()) {
	if n := len(t.Before); t.Viewed() == Help && n > 0 {
		here := t.Page
		t.Page = t.Before[n-1]
		defer func() { t.Page = here }()
	}
	do()
}
