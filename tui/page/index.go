package page

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/tidwall/btree"

	"redlockctl/internal/view"
	"redlockctl/monitor"
)

// lockIndex has the listed locks in their order, as a counted B-tree: finding the place of
// a lock, or the lock at a place, and moving a lock take logarithmic time. The order
// depends only on the lock, and locks are immutable, so the old version of a lock gives its
// old place.
type lockIndex struct {
	order  func(a, b *monitor.Lock) int
	Filter monitor.Filter // when it was built
	nodes  []monitor.Node
	set    monitor.Locks // the locks from which tree was made
	tree   *btree.BTreeG[*monitor.Lock]
}

// NewLockIndex sorts all locks that match the filter. It may take long; it can run in any
// goroutine, and returns nil when ctx ends.
func NewLockIndex(ctx context.Context, set monitor.Locks, nodes []monitor.Node, o Order, f monitor.Filter) *lockIndex {
	compare, key := orderOf(o, nodes)
	x := &lockIndex{Filter: f, nodes: nodes, set: set, order: func(a, b *monitor.Lock) int {
		if n := compare(a, b); n != 0 {
			return n
		}
		return strings.Compare(a.Key.Raw(), b.Key.Raw())
	}}
	var rows []keyedLock
	if f.Empty() && ctx.Err() == nil {
		rows = make([]keyedLock, 0, set.Len())
	}
	for l := range chosen(ctx, set.All(), f, nodes) {
		r := keyedLock{lock: l}
		if key != nil {
			r.key = key(l)
		}
		rows = append(rows, r)
	}
	by := func(a, b keyedLock) int { return cmp.Compare(a.key, b.key) }
	if key == nil {
		by = func(a, b keyedLock) int { return compare(a.lock, b.lock) }
	}
	if ctx.Err() != nil {
		return nil
	}
	slices.SortStableFunc(rows, by)
	x.load(wanted(ctx, func(yield func(*monitor.Lock) bool) {
		for _, r := range rows {
			if !yield(r.lock) {
				return
			}
		}
	}))
	if ctx.Err() != nil {
		return nil
	}
	return x
}

// keyedLock is a lock to sort, with its sort key if the order has a numeric one.
type keyedLock struct {
	key  int64
	lock *monitor.Lock
}

// choose returns an index of the locks in x that match a filter. They are already sorted. It
// only reads x, and gives up like [NewLockIndex].
func (x *lockIndex) choose(ctx context.Context, f monitor.Filter) *lockIndex {
	c := *x
	c.Filter = f
	c.load(chosen(ctx, func(yield func(*monitor.Lock) bool) { x.tree.Scan(yield) }, f, x.nodes))
	if ctx.Err() != nil {
		return nil
	}
	return &c
}

// load makes the tree from sorted locks.
func (x *lockIndex) load(sorted iter.Seq[*monitor.Lock]) {
	order := x.order
	x.tree = btree.NewBTreeGOptions(func(a, b *monitor.Lock) bool { return order(a, b) < 0 }, btree.Options{NoLocks: true})
	for l := range sorted {
		x.tree.Load(l)
	}
}

// orderOf returns how an order compares locks, and the numeric key if there is one. Equal
// locks are ordered by name.
func orderOf(o Order, nodes []monitor.Node) (compare func(a, b *monitor.Lock) int, key func(*monitor.Lock) int64) {
	columns := view.LockColumns(nodes)
	compare, key, err := view.Sort(columns, string(o))
	if err != nil {
		compare, key, _ = view.Sort(columns, string(OrderNeeds))
	}
	return compare, key
}

// portion is how many locks are processed between two checks whether the work is still
// wanted.
const portion = 256

// wanted iterates over these locks until ctx ends.
func wanted(ctx context.Context, locks iter.Seq[*monitor.Lock]) iter.Seq[*monitor.Lock] {
	return func(yield func(*monitor.Lock) bool) {
		done := 0
		for l := range locks {
			if done++; done%portion == 0 && ctx.Err() != nil || !yield(l) {
				return
			}
		}
	}
}

// chosen iterates over the locks that match the filter, until ctx ends.
func chosen(ctx context.Context, locks iter.Seq[*monitor.Lock], f monitor.Filter, nodes []monitor.Node) iter.Seq[*monitor.Lock] {
	return func(yield func(*monitor.Lock) bool) {
		for l := range wanted(ctx, locks) {
			if f.Match(l, nodes) && !yield(l) {
				return
			}
		}
	}
}

// update changes the index to another set that differs at most in these keys.
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

// copy returns an independent copy of the index.
func (x *lockIndex) copy() *lockIndex {
	c := *x
	c.tree = x.tree.Copy()
	return &c
}

func (x *lockIndex) len() int { return x.tree.Len() }

// At returns the lock at a place, or nil.
func (x *lockIndex) At(i int) *monitor.Lock {
	if i < 0 || i >= x.tree.Len() {
		return nil
	}
	l, _ := x.tree.GetAt(i)
	return l
}

// Find returns the lock with this key, if it is listed.
func (x *lockIndex) Find(key string) *monitor.Lock {
	l := x.set.Get(key)
	if l == nil {
		return nil
	}
	listed, _ := x.tree.Get(l)
	return listed
}

// lists reports whether the lock with l's key is listed.
func (x *lockIndex) lists(l *monitor.Lock) bool { return l != nil && x.Find(l.Key.Raw()) != nil }

// place returns how many locks are listed before l.
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
