package page

import (
	"context"

	"redlockctl/monitor"
	"redlockctl/tui/input"
)

// lockTable has the listed locks, their order and the cursor. Until the user moves it, opens
// a lock or asks to act on one, the cursor stays at the top, where urgent locks appear. From
// then on it stays on one lock, known by its key: sorting, filtering and expiry never move it to
// another lock that takes the same row. If a new filter does not choose it, or it is gone and the user
// never moved the cursor, the cursor is at the top again.
//
// Only a build processes all locks: at once if they are few, otherwise in the background
// (see [lockTable.build]) while the old listing is shown.
type lockTable struct {
	set    monitor.Locks // the latest
	nodes  []monitor.Node
	index  *lockIndex
	all    *lockIndex // all locks in this order, unfiltered; nil if not available
	fixed  *lockIndex // the listing when a dialog opened; nil if none is open
	Order  Order
	filter monitor.Filter
	line   input.Line // the text field of the filter
	wrong  error      // what is wrong with the typed filter; nil if it is applied
	kept   string     // applied while the typed filter is wrong
	Source string     // of the filter that is applied
	values Values     // values that it may name
	refits bool       // the filter was changed since the last listing

	generation int      // of the requested listing; an older build is obsolete
	stop       func()   // cancels the running build; nil if none
	missed     []string // keys that changed since the build began
	lost       bool     // too many keys changed
	Stale      bool     // the listing is not the requested one
	reading    bool     // the first read is not complete
	later      bool     // a build is delayed until then
	ticks      int      // seconds of the delay

	key    string // of the lock under the cursor
	Pos    int    // its place; -1 if there is none
	top    int    // first visible row
	Chosen bool   // the cursor stays on that lock
	moved  bool   // because the user put it there
}

const (
	// atOnce is how many locks are sorted in the program's goroutine at most.
	atOnce = 4096
	// mostChanges is how many changes are applied one by one; for more a build is cheaper.
	MostChanges = 4096
	// putOff is for how many seconds a build is delayed during the first read of many locks,
	// so that they are not sorted again and again.
	putOff = 5
)

func newLockTable() lockTable {
	return lockTable{line: input.New(""), Pos: -1, index: NewLockIndex(context.Background(), monitor.Locks{}, nil, OrderNeeds, monitor.Filter{})}
}

// show lists another set of locks. keys are the changed ones, if they are known; reading
// says that the first read is not complete.
func (t *lockTable) show(set monitor.Locks, nodes []monitor.Node, keys []string, known, reading bool) {
	same, before := sameNames(t.nodes, nodes), t.set
	t.set, t.nodes, t.reading = set, nodes, reading
	much := !known || len(keys) > MostChanges
	switch {
	case same && reading && t.stop == nil && set.Len() > atOnce && t.Len() > 0:
		t.Stale, t.later = true, true
	case !same:
		t.all = nil
		t.invalidate()
	case t.stop == nil && (t.Stale || much):
		t.invalidate()
	case much || len(t.missed) > MostChanges:
		t.missed, t.lost = nil, true
	default:
		if t.stop != nil {
			t.missed = append(t.missed, keys...)
		}
		t.follow(before, keys)
	}
}

// follow updates the listings to the latest set; keys are the changed ones.
func (t *lockTable) follow(before monitor.Locks, keys []string) {
	old := t.index.copy()
	for _, x := range []*lockIndex{t.all, t.index} {
		if x != nil && x.set == before {
			x.nodes = t.nodes
			x.update(t.set, keys)
		}
	}
	t.settle(old)
	t.prove(0)
}

// prove rebuilds the listing if it differs from the set, as after a change that was not
// reported: by its length, or by one of so many visible rows.
func (t *lockTable) prove(rows int) {
	x := t.index
	if t.Stale || t.stop != nil || x.set != t.set {
		return
	}
	wrong := x.len() > t.set.Len() || x.Filter.Empty() && x.len() < t.set.Len()
	for i := t.top; i < min(t.top+rows, x.len()) && !wrong; i++ {
		l := x.At(i)
		wrong = t.set.Get(l.Key.Raw()) != l
	}
	if wrong {
		t.all = nil
		t.invalidate()
	}
}

func sameNames(a, b []monitor.Node) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Name != b[i].Name {
			return false
		}
	}
	return true
}

// abandon cancels the running build.
func (t *lockTable) abandon() {
	if t.stop != nil {
		t.stop()
	}
	t.generation++
	t.stop, t.missed, t.lost = nil, nil, false
	t.later, t.ticks = false, 0
}

// invalidate rebuilds the listing, at once if that is quick.
func (t *lockTable) invalidate() {
	t.abandon()
	t.Stale = false
	switch all := t.whole(); {
	case all != nil && t.filter.Empty():
		t.use(all)
	case t.set.Len() <= atOnce:
		t.use(NewLockIndex(context.Background(), t.set, t.nodes, t.Order, t.filter))
	default:
		t.Stale = true
	}
}

// whole returns the unfiltered listing in the requested order; nil if not available.
func (t *lockTable) whole() *lockIndex {
	if t.all != nil && t.all.set != t.set {
		t.all = nil
	}
	return t.all
}

// Built is an index that was made in the background; nil if the build was cancelled.
type Built struct {
	generation int
	index      *lockIndex
}

// Build returns the background work that rebuilds the listing; nil if none is needed.
func (t *lockTable) Build() func() Built {
	if !t.Stale || t.stop != nil || t.later {
		return nil
	}
	ctx, stop := context.WithCancel(context.Background())
	t.stop = stop
	g, set, nodes, o, f := t.generation, t.set, t.nodes, t.Order, t.filter
	if all := t.whole(); all != nil {
		all = all.copy()
		return func() Built { return Built{g, all.choose(ctx, f)} }
	}
	return func() Built { return Built{g, NewLockIndex(ctx, set, nodes, o, f)} }
}

// Take uses an index that was made in the background.
func (t *lockTable) Take(b Built) {
	if b.generation != t.generation || t.stop == nil {
		return // obsolete
	}
	missed, lost := t.missed, t.lost
	t.abandon()
	if t.Stale = lost; !lost { // otherwise it is used until the next build
		b.index.update(t.set, missed)
		if b.index.Filter.Empty() {
			t.all = b.index
		}
	}
	t.use(b.index)
}

func (t *lockTable) use(x *lockIndex) {
	old := t.index
	t.index = x
	if t.refits && t.fixed == nil && x.Find(t.key) == nil {
		t.Chosen, t.moved = false, false
	}
	t.refits = false
	t.settle(old)
}

func (t *lockTable) SetOrder(o Order) {
	if t.Order != o {
		t.Order, t.all = o, nil
		t.invalidate()
	}
}

func (t *lockTable) setFilter(f monitor.Filter, source string) {
	t.refits = t.refits || source != t.Source
	t.Source, t.filter = source, f
	t.invalidate()
}

// learn collects the values of the filter's fields from the present locks: at once if they
// are few, otherwise by the function that it returns, to be run in the background.
func (t *lockTable) learn() func() Values {
	t.values.made++
	set, nodes, made := t.set, t.nodes, t.values.made
	look := func() Values { return Values{monitor.FilterValues(set.All(), nodes), made} }
	if set.Len() > atOnce {
		return look
	}
	t.values = look()
	return nil
}

// Know records values that were collected in the background.
func (t *lockTable) Know(v Values) {
	if v.made == t.values.made {
		t.values = v
	}
}

// tick updates what depends only on time.
func (t *lockTable) tick(f monitor.Filter) {
	if t.later {
		if t.ticks++; t.ticks >= putOff {
			t.invalidate()
		}
		return
	}
	if f.Timed() && t.stop == nil {
		t.filter = f
		t.invalidate()
	}
	t.prove(mostProven)
}

// mostProven is how many visible rows are proven once a second.
const mostProven = 200

// Pin freezes the row order while locks change.
func (t *lockTable) Pin(on bool) {
	switch {
	case on && t.fixed == nil:
		t.fixed = t.index.copy()
	case !on && t.fixed != nil:
		old := t.fixed
		t.fixed = nil
		t.settle(old)
	}
}

// Listing returns the index that is shown.
func (t *lockTable) Listing() *lockIndex {
	if t.fixed != nil {
		return t.fixed
	}
	return t.index
}

func (t *lockTable) Len() int { return t.Listing().len() }

// settle puts the cursor back on its lock, or, if that is gone, on the nearest former
// neighbour: the next row, or the previous one. If the user never moved it, it is at the top again.
func (t *lockTable) settle(before *lockIndex) {
	if t.fixed != nil {
		return // the rows are frozen
	}
	was := max(t.Pos, 0)
	t.Pos = -1
	if t.index.len() == 0 {
		return
	}
	l := t.index.Find(t.key)
	if l == nil && !t.moved {
		t.Chosen = false
	}
	if !t.Chosen {
		t.place(0)
		return
	}
	if l != nil {
		t.place(t.index.place(l))
		return
	}
	if i, ok := nearest(was, before.len(), func(i int) bool { return t.index.lists(before.At(i)) }); ok {
		t.place(t.index.place(t.index.Find(before.At(i).Key.Raw())))
		return
	}
	t.place(min(was, t.index.len()-1))
}

func (t *lockTable) place(pos int) {
	t.Pos = pos
	t.key = t.Listing().At(pos).Key.Raw()
}

// Move moves the cursor by d rows.
func (t *lockTable) Move(d int) {
	if n := t.Len(); n > 0 {
		t.choose()
		t.place(max(0, min(n-1, max(t.Pos, 0)+d)))
	}
}

// Jump moves the cursor to the lock with this key, if it is listed.
func (t *lockTable) Jump(key string) bool {
	x := t.Listing()
	l := x.Find(key)
	if l != nil {
		t.choose()
		t.place(x.place(l))
	}
	return l != nil
}

// choose says that the user puts the cursor on a lock.
func (t *lockTable) choose() { t.Chosen, t.moved = true, true }

// Selected returns the lock under the cursor; nil if there is none.
func (t *lockTable) Selected() *monitor.Lock {
	l := t.Listing().At(t.Pos)
	if l == nil {
		return nil
	}
	return t.latest(l)
}

// latest returns the present version of a listed lock, which is newer than the row if the
// listing is frozen or stale; nil if the lock is gone.
func (t *lockTable) latest(l *monitor.Lock) *monitor.Lock {
	if t.fixed == nil && !t.Stale {
		return l
	}
	return t.set.Get(l.Key.Raw())
}

// window returns the visible rows if h fit, from t.top on, the cursor included.
func (t *lockTable) window(h int) []*monitor.Lock {
	n := t.Len()
	if h <= 0 || n == 0 {
		return nil
	}
	t.top = scrollTo(t.top, max(t.Pos, 0), n, h)
	x := t.Listing()
	rows := make([]*monitor.Lock, 0, min(h, n))
	for i := t.top; i < min(n, t.top+h); i++ {
		rows = append(rows, x.At(i))
	}
	return rows
}
