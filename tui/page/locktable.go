package page

import (
	"context"

	"redlockctl/monitor"
	"redlockctl/tui/input"
)

// lockTable is which locks are listed, in which order, and which one is under
// the cursor. Until somebody moves it or looks at a lock, the cursor is at the
// top, where what needs a person comes in. From then on it stands on a lock, known
// by its key: whatever is sorted, filtered or expires, it never slides to another
// one that happens to take the row.
//
// Nothing in it looks at all locks, but a build: of few locks at once, of many
// in a command of its own (see [lockTable.build]) while the old listing stands.
type lockTable struct {
	set    monitor.Locks // the latest
	nodes  []monitor.Node
	index  *lockIndex
	all    *lockIndex // all locks in that order, also while a filter is on; nil: not at hand
	fixed  *lockIndex // the listing as it was when a dialog opened; nil: none is open
	Order  Order
	filter monitor.Filter
	line   input.Line // in which the filter is typed
	Source string     // the filter as it was applied
	values Values     // that it may ask for

	generation int      // of what is wanted; a build of an older one is too late
	stop       func()   // ends the build that is on its way; nil: none is
	missed     []string // keys that changed since it began
	lost       bool     // too many of them to keep
	Stale      bool     // what is listed is not what is wanted
	reading    bool     // the first view is not complete: all is going to change
	later      bool     // a build is put off until then
	ticks      int      // since it was

	key    string // of the lock under the cursor
	Pos    int    // its place; -1: there is none
	top    int    // first row in sight
	Chosen bool   // a person put the cursor there
}

const (
	// atOnce is the most locks that are sorted in the program's goroutine.
	atOnce = 4096
	// mostChanges is the most changes that are taken in one by one; a build is
	// cheaper than more of them.
	MostChanges = 4096
	// putOff is for how many seconds the first of many locks stand while the others are being
	// read, so that what is read is not sorted again and again.
	putOff = 5
)

func newLockTable() lockTable {
	return lockTable{line: input.New(""), Pos: -1, index: NewLockIndex(context.Background(), monitor.Locks{}, nil, OrderNeeds, monitor.Filter{})}
}

// show lists another set of locks. keys are those in which it differs from the
// one before, if that is known; reading says that the first view is not complete.
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

// follow brings the listings of the set before the latest to that one; keys are those in which they
// differ.
func (t *lockTable) follow(before monitor.Locks, keys []string) {
	old := t.index.copy()
	for _, x := range []*lockIndex{t.all, t.index} {
		if x != nil && x.set == before {
			x.nodes = t.nodes
			x.update(t.set, keys)
		}
	}
	t.settle(old)
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

// abandon ends the build that is on its way: it is for what nobody wants any more.
func (t *lockTable) abandon() {
	if t.stop != nil {
		t.stop()
	}
	t.generation++
	t.stop, t.missed, t.lost = nil, nil, false
	t.later, t.ticks = false, 0
}

// invalidate has the listing made anew: at once if that is quick.
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

// whole is the listing of all locks in the order that is wanted; nil: it is not at hand.
func (t *lockTable) whole() *lockIndex {
	if t.all != nil && t.all.set != t.set {
		t.all = nil
	}
	return t.all
}

// Built is an index that was made aside; none where the build was abandoned.
type Built struct {
	generation int
	index      *lockIndex
}

// Build is what has to be run aside to make the listing anew; nil: nothing has.
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

// Take uses an index that was made aside.
func (t *lockTable) Take(b Built) {
	if b.generation != t.generation || t.stop == nil {
		return // something else is wanted by now
	}
	missed, lost := t.missed, t.lost
	t.abandon()
	if t.Stale = lost; !lost { // else it is used all the same, and the next one made
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
	t.settle(old)
}

func (t *lockTable) SetOrder(o Order) {
	if t.Order != o {
		t.Order, t.all = o, nil
		t.invalidate()
	}
}

func (t *lockTable) setFilter(f monitor.Filter, source string) {
	t.Source, t.filter = source, f
	t.invalidate()
}

// learn looks for the values of the filter's fields in the locks of now: of few at once, of
// many by what it returns, which is to be run aside.
func (t *lockTable) learn() func() Values {
	t.values.made++
	set, nodes, made := t.set, t.nodes, t.values.made
	work := portions{ctx: context.Background()}
	look := func() Values { return Values{monitor.FilterValues(work.all(set.All()), nodes), made} }
	if set.Len() > atOnce {
		return look
	}
	t.values = look()
	return nil
}

// Know takes in values that were looked for aside.
func (t *lockTable) Know(v Values) {
	if v.made == t.values.made {
		t.values = v
	}
}

// tick brings what depends on time alone up to now.
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
}

// Pin has the rows stand still, whatever becomes of the locks in them.
func (t *lockTable) Pin(on bool) {
	switch {
	case on && t.fixed == nil:
		t.fixed = t.index.copy()
		t.Chosen = true
	case !on && t.fixed != nil:
		old := t.fixed
		t.fixed = nil
		t.settle(old)
	}
}

// Listing is what the rows are made of.
func (t *lockTable) Listing() *lockIndex {
	if t.fixed != nil {
		return t.fixed
	}
	return t.index
}

func (t *lockTable) Len() int { return t.Listing().len() }

// mostSteps bounds how far a neighbour is looked for.
const mostSteps = 2000

// settle puts the cursor back on its lock; where that is gone, on the nearest
// of its former neighbours that is left: the next one, else the one before.
func (t *lockTable) settle(before *lockIndex) {
	if t.fixed != nil {
		return // the rows stand
	}
	was := max(t.Pos, 0)
	t.Pos = -1
	if t.index.len() == 0 {
		return
	}
	if !t.Chosen {
		t.place(0)
		return
	}
	if l := t.index.Find(t.key); l != nil {
		t.place(t.index.place(l))
		return
	}
	left := func(i int) bool {
		l := before.At(i)
		if l == nil {
			return false
		}
		if l = t.index.Find(l.Key.Raw()); l == nil {
			return false
		}
		t.place(t.index.place(l))
		return true
	}
	for i := was + 1; i < before.len() && i <= was+mostSteps; i++ {
		if left(i) {
			return
		}
	}
	for i := min(was, before.len()) - 1; i >= 0 && i >= was-mostSteps; i-- {
		if left(i) {
			return
		}
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
		t.Chosen = true
		t.place(max(0, min(n-1, max(t.Pos, 0)+d)))
	}
}

// Jump puts the cursor on the lock with this key, if it is listed.
func (t *lockTable) Jump(key string) bool {
	x := t.Listing()
	l := x.Find(key)
	if l != nil {
		t.Chosen = true
		t.place(x.place(l))
	}
	return l != nil
}

// Selected is the lock under the cursor; nil where there is none.
func (t *lockTable) Selected() *monitor.Lock {
	l := t.Listing().At(t.Pos)
	if l == nil {
		return nil
	}
	return t.latest(l)
}

// latest is a listed lock as it is now; the rows of a listing that stands still,
// or is about to be made anew, are older. It is nil where it is gone.
func (t *lockTable) latest(l *monitor.Lock) *monitor.Lock {
	if t.fixed == nil && !t.Stale {
		return l
	}
	return t.set.Get(l.Key.Raw())
}

// window is the rows in sight when h fit, from t.top on; the cursor is among
// them.
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
