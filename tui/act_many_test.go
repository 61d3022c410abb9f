package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/redlock"
	"redlockctl/tui/page"
)

// marking marks these locks on a screen, and puts the cursor on orders:44.
func marking(t *testing.T, keys ...string) *rig {
	t.Helper()
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	for _, key := range keys {
		r.under(key)
		r.press("m")
	}
	r.under("orders:44")
	return r
}

// step runs the action that was started, and keeps the one that it starts.
func (r *rig) step() {
	r.t.Helper()
	if len(r.pending) != 1 {
		r.t.Fatalf("%d acts wait, not one", len(r.pending))
	}
	_, next := r.m.Update(r.pending[0]())
	r.pending = nil
	if next != nil {
		r.pending = append(r.pending, next)
	}
	r.m.View()
}

func forced(key, token string) string {
	return fmt.Sprintf("force-release %q %q because %q", key, token, "host gone")
}

// Marked locks are confirmed once and removed one by one, each with the token that was
// shown.
func TestForceReleaseOfMarked(t *testing.T) {
	r := marking(t, "orders:42", "job:003", "stuck")
	r.press("X")
	r.sees("Force-release 3 marked locks?", "of each: all copies deleted now", "two clients will work on it",
		"job:003 of 5d2aQ8…LA==, 3/5", "orders:42 of web-7_…2d1e, 3/5", "stuck of 77c0aa…2d1e, 3/5")
	r.settle()
	r.press("enter")
	r.sees("! a reason is missing")
	r.typed("host gone")
	r.press("tab", "enter")
	r.sees("! how many are there? type \"3 locks\"")
	for _, wrong := range []string{"2 locks", "3", "stuck", "3 Locks"} {
		r.press("ctrl+u")
		r.typed(wrong)
		r.press("enter")
		r.sees("! that is not how many there are: type \"3 locks\"")
	}
	nothingSent(t, r)
	r.press("ctrl+u")
	r.typed("3 locks")
	r.press("enter")
	r.sees("0 of 3", "esc: stop after this one", "◌ job:003 working…")
	r.acts.results = []redlock.NodeResult{{Node: "n1", Status: redlock.StatusOK}, {Node: "n4", Status: redlock.StatusDown, MayLiveUntil: monitortest.Epoch.Add(9e9)}}
	r.acts.failing = map[string]error{"orders:42": errFake}
	r.step()
	r.sent(forced("job:003", monitortest.TokenB))
	r.sees("1 of 3", "◐ job:003 1 copy deleted; a copy may remain n4 until 12:03:19", "◌ orders:42 working…")
	r.seesNot("stuck working")
	r.press("q", "X", "enter") // a dialog that works accepts none of them
	r.pending = r.pending[:1]
	r.step()
	r.step()
	r.sent(forced("job:003", monitortest.TokenB), forced("orders:42", token42), forced("stuck", monitortest.TokenA))
	r.sees("✗ 2 locks force-released, 1 failed", `✗ orders:42 NOPERM \x1b[31mthis user`, "◐ stuck 1 copy deleted")
	if len(r.pending) != 0 || r.m.Busy != 0 {
		t.Errorf("%d acts wait, %d are busy after the end", len(r.pending), r.m.Busy)
	}
	r.settle()
	r.press("enter")
	if r.m.Dialog != nil {
		t.Error("the result is still open")
	}
}

func TestMarkedStopsBetweenTwo(t *testing.T) {
	r := marking(t, "orders:42", "job:003", "stuck")
	r.press("R")
	r.confirm("host gone", "3 locks")
	r.press("esc")
	if r.m.Dialog == nil {
		t.Fatal("esc closed the dialog while it works")
	}
	r.sees("stopping after this one")
	r.step()
	r.sees("◐ 1 lock revoked, 2 left as they are", "● job:003", "○ orders:42 not begun", "○ stuck not begun")
	if n := len(r.acts.sent()); n != 1 || len(r.pending) != 0 {
		t.Errorf("%d were sent, %d wait", n, len(r.pending))
	}
}

// Changes since the dialog opened are shown, and compared when the action is sent; locks
// that cannot be removed are skipped.
func TestMarkedThatChanged(t *testing.T) {
	r := marking(t, "orders:42", "job:003", "session:cache", "stuck")
	r.press("X")
	r.sees("Force-release 3 marked locks?", "Left out 1 lock that cannot be: session:cache: \"session:cache\" on n1 is a hash")
	s := monitortest.Degraded(monitortest.Epoch)
	monitortest.Put(s, monitortest.LockOf(monitortest.Epoch, "orders:42", monitor.LockHeld, monitortest.TokenC, "30 - 30 ? 30"))
	monitortest.Drop(s, "stuck")
	r.push(s)
	r.sees("since this was opened 1 ended and 1 passed to another: those are left alone", "orders:42 (another holder by now: left alone)", "stuck (gone)")
	r.confirm("host gone", "3 locks")
	r.acts.failing = map[string]error{"orders:42": errFake, "stuck": &redlock.Error{Op: "force-release", Resource: "stuck", Kind: redlock.ErrNotHeld}}
	for range 3 {
		r.step()
	}
	r.sees("1 lock force-released, 1 had ended by then, 1 failed", "○ stuck it had ended: nothing of this token was left")
	r.sent(forced("job:003", monitortest.TokenB), forced("orders:42", token42), forced("stuck", monitortest.TokenA))
}

func TestNoneOfTheMarkedCanBe(t *testing.T) {
	r := marking(t, "session:cache", "stuck")
	r.press("r")
	r.refused("none of the 2 locks marked: not acquired here")
	r.under("stuck")
	r.press("m")
	r.under("orders:44")
	r.press("X") // one lock is marked: the action is about that one, not the one under the cursor
	r.refused("none of the 1 lock marked: \"session:cache\" on n1 is a hash, not a string")
}

func TestOneMarkedIsAskedByItsName(t *testing.T) {
	r := marking(t, "stuck")
	r.press("X")
	r.sees("Force-release stuck?", "Type the name to confirm")
}

// A command that names a lock acts on that lock.
func TestACommandIsAboutOneLock(t *testing.T) {
	r := marking(t, "orders:42", "job:003", "stuck")
	r.press(":")
	r.typed("revoke job:005")
	_, cmd := r.m.Update(keyPress("enter"))
	_ = cmd // the history is saved
	r.m.View()
	r.sees("Revoke job:005?")
	r.press("esc", "R")
	r.sees("Revoke 3 marked locks?")
}

// Many results can be scrolled to the end.
func TestResultsOfManyScroll(t *testing.T) {
	s := monitortest.Degraded(monitortest.Epoch)
	r := newRig(t, s, 60, 15)
	r.press(":")
	r.typed("mark all")
	r.m.Update(keyPress("enter"))
	r.m.View()
	r.acts.failing = map[string]error{"job:000": fmt.Errorf("n1: %s", strings.Repeat("long ", 40))}
	r.press("X")
	var want string
	for line := range strings.Lines(r.screen()) {
		if _, after, ok := strings.Cut(flat(line), "Type "); ok && strings.Contains(line, "locks") {
			want = strings.TrimSpace(strings.TrimSuffix(after, ">"))
		}
	}
	r.confirm("host gone", want)
	steps := 0
	for len(r.pending) > 0 {
		r.step()
		checkFrame(t, r.m.View().Content, 60, 15, false)
		if steps++; steps > 100 {
			t.Fatal("no end")
		}
	}
	if got := r.acts.sent(); len(got) != steps || !slices.IsSorted(got) {
		t.Errorf("%d steps sent %d", steps, len(got))
	}
	r.sees(fmt.Sprintf("✗ %d locks force-released, 1 failed", steps-1), "invoices:2026-11", "more lines: pgdn")
	r.settle()
	for range 40 {
		r.press("pgdown")
	}
	r.sees("stuck", "pgup")
	r.press("pgup")
	r.sees("more lines: pgdn")
	for range 60 {
		r.press("pgup")
	}
	r.sees("invoices:2026-11")
}

// On a lock's own page, an action is about that lock, whatever is marked elsewhere.
func TestAnActOnALocksPageIsAboutThatLock(t *testing.T) {
	for _, marked := range [][]string{{"job:003"}, {"job:003", "stuck"}} {
		for key, verb := range map[string]string{"X": "Force-release", "R": "Revoke"} {
			r := marking(t, marked...)
			r.press("o")
			r.where(page.Lock)
			r.seesNot("revoke (")
			r.press(key)
			r.sees(verb + " orders:44?")
			r.seesNot("marked")
			r.confirm("host gone", "orders:44")
			r.run()
			if sent := r.acts.sent(); len(sent) != 1 || !strings.Contains(sent[0], `"orders:44"`) {
				t.Errorf("%s with %q marked: sent %q", key, marked, sent)
			}
		}
	}
}

// The screen says which marked locks are not in the list.
func TestMarkedThatTheFilterHides(t *testing.T) {
	r := marking(t, "job:003", "orders:42", "stuck")
	r.press("/")
	r.typed("job:00")
	r.press("enter", "X")
	r.sees("Force-release 3 marked locks, 2 hidden by the filter?", "Hidden 2 of them are marked and not in the list",
		"orders:42 of web-7_…2d1e, 3/5 (hidden)", "stuck of 77c0aa…2d1e, 3/5 (hidden)")
	r.seesNot("job:003 of 5d2aQ8…LA==, 3/5 (hidden)")

	r = marking(t, "stuck")
	r.press("/")
	r.typed("job:00")
	r.press("enter", "R")
	r.sees("Revoke stuck (hidden by the filter)?")
}
