package page

import (
	"fmt"
	"slices"
	"strings"

	"redlockctl/internal/view"
	"redlockctl/tui/styles"
)

// Order is the word of the column by which rows are sorted, followed by [desc] for the
// other direction; empty: unsorted.
type Order string

// Orders of the locks.
const (
	OrderNeeds Order = "state" // most urgent first
	OrderName  Order = "name"
	OrderEnds  Order = "ends"
)

// desc is the suffix of a reversed order.
const desc = ":desc"

// Column returns the column of an order.
func (o Order) Column() Order { return Order(strings.TrimSuffix(string(o), desc)) }

// Reversed returns the order in the other direction.
func (o Order) Reversed() Order {
	if o.Column() != o {
		return o.Column()
	}
	return o + desc
}

// Listed is a page whose columns and order can be chosen.
type Listed interface {
	Layout() *Layout // of the table with the cursor; nil if it cannot be changed
}

// Table is the user's choice of columns and order for a resource. A filter is never
// remembered: it would hide rows from somebody who does not know about it.
type Table struct {
	Columns []string `json:"columns,omitempty"` // empty: the default ones
	Wide    bool     `json:"wide,omitempty"`
	Sort    string   `json:"sort,omitempty"`
}

// Layout has the columns and the order of the rows of a resource.
type Layout struct {
	Of      string   // the resource in the plural: "locks"
	Order   Order    //
	Chosen  []string // columns
	Kept    Table
	usual   Order              // the default
	always  string             // the column that is always shown
	tells   string             // the column that shows urgency
	heads   func() []view.Head // of all columns
	changed func()             // lists the rows again; nil if not needed
	dropped []string           // chosen columns without room
	arrow   bool               // the head of a column shows the order
	// Where the names of the columns were drawn last, on the page and in their line.
	head     lineSpan
	headings []heading
}

// forget forgets where the names of the columns were drawn.
func (l *Layout) forget() { l.head = lineSpan{} }

// SortAt sorts by the column whose name was drawn at a cell of the page, and then in the
// other direction; it reports whether one was.
func (l *Layout) SortAt(x, y int) bool {
	if _, ok := l.head.at(x, y); !ok {
		return false
	}
	i := slices.IndexFunc(l.headings, func(h heading) bool { return x-l.head.left >= h.from && x-l.head.left < h.to && h.sort != "" })
	if i < 0 {
		return false
	}
	by := l.headings[i].sort
	if l.Order.Column() == by {
		by = l.Order.Reversed()
	}
	l.Sort(by)
	return true
}

// Unsorted resets the order and the columns to the defaults.
const Unsorted = "default"

// Words returns the columns that may be chosen, without the one that is always shown: all,
// or the default ones.
func (l *Layout) Words(all bool) (words []string) {
	for _, h := range l.heads() {
		if h.Word != l.always && (all || !h.Folded) && !slices.Contains(words, h.Word) {
			words = append(words, h.Word)
		}
	}
	return words
}

func (l *Layout) sortWords() (words []string) {
	for _, h := range l.heads() {
		if h.Sort != "" {
			words = append(words, h.Sort)
		}
	}
	return words
}

// SortOffers returns the completions of an order; a complete one is offered reversed.
func (l *Layout) SortOffers(word string) []string {
	words := l.sortWords()
	if slices.Contains(words, strings.ToLower(strings.TrimSuffix(word, ":"))) || strings.Contains(word, ":") {
		for _, w := range slices.Clone(words) {
			words = append(words, w+desc)
		}
	}
	return append(words, Unsorted)
}

// ColumnOffers returns the words for choosing columns.
func (l *Layout) ColumnOffers() []string {
	all := l.Words(true)
	words := append([]string{Unsorted}, all...)
	for _, w := range all {
		words = append(words, "+"+w, "-"+w)
	}
	return words
}

// SortAs sorts by COLUMN, its word or the beginning of it, or by COLUMN:asc or COLUMN:desc.
func (l *Layout) SortAs(said string) error {
	if said == "" || strings.HasPrefix(Unsorted, said) {
		l.Sort(l.usual)
		return nil
	}
	word, reversed, err := view.ParseSort(l.sortWords(), said)
	if err != nil {
		return err
	}
	if reversed {
		word += desc
	}
	l.Sort(Order(word))
	return nil
}

// setUsual changes the default order.
func (l *Layout) setUsual(o Order) {
	if l.Order == l.usual {
		l.Order = o
	}
	l.usual = o
}

// Sort sorts by an order.
func (l *Layout) Sort(o Order) {
	if l.Kept.Sort = string(o); o == l.usual {
		l.Kept.Sort = ""
	}
	if l.Order != o {
		l.Order = o
		l.listAnew()
	}
}

func (l *Layout) listAnew() {
	if l.changed != nil {
		l.changed()
	}
}

// Next returns the order by the next chosen column; after the last one rows are unsorted.
func (l *Layout) Next() Order {
	var all []Order
	if l.usual == "" {
		all = append(all, l.usual)
	}
	for _, h := range l.heads() {
		if h.Own && (h.Word == l.always || slices.Contains(l.Chosen, h.Word)) {
			all = append(all, Order(h.Sort))
		}
	}
	return all[(slices.Index(all, l.Order.Column())+1)%len(all)]
}

// Turned returns the reversed order; unsorted rows stay unsorted.
func (l *Layout) Turned() Order {
	if l.Order == "" {
		return Order(l.sortWords()[0]) + desc
	}
	return l.Order.Reversed()
}

// Say says what comes first.
func (l *Layout) Say() string {
	by := l.Order.Column()
	for _, h := range l.heads() {
		switch {
		case h.Sort != string(by) || by == "":
		case by != l.Order && h.Last != "":
			return h.Last
		case by == l.Order && h.First != "":
			return h.First
		case h.First != "":
			return h.First + ", reversed"
		}
	}
	switch {
	case by == "":
		return "as configured"
	case by != l.Order:
		return string(by) + ", reversed"
	}
	return string(by)
}

// Lay restores a remembered choice. It skips unknown columns and returns them.
func (l *Layout) Lay(kept Table) (strange []string) {
	all := l.Words(true)
	kept.Columns = slices.DeleteFunc(slices.Clone(kept.Columns), func(w string) bool {
		known := slices.Contains(all, w)
		if !known {
			strange = append(strange, "column "+w)
		}
		return !known
	})
	l.Kept = kept
	if err := l.SortAs(kept.Sort); err != nil {
		strange = append(strange, "sort "+kept.Sort)
		l.Sort(l.usual)
	}
	l.choose()
	return strange
}

// choose shows the remembered columns as far as they fit; without any, the default ones.
func (l *Layout) choose() {
	if l.Chosen = l.Kept.Columns; len(l.Chosen) == 0 || l.Kept.Wide {
		l.Chosen = l.Words(l.Kept.Wide)
	}
	l.dropped = nil
	l.listAnew()
}

// Widen shows all columns, or the previous ones again.
func (l *Layout) Widen() {
	l.Kept.Wide = !l.Kept.Wide
	l.choose()
}

// ChooseAs chooses columns: a list, or changes to the present list.
func (l *Layout) ChooseAs(said []string) error {
	all := l.Words(true)
	set := slices.Clone(l.Kept.Columns)
	if len(set) == 0 {
		set = l.Words(false)
	}
	whole := false
	for _, w := range said {
		if w == Unsorted {
			set, whole = l.Words(false), false
			continue
		}
		word := strings.ToLower(strings.TrimLeft(w, "+-"))
		name, err := view.WordOf(word, all)
		if word == l.always { // allowed, as in --columns
			name, err = word, nil
		}
		switch {
		case err != nil:
			return err
		case name == l.always && w[0] == '-':
			return fmt.Errorf("%s is always there", name)
		case w[0] == '-':
			set = slices.DeleteFunc(set, func(s string) bool { return s == name })
			continue
		case w[0] != '+' && !whole:
			set, whole = nil, true
		}
		set = append(set, name)
	}
	words := slices.DeleteFunc(all, func(w string) bool { return !slices.Contains(set, w) })
	if len(words) == 0 {
		return fmt.Errorf("choose one column beside %s at least", l.always)
	}
	if slices.Equal(words, l.Words(false)) {
		words = nil
	}
	l.Kept.Columns, l.Kept.Wide = words, false
	l.choose()
	return nil
}

// Hides returns the column that shows urgency if it is not chosen; otherwise empty.
func (l *Layout) Hides() string {
	if l.tells == "" || slices.Contains(l.Chosen, l.tells) {
		return ""
	}
	return strings.ToUpper(l.tells)
}

// Unusual reports whether the rows are not listed by urgency.
func (l *Layout) Unusual() bool { return l.Order != l.usual || l.Hides() != "" || len(l.dropped) > 0 }

// listing says in a title how the rows are listed if urgent rows may be hidden or moved, so
// that nobody takes the screen for calm. An order is said by an arrow in the head of its
// column, if that is there.
func (l *Layout) listing(st *styles.Styles) string {
	var parts []string
	if w := l.Hides(); w != "" {
		parts = append(parts, st.Warn.Of("without "+w))
	}
	if n := len(l.dropped); n > 0 {
		text := "no room: " + l.dropped[0]
		if n > 1 {
			text += " +" + view.Count(n-1)
		}
		parts = append(parts, st.Warn.Of(text))
	}
	if l.Order != l.usual && !l.arrow {
		parts = append(parts, st.Warn.Of("sort: "+l.Say()))
	}
	return strings.Join(parts, " "+st.Sep+" ")
}

// asked reports whether the user chose the columns.
func (l *Layout) asked() bool { return len(l.Kept.Columns) > 0 && !l.Kept.Wide }
