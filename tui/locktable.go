package tui

import (
	"maps"
	"slices"
	"strings"
	"time"

	"redlockctl/monitor"
)

// order is how the locks are sorted.
type order uint8

const (
	orderNeeds order = iota
	orderName
	orderEnds
	orderCopies
	orders
)

func (o order) String() string {
	return [...]string{"needs you first", "name", "ends soonest", "fewest copies"}[o]
}

// lockTable is which locks are listed, in which order, and which one is under
// the cursor. The cursor stands on a lock, known by its key: whatever is sorted,
// filtered or expires, it never slides to another one that happens to take the
// row.
type lockTable struct {
	all    []monitor.Lock // sorted by key
	nodes  []monitor.Node
	states [monitor.LockImmortal + 1]int // how many locks are in each state
	rows   []int                         // what is listed: indexes into all
	order  order
	filter filter
	pinned bool // the order stays as it is

	key string // of the lock under the cursor
	pos int    // its index in rows; -1: there is none
	top int    // first row in sight
}

func newLockTable() lockTable { return lockTable{pos: -1} }

// listing is rows as they were, with the locks that they point at.
type listing struct {
	all  []monitor.Lock
	rows []int
}

func (l listing) key(i int) string { return l.all[l.rows[i]].Key.Raw() }

func (t *lockTable) set(locks []monitor.Lock, nodes []monitor.Node) {
	same := len(locks) == len(t.all) && len(locks) > 0 && &locks[0] == &t.all[0]
	t.nodes = nodes
	if same {
		return
	}
	byKey := func(a, b monitor.Lock) int { return strings.Compare(a.Key.Raw(), b.Key.Raw()) }
	if !slices.IsSortedFunc(locks, byKey) {
		locks = slices.SortedFunc(slices.Values(locks), byKey)
	}
	before := t.listing()
	t.all = locks
	t.states = [len(t.states)]int{}
	for i := range locks {
		if s := int(locks[i].State); s < len(t.states) {
			t.states[s]++
		}
	}
	t.arrange(before)
}

func (t *lockTable) listing() listing { return listing{t.all, t.rows} }

func (t *lockTable) setOrder(o order) {
	before := t.listing()
	t.order = o
	t.arrange(before)
}

func (t *lockTable) setFilter(f filter) {
	before := t.listing()
	t.filter = f
	t.arrange(before)
}

func (t *lockTable) pin(on bool) {
	if t.pinned == on {
		return
	}
	before := t.listing()
	t.pinned = on
	t.arrange(before)
}

// find is the index in all of a key, or -1.
func (t *lockTable) find(key string) int {
	i, ok := slices.BinarySearchFunc(t.all, key, func(l monitor.Lock, k string) int {
		return strings.Compare(l.Key.Raw(), k)
	})
	if !ok {
		return -1
	}
	return i
}

// arrange lists all locks anew; before is the listing until now.
func (t *lockTable) arrange(before listing) {
	rows := make([]int, 0, len(t.all))
	for i := range t.all {
		if t.filter.match(&t.all[i], t.nodes) {
			rows = append(rows, i)
		}
	}
	switch t.order {
	case orderNeeds:
		rows = buckets(rows, func(i int) int { return -need(t.all[i].State) })
	case orderEnds:
		slices.SortStableFunc(rows, func(a, b int) int {
			return ends(&t.all[a]).Compare(ends(&t.all[b]))
		})
	case orderCopies:
		rows = buckets(rows, func(i int) int { return t.all[i].Held })
	}
	if t.pinned {
		rows = t.keepOrder(rows, before)
	}
	t.rows = rows
	t.settle(before)
}

// buckets sorts rows by a rank of few values, lowest first, and within it by
// the order they had, which is by key.
func buckets(rows []int, rank func(int) int) []int {
	in := map[int][]int{}
	for _, r := range rows {
		k := rank(r)
		in[k] = append(in[k], r)
	}
	if len(in) < 2 {
		return rows
	}
	sorted := make([]int, 0, len(rows))
	for _, k := range slices.Sorted(maps.Keys(in)) {
		sorted = append(sorted, in[k]...)
	}
	return sorted
}

// keepOrder lists those of rows that were listed before in their old order, and
// what is new after them.
func (t *lockTable) keepOrder(rows []int, before listing) []int {
	listed := make(map[int]bool, len(rows))
	for _, r := range rows {
		listed[r] = true
	}
	kept := make([]int, 0, len(rows))
	for i := range before.rows {
		if r := t.find(before.key(i)); r >= 0 && listed[r] {
			kept = append(kept, r)
			delete(listed, r)
		}
	}
	for _, r := range rows {
		if listed[r] {
			kept = append(kept, r)
		}
	}
	return kept
}

// settle puts the cursor back on its lock; where that is gone, on the nearest
// of its former neighbours that is left: the next one, else the one before.
func (t *lockTable) settle(before listing) {
	was := max(t.pos, 0)
	t.pos = -1
	if len(t.rows) == 0 {
		return
	}
	if r := t.find(t.key); r >= 0 {
		if pos := slices.Index(t.rows, r); pos >= 0 {
			t.place(pos)
			return
		}
	}
	at := make(map[int]int, len(t.rows))
	for pos, r := range t.rows {
		at[r] = pos
	}
	left := func(i int) bool {
		r := t.find(before.key(i))
		pos, ok := at[r]
		if ok && r >= 0 {
			t.place(pos)
		}
		return ok && r >= 0
	}
	for i := was + 1; i < len(before.rows); i++ {
		if left(i) {
			return
		}
	}
	for i := min(was, len(before.rows)) - 1; i >= 0; i-- {
		if left(i) {
			return
		}
	}
	t.place(min(was, len(t.rows)-1))
}

func (t *lockTable) place(pos int) {
	t.pos = pos
	t.key = t.all[t.rows[pos]].Key.Raw()
}

// move moves the cursor by d rows.
func (t *lockTable) move(d int) {
	if len(t.rows) > 0 {
		t.place(max(0, min(len(t.rows)-1, max(t.pos, 0)+d)))
	}
}

// selected is the lock under the cursor; nil where there is none.
func (t *lockTable) selected() *monitor.Lock {
	if t.pos < 0 || t.pos >= len(t.rows) {
		return nil
	}
	return &t.all[t.rows[t.pos]]
}

// window is the rows in sight when h fit; the cursor is among them.
func (t *lockTable) window(h int) []int {
	if h <= 0 || len(t.rows) == 0 {
		return nil
	}
	pos := max(t.pos, 0)
	if pos < t.top {
		t.top = pos
	}
	if pos >= t.top+h {
		t.top = pos - h + 1
	}
	t.top = max(0, min(t.top, len(t.rows)-h))
	return t.rows[t.top:min(len(t.rows), t.top+h)]
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

// ends is when the lock ends: its majority, or without one its last copy; far
// away for a copy that never ends.
func ends(l *monitor.Lock) time.Time {
	if !l.MajorityEnd.IsZero() {
		return l.MajorityEnd
	}
	var last time.Time
	for _, c := range l.Copies {
		if c.State != monitor.CopyPresent {
			continue
		}
		if c.Expires.IsZero() {
			return time.Unix(1<<40, 0)
		}
		if c.Expires.After(last) {
			last = c.Expires
		}
	}
	return last
}
