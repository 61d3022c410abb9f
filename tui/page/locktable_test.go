package page

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
)

func tableOf(locks ...monitor.Lock) *lockTable {
	t := newLockTable()
	t.put(monitor.NewLocks(locks...), monitortest.Nodes(monitortest.Epoch))
	return &t
}

func held(keys ...string) (locks []monitor.Lock) {
	for _, k := range keys {
		locks = append(locks, monitortest.LockOf(monitortest.Epoch, k, monitor.LockHeld, monitortest.TokenA, "9 9 9 9 9"))
	}
	return locks
}

func heldSet(keys ...string) monitor.Locks { return monitor.NewLocks(held(keys...)...) }

func (t *lockTable) Listed() (keys []string) {
	for i := range t.Len() {
		keys = append(keys, t.Listing().At(i).Key.Raw())
	}
	return keys
}

// put lists a set without known changes.
func (t *lockTable) put(set monitor.Locks, nodes []monitor.Node) {
	t.show(set, nodes, nil, false, false)
}

func TestCursorStaysOnItsLock(t *testing.T) {
	tb := tableOf(held("a", "b", "c", "d")...)
	tb.Move(2)
	on := func(want string) {
		t.Helper()
		if l := tb.Selected(); l == nil || l.Key.Raw() != want || tb.key != want {
			t.Errorf("the cursor is on %v, not on %s, of %q", l, want, tb.Listed())
		}
	}
	on("c")
	tb.put(heldSet("0", "1", "a", "b", "c", "d"), nil) // other locks are listed before it
	on("c")
	locks := held("a", "b", "c", "d")
	locks[3].State = monitor.LockNoTTL // another lock moves above it
	tb.put(monitor.NewLocks(locks...), nil)
	on("c")
	tb.SetOrder(OrderName)
	on("c")
	tb.put(heldSet("a", "b", "d"), nil) // gone: the next one
	on("d")
	tb.put(heldSet("a", "b"), nil) // no next one: the previous one
	on("b")
	tb.put(monitor.Locks{}, nil)
	if tb.Selected() != nil {
		t.Error("a lock is selected in an empty table")
	}
	tb.put(heldSet("x"), nil)
	on("x")
}

// While a large cluster is read for the first time, locks appear in any order: until the
// user moves the cursor, it stays at the top, with the most urgent locks.
func TestCursorIsAtTheTopUntilItIsMoved(t *testing.T) {
	tb := tableOf(held("m")...)
	on := func(want string) {
		t.Helper()
		if l := tb.Selected(); l == nil || l.Key.Raw() != want || tb.window(2)[0] != tb.index.At(0) {
			t.Errorf("the cursor is on %v, not on %s at the top of %q", l, want, tb.Listed())
		}
	}
	tb.put(heldSet("b", "c", "d", "m"), nil)
	on("b")
	split := held("z")
	split[0].State = monitor.LockSplit
	tb.put(monitor.NewLocks(append(held("a", "b", "m"), split...)...), nil)
	on("z")
	for name, choose := range map[string]func(){
		"moved": func() { tb.Move(0) }, "jumped": func() { tb.Jump("z") },
	} {
		tb.Chosen = false
		tb.put(monitor.NewLocks(split...), nil)
		choose()
		worse := append(split, held("a")...)
		worse[1].State = monitor.LockNoTTL
		tb.put(monitor.NewLocks(worse...), nil)
		if l := tb.Selected(); l.Key.Raw() != "z" {
			t.Errorf("%s: the cursor slid to %s", name, l.Key)
		}
	}
}

// The cursor stays on a lock that an action was asked for. When that lock is gone from wherever it went
// meanwhile, the cursor is at the top again, unless the user had moved it: then it stays at its row.
func TestCursorIsAtTheTopAgainWhenItsLockIsGone(t *testing.T) {
	bad := held("x", "y", "z")
	for i := range bad {
		bad[i].State = monitor.LockSplit
	}
	for want, choose := range map[string]func(*lockTable){
		"y": func(tb *lockTable) { tb.Chosen = true }, "l": func(tb *lockTable) { tb.Move(0) },
	} {
		tb := tableOf(append(held("k", "l"), bad...)...)
		choose(tb)
		healed := append(held("k", "l", "x"), bad[1:]...)
		tb.put(monitor.NewLocks(healed...), nil)
		if l := tb.Selected(); l.Key.Raw() != "x" || tb.Pos != 4 {
			t.Errorf("the cursor is on %s of %q", l.Key, tb.Listed())
		}
		tb.put(monitor.NewLocks(append(held("k", "l"), bad[1:]...)...), nil)
		if l := tb.Selected(); l.Key.Raw() != want {
			t.Errorf("the cursor is on %s of %q, not on %s", l.Key, tb.Listed(), want)
		}
	}
}

// Many changes at once: the cursor stays on its lock, or moves to the nearest neighbour
// that is left.
func TestCursorOverRandomChanges(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	tb := tableOf()
	for range 3000 {
		var locks []monitor.Lock
		for i := range 12 {
			if rng.IntN(3) > 0 {
				l := monitortest.LockOf(monitortest.Epoch, fmt.Sprintf("k%02d", i), monitor.LockState(rng.IntN(9)), monitortest.TokenA, "9 9 9 9 9")
				locks = append(locks, l.Timed(l.Since(), monitortest.Epoch.Add(time.Duration(rng.IntN(20))*time.Second)))
			}
		}
		before, pos, key := tb.Listed(), tb.Pos, tb.key
		tb.put(monitor.NewLocks(locks...), nil)
		now := tb.Listed()
		want := ""
		switch {
		case len(now) == 0:
		case slices.Contains(now, key):
			want = key
		case pos >= 0:
			for _, k := range before[pos+1:] {
				if want == "" && slices.Contains(now, k) {
					want = k
				}
			}
			for i := pos - 1; i >= 0 && want == ""; i-- {
				if slices.Contains(now, before[i]) {
					want = before[i]
				}
			}
		}
		got := ""
		if l := tb.Selected(); l != nil {
			got = l.Key.Raw()
		}
		if want != "" && got != want || len(now) > 0 && got == "" {
			t.Fatalf("the cursor went from %s to %q, not to %q: %q → %q", key, got, want, before, now)
		}
		tb.Move(rng.IntN(5) - 2)
		if w := tb.window(4); len(now) > 0 && !slices.Contains(w, tb.Selected()) {
			t.Fatal("the cursor is out of sight")
		}
	}
}

func TestOrders(t *testing.T) {
	s := monitortest.Degraded(monitortest.Epoch)
	tb := tableOf(monitortest.List(s.Locks)...)
	states := func() (out []monitor.LockState) {
		for i := range tb.Len() {
			out = append(out, tb.Listing().At(i).State)
		}
		return out
	}
	if got := states()[:6]; !slices.Equal(got, []monitor.LockState{monitor.LockNoTTL, monitor.LockSplit, monitor.LockOverTTL, monitor.LockOrphaned, monitor.LockNotALock, monitor.LockBareMajority}) {
		t.Errorf("needs you first: %v", got)
	}
	tb.SetOrder(OrderEnds)
	if got := tb.Listed(); got[0] != "orders:44" || got[1] != "import" || !slices.Equal(got[len(got)-2:], []string{"session:cache", "stuck"}) {
		t.Errorf("ends soonest: %q", got)
	}
	tb.SetOrder(Order("copies"))
	if got := tb.Listed()[:4]; !slices.Equal(got, []string{"session:cache", "invoices:2026-11", "new", "import"}) {
		t.Errorf("fewest copies: %q", got)
	}
	tb.SetOrder(OrderName)
	if got := tb.Listed(); !slices.IsSorted(got) {
		t.Errorf("name: %q", got)
	}
}

// Locks that are acquired and expire many times a second do not make the rows jump.
func TestCalmStatesDoNotDance(t *testing.T) {
	locks := held("a", "b", "c")
	tb := tableOf(locks...)
	for _, s := range []monitor.LockState{monitor.LockExpiring, monitor.LockPartial, monitor.LockHeld} {
		next := held("a", "b", "c")
		next[1].State = s
		tb.put(monitor.NewLocks(next...), nil)
		if got := tb.Listed(); !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Errorf("%s: %q", s, got)
		}
	}
}

// A new filter begins at its first lock, unless it chooses the one under the cursor.
func TestTheCursorAfterAFilter(t *testing.T) {
	for filter, want := range map[string]string{"orders": "orders:42", "!orders": "new", "e": "new"} {
		tb := tableOf(monitortest.List(monitortest.Degraded(monitortest.Epoch).Locks)...)
		tb.Jump("new")
		tb.setFilter(monitor.ParseFilter(filter).At(monitortest.Epoch), filter)
		if tb.key != want || tb.Listed()[tb.Pos] != want {
			t.Errorf("%q: the cursor is on %q, not %q", filter, tb.key, want)
		}
	}
}

func TestFilter(t *testing.T) {
	s := monitortest.Degraded(monitortest.Epoch)
	for _, c := range []struct {
		filter string
		want   []string
	}{
		{"orders", []string{"orders:42", "orders:43", "orders:44"}},
		{"ORDERS 43", []string{"orders:43"}},
		{"!job !orders", []string{"stuck", "import", "report", "invoices:2026-11", "session:cache", "new"}},
		{"state:orphaned", []string{"invoices:2026-11"}},
		{"state:or", []string{"invoices:2026-11"}},
		{"state:over", []string{"report"}},
		{"holder:web-7", []string{"orders:42"}},
		{"!node:n1 !job", []string{"invoices:2026-11"}},
		{"node:n2", nil},
		{"node:n5 holder:77c0 ", []string{"stuck", "invoices:2026-11", "orders:42"}},
		{"orders:4 !42 state:", []string{"orders:43", "orders:44"}},
		{"nothing-like-it", nil},
	} {
		tb := tableOf(monitortest.List(s.Locks)...)
		tb.setFilter(monitor.ParseFilter(c.filter).At(monitortest.Epoch), c.filter)
		if got := tb.Listed(); !slices.Equal(got, c.want) {
			t.Errorf("%q lists %q, not %q", c.filter, got, c.want)
		}
	}
}
