package page

import (
	"strings"

	"redlockctl/internal/view"
	"redlockctl/monitor"
)

// lockColumns are those by which locks are sorted: of no nodes.
var lockColumns = view.LockColumns(nil)

// Order is how the locks are sorted: by the column of this word.
type Order string

const (
	OrderNeeds Order = "state" // what needs a person first
	OrderName  Order = "name"
	OrderEnds  Order = "ends"
)

// Orders are all, in the order in which a key goes through them.
func Orders() (all []Order) {
	for _, c := range lockColumns {
		if c.Compare != nil {
			all = append(all, Order(c.Word()))
		}
	}
	return all
}

// OrderOf is the order that a person had chosen; the usual one, and false, if there is no such.
// None is the usual one.
func OrderOf(word string, nodes []monitor.Node) (Order, bool) {
	if word == "" {
		return OrderNeeds, true
	}
	o, err := ParseOrder(word, nodes)
	if err != nil {
		return OrderNeeds, false
	}
	return o, true
}

// ParseOrder reads an order: COLUMN, by its word or the beginning of it, COLUMN:asc or COLUMN:desc.
func ParseOrder(said string, nodes []monitor.Node) (Order, error) {
	columns := view.LockColumns(nodes)
	if _, err := view.Sort(columns, said); err != nil {
		return "", err
	}
	name, way, _ := strings.Cut(said, ":")
	word, err := view.WordOf(name, view.SortWords(columns))
	if o := Order(word); way == "desc" {
		return o.Reversed(), err
	}
	return Order(word), err
}

// desc ends the word of an order that begins with what comes last otherwise.
const desc = ":desc"

// Column is the column by which an order sorts, either way.
func (o Order) Column() Order { return Order(strings.TrimSuffix(string(o), desc)) }

// Reversed is the order the other way round.
func (o Order) Reversed() Order {
	if o.Column() != o {
		return o.Column()
	}
	return o + desc
}

// compare compares locks by an order; those that are equal, by their keys.
func (o Order) compare(nodes []monitor.Node) func(a, b *monitor.Lock) int {
	by, err := view.Sort(view.LockColumns(nodes), string(o))
	if err != nil {
		by, _ = view.Sort(lockColumns, string(OrderNeeds))
	}
	return func(a, b *monitor.Lock) int {
		if n := by(a, b); n != 0 {
			return n
		}
		return strings.Compare(a.Key.Raw(), b.Key.Raw())
	}
}

// String says what stands first.
func (o Order) String() string {
	if o.Column() != o {
		return o.Column().String() + ", reversed"
	}
	for _, c := range lockColumns {
		if c.Word() == string(o) && c.First != "" {
			return c.First
		}
	}
	return string(o)
}
