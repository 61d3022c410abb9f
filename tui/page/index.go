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

// NewLockIndex sorts all locks that the filter chooses. It touches nothing else, and may take
// long: when ctx ends it gives up and returns nil.
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

// keyedLock is a lock that is being sorted, and the number to sort it by, if one says the order.
type keyedLock struct {
	key  int64
	lock *monitor.Lock
}

// choose is the index of those of its locks that the filter chooses: they stand sorted in it. It only
// reads x, and gives up as [NewLockIndex] does.
func (x *lockIndex) choose(ctx context.Context, f monitor.Filter) *lockIndex {
	work, c := portions{ctx: ctx}, *x
	c.Filter = f
	c.load(work.chosen(func(yield func(*monitor.Lock) bool) { x.tree.Scan(yield) }, f, x.nodes))
	if ctx.Err() != nil {
		return nil
	}
	return &c
}

// load makes the tree of locks that come sorted.
func (x *lockIndex) load(sorted iter.Seq[*monitor.Lock]) {
	order := x.order
	x.tree = btree.NewBTreeGOptions(func(a, b *monitor.Lock) bool { return order(a, b) < 0 }, btree.Options{NoLocks: true})
	for l := range sorted {
		x.tree.Load(l)
	}
}

// orderOf compares locks by an order, by a key of each if there is one. Those that are equal stand
// in the order of their names.
func orderOf(o Order, nodes []monitor.Node) (compare func(a, b *monitor.Lock) int, key func(*monitor.Lock) int64) {
	columns := view.LockColumns(nodes)
	compare, key, err := view.Sort(columns, string(o))
	if err != nil {
		compare, key, _ = view.Sort(columns, string(OrderNeeds))
	}
	return compare, key
}

// portions is work on very many locks that is done in portions: between two of them it is looked
// whether the work is still wanted, and others have their turn, as the goroutine that draws what a
// key does. For that it sleeps: while a processor always has work, nobody looks after the timers and
// the input that wait for another one, which collects garbage for many milliseconds.
type portions struct {
	ctx    context.Context
	done   int // locks
	rested time.Time
}

const (
	portion   = 256 // locks: less than a millisecond
	restAfter = time.Millisecond
	rest      = 100 * time.Microsecond
)

// goOn counts a lock. It reports whether the work is still wanted.
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

// all are these locks, while the work is wanted.
func (p *portions) all(locks iter.Seq[*monitor.Lock]) iter.Seq[*monitor.Lock] {
	return func(yield func(*monitor.Lock) bool) {
		for l := range locks {
			if !p.goOn() || !yield(l) {
				return
			}
		}
	}
}

// chosen are those of these locks that the filter chooses, while the work is wanted.
func (p *portions) chosen(locks iter.Seq[*monitor.Lock], f monitor.Filter, nodes []monitor.Node) iter.Seq[*monitor.Lock] {
	return func(yield func(*monitor.Lock) bool) {
		for l := range p.all(locks) {
			if f.Match(l, nodes) && !yield(l) {
				return
			}
		}
	}
}

// sort sorts rows, and leaves those that are equal in their order: portions of them, and then two
// neighbours at a time into one. It reports whether it got to the end.
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
				continue // as where they come in the order that is wanted
			}
			spare = append(spare[:0], both[:n]...)
			if !p.merge(both, spare, both[n:], compare) {
				return false
			}
		}
	}
	return true
}

// merge puts the rows of a and b, which are sorted, into both in their order; b is the end of
// both. It reports whether it got to the end.
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
