package tui

import (
	"fmt"
	"slices"
	"strings"
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
	next := *r.m.Latest
	next.Nodes = slices.Clone(next.Nodes)
	next.Nodes[0].Read = 0.5
	r.push(&next)
	r.sees("no lock read so far matches the filter: esc clears it")
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

// A page is opened at its top: what another page scrolled, and dialogs that are not about
// a lock, do not move it.
func TestPagesOpenAtTheirTop(t *testing.T) {
	first := func(r *rig, row string) {
		t.Helper()
		lines := strings.Split(r.screen(), "\n")
		i := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "NAME") || strings.Contains(l, "NODE") })
		if i < 0 || !strings.Contains(lines[i+1], row) {
			t.Errorf("the first row is not that of %s:\n%s", row, r.screen())
		}
	}
	t.Run("locks that the overview scrolled", func(t *testing.T) {
		r := newRig(t, monitortest.Degraded(monitortest.Epoch), 80, 24)
		for range 12 {
			r.press("down")
		}
		under := r.cursor()
		r.press("2")
		first(r, "stuck")
		if r.cursor() != under {
			t.Errorf("the cursor went from %s to %s", under, r.cursor())
		}
		r.press("end", "up", "up", "up")
		before := r.screen()
		r.press("o", "esc")
		if after := r.screen(); after != before {
			t.Errorf("esc does not return to where one was:\n%s\n%s", before, after)
		}
	})
	t.Run("locks after a dialog about no lock", func(t *testing.T) {
		for _, keys := range []string{"a esc", "3 C esc", "q esc", "3 J esc"} {
			r := newRig(t, monitortest.Degraded(monitortest.Epoch), 80, 24, func(o *Options) { o.Lab = nil })
			for _, k := range strings.Fields(keys) {
				r.press(k)
				if (r.m.Dialog != nil) != (k == "a" || k == "C" || k == "q" || k == "J") {
					t.Fatalf("%s: dialog %v after %s", keys, r.m.Dialog, k)
				}
			}
			s := monitortest.Degraded(monitortest.Epoch)
			for i := range 9 {
				monitortest.Put(s, monitortest.LockOf(monitortest.Epoch, fmt.Sprint("aaa:", i), monitor.LockNoTTL, monitortest.TokenA, "i i i i i"))
			}
			r.push(s)
			r.press("2")
			first(r, "aaa:0")
			if r.cursor() != "aaa:0" {
				t.Errorf("%s: the cursor is on %s", keys, r.cursor())
			}
		}
	})
	t.Run("locks after a dialog about one", func(t *testing.T) {
		for _, keys := range []string{"R esc", "X esc", "e esc"} {
			r := newRig(t, monitortest.Degraded(monitortest.Epoch), 80, 24)
			r.press(strings.Fields(keys)...)
			s := monitortest.Degraded(monitortest.Epoch)
			monitortest.Put(s, monitortest.LockOf(monitortest.Epoch, "aaa", monitor.LockNoTTL, monitortest.TokenA, "i i i i i"))
			r.push(s)
			if r.cursor() != "stuck" {
				t.Errorf("%s: the cursor went to %s", keys, r.cursor())
			}
		}
	})
	t.Run("many nodes", func(t *testing.T) {
		down := func(s *monitor.Snapshot, i int) {
			s.Nodes[i].State, s.Nodes[i].Since = monitor.NodeDown, monitortest.Epoch
		}
		s := monitortest.Many(monitortest.Epoch, 21)
		for i := range s.Nodes {
			s.Nodes[i].State = monitor.NodeServing
		}
		r := newRig(t, s, 80, 24, withoutGuard)
		s = monitortest.Many(monitortest.Epoch, 21)
		for i := range s.Nodes {
			s.Nodes[i].State = monitor.NodeServing
		}
		down(s, 20)
		r.push(s)
		r.press("3")
		first(r, s.Nodes[20].Name)
		if got := r.m.Nodes.Selected().Name; got != s.Nodes[20].Name {
			t.Errorf("the cursor is on %s", got)
		}
	})
	t.Run("the help", func(t *testing.T) {
		r := newRig(t, monitortest.Degraded(monitortest.Epoch), 80, 24)
		r.press("?", "pgdown", "esc", "3", "?")
		r.sees("Works here: nodes")
	})
	t.Run("findings", func(t *testing.T) {
		r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
		r.press("5", "down")
		under := r.m.selected().Finding.ID
		r.press("o")
		if r.m.Viewed() == page.Findings {
			t.Fatal("no page opened")
		}
		r.press("esc")
		if got := r.m.selected().Finding.ID; got != under {
			t.Errorf("esc returns to %s, not %s", got, under)
		}
	})
}

// The cursor stays on a lock whose page was opened from a list.
func TestOpeningALockKeepsTheCursorOnIt(t *testing.T) {
	for _, key := range []string{"o", "enter"} {
		r := newRig(t, monitortest.Degraded(monitortest.Epoch), 80, 24)
		r.press("2", key)
		s := monitortest.Degraded(monitortest.Epoch)
		monitortest.Put(s, monitortest.LockOf(monitortest.Epoch, "aaa", monitor.LockNoTTL, monitortest.TokenA, "i i i i i"))
		r.push(s)
		r.press("esc")
		if r.cursor() != "stuck" {
			t.Errorf("%s: the cursor went to %s", key, r.cursor())
		}
	}
}
