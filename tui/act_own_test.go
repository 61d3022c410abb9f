package tui

import (
	"errors"
	"fmt"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/monitor"
	"redlockctl/redlock"

	"redlockctl/monitor/monitortest"
	"redlockctl/server/safetext/safetexttest"
	"redlockctl/tui/action"
	"redlockctl/tui/page"
)

// owning is a screen that acquired orders:43, with the cursor on it.
func owning(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	g := action.Grant{Key: "orders:43", Token: monitortest.TokenB, TTL: 20 * time.Second, Until: monitortest.Epoch.Add(10 * time.Second)}

	r.m.Mine["orders:43"] = g
	r.under("orders:43")
	return r
}

func TestExtend(t *testing.T) {
	r := owning(t)
	r.press("e")
	r.sees("Extend orders:43?", "valid until 12:03:20 (10s)", "none is created", "TTL > 20s")
	r.settle()
	r.press("ctrl+u", "enter")
	r.sees("! the TTL is a number with a unit")
	r.typed("31s")
	r.press("enter")
	r.sees("! 31s is above 30s, the limit by max TTL and guards")
	nothingSent(t, r)
	r.press("ctrl+u")
	r.typed("25s")
	r.press("enter")
	r.run()
	r.sent(fmt.Sprintf("extend %q %q 25s", "orders:43", monitortest.TokenB))
	r.sees("extend orders:43: done")
	g := action.Grant{Key: "orders:43", Token: monitortest.TokenB, TTL: 20 * time.Second, Until: monitortest.Epoch.Add(10 * time.Second)}
	if now := g.Extended(25*time.Second, monitortest.Epoch.Add(24*time.Second)); now.TTL != 25*time.Second || now.Until != monitortest.Epoch.Add(24*time.Second) || now.Token != monitortest.TokenB {
		t.Errorf("the grant is %+v", now)
	}
	if now := g.Extended(time.Second, monitortest.Epoch.Add(time.Second)); now.Until != g.Until {
		t.Errorf("an extension made it shorter: %+v", now)
	}
}

func TestExtendRefuses(t *testing.T) {
	r := owning(t)
	r.under("orders:42")
	r.press("e")
	r.refused("e extends only what this screen acquired")
	r.under("orders:43")
	r.press("e")
	r.settle()
	r.clock = r.clock.Add(10 * time.Second) // the validity ends while the dialog is open
	r.press("enter")
	r.sees("! the lock has expired")
	nothingSent(t, r)
	r.press("esc", "e")
	r.refused("the lock has expired: release it and acquire it again")
}

// keeping is a screen that keeps orders:43.
func keeping(t *testing.T, with ...func(*Options)) (*rig, *fakeKept) {
	t.Helper()
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, with...)
	r.press("a")
	r.settle()
	r.typed("orders:43")
	r.press("tab", "ctrl+u")
	r.typed("20s")
	r.press("tab")
	r.sees("Keep > no")
	r.press("space")
	r.sees("Keep > yes", "extended until r releases it; when the console ends, it ends with its TTL")
	r.press("n", "y") // or with its letter
	r.press("enter")
	r.run()
	r.sent(`keep "orders:43" 20s`)
	r.sees("acquire orders:43: done", "kept: it is extended until r releases it")
	r.settle()
	r.press("enter")
	k := r.acts.kept[0]
	k.is(redlock.Held, r.clock.Add(18*time.Second), nil)
	r.wait(time.Second)
	r.under("orders:43")
	return r, k
}

// A kept lock is shown with its state until it is released.
func TestKeep(t *testing.T) {
	r, k := keeping(t)
	r.sees("KEPT HERE ● orders:43 held since 12:03:10")
	r.press("e")
	r.refused("it is kept: it is extended until r releases it")
	k.is(redlock.Uncertain, r.clock.Add(9*time.Second), errFake)
	r.wait(time.Second)
	r.sees("◐ orders:43 uncertain since 12:03:10, valid 8s", `NOPERM \x1b[31mthis user`)
	k.is(redlock.Held, r.clock.Add(18*time.Second), nil)
	r.wait(time.Second)
	r.sees("● orders:43 held since 12:03:10", "held again")
	r.wait(time.Minute) // its validity is extended: the grant is not forgotten
	r.press("r")
	r.sees("Release orders:43?", "kept: extended until it is released")
	r.settle()
	r.press("enter")
	r.run()
	r.sent(`keep "orders:43" 20s`, `release kept "orders:43"`)
	r.sees("release orders:43: done")
	r.settle()
	r.press("enter")
	r.seesNot("KEPT HERE")
	r.press("q")
	if !r.ended {
		t.Error("q asks although nothing is kept")
	}
}

// A lock kept for a time shows how long it is still kept, by whom and why, and the screen
// says when that time has ended.
func TestKeepForATime(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	r.press("a")
	r.typed("orders:43")
	r.settle()
	r.press("tab", "tab", "tab")
	r.typed("10 minutes")
	r.press("enter")
	r.sees("! a number with a unit, such as 10m")
	r.press("ctrl+u")
	r.typed("10m")
	r.sees("Keep yes", "extended for 10m0s and released then, or by r") // a duration implies keep
	r.press("tab")
	r.typed("rolling update")
	r.press("enter")
	r.run()
	r.sent(`keep "orders:43" 30s for 10m0s because "rolling update"`)
	r.sees("kept for 10m: released then, or by r before")
	r.settle()
	r.press("esc")
	k := r.acts.kept[0]
	k.is(redlock.Held, r.clock.Add(18*time.Second), nil)
	r.wait(time.Minute)
	r.sees("KEPT HERE ● orders:43 held since 12:03:10, 8m")
	r.under("orders:43")
	r.press("enter")
	r.sees("Kept", "by this screen, alice@ops-1, since 12:03:10", "until 12:13:10; reason: rolling update")
	k.is(redlock.Released, r.clock, nil)
	k.terms.End = r.clock
	r.wait(time.Second)
	r.sees("orders:43, kept here, was released: its time has ended")
	r.seesNot("KEPT HERE")
}

// A release that cannot be logged leaves the lock kept.
func TestKeptStaysWhenItsReleaseFails(t *testing.T) {
	r, _ := keeping(t)
	r.press("r")
	r.settle()
	r.acts.err = errors.New("refused: an action that cannot be logged is not done")
	r.press("enter")
	r.run()
	r.sees("release orders:43: failed", "cannot be logged")
	r.settle()
	r.press("enter")
	r.sees("KEPT HERE ● orders:43 held")
}

// A loss that was noticed late, as the process was stopped, has the time at which the validity ended.
func TestLostIsToldWithItsTime(t *testing.T) {
	r, k := keeping(t)
	k.is(redlock.Lost, r.clock.Add(-6*time.Second), fmt.Errorf("keep %q: lost: %w", "orders:43", errFake))
	r.wait(time.Second)
	r.sees("✗ LOST at 12:03:05, noticed 7s after its validity had ended: orders:43, kept here")
}

// The loss of a lock stays on the screen until the user has seen it.
func TestLostIsTold(t *testing.T) {
	r, k := keeping(t)
	k.is(redlock.Lost, r.clock, fmt.Errorf("keep %q: lost: %w", "orders:43", errFake))
	r.wait(time.Second)
	for _, keys := range [][]string{nil, {"2"}, {"?"}, {"4"}} {
		r.press(keys...)
		r.sees("✗ LOST at 12:03:11: orders:43, kept here: whatever was done under it must stop")
		r.seesNot("KEPT HERE")
	}
	r.wait(time.Hour)
	r.sees("LOST at 12:03:11")
	r.press("esc")
	r.seesNot("LOST at")
	r.where(page.Events) // the key only cleared the message
	r.press("q")
	if !r.ended {
		t.Error("q asks although nothing is kept")
	}
}

func TestQuitAsksAboutWhatIsKept(t *testing.T) {
	r, k := keeping(t)
	r.press("q")
	if r.ended {
		t.Fatal("q quits and says nothing")
	}
	r.sees("Quit?", "Kept here 1 lock: orders:43 (held)", "deleted on all nodes", "Then > release them")
	r.press("esc")
	if r.m.Dialog != nil || r.ended {
		t.Error("esc does not stay")
	}
	r.press("q")
	r.settle()
	r.acts.err = errFake
	r.press("enter")
	r.run()
	if r.ended || k.State() != redlock.Held {
		t.Error("it quits although a release failed")
	}
	r.sees("and quit: failed", `orders:43: NOPERM \x1b[31mthis user`)
	r.acts.err = nil
	r.settle()
	r.press("enter", "q")
	r.settle()
	r.press("enter")
	_, cmd := r.m.Update(r.pending[0]())
	if cmd == nil {
		t.Fatal("it does not quit")
	}
	if _, ok := cmd().(tea.QuitMsg); !ok || k.State() != redlock.Released {
		t.Error("not released, or not quit")
	}
	if p := r.m.StopKeeping(); len(p.Left) != 0 || len(p.Released) != 1 || p.Released[0].Raw() != "orders:43" {
		t.Errorf("it parts with %v; want orders:43 released", p)
	}
}

// Locks that outlive the screen are no longer extended, and are reported.
func TestWhatOutlivesTheScreen(t *testing.T) {
	for _, how := range []string{"leave", "at once"} {
		r, k := keeping(t)
		r.m.Mine["by hand"] = action.Grant{Key: "by hand", Token: monitortest.TokenA, Until: r.clock.Add(5 * time.Second)}
		r.m.Mine["over"] = action.Grant{Key: "over", Token: monitortest.TokenA, Until: r.clock}
		if how == "leave" {
			r.press("q")
			r.settle()
			r.press("space")
			r.sees("nothing extends them any more: they end by themselves, the last at 12:03:28")
			r.press("enter")
			_, cmd := r.m.Update(r.pending[0]())
			if _, ok := cmd().(tea.QuitMsg); !ok {
				t.Error("it does not quit")
			}
		} else {
			r.press("ctrl+c")
		}
		left := r.m.StopKeeping().Left
		if len(left) != 2 || left[0].Key.Raw() != "by hand" || left[1].Key.Raw() != "orders:43" || left[1].Until != k.Until() {
			t.Errorf("%s: %v is left", how, left)
		}
		if !k.stopped || k.State() != redlock.Held {
			t.Errorf("%s: stopped %v, %s", how, k.stopped, k.State())
		}
		r.sent(`keep "orders:43" 20s`)
	}
}

// A lock whose keeping started after the program had ended is stopped too.
func TestKeptTooLateIsLetGo(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	r.press("a")
	r.settle()
	r.typed("late")
	r.press("tab", "tab", "y", "enter")
	_ = r.pending[0]() // nobody receives its outcome
	if left := r.m.StopKeeping().Left; len(left) != 1 || left[0].Key.Raw() != "late" || !r.acts.kept[0].stopped {
		t.Errorf("%v is left", left)
	}
}

func TestReleaseOfMarked(t *testing.T) {
	r, _ := keeping(t)
	r.m.Mine["job:003"] = action.Grant{Key: "job:003", Token: monitortest.TokenB, Until: r.clock.Add(time.Hour)}
	for _, key := range []string{"orders:43", "job:003", "stuck"} {
		r.under(key)
		r.press("m")
	}
	r.press("r")
	r.sees("Release 2 marked locks?", "stuck: not acquired here")
	r.settle()
	r.typed("2 locks")
	r.press("enter")
	r.step()
	r.step()
	r.sent(`keep "orders:43" 20s`, fmt.Sprintf("release %q %q", "job:003", monitortest.TokenB), `release kept "orders:43"`)
	r.sees("● 2 locks released")
	if len(r.m.Mine) != 0 {
		t.Errorf("%v is still held to be ours", r.m.Mine)
	}
}

// The kept locks fit the smallest screen, however many there are.
func TestManyKept(t *testing.T) {
	for _, w := range []int{60, 80, 200} {
		r, _ := keeping(t)
		r.m.Update(tea.WindowSizeMsg{Width: w, Height: 15})
		for i := range 30 {
			k := &fakeKept{acts: r.acts, key: fmt.Sprintf("%s %d", safetexttest.Hostile[i%len(safetexttest.Hostile)], i), until: r.clock.Add(time.Hour)}
			if i == 7 {
				k.state, k.err = redlock.Uncertain, errFake
			}
			r.m.Mine[k.key] = action.Grant{Key: k.key, Kept: k}
		}
		r.wait(time.Second)
		checkFrame(t, r.m.View().Content, w, 15, false)
		r.sees("KEPT HERE (31) ◐")
		r.press("q")
		r.sees("Quit?", "31 locks")
		checkFrame(t, r.m.View().Content, w, 15, false)
	}
}

// A user who quits the only guard while a node waits is told that no guard will let it
// rejoin.
func TestQuitAsksWhereNobodyElseGuards(t *testing.T) {
	alone := func(o *Options) { o.Lab = nil }
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, alone)
	r.press("q")
	if r.ended {
		t.Fatal("q quits and says nothing")
	}
	r.sees("Quit?", "n2 (18s) waits", "only one: without it nobody lets a fenced node rejoin", "redlockctl guard first")
	r.press("esc")
	if r.m.Dialog != nil || r.ended {
		t.Error("esc does not stay")
	}
	r.press("q")
	r.settle()
	r.press("enter")
	if len(r.pending) != 1 {
		t.Fatal("enter does nothing")
	}
	if _, ok := r.pending[0]().(tea.QuitMsg); !ok {
		t.Error("it does not quit")
	}

	// With kept locks, both are reported.
	r, _ = keeping(t)
	r.m.Lab = nil
	r.press("q")
	r.sees("Quit?", "Kept here 1 lock", "n2 (16s) waits")

	asks := func(what string, s *monitor.Snapshot, with ...func(*Options)) {
		t.Helper()
		r := newRig(t, s, 120, 40, append([]func(*Options){alone}, with...)...)
		if r.press("q"); !r.ended {
			t.Errorf("%s: q asks:\n%s", what, r.screen())
		}
	}
	asks("another guard watches", guardElsewhere(monitortest.Epoch))
	asks("no guard runs here", monitortest.Degraded(monitortest.Epoch), withoutGuard)
	asks("nothing waits", monitortest.Safe(monitortest.Epoch), func(o *Options) { o.Guard = safeGuard() })
	asks("a lab ends with its screen", monitortest.Degraded(monitortest.Epoch), func(o *Options) { o.Lab = fakeLab{} })
}
