package tui

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/tui/page"
	"redlockctl/tui/source"
)

// listed returns the keys in the table of locks.
func listed(r *rig) (keys []string) {
	for i := range r.m.Locks.Len() {
		keys = append(keys, r.m.Locks.Listing().At(i).Key.Raw())
	}
	return keys
}

// A filter that depends on time is applied again every second.
func TestTimedFilterTicks(t *testing.T) {
	s := monitortest.Degraded(monitortest.Epoch)
	s.Locks = monitor.NewLocks(
		monitortest.LockOf(monitortest.Epoch, "short", monitor.LockHeld, monitortest.TokenA, "4 4 4 4 4"),
		monitortest.LockOf(monitortest.Epoch, "long", monitor.LockHeld, monitortest.TokenA, "8 8 8 8 8"))
	r := newRig(t, s, 120, 40)
	r.press("2", "/")
	r.typed("ttl<5s")
	r.press("enter")
	if got := listed(r); !slices.Equal(got, []string{"short"}) {
		t.Errorf("%q", got)
	}
	r.wait(4 * time.Second)
	if got := listed(r); !slices.Equal(got, []string{"long", "short"}) {
		t.Errorf("four seconds later: %q", got)
	}
}

// With many locks, no key, no snapshot and no tick waits for all of them: the whole
// program, with sorting in the background.
func TestManyLocksInTheProgram(t *testing.T) {
	s := monitortest.Degraded(monitortest.Epoch)
	var locks []monitor.Lock
	for i := range 4596 { // more than are sorted in the foreground
		locks = append(locks, monitortest.LockOf(monitortest.Epoch, fmt.Sprintf("k%05d", i), monitor.LockHeld, monitortest.TokenA, "60 60 60 60 60"))
	}
	monitortest.Put(s, locks...)
	r := newRig(t, s, 120, 40)
	r.sees("looking")
	r.m.Locks.SetOrder(page.OrderName) // the build that the rig did not run is obsolete now
	r.m.Locks.SetOrder(page.OrderNeeds)
	r.m.Update(r.m.Locks.Build()())
	r.m.dirty = true
	r.sees("Locks 4,635", "job:000")
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
	r.m.Update(source.SnapshotMsg{Snap: next, Changed: []string{"k04595"}, Known: true, Guard: r.m.feed.Status()})
	if r.cursor() != "k04595" || r.m.Locks.Pos > 3 || r.m.Locks.Stale {
		t.Errorf("one change: the cursor is on %s, place %d", r.cursor(), r.m.Locks.Pos)
	}
}

func TestFilterKeys(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 100, 30)
	r.press("/")
	r.typed("q")
	r.sees("/ q")
	if r.ended {
		t.Fatal("a letter in the filter quit")
	}
	r.press("backspace")
	r.typed("state:orph")
	r.sees("1 of 39", "invoices:2026-11") // live, before enter
	r.press("enter")
	r.sees("/state:orph 1")
	r.press("/", "esc")
	r.seesNot("/state:orph")
	if r.m.Locks.Len() != 39 {
		t.Error("esc does not clear the filter")
	}
	r.press("/")
	r.typed("zzz")
	r.press("enter")
	r.sees("no lock matches the filter: esc clears it")
	r.press("esc")
	if r.m.Locks.Len() != 39 {
		t.Error("esc does not clear a kept filter")
	}
	r.press("/")
	r.typed("state:orph")
	r.press("enter", "enter")
	r.sees("close detail")
	r.press("esc") // the detail was opened last
	r.sees("/state:orph 1")
	r.press("esc", "enter", "/")
	r.seesNot("/state:orph")
	r.typed("state:orph")
	r.press("enter", "esc") // the filter was
	r.seesNot("/state:orph")
	r.sees("close detail")
	r.press("esc")
	r.seesNot("close detail")
	r.press("/")
	r.typed("zzz ttl:>20m")
	r.press("enter")
	r.sees("! not applied", "ttl:>20m: ttl is compared")
}
