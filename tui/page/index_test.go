package page

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
)

// A small cluster's listing that is brought on change by change is the one that
// is made anew, in each order and under a filter.
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
				// Keys that did not change, and such that are in neither set, do no harm.
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

// While many locks are read for the first time, the first of them stand, as they are now; all are
// sorted when they are there, or when a person asks for them in another way, or once in a while.
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

// Many locks that come in any order are sorted in portions, and yet as one.
func TestManyLocksAreSorted(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{0, 1, portion - 1, portion, portion + 1, 3*portion + 17, 8 * portion} {
		var locks []*monitor.Lock
		for range n {
			locks = append(locks, &monitor.Lock{Held: rng.IntN(50), Tokens: len(locks)})
		}
		compare := func(a, b *monitor.Lock) int { return cmp.Or(a.Held-b.Held, a.Tokens-b.Tokens) }
		work := portions{ctx: t.Context()}
		if !work.sort(locks, compare) || len(locks) != n || !slices.IsSortedFunc(locks, compare) {
			t.Errorf("%d are not sorted", n)
		}
		seen := map[*monitor.Lock]bool{}
		for _, l := range locks {
			seen[l] = true
		}
		if len(seen) != n {
			t.Errorf("%d of %d are left", len(seen), n)
		}
	}
}

// many is more locks than are sorted at once.
func many(t *testing.T) []monitor.Lock {
	t.Helper()
	var locks []monitor.Lock
	for i := range atOnce + 500 {
		locks = append(locks, monitortest.LockOf(monitortest.Epoch, fmt.Sprintf("k%05d", i), monitor.LockHeld, monitortest.TokenA, "60 60 60 60 60"))
	}
	return locks
}

// builds runs the builds that the table asks for, as the program does.
func (t *lockTable) builds() (n int) {
	for b := t.Build(); b != nil; b = t.Build() {
		t.Take(b())
		n++
	}
	return n
}

// Many locks are sorted aside: meanwhile the old listing stands, and what changes
// is not lost.
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

	// A new order: while it is made, one lock changes and one goes.
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

	// A build that is too late is not taken.
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

	// What is typed next ends the build before.
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

	// So much changes during a build that it is not kept: it is looked for.
	tb.setFilter(monitor.Filter{}, "")
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
