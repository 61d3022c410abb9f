package page

import (
	"slices"

	"github.com/tidwall/btree"

	"redlockctl/monitor"
)

// lockIndex is the locks that are listed, in their order: a counted B-tree, so
// that a place and a rank are found, and a lock is moved, without a look at the
// others. A lock's rank is a function of the lock alone, and locks are
// immutable; so where a lock stands is known from the set that it came from.
type lockIndex struct {
	order  func(a, b *monitor.Lock) int
	Filter monitor.Filter // at the moment when it was built
	nodes  []monitor.Node
	set    monitor.Locks // what tree was made of
	tree   *btree.BTreeG[*monitor.Lock]
}

// NewLockIndex sorts all locks that the filter chooses. It touches nothing else,
// and may take long.
func NewLockIndex(set monitor.Locks, nodes []monitor.Node, o Order, f monitor.Filter) *lockIndex {
	compare := o.compare(nodes)
	x := &lockIndex{order: compare, Filter: f, nodes: nodes, set: set,
		tree: btree.NewBTreeGOptions(func(a, b *monitor.Lock) bool { return compare(a, b) < 0 }, btree.Options{NoLocks: true})}
	listed := make([]*monitor.Lock, 0, set.Len())
	for l := range set.All() {
		if f.Match(l, nodes) {
			listed = append(listed, l)
		}
	}
	slices.SortFunc(listed, compare)
	for _, l := range listed {
		x.tree.Load(l)
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
		if at, _ := x.tree.GetAt(mid); x.order(at, l) < 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}
