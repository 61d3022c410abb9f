package tui

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
)

// A small cluster's listing that is brought on change by change is the one that
// is made anew, in each order and under a filter.
func TestIndexFollowsEachChange(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for o := range orders {
		for _, source := range []string{"", "!7 state:held", "ttl<10s"} {
			f := monitor.ParseFilter(source).At(monitortest.Epoch)
			nodes := monitortest.Nodes(monitortest.Epoch)
			var set monitor.Locks
			x := newLockIndex(set, nodes, o, f)
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
				want := newLockIndex(set, nodes, o, f)
				if x.len() != want.len() {
					t.Fatalf("%s %q: %d locks are listed, not %d", o, source, x.len(), want.len())
				}
				for i := range want.len() {
					if x.at(i).Key != want.at(i).Key || x.place(x.at(i)) != i {
						t.Fatalf("%s %q: place %d is %s (found at %d), not %s", o, source, i, x.at(i).Key, x.place(x.at(i)), want.at(i).Key)
					}
				}
			}
		}
	}
}

func TestDifference(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 30 {
		a, b := held(), held()
		want := map[string]bool{}
		var shared []monitor.Lock
		for i := range rng.IntN(1500) {
			l := monitortest.LockOf(monitortest.Epoch, fmt.Sprintf("k%04d", i), monitor.LockHeld, monitortest.TokenA, "9 9 9")
			switch rng.IntN(60) {
			case 0:
				a = append(a, l)
				want[l.Key.Raw()] = true
			case 1:
				b = append(b, l)
				want[l.Key.Raw()] = true
			default:
				shared = append(shared, l)
			}
		}
		// NewLocks keeps the addresses of what it is given: to share locks, both sets
		// are made of one slice.
		all := append(append(slices.Clone(a), shared...), b...)
		setA := monitor.NewLocks(all[:len(a)+len(shared)]...)
		setB := monitor.NewLocks(all[len(a):]...)
		got, more := difference(setA, setB, 1<<20)
		if more || len(got) != len(want) || !slices.IsSorted(got) {
			t.Fatalf("%d keys, %v; there are %d", len(got), more, len(want))
		}
		for _, k := range got {
			if !want[k] {
				t.Fatalf("%s does not differ", k)
			}
		}
		if len(want) > 3 {
			if _, more := difference(setA, setB, 3); !more {
				t.Fatal("too many differences are not told")
			}
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
	for b := t.build(); b != nil; b = t.build() {
		t.take(b())
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
	if tb.len() != 0 || !tb.stale {
		t.Fatalf("%d locks were sorted in the program's goroutine", tb.len())
	}
	if tb.builds() != 1 || tb.len() != len(locks) || tb.stale {
		t.Fatalf("%d are listed", tb.len())
	}
	tb.jump("k02000")

	// A new order: while it is made, one lock changes and one goes.
	tb.setOrder(orderCopies)
	build := tb.build()
	if build == nil || tb.build() != nil {
		t.Fatal("not exactly one build is asked for")
	}
	if l := tb.selected(); l == nil || l.Key.Raw() != "k02000" || tb.len() != len(locks) {
		t.Error("the old listing does not stand")
	}
	locks[4500] = monitortest.LockOf(monitortest.Epoch, "k04500", monitor.LockOrphan, monitortest.TokenA, "60 - - - -")
	set := monitor.NewLocks(append(slices.Clone(locks[:10]), locks[11:]...)...)
	tb.show(set, nil, []string{"k04500", "k00010"}, true)
	tb.take(build())
	if tb.listing().at(0).Key.Raw() != "k04500" || tb.listing().find("k00010") != nil || tb.len() != len(locks)-1 || tb.key != "k02000" {
		t.Errorf("first is %s, %d are listed, the cursor is on %s", tb.listing().at(0).Key, tb.len(), tb.key)
	}

	// A build that is too late is not taken.
	tb.setFilter(monitor.ParseFilter("k0450"), "k0450")
	late := tb.build()
	tb.setFilter(monitor.ParseFilter("k00001"), "k00001")
	tb.take(late())
	if tb.len() == 10 {
		t.Error("what is no longer wanted is listed")
	}
	tb.builds()
	if got := tb.listed(); !slices.Equal(got, []string{"k00001"}) {
		t.Errorf("%q", got)
	}

	// So much changes during a build that it is not kept: it is looked for.
	tb.setFilter(monitor.Filter{}, "")
	build = tb.build()
	for i := range locks {
		locks[i] = monitortest.LockOf(monitortest.Epoch, locks[i].Key.Raw(), monitor.LockHeld, monitortest.TokenB, "60 60 - 60 60")
	}
	tb.show(monitor.NewLocks(locks...), nil, nil, false)
	tb.take(build())
	tb.builds()
	for i := range tb.len() {
		if tb.listing().at(i).Holder.Raw() != monitortest.TokenB {
			t.Fatalf("%s is an old one", tb.listing().at(i).Key)
		}
	}
}

// A filter that depends on time chooses anew each second.
func TestTimedFilterTicks(t *testing.T) {
	s := monitortest.Degraded(monitortest.Epoch)
	s.Locks = monitor.NewLocks(
		monitortest.LockOf(monitortest.Epoch, "short", monitor.LockHeld, monitortest.TokenA, "4 4 4 4 4"),
		monitortest.LockOf(monitortest.Epoch, "long", monitor.LockHeld, monitortest.TokenA, "8 8 8 8 8"))
	r := newRig(t, s, 120, 40)
	r.press("2", "/")
	r.typed("ttl<5s")
	r.press("enter")
	if got := r.m.locks.listed(); !slices.Equal(got, []string{"short"}) {
		t.Errorf("%q", got)
	}
	r.wait(4 * time.Second)
	if got := r.m.locks.listed(); !slices.Equal(got, []string{"long", "short"}) {
		t.Errorf("four seconds later: %q", got)
	}
}

// With many locks no key, no picture and no second waits for all of them: the
// whole program, sorting aside.
func TestManyLocksInTheProgram(t *testing.T) {
	s := monitortest.Degraded(monitortest.Epoch)
	monitortest.Put(s, many(t)...)
	r := newRig(t, s, 120, 40)
	r.sees("looking")
	r.m.Update(r.m.sorting0(t))
	r.m.dirty = true
	r.sees("LOCKS 4,635", "job:000")
	r.seesNot("looking")
	r.press("G")
	if r.cursor() != "orders:44" {
		t.Errorf("the cursor is on %s", r.cursor())
	}
	r.under("k04595")
	next := monitortest.Degraded(monitortest.Epoch)
	next.Locks = s.Locks
	monitortest.Put(next, monitortest.LockOf(monitortest.Epoch, "k04595", monitor.LockSplit, monitortest.TokenC, "9 9 9 9 9"))
	r.src.push(next)
	r.m.Update(snapshotMsg{snap: next, changed: []string{"k04595"}, known: true, guard: r.m.feed.status()})
	if r.cursor() != "k04595" || r.m.locks.pos > 3 || r.m.locks.stale {
		t.Errorf("one change: the cursor is on %s, place %d", r.cursor(), r.m.locks.pos)
	}
}

// sorting0 is the message of the build that is due.
func (m *model) sorting0(t *testing.T) built {
	t.Helper()
	m.locks.building = false
	m.locks.stale = true
	b := m.locks.build()
	if b == nil {
		t.Fatal("no build is due")
	}
	return b()
}
