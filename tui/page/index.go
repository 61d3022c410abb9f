package page

import (
	"slices"

	"github.com/tidwall/btree"

	"redlockctl/monitor"
)

// Order is how the locks are sorted.
type Order uint8

const (
	OrderNeeds Order = iota
	OrderName
	OrderEnds
	orderCopies
	Orders
)

func (o Order) String() string {
	return [...]string{"needs you first", "name", "ends soonest", "fewest copies"}[o]
}

// Word is the order as a command names it.
func (o Order) Word() string { return [...]string{"needs", "name", "ends", "copies"}[o] }

// OrderOf is the order with this word; false: there is none.
func OrderOf(word string) (Order, bool) {
	for o := range Orders {
		if o.Word() == word {
			return o, true
		}
	}
	return OrderNeeds, false
}

// rank is what an order sorts by before the name.
func (o Order) rank(l *monitor.Lock) int64 {
	switch o {
	case OrderNeeds:
		return -int64(need(l.State))
	case OrderEnds:
		end, forever := l.End()
		switch {
		case forever:
			return 1<<63 - 1
		case end.IsZero():
			return -1 << 63
		}
		return end.UnixNano()
	case orderCopies:
		return int64(l.Held)
	default:
		return 0
	}
}

func (o Order) less(a, b *monitor.Lock) bool {
	if ra, rb := o.rank(a), o.rank(b); ra != rb {
		return ra < rb
	}
	return a.Key.Raw() < b.Key.Raw()
}

// need is how much a state needs a person. States that come and go by
// themselves many times a second are one, so that the rows stand still.
func need(s monitor.LockState) int {
	switch s {
	case monitor.LockHeld, monitor.LockExpiring, monitor.LockPartial:
		return 0
	default:
		return int(s)
	}
}

// lockIndex is the locks that are listed, in their order: a counted B-tree, so
// that a place and a rank are found, and a lock is moved, without a look at the
// others. A lock's rank is a function of the lock alone, and locks are
// immutable; so where a lock stands is known from the set that it came from.
type lockIndex struct {
	order  Order
	Filter monitor.Filter // at the moment when it was built
	nodes  []monitor.Node
	set    monitor.Locks // what tree was made of
	tree   *btree.BTreeG[*monitor.Lock]
}

// NewLockIndex sorts all locks that the filter chooses. It touches nothing else,
// and may take long.
func NewLockIndex(set monitor.Locks, nodes []monitor.Node, o Order, f monitor.Filter) *lockIndex {
	x := &lockIndex{order: o, Filter: f, nodes: nodes, set: set,
		tree: btree.NewBTreeGOptions(o.less, btree.Options{NoLocks: true})}
	type ranked struct {
		rank int64
		lock *monitor.Lock
	}
	listed := make([]ranked, 0, set.Len())
	for l := range set.All() {
		if f.Match(l, nodes) {
			listed = append(listed, ranked{o.rank(l), l})
		}
	}
	// They come sorted by key, and a stable sort keeps that within a rank.
	slices.SortStableFunc(listed, func(a, b ranked) int {
		switch {
		case a.rank < b.rank:
			return -1
		case a.rank > b.rank:
			return 1
		}
		return 0
	})
	for _, r := range listed {
		x.tree.Load(r.lock)
	}
	return x
}

// update brings the index to another set, which differs from its own in these
// keys at most.
func (x *lockIndex) update(set monitor.Locks, keys []string) {
	for _, k := range keys {
		old, now := x.set.Get(k), set.Get(k)
		if old == now {
			continue
		}
		if old != nil {
			x.tree.Delete(old)
		}
		if now != nil && x.Filter.Match(now, x.nodes) {
			x.tree.Set(now)
		}
	}
	x.set = set
}

// copy is the index as it is now; what becomes of x does not change it.
func (x *lockIndex) copy() *lockIndex {
	c := *x
	c.tree = x.tree.Copy()
	return &c
}

func (x *lockIndex) len() int { return x.tree.Len() }

// At is the lock at a place, or nil.
func (x *lockIndex) At(i int) *monitor.Lock {
	if i < 0 || i >= x.tree.Len() {
		return nil
	}
	l, _ := x.tree.GetAt(i)
	return l
}

// Find is the lock with this key, if it is listed.
func (x *lockIndex) Find(key string) *monitor.Lock {
	l := x.set.Get(key)
	if l == nil {
		return nil
	}
	listed, _ := x.tree.Get(l)
	return listed
}

// place is how many locks are listed before l.
func (x *lockIndex) place(l *monitor.Lock) int {
	low, high := 0, x.tree.Len()
	for low < high {
		mid := int(uint(low+high) >> 1)
		if at, _ := x.tree.GetAt(mid); x.order.less(at, l) {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}
