package tui

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	tea "charm.land/bubbletea/v2"

	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/redlock"
	"redlockctl/server/announce"
	"redlockctl/server/safetext"
	"redlockctl/tui/action"
	"redlockctl/tui/page"
)

const token42 = "web-7_811_" + monitortest.TokenA

// asking opens the dialog of force-release on orders:42.
func asking(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	r.under("orders:42")
	r.press("X")
	if r.m.Dialog == nil {
		t.Fatal("no dialog opened")
	}
	return r
}

func nothingSent(t *testing.T, r *rig) {
	t.Helper()
	r.run()
	if got := r.acts.sent(); len(got) != 0 {
		t.Errorf("sent %q", got)
	}
}

func TestForceRelease(t *testing.T) {
	r := asking(t)
	r.sees("Force-release orders:42?", "n1 9s · n3 9s · n5 9s", "n2 fenced: no copy",
		"n4 down: a copy there, if any, expired by 12:03:00 unless extended", "two clients will work on orders:42")
	r.settle()
	r.typed("web-7 is dead")
	r.press("tab")
	r.typed("orders:42")
	r.sees("enter force-release · esc cancel")
	r.press("enter")
	r.sees("working…")
	if len(r.acts.sent()) != 0 {
		t.Error("the act ran in Update")
	}
	r.acts.results = []redlock.NodeResult{
		{Node: "n1", Status: redlock.StatusOK},
		{Node: "n2", Status: redlock.StatusAbsent},
		{Node: "n3", Status: redlock.StatusOK},
		{Node: "n4", Status: redlock.StatusDown, Err: errFake, MayLiveUntil: r.clock.Add(9500 * time.Millisecond)},
		{Node: "n5", Status: redlock.StatusHeld},
		{Node: "n6", Status: redlock.StatusUnanswered, MayLiveUntil: r.clock.Add(9500 * time.Millisecond)},
	}
	r.run()
	want := fmt.Sprintf("force-release %q %q because %q", "orders:42", token42, "web-7 is dead")
	if got := r.acts.sent(); !slices.Equal(got, []string{want}) {
		t.Errorf("sent %q, not %q", got, want)
	}
	r.sees("force-release orders:42: done", "2 copies deleted", "n1 ● ok copy deleted", "n2 ○ absent no copy is there",
		"it was sent the release, and had not answered yet when that was done; a copy may remain there until 12:03:19 (9s)",
		"n4 ✗ down a copy may remain there until 12:03:19 (9s); NOPERM \\x1b[31mthis user", "n5 ○ held another token's copy, left alone")
	r.press("enter") // too early to have been read
	if r.m.Result == nil {
		t.Error("the result was closed by a key that came before it was drawn")
	}
	r.settle()
	r.press("enter")
	if r.m.Result != nil {
		t.Error("enter does not close the result")
	}
}

func TestForceReleaseRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*rig)
		says string
	}{
		{"an empty reason", func(r *rig) { r.press("tab"); r.typed("orders:42") }, "! a reason is missing"},
		{"a reason of blanks", func(r *rig) { r.press("space", "space", "tab"); r.typed("orders:42") }, "! a reason is missing"},
		{"no name", func(r *rig) { r.typed("dead") }, "! the name is missing: type orders:42"},
		{"another name", func(r *rig) { r.typed("dead"); r.press("tab"); r.typed("orders:43") }, "! that is not the name: type orders:42"},
		{"a part of the name", func(r *rig) { r.typed("dead"); r.press("tab"); r.typed("orders:4") }, "! that is not the name"},
		{"another case", func(r *rig) { r.typed("dead"); r.press("tab"); r.typed("Orders:42") }, "! that is not the name"},
		{"a holder that changed", func(r *rig) {
			r.typed("dead")
			r.press("tab")
			r.typed("orders:42")
			s := monitortest.Degraded(monitortest.Epoch)
			monitortest.Put(s, monitortest.LockOf(monitortest.Epoch, "orders:42", monitor.LockHeld, monitortest.TokenC, "30 - 30 ? 30"))
			r.push(s)
		}, "! the holder changed since this was opened"},
		{"a holder whose nodes do not answer", func(r *rig) {
			r.typed("dead")
			r.press("tab")
			r.typed("orders:42")
			s := monitortest.Degraded(monitortest.Epoch)
			monitortest.Put(s, monitortest.LockOf(monitortest.Epoch, "orders:42", monitor.LockHeld, monitortest.TokenC, "? - ? ? 30"))
			r.push(s)
		}, "! n1, n3, n4 did not answer in time: whether the holder changed is not known"},
		{"a lock that is gone", func(r *rig) {
			r.typed("dead")
			r.press("tab")
			r.typed("orders:42")
			s := monitortest.Degraded(monitortest.Epoch)
			monitortest.Drop(s, "orders:42")
			r.push(s)
		}, "! the lock is gone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := asking(t)
			r.settle()
			c.do(r)
			r.press("enter", "enter")
			r.sees(c.says)
			nothingSent(t, r)
		})
	}
}

// A token that cannot be compared is not revoked or force-released: any holder's copy
// could be removed.
func TestForceReleaseNeedsAToken(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*monitor.Lock)
		says   string
	}{
		{"empty", func(l *monitor.Lock) {
			l.Holder = safetext.New("")
			monitortest.Change(l, func(c *monitor.Copy) { c.Token, c.Len = l.Holder, 0 })
		}, "its value is empty"},
		{"longer than what was read", func(l *monitor.Lock) { monitortest.Change(l, func(c *monitor.Copy) { c.Len = 512 << 20 }, 0) }, "only the first are known"},
		{"a list", func(l *monitor.Lock) { monitortest.Change(l, func(c *monitor.Copy) { c.Type = "list" }, 2) }, "a list, not a string"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := monitortest.Degraded(monitortest.Epoch)
			l := monitortest.LockOf(monitortest.Epoch, "one", monitor.LockHeld, monitortest.TokenA, "9 9 9 9 9")
			c.change(&l)
			s.Locks = monitor.NewLocks(l)
			r := newRig(t, s, 120, 40)
			r.press("X")
			r.refused(c.says)
		})
	}
}

// TestDialogTakesWhatIsTypedAtOnce: text, tab and pastes are accepted at once, even
// before the dialog is drawn and in a burst that does not end. Only enter is ignored
// until there was a pause, since it may have been meant for the previous screen, and the
// dialog says so.
func TestDialogTakesWhatIsTypedAtOnce(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	r.under("orders:42")
	for _, k := range []string{"X", "d", "enter", "e"} { // before a frame is drawn
		r.m.Update(keyPress(k))
	}
	r.m.View()
	for _, k := range []string{"a", "d"} {
		r.wait(200 * time.Millisecond)
		r.press(k)
	}
	r.m.Update(tea.PasteMsg{Content: ": INC-7"})
	r.press("tab")
	r.typed("orders:42")
	d := r.m.Dialog
	if d == nil || d.Fields[0].String() != "dead: INC-7" || d.Fields[1].String() != "orders:42" {
		t.Fatalf("what was typed at once was lost: %+v", d)
	}
	r.sees("enter force-release · esc cancel")
	for range 3 {
		r.wait(200 * time.Millisecond)
		r.press("enter")
		r.sees("enter came too soon and was not taken: pause, then press it again")
	}
	nothingSent(t, r)
	r.settle()
	r.press("enter")
	r.run()
	r.sent(fmt.Sprintf("force-release %q %q because %q", "orders:42", token42, "dead: INC-7"))
}

func TestEscLeavesEverything(t *testing.T) {
	r := asking(t)
	r.press("esc") // esc works at once: it is always safe
	if r.m.Dialog != nil {
		t.Error("esc does not close the dialog")
	}
	nothingSent(t, r)
	if r.cursor() != "orders:42" {
		t.Errorf("the cursor is on %s", r.cursor())
	}
}

func TestReadOnlyRefusesEachAct(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	r.acts.readOnly = true
	r.under("orders:42")
	for _, k := range []string{"a", "e", "r", "R", "X"} {
		r.press(k)
		r.refused("read-only: actions are refused")
	}
	r.press("tab", "down")
	for _, k := range []string{"C", "U", "J"} {
		r.press(k)
		r.refused("read-only: actions are refused")
	}
	r.press("tab", "m", "down", "m", "R")
	r.refused("read-only: actions are refused")
	nothingSent(t, r)
}

func TestOrderStandsWhileADialogIsOpen(t *testing.T) {
	r := asking(t)
	before := listed(r)
	s := monitortest.Degraded(monitortest.Epoch)
	risen := *s.Locks.Get("job:020")
	risen.State = monitor.LockNoTTL
	monitortest.Put(s, risen, monitortest.LockOf(monitortest.Epoch, "aaa", monitor.LockSplit, monitortest.TokenA, "9 9 9 9 9"))
	r.push(s)
	if after := listed(r); !slices.Equal(after, before) {
		t.Errorf("the order changed:\n%q\n%q", before, after)
	}
	s = monitortest.Degraded(monitortest.Epoch)
	monitortest.Drop(s, "report")
	r.push(s)
	if after := listed(r); !slices.Equal(after, before) {
		t.Errorf("a row that is gone moved the others:\n%q\n%q", before, after)
	}
	if page := flat(ansi.Strip(strings.Join(r.m.Page.Lines(37), " "))); !strings.Contains(page, "report ✗ gone") {
		t.Errorf("the row of a lock that is gone does not say so: %s", page)
	}
	s = monitortest.Degraded(monitortest.Epoch)
	monitortest.Put(s, risen, monitortest.LockOf(monitortest.Epoch, "aaa", monitor.LockSplit, monitortest.TokenA, "9 9 9 9 9"))
	r.push(s)
	r.press("esc")
	if after := listed(r); after[0] != "job:020" || r.cursor() != "orders:42" {
		t.Errorf("not sorted again: %q, cursor on %s", after, r.cursor())
	}
}

func TestFailureIsShownEscaped(t *testing.T) {
	r := asking(t)
	r.acts.err = fmt.Errorf("refused: %w", errFake)
	r.settle()
	r.typed("dead")
	r.press("tab")
	r.typed("orders:42")
	r.press("enter")
	r.run()
	r.sees("force-release orders:42: failed", `refused: NOPERM \x1b[31mthis user\x1b[0m has no permissions`)
	checkFrame(t, r.m.View().Content, 120, 40, false)
}

func TestFailureTellsTheNodes(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	r.press("a")
	r.settle()
	r.typed("new:lock")
	r.press("enter")
	r.acts.err = &redlock.Error{Op: "acquire", Resource: "new:lock", Kind: redlock.ErrNoQuorum, Attempts: 4, Nodes: []redlock.NodeResult{
		{Node: "n1", Status: redlock.StatusOK}, {Node: "n2", Status: redlock.StatusFenced}, {Node: "n4", Status: redlock.StatusDown},
	}}
	r.run()
	r.sees("acquire new:lock: failed", "n1 ● ok", "n2 ◐ fenced", "n4 ✗ down")
}

func TestAcquire(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	r.press("a")
	r.settle()
	r.press("enter")
	r.sees("! the name of the lock is missing")
	r.typed("maintenance 宽")
	r.press("tab", "ctrl+u")
	for _, c := range []struct{ ttl, says string }{
		{"", "the TTL is a number with a unit"},
		{"abc", "the TTL is a number with a unit"},
		{"-3s", "the TTL must be a millisecond or more"},
		{"0s", "the TTL must be a millisecond or more"},
		{"31s", "31s is above 30s, the limit by max TTL and guards"},
	} {
		r.press("ctrl+u")
		r.typed(c.ttl)
		r.press("enter")
		r.sees("! " + c.says)
	}
	nothingSent(t, r)
	r.press("ctrl+u")
	r.typed("20s")
	r.press("enter")
	r.run()
	if got := r.acts.sent(); !slices.Equal(got, []string{`acquire "maintenance 宽" 20s`}) {
		t.Errorf("sent %q", got)
	}
}

func TestAcquireSaysWhoHasTheName(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	r.press("a")
	r.settle()
	r.typed("orders:42")
	r.sees("held by web-7_")
}

func TestReleaseOfWhatWasAcquiredHere(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	g := action.Grant{Key: "orders:43", Token: monitortest.TokenB, TTL: 20 * time.Second, Until: monitortest.Epoch.Add(10 * time.Second)}
	r.m.Mine["orders:43"] = g
	r.under("orders:43")
	r.sees("here 5d2aQ8")
	r.press("r")
	r.settle()
	r.sees("Release orders:43?")
	r.press("enter")
	r.run()
	if got := r.acts.sent(); !slices.Equal(got, []string{fmt.Sprintf("release %q %q", "orders:43", monitortest.TokenB)}) {
		t.Errorf("sent %q", got)
	}
	r.settle()
	r.press("enter", "r")
	r.sees("not acquired here")
}

func TestGrantIsForgottenWhenItEnds(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	r.m.Mine["orders:42"] = action.Grant{Key: "orders:42", Token: "another", Until: monitortest.Epoch.Add(2 * time.Second)}
	r.wait(time.Second)
	if len(r.m.Mine) != 1 {
		t.Error("forgotten too early")
	}
	r.wait(2 * time.Second)
	if len(r.m.Mine) != 0 {
		t.Error("not forgotten")
	}
}

// The dialog of uncordon says who cordoned the node, and why, by the audit log. Of a fenced
// node it says when the fence ends; J is named only where no guard is seen.
func TestUncordonSaysWhoCordoned(t *testing.T) {
	one := monitortest.Degraded(monitortest.Epoch)
	one.Nodes[0].State = monitor.NodeCordoned
	one.Nodes[0].Cordon = &monitor.Cordon{Action: monitor.Action{Act: "node drain", Actor: "ops@host", Reason: "disk", At: monitortest.Epoch}, Restart: []string{"n1", "n2"}, Stopped: true}
	r := newRig(t, one, 120, 40)
	r.press("tab", "U")
	r.sees("Uncordon n1?", "Cordoned at 12:03:10 by ops@host: disk; in a restart of n1, n2 that was interrupted, by the audit log here",
		"To go on with the restart: redlockctl restart n1 n2 --resume -- COMMAND")
	for _, c := range []struct {
		guards []announce.Guard
		want   string
	}{
		{nil, "n1 is not cordoned but fenced: no guard is seen there: start one, or J lets it rejoin by hand"},
		{[]announce.Guard{{ID: "g", MayVote: monitortest.Epoch.Add(17 * time.Second)}}, "n1 is not cordoned but fenced: its guard lets it rejoin from 12:03:27 (17s)"},
	} {
		one := monitortest.Degraded(monitortest.Epoch)
		n := &one.Nodes[0]
		n.State, n.Guards, n.Offset = monitor.NodeFenced, c.guards, monitor.Estimate{Valid: true}
		r := newRig(t, one, 120, 40)
		r.press("tab", "U")
		r.sees("uncordon n1: refused", c.want)
	}
}

func TestFenceAndOpen(t *testing.T) {
	one := monitortest.Degraded(monitortest.Epoch)
	one.Nodes[0].Locks = 1
	r := newRig(t, one, 120, 40)
	r.press("tab", "C")
	r.sees("Cordon n1?", ", 1 copy ", "then 2 of 5 nodes serve, the quorum is 3: NOTHING can be locked")
	r.settle()
	r.typed("disk")
	r.press("tab")
	r.typed("n2")
	r.press("enter")
	r.sees("! that is not the name: type n1")
	r.press("backspace", "1", "enter")
	r.run()
	r.sees("cordon n1: done", "it refuses writes now")
	r.settle()
	r.press("enter", "down", "J")
	r.sees("Rejoin n2?", "safe only in 17s", "granted a second time")
	r.settle()
	r.press("tab")
	r.typed("n2")
	r.press("enter")
	r.sees("! a reason is missing")
	r.typed("new cluster")
	r.press("enter")
	r.run()
	if got := r.acts.sent(); !slices.Equal(got, []string{`fence "n1" because "disk"`, `open "n2" because "new cluster"`}) {
		t.Errorf("sent %q", got)
	}
}

func TestCrash(t *testing.T) {
	r := newLabRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	r.press("tab", "c")
	r.sees("Crash n1?", "rejoin after D = 30.35s")
	r.settle()
	r.press("enter")
	r.run()
	if got := <-r.lab.crashed; got != "crash n1" {
		t.Errorf("crashed %s", got)
	}
}

func TestDialogIsAboutWhatItWasOpenedOn(t *testing.T) {
	r := asking(t)
	r.settle()
	r.typed("dead")
	r.press("tab")
	r.typed("orders:42")
	// Wherever the cursor moves meanwhile.
	r.m.Locks.Move(3)
	r.press("enter")
	r.run()
	if got := r.acts.sent(); len(got) != 1 || !strings.Contains(got[0], `"orders:42" `) {
		t.Errorf("sent %q", got)
	}
}

func TestActInTheBackground(t *testing.T) {
	r := asking(t)
	r.settle()
	r.typed("dead")
	r.press("tab")
	r.typed("orders:42")
	r.press("enter")
	r.press("esc")
	if r.m.Dialog != nil {
		t.Fatal("esc does not send it to the background")
	}
	r.press("a")
	r.refused("an action is still running")
	r.press("q")
	r.sees("wait for it, or ctrl+c")
	if r.ended {
		t.Error("q quits in the middle of an act")
	}
	r.run()
	r.sees("force-release orders:42: done")
	r.press("q")
	if !r.ended {
		t.Error("q does not quit")
	}
}

func TestNoActBeginsAfterTheEnd(t *testing.T) {
	r := asking(t)
	r.settle()
	r.typed("dead")
	r.press("tab")
	r.typed("orders:42")
	r.press("enter")
	r.m.Running.Close(0)
	if msg := r.pending[0](); msg != nil {
		t.Errorf("an act ran: %v", msg)
	}
	if got := r.acts.sent(); len(got) != 0 {
		t.Errorf("sent %q", got)
	}
}

func TestCtrlCAlwaysQuits(t *testing.T) {
	for _, way := range ways {
		r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
		r.press(way.keys...)
		r.press("ctrl+c")
		if !r.ended {
			t.Errorf("not from %s", way.name)
		}
	}
}

func TestLettersInADialogAreText(t *testing.T) {
	r := asking(t)
	r.settle()
	r.typed("q/?sXr jk")
	if s := r.m.Dialog.Fields[0].String(); s != "q/?sXr jk" {
		t.Errorf("typed %q", s)
	}
}

func TestErrFakeIsUntrusted(t *testing.T) {
	if !errors.Is(fmt.Errorf("x: %w", errFake), errFake) || safetext.New(errFake.Error()).Clean() {
		t.Error("the fake error does not test anything")
	}
}

// The result of an action blocks no key: any key closes it, and it closes by itself.
func TestResultsNeverBlock(t *testing.T) {
	acted := func() *rig {
		r := asking(t)
		r.confirm("web-7 is dead", "orders:42")
		r.run()
		r.sees("force-release orders:42: done")
		return r
	}
	r := acted()
	r.press("4") // too early to have been read: the result stays, and the page changes
	r.where(page.Events)
	r.sees("force-release orders:42: done")
	r.settle()
	r.press("3")
	r.where(page.Nodes)
	r.seesNot("force-release orders:42: done")

	r = acted()
	r.settle()
	r.press("q")
	if r.m.Result != nil || r.ended {
		t.Error("q does not just close the result")
	}

	r = acted()
	r.wait(30 * time.Second)
	r.seesNot("force-release orders:42: done")
}

// What can let two clients hold one lock is asked in a red frame; other questions are not.
func TestDangerousDialogsAreRed(t *testing.T) {
	for key, danger := range map[string]bool{"X": true, "R": false, "a": false} {
		r := newRig(t, monitortest.Degraded(monitortest.Epoch), 100, 30)
		r.press("2")
		r.under("orders:42")
		r.press(key)
		if red := strings.HasPrefix(r.m.Dialog.Box(r.m.St, 96, 28, r.clock)[0], r.m.St.Bad.Of("┏━")); red != danger {
			t.Errorf("%s: a red frame is %t, not %t", key, red, danger)
		}
	}
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 100, 30)
	r.press("3", "down", "J")
	if !strings.HasPrefix(r.m.Dialog.Box(r.m.St, 96, 28, r.clock)[0], r.m.St.Bad.Of("┏━")) {
		t.Errorf("rejoin has no red frame:\n%s", r.screen())
	}
}

// A drain is not done while copies remain: its result counts down, and stays until the node is empty.
func TestADrainWaitsUntilItIsEmpty(t *testing.T) {
	now := monitortest.Epoch
	snapshot := func(state monitor.NodeState, copies int, drained bool) *monitor.Snapshot {
		s := monitortest.Safe(now)
		n := &s.Nodes[0]
		n.State, n.Locks = state, copies
		if n.Guards = []announce.Guard{{ID: "g", Drained: drained}}; copies > 0 && state == monitor.NodeCordoned {
			n.CopiesUntil = now.Add(27 * time.Second)
		}
		return s
	}
	r := newRig(t, snapshot(monitor.NodeServing, 2, false), 120, 40)
	r.press("tab", "D")
	r.sees("Drain n1?")
	r.settle()
	r.typed("upgrade")
	r.press("tab")
	r.typed("n1")
	r.press("enter")
	r.run()
	r.sees("drain n1: not yet done", "2 copies left")
	r.push(snapshot(monitor.NodeCordoned, 2, false))
	r.sees("drain n1: not yet done", "2 copies left, the last ends at", "(26s)")
	r.wait(20 * time.Second)
	r.sees("drain n1: not yet done", "(6s)")
	r.push(snapshot(monitor.NodeServing, 3, false)) // somebody uncordoned it
	r.sees("drain n1: not yet done", "not drained: the cordon was ended meanwhile: the node is serving and may have new copies")
	r.seesNot("restart it", "not cordoned any more")
	r.push(snapshot(monitor.NodeCordoned, 0, false))
	r.sees("no copy is left; a guard has to see that too")
	r.push(snapshot(monitor.NodeCordoned, 0, true))
	r.sees("drain n1: done", "restart it, then uncordon it")
	r.push(snapshot(monitor.NodeServing, 0, false)) // somebody uncordoned it
	r.sees("drain n1: done", "it is not cordoned any more: it is serving, and may have new copies")
	r.seesNot("restart it")
	r.push(snapshot(monitor.NodeDown, 0, false)) // it may be cordoned
	r.sees("drain n1: done", "restart it, then uncordon it")
	r.wait(12 * time.Second)
	r.seesNot("drain n1: done")
}

// The result of a cordon goes on to say what is so: somebody else may uncordon the node.
func TestACordonThatSomebodyEnds(t *testing.T) {
	r := newRig(t, monitortest.Safe(monitortest.Epoch), 120, 40)
	r.press("tab", "C")
	r.confirm("upgrade", "n1")
	r.run()
	const advice = "it refuses writes now; U uncordons it"
	r.sees("cordon n1: done", advice) // before the screen shows that it is cordoned
	for _, state := range []monitor.NodeState{monitor.NodeCordoned, monitor.NodeServing} {
		s := monitortest.Safe(monitortest.Epoch)
		s.Nodes[0].State = state
		r.push(s)
		if state == monitor.NodeCordoned {
			r.sees("cordon n1: done", advice)
		}
	}
	r.sees("cordon n1: done", "it is not cordoned any more: it is serving")
	r.seesNot(advice)
}

// Enter goes to the first field in which something is missing, and says what it is.
func TestEnterGoesToWhatIsMissing(t *testing.T) {
	open := func(r *rig, keys ...string) {
		r.press(keys...)
		r.settle()
	}
	at := func(r *rig, field int, says string) {
		t.Helper()
		r.sees("! " + says)
		if r.m.Dialog.Focus != field {
			t.Errorf("%q is said at field %d, not %d", says, r.m.Dialog.Focus, field)
		}
	}
	t.Run("a reason, then a name", func(t *testing.T) {
		for _, key := range []string{"X", "R"} {
			r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
			r.under("orders:42")
			open(r, key)
			r.press("enter")
			at(r, 0, "a reason is missing")
			r.typed("dead")
			r.press("enter")
			at(r, 1, "the name is missing: type orders:42")
			r.typed("orders:42")
			r.press("enter")
			r.run()
			if got := r.acts.sent(); len(got) != 1 || !strings.Contains(got[0], `"orders:42"`) {
				t.Errorf("%s sent %q", key, got)
			}
		}
	})
	t.Run("a name, then the reason", func(t *testing.T) {
		r := asking(t)
		open(r, "tab")
		r.typed("orders:42")
		r.press("enter")
		at(r, 0, "a reason is missing")
	})
	t.Run("of a node", func(t *testing.T) {
		r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
		open(r, "3", "C")
		r.typed("disk")
		r.press("enter")
		at(r, 1, "the name is missing: type n1")
	})
	t.Run("of several", func(t *testing.T) {
		r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
		r.under("orders:42")
		r.press("m")
		r.under("orders:43")
		open(r, "m", "R")
		r.typed("dead")
		r.press("enter")
		at(r, 1, `how many are there? type "2 locks"`)
	})
	t.Run("of acquire", func(t *testing.T) {
		r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
		open(r, "a")
		r.typed("mine")
		r.press("tab")
		r.typed("x")
		r.press("tab", "tab")
		r.settle()
		r.press("enter")
		at(r, 1, "the TTL is a number with a unit")
	})
}

// Text that is typed after a key whose dialog or line does not open is not taken for keys.
func TestTextAfterARefusalIsNotTakenForKeys(t *testing.T) {
	text := []string{"r", "u", "n", "s", "space", "X", "8", "q", "C", "m", "/", ":"}
	for _, c := range []struct {
		name string
		keys []string
		says []string
	}{
		{"revoke", []string{"R"}, []string{"✗ revoke session:cache: refused", "a hash, not a string"}},
		{"force-release", []string{"X"}, []string{"✗ force-release session:cache: refused", "a hash, not a string"}},
		{"extend", []string{"e"}, []string{"✗ extend session:cache: refused", "not acquired here"}},
		{"of marked", []string{"m", "R"}, []string{"✗ revoke: refused", "none of the 1 lock marked"}},
		{"another page", []string{"C"}, []string{"✗ cordon: refused", "go to the nodes first"}},
		{"a node", []string{"3", "U"}, []string{"✗ uncordon n1: refused", "n1 is not cordoned"}},
		{"filter", []string{"3", "/"}, []string{"✗ filter: refused", "there is nothing to filter on this page"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
			r.under("session:cache")
			r.press(c.keys...)
			before, marks := r.m.Page, len(r.m.Marks)
			r.settle()
			r.press(text...)
			r.settle()
			r.press("enter") // after the reason
			r.sees("what was typed was not taken")
			r.m.Update(tea.PasteMsg{Content: "session:cache"})
			r.settle()
			r.press("enter") // after the name
			if r.m.Page != before || len(r.m.Marks) != marks || r.m.Frozen.On() || r.ended {
				t.Errorf("a letter was taken for a key:\n%s", r.screen())
			}
			r.refused(c.says...)
			nothingSent(t, r)
			r.press(c.keys[len(c.keys)-1])
			r.sees("enter or esc closes this")
			r.settle()
			r.press("enter") // nothing was typed
			if r.m.Dialog != nil {
				t.Error("enter does not close it")
			}
		})
	}
}
