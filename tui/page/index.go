package page

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"time"

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
	work := portions{ctx: ctx}
	for l := range work.chosen(set.All(), f, nodes) {
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
	if !work.sort(rows, by) {
		return nil
	}
	x.load(func(yield func(*monitor.Lock) bool) {
		for _, r := range rows {
			if !work.goOn() || !yield(r.lock) {
				return
			}
		}
	})
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
	work, c := portions{ctx: ctx}, *x
	c.Filter = f
	c.load(work.chosen(func(yield func(*monitor.Lock) bool) { x.tree.Scan(yield) }, f, x.nodes))
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

// portions splits work on very many locks. Between two portions it checks whether the work
// is still wanted, and sleeps so that others can run, such as the goroutine that draws the
// response to a key. Yielding is not enough: while all processors are busy, timers and input
// can wait for many milliseconds during a garbage collection.
type portions struct {
	ctx    context.Context
	done   int // locks processed
	rested time.Time
}

const (
	portion   = 256 // locks: less than a millisecond
	restAfter = time.Millisecond
	rest      = 100 * time.Microsecond
)

// goOn counts a lock and reports whether the work is still wanted.
func (p *portions) goOn() bool {
	if p.done++; p.done%portion != 0 {
		return true
	}
	switch {
	case p.rested.IsZero():
		p.rested = time.Now()
	case time.Since(p.rested) >= restAfter:
		time.Sleep(rest)
		p.rested = time.Now()
	}
	return p.ctx.Err() == nil
}

// all iterates over these locks while the work is wanted.
func (p *portions) all(locks iter.Seq[*monitor.Lock]) iter.Seq[*monitor.Lock] {
	return func(yield func(*monitor.Lock) bool) {
		for l := range locks {
			if !p.goOn() || !yield(l) {
				return
			}
		}
	}
}

// chosen iterates over the locks that match the filter, while the work is wanted.
func (p *portions) chosen(locks iter.Seq[*monitor.Lock], f monitor.Filter, nodes []monitor.Node) iter.Seq[*monitor.Lock] {
	return func(yield func(*monitor.Lock) bool) {
		for l := range p.all(locks) {
			if f.Match(l, nodes) && !yield(l) {
				return
			}
		}
	}
}

// sort is a stable merge sort in portions. It reports whether it finished.
func (p *portions) sort(rows []keyedLock, compare func(a, b keyedLock) int) bool {
	for some := range slices.Chunk(rows, portion) {
		slices.SortStableFunc(some, compare)
		if p.done += portion - 1; !p.goOn() {
			return false
		}
	}
	var spare []keyedLock
	for n := portion; n < len(rows); n *= 2 {
		for from := 0; from+n < len(rows); from += 2 * n {
			both := rows[from:min(from+2*n, len(rows))]
			if compare(both[n-1], both[n]) <= 0 {
				continue // already in order
			}
			spare = append(spare[:0], both[:n]...)
			if !p.merge(both, spare, both[n:], compare) {
				return false
			}
		}
	}
	return true
}

// merge merges the sorted rows a and b into both, of which b is the end. It reports whether
// it finished.
func (p *portions) merge(both, a, b []keyedLock, compare func(a, b keyedLock) int) bool {
	for i := 0; len(a) > 0; i++ {
		if !p.goOn() {
			return false
		}
		if len(b) > 0 && compare(b[0], a[0]) < 0 {
			both[i], b = b[0], b[1:]
		} else {
			both[i], a = a[0], a[1:]
		}
	}
	return true
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
