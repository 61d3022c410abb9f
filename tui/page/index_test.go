package page

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	locktable "redlockctl/monitor/table"
)

// An index that is updated change by change equals a new one, in each order and with a
// filter.
func TestIndexFollowsEachChange(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, o := range view.SortWords(view.LockColumns(nil)) {
		for _, source := range []string{"", "!7 state:held", "ttl<10s"} {
			f := monitor.ParseFilter(source).At(monitortest.Epoch)
			nodes := monitortest.Nodes(monitortest.Epoch)
			var set monitor.Locks
			x := NewLockIndex(t.Context(), set, nodes, Order(o), f)
			for step := range 60 {
				locks := monitortest.List(set)
				var keys []string
				for range 1 + rng.IntN(8) {
					key := fmt.Sprintf("k%03d", rng.IntN(200))
					keys = append(keys, key)
					locks = slices.DeleteFunc(locks, func(l monitor.Lock) bool { return l.Key.Raw() == key })
					if rng.IntN(4) > 0 {
						left := fmt.Sprintf("%d %d %d - -", 1+rng.IntN(20), 1+rng.IntN(20), 1+rng.IntN(20))
						locks = append(locks, monitortest.LockOf(monitortest.Epoch, key, monitor.LockState(rng.IntN(10)), monitortest.TokenA, left))
					}
				}
				// Keys that did not change, or that are in neither set, do no harm.
				set = monitor.NewLocks(locks...)
				x.update(set, append(keys, "k000", "nowhere"))
				if step%4 != 0 {
					continue // a few comparisons are enough
				}
				want := NewLockIndex(t.Context(), set, nodes, Order(o), f)
				if x.len() != want.len() {
					t.Fatalf("%s %q: %d locks are listed, not %d", o, source, x.len(), want.len())
				}
				for i := range want.len() {
					if x.At(i).Key != want.At(i).Key || x.place(x.At(i)) != i {
						t.Fatalf("%s %q: place %d is %s (found at %d), not %s", o, source, i, x.At(i).Key, x.place(x.At(i)), want.At(i).Key)
					}
				}
			}
		}
	}
}

// While many locks are read for the first time, the first of them are shown in their
// present state; all are sorted when they have been read, when the user changes the
// order, or at intervals.
func TestManyLocksAreSortedWhenTheyAreRead(t *testing.T) {
	locks := many(t)
	few, all := monitor.NewLocks(locks[:100]...), monitor.NewLocks(locks...)
	begin := func() *lockTable {
		tb := newLockTable()
		tb.show(few, nil, nil, false, true)
		tb.show(all, nil, nil, false, true)
		if tb.builds() != 0 || tb.Len() != 100 || !tb.Stale {
			t.Fatalf("%d are listed", tb.Len())
		}
		return &tb
	}
	for name, next := range map[string]func(tb *lockTable){
		"all are there":  func(tb *lockTable) { tb.show(all, nil, nil, true, false) },
		"another order":  func(tb *lockTable) { tb.SetOrder(OrderName) },
		"another filter": func(tb *lockTable) { tb.setFilter(monitor.ParseFilter("k"), "k") },
		"it takes very long": func(tb *lockTable) {
			for range putOff {
				tb.tick(tb.filter)
			}
		},
	} {
		tb := begin()
		if next(tb); tb.builds() != 1 || tb.Len() != len(locks) {
			t.Errorf("%s: %d are listed", name, tb.Len())
		}
	}
	tb := begin()
	locks[7] = monitortest.LockOf(monitortest.Epoch, "k00007", monitor.LockOrphaned, monitortest.TokenA, "60 - - - -")
	tb.show(monitor.NewLocks(locks...), nil, []string{"k00007"}, true, true)
	if l := tb.latest(tb.Listing().Find("k00007")); tb.builds() != 0 || l.State != monitor.LockOrphaned {
		t.Error("a row is an old one")
	}
}

// many makes more locks than are sorted in the foreground.
func many(t *testing.T) []monitor.Lock {
	t.Helper()
	var locks []monitor.Lock
	for i := range atOnce + 500 {
		locks = append(locks, monitortest.LockOf(monitortest.Epoch, fmt.Sprintf("k%05d", i), monitor.LockHeld, monitortest.TokenA, "60 60 60 60 60"))
	}
	return locks
}

// builds runs the builds that the table requests, as the program does.
func (t *lockTable) builds() (n int) {
	for b := t.Build(); b != nil; b = t.Build() {
		t.Take(b())
		n++
	}
	return n
}

// Whatever is changed, filtered and sorted, and whenever background builds finish, the
// final listing equals a new one.
func TestManyLocksAreListedAsMadeAnew(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	tb := newLockTable()
	tree := monitor.NewLockTree()
	for _, l := range many(t) {
		tree.Set(&l)
	}
	nodes := monitortest.Nodes(monitortest.Epoch)
	orders, filters := view.SortWords(view.LockColumns(nodes)), []string{"", "", "k0", "k04 !7", "state:held", "node:n1", "ttl<10s"}
	change := func() (keys []string) {
		tree = tree.Copy()
		for range 1 + rng.IntN(20) {
			key := fmt.Sprintf("k%05d", rng.IntN(atOnce+900))
			keys = append(keys, key)
			left := fmt.Sprintf("%d %d %d - -", 1+rng.IntN(20), 1+rng.IntN(20), 1+rng.IntN(20))
			if l := monitortest.LockOf(monitortest.Epoch, key, monitor.LockState(rng.IntN(10)), monitortest.TokenA, left); rng.IntN(9) > 0 {
				tree.Set(&l)
			} else {
				tree.Delete(&l)
			}
		}
		return keys
	}
	var builds []func() Built
	made := 0
	tb.show(monitor.LocksOf(tree), nodes, nil, false, false)
	for range 1500 {
		switch n := rng.IntN(18); {
		case n < 8:
			keys := change()
			tb.show(monitor.LocksOf(tree), nodes, keys, n > 1, false)
		case n < 9:
			nodes = slices.Clone(nodes)
			if nodes[0].Name = "n1"; rng.IntN(2) == 0 {
				nodes[0].Name = "n1x"
			}
			tb.show(monitor.LocksOf(tree), nodes, nil, true, false)
		case n < 12:
			f := filters[rng.IntN(len(filters))]
			tb.setFilter(monitor.ParseFilter(f).At(monitortest.Epoch), f)
		case n < 13:
			tb.SetOrder(Order(orders[rng.IntN(len(orders))]))
		case n < 14:
			tb.tick(tb.filter.At(monitortest.Epoch.Add(time.Duration(rng.IntN(9)) * time.Second)))
		case n < 15 && tb.Len() > 0:
			tb.Jump(tb.Listing().At(rng.IntN(tb.Len())).Key.Raw())
		default:
			for _, b := range builds {
				tb.Take(b())
			}
			builds = nil
		}
		if b := tb.Build(); b != nil {
			builds = append(builds, b)
		}
		if tb.Stale {
			continue
		}
		made++
		want := NewLockIndex(t.Context(), tb.set, nodes, tb.Order, tb.filter)
		if tb.Len() != want.len() {
			t.Fatalf("%s %q: %d locks are listed, not %d", tb.Order, tb.Source, tb.Len(), want.len())
		}
		for i := range want.len() {
			if tb.Listing().At(i) != want.At(i) {
				t.Fatalf("%s %q: place %d is %s, not %s", tb.Order, tb.Source, i, tb.Listing().At(i).Key, want.At(i).Key)
			}
		}
		if at := tb.Selected(); want.len() > 0 && (at != want.At(tb.Pos) || at.Key.Raw() != tb.key) {
			t.Fatalf("%s %q: the cursor at place %d is on %s", tb.Order, tb.Source, tb.Pos, tb.key)
		}
	}
	if made < 300 {
		t.Errorf("only %d listings were compared", made)
	}
}

// Without a filter, all locks are listed at once as before the filter, including the
// changes since.
func TestAllLocksAreListedAtOnceBehindAFilter(t *testing.T) {
	tb, locks := newLockTable(), many(t)
	tb.put(monitor.NewLocks(locks...), nil)
	tb.builds()
	tb.setFilter(monitor.ParseFilter("k0450"), "k0450")
	if tb.builds() != 1 || tb.Len() != 10 {
		t.Fatalf("%d are listed", tb.Len())
	}
	locks[0] = monitortest.LockOf(monitortest.Epoch, "k00000", monitor.LockSplit, monitortest.TokenA, "60 - - - -")
	tb.show(monitor.NewLocks(locks...), nil, []string{"k00000"}, true, false)
	tb.setFilter(monitor.ParseFilter("k01"), "k01")
	build := tb.Build()
	locks[1] = monitortest.LockOf(monitortest.Epoch, "k00001", monitor.LockNoTTL, monitortest.TokenA, "60 - - - -")
	tb.show(monitor.NewLocks(locks...), nil, []string{"k00001"}, true, false)
	tb.setFilter(monitor.Filter{}, "")
	if tb.Take(build()); tb.Stale || tb.Len() != len(locks) {
		t.Fatalf("%d are listed", tb.Len())
	}
	for i, want := range []string{"k00000", "k00001", "k00002"} {
		if at := tb.Listing().At(i); at.Key.Raw() != want {
			t.Errorf("place %d is %s, not %s", i, at.Key, want)
		}
	}

	// With other nodes, the same filter may select other locks.
	nodes := monitortest.Nodes(monitortest.Epoch)
	tb.show(tb.set, nodes, nil, true, false)
	tb.builds()
	tb.setFilter(monitor.ParseFilter("node:"+nodes[0].Name), "node")
	if tb.builds(); tb.Len() != len(locks) {
		t.Errorf("%d are listed of the first node", tb.Len())
	}
	nodes = slices.Clone(nodes)
	nodes[0].Name = "other"
	tb.show(tb.set, nodes, nil, true, false)
	if tb.builds(); tb.Len() != 0 {
		t.Errorf("%d are listed of a node that is not there any more", tb.Len())
	}
}

// Many locks are sorted in the background: the old listing is shown meanwhile, and no
// change is lost.
func TestManyLocksAreSortedAside(t *testing.T) {
	tb := newLockTable()
	locks := many(t)
	tb.put(monitor.NewLocks(locks...), nil)
	if tb.Len() != 0 || !tb.Stale {
		t.Fatalf("%d locks were sorted in the program's goroutine", tb.Len())
	}
	if tb.builds() != 1 || tb.Len() != len(locks) || tb.Stale {
		t.Fatalf("%d are listed", tb.Len())
	}
	tb.Jump("k02000")

	// A new order: during the build, one lock changes and one is removed.
	tb.SetOrder(Order("copies"))
	build := tb.Build()
	if build == nil || tb.Build() != nil {
		t.Fatal("not exactly one build is asked for")
	}
	if l := tb.Selected(); l == nil || l.Key.Raw() != "k02000" || tb.Len() != len(locks) {
		t.Error("the old listing does not stand")
	}
	locks[4500] = monitortest.LockOf(monitortest.Epoch, "k04500", monitor.LockOrphaned, monitortest.TokenA, "60 - - - -")
	set := monitor.NewLocks(append(slices.Clone(locks[:10]), locks[11:]...)...)
	tb.show(set, nil, []string{"k04500", "k00010"}, true, false)
	tb.Take(build())
	if tb.Listing().At(0).Key.Raw() != "k04500" || tb.Listing().Find("k00010") != nil || tb.Len() != len(locks)-1 || tb.key != "k02000" {
		t.Errorf("first is %s, %d are listed, the cursor is on %s", tb.Listing().At(0).Key, tb.Len(), tb.key)
	}

	// An obsolete build is ignored.
	tb.setFilter(monitor.ParseFilter("k0450"), "k0450")
	late := tb.Build()
	tb.setFilter(monitor.ParseFilter("k00001"), "k00001")
	tb.Take(late())
	if tb.Len() == 10 {
		t.Error("what is no longer wanted is listed")
	}
	tb.builds()
	if got := tb.Listed(); !slices.Equal(got, []string{"k00001"}) {
		t.Errorf("%q", got)
	}

	// Further typing cancels the previous build.
	tb.setFilter(monitor.ParseFilter("k01"), "k01")
	before := tb.Build()
	tb.setFilter(monitor.ParseFilter("k012"), "k012")
	if b := before(); b.index != nil {
		t.Error("a build went on that nobody wanted any more")
	} else {
		tb.Take(b)
	}
	if tb.builds(); tb.Len() != 100 {
		t.Errorf("%d are listed", tb.Len())
	}

	// Too many changes during a build to keep: it is repeated.
	tb.SetOrder(OrderName)
	build = tb.Build()
	for i := range locks {
		locks[i] = monitortest.LockOf(monitortest.Epoch, locks[i].Key.Raw(), monitor.LockHeld, monitortest.TokenB, "60 60 - 60 60")
	}
	tb.show(monitor.NewLocks(locks...), nil, nil, false, false)
	tb.Take(build())
	tb.builds()
	for i := range tb.Len() {
		if tb.Listing().At(i).Holder.Raw() != monitortest.TokenB {
			t.Fatalf("%s is an old one", tb.Listing().At(i).Key)
		}
	}
}

// Whatever the locks of a real table go through, in bursts, while time passes, with filters, on a
// frozen screen and in a replay, the listing that follows the told changes is that of a new one.
func TestListingFollowsTheTable(t *testing.T) {
	tokens := []string{"tok0", "tok1", strings.Repeat("0123456789abcdef", 2), "redlockctl:revoked:" + strings.Repeat("a", 27), "redlockctl:revoked:" + strings.Repeat("b", 27)}
	orders, filters := view.SortWords(view.LockColumns(monitortest.Nodes(monitortest.Epoch))), []string{"", "", "k0", "state:held", "ttl<10s", "state:revoked"}
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 6))
		now := monitortest.Epoch
		nodes := monitortest.Nodes(now)[:3]
		locks := locktable.New([]string{"n1", "n2", "n3"}, 2, 0, time.Second, now, func(monitor.Event) {})
		copies := make([]map[string]locktable.Row, 3)
		for i := range copies {
			copies[i] = map[string]locktable.Row{}
			locks.Reachable(i, false)
		}
		scan := func() {
			for i := range copies {
				began := now.Add(time.Millisecond)
				now = began.Add(time.Millisecond)
				locks.Read(i, now, now, slices.Collect(maps.Values(copies[i])))
				locks.Scanned(i, locks.Epoch(i), began, now)
				locks.Sync(i, began)
				locks.Refresh(now)
			}
		}
		scan()
		locks.Settle(now)
		tb := newLockTable()
		tb.show(locks.Locks(), nodes, nil, false, false)
		locks.TakeFresh()
		var frozen, replayed bool
		var missed []string
		for step := range 120 {
			switch rng.IntN(9) {
			case 0:
				f := filters[rng.IntN(len(filters))]
				tb.setFilter(monitor.ParseFilter(f).At(now), f)
			case 1:
				tb.SetOrder(Order(orders[rng.IntN(len(orders))]))
			case 2:
				frozen = !frozen && !replayed
			case 3: // there, and back
				if replayed = !replayed; replayed {
					frozen = false
					past := monitor.NewLocks(monitortest.LockOf(now, "k001", monitor.LockHeld, monitortest.TokenA, "9 9 9"), monitortest.LockOf(now, "past", monitor.LockHeld, monitortest.TokenA, "9 9 9"))
					tb.show(past, nodes, nil, false, false)
				} else {
					tb.show(locks.Locks(), nodes, nil, false, false)
					missed = nil
				}
			case 4:
				now = now.Add(time.Duration(rng.IntN(9)) * time.Second)
				tb.tick(tb.filter.At(now))
			case 5:
				tb.Pin(rng.IntN(2) == 0)
			}
			for range rng.IntN(20) { // set, revoked, released, without TTL
				key, ms := fmt.Sprintf("k%03d", rng.IntN(12)), int64(-1)
				if rng.IntN(3) > 0 {
					ms = 1 + rng.Int64N(9000)
				}
				token := tokens[rng.IntN(len(tokens))]
				for i := range copies {
					if rng.IntN(8) == 0 {
						continue
					}
					if delete(copies[i], key); rng.IntN(3) > 0 {
						copies[i][key] = locktable.NewRow(key, "string", ms, int64(len(token)), token)
					}
				}
			}
			scan()
			if missed = append(missed, locks.TakeFresh()...); frozen || replayed {
				continue
			}
			set := locks.Locks()
			before := tb.generation
			tb.show(set, nodes, missed, true, false)
			missed = nil
			if tb.generation != before {
				t.Fatalf("seed %d, step %d: a change was not told", seed, step)
			}
			want := NewLockIndex(t.Context(), set, nodes, tb.Order, tb.filter)
			if tb.index.len() != want.len() {
				t.Fatalf("seed %d, step %d: %s %q: %d locks are listed, not %d", seed, step, tb.Order, tb.Source, tb.index.len(), want.len())
			}
			for i := range want.len() {
				if tb.index.At(i) != want.At(i) {
					t.Fatalf("seed %d, step %d: %s %q: place %d is %s, not %s", seed, step, tb.Order, tb.Source, i, tb.index.At(i).Key, want.At(i).Key)
				}
			}
		}
	}
}

// Even if the end of a lock is not told, its row goes: at once without a filter, within a second
// with one.
func TestRowDoesNotOutliveItsLock(t *testing.T) {
	a := monitortest.LockOf(monitortest.Epoch, "a", monitor.LockHeld, monitortest.TokenA, "9 9 9")
	b := monitortest.LockOf(monitortest.Epoch, "b", monitor.LockHeld, monitortest.TokenA, "9 9 9")
	for _, filter := range []string{"", "a"} {
		for name, later := range map[string]monitor.Locks{"gone": monitor.NewLocks(b), "all gone": {}, "another one": monitor.NewLocks(b, monitortest.LockOf(monitortest.Epoch, "c", monitor.LockHeld, monitortest.TokenA, "9 9 9"))} {
			tb := newLockTable()
			tb.show(monitor.NewLocks(a, b), nil, nil, false, false)
			tb.setFilter(monitor.ParseFilter(filter), filter)
			tb.show(later, nil, nil, true, false)
			tb.tick(tb.filter)
			if tb.Listing().Find("a") != nil || slices.Contains(tb.Listed(), "a") {
				t.Errorf("%s, filter %q: %q are listed", name, filter, tb.Listed())
			}
		}
	}
}
