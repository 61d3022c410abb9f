package tui

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/base/race"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/server/announce"
	"redlockctl/server/safetext"
	"redlockctl/server/safetext/safetexttest"
	"redlockctl/tui/page"
	"redlockctl/tui/prefs"
)

// Every view fits every screen, whatever the servers send.
func TestFits(t *testing.T) {
	race.Skip(t)
	pictures := map[string]*monitor.Snapshot{
		"hostile": monitortest.Hostile(monitortest.Epoch),
		"empty":   {At: monitortest.Epoch, Version: 1, Cluster: monitor.Cluster{Name: "new", N: 3, Quorum: 2}},
		"many": func() *monitor.Snapshot {
			s := monitortest.Degraded(monitortest.Epoch)
			for i := range 8 {
				n := s.Nodes[i%5]
				n.Name = fmt.Sprintf("redis-master-%d.example.net", i)
				s.Nodes = append(s.Nodes, n)
			}
			all := monitortest.List(s.Locks)
			for i := range all {
				var list []monitor.Copy
				for _, c := range all[i].Copies.All() {
					list = append(list, c)
				}
				for range 8 {
					list = append(list, list[i%5])
				}
				all[i].Copies = monitor.PackCopies(list...)
			}
			monitortest.Put(s, all...)
			return s
		}(),
	}
	for name, s := range pictures {
		for _, way := range ways {
			t.Run(name+"/"+way.name, func(t *testing.T) {
				way.of = func(time.Time) *monitor.Snapshot { return s }
				for _, ascii := range []bool{false, true} {
					r := way.at(t, 120, 40, func(o *Options) { o.ASCII = ascii })
					size := func(w, h int) {
						r.m.Update(tea.WindowSizeMsg{Width: w, Height: h})
						checkFrame(t, r.m.View().Content, w, h, ascii)
					}
					for _, s := range [][2]int{{60, 15}, {80, 24}, {120, 40}, {200, 60}, {60, 60}, {200, 15}, {1, 24}} {
						size(s[0], s[1])
					}
					for w := 210; w > 0 && !ascii; w -= 31 { // as when a window is dragged
						size(w, max(1, w/4))
					}
				}
			})
		}
	}
}

// The cells of a row are no wider than their columns, whatever the lock.
func TestEachHostileLockCanBeAskedAbout(t *testing.T) {
	for i, name := range safetexttest.Hostile {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			s := monitortest.Degraded(monitortest.Epoch)
			s.Locks = monitor.NewLocks(monitortest.LockOf(monitortest.Epoch, name, monitor.LockHeld, name+"token", "9 9 9 9 9"))
			r := newRig(t, s, 80, 40)
			r.press("X")
			if name == "" {
				r.refused("its name is empty")
				return
			}
			r.settle()
			r.typed("because")
			r.press("tab")
			want := r.m.Confirm(name).Want
			if strings.TrimSpace(want) == "" || view.Width(want) > 40 {
				t.Fatalf("%q is to be typed", want)
			}
			r.m.Update(tea.PasteMsg{Content: want})
			checkFrame(t, r.m.View().Content, 80, 40, false)
			r.press("enter")
			r.run()
			if got := r.acts.sent(); len(got) != 1 || got[0] != fmt.Sprintf("force-release %q %q because %q", name, name+"token", "because") {
				t.Errorf("sent %q", got)
			}
			checkFrame(t, r.m.View().Content, 80, 40, false)
		})
	}
}

func TestTooSmallTakesNoKeys(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 59, 15)
	r.sees("terminal too small: 59×15 of at least 60×15")
	r.press("X", "a", "?")
	if r.m.Dialog != nil || r.m.Viewed() != page.Overview {
		t.Error("a key did something that cannot be seen")
	}
	r.press("q")
	if !r.ended {
		t.Error("q does not quit")
	}
}

func TestNothingIsDrawnAgainUnlessSomethingChanged(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	if r.m.dirty {
		t.Fatal("dirty after a frame")
	}
	for _, msg := range []tea.Msg{tea.EnvMsg{}, tea.FocusMsg{}, tea.KeyReleaseMsg{}, nil} {
		r.m.Update(msg)
		if r.m.dirty {
			t.Errorf("%T draws the frame again", msg)
		}
	}
}

func TestRowsAreKeptUntilTheyChange(t *testing.T) {
	s := monitortest.Degraded(monitortest.Epoch)
	s.Locks = monitor.Locks{}
	for i := range 20 {
		monitortest.Put(s, monitortest.LockOf(monitortest.Epoch, fmt.Sprintf("job:%02d", i), monitor.LockHeld, monitortest.TokenA, "9.5 9.5 9.5 9.5 9.5"))
	}
	r := newRig(t, s, 120, 40)
	before := r.m.LockView.Cached
	if len(before) == 0 {
		t.Fatal("no row is kept")
	}
	same := func(a, b page.DrawnRow) bool { return a == b }
	drawn := func() (n int) {
		r.m.dirty = true
		r.m.View()
		for k, row := range r.m.LockView.Cached {
			if !same(before[k], row) {
				n++
			}
		}
		before = r.m.LockView.Cached
		return n
	}
	all := len(before)
	r.clock = r.clock.Add(50 * time.Millisecond)
	if n := drawn(); n != 0 {
		t.Errorf("%d rows were drawn again within the same second", n)
	}
	r.clock = r.clock.Add(time.Second)
	if n := drawn(); n != all {
		t.Errorf("%d of %d rows were drawn again after a second", n, all)
	}
	r.m.Page.Move(1)
	if n := drawn(); n != 2 {
		t.Errorf("%d rows were drawn again when the cursor moved by one", n)
	}
	s = monitortest.Degraded(monitortest.Epoch)
	s.Locks = r.m.Latest.Locks
	monitortest.Put(s, monitortest.LockOf(monitortest.Epoch, "job:03", monitor.LockBareMajority, monitortest.TokenA, "9.5 9.5 9.5 - -"))
	r.m.Receive(s, nil, false, nil)
	// This set shares no locks with the one before, as those of a monitor do.
	same = func(a, b page.DrawnRow) bool { return a.Line == b.Line }
	if n := drawn(); n != 1 {
		t.Errorf("%d rows were drawn again when one changed", n)
	}
}

func TestFreeze(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	r.under("orders:42")
	r.press("space")
	r.wait(3 * time.Second)
	s := monitortest.Degraded(r.clock)
	s.Locks = monitor.NewLocks(monitortest.List(s.Locks)[:1]...)
	r.push(s)
	r.sees("FROZEN at 12:03:10 (3s)", "orders:42")
	if l := r.m.LatestLock("orders:42"); l != nil {
		t.Error("collecting stopped")
	}
	r.press("X")
	r.refused("the lock is gone") // no action uses an old snapshot
	r.press("space")
	r.seesNot("FROZEN", "orders:42")
}

func TestDisabledKeysSayWhy(t *testing.T) {
	gone := func(o *Options) { o.Actions, o.Lab = nil, nil }
	for _, c := range []struct {
		name string
		with func(*Options)
		on   string
		keys []string
		says string
	}{
		{"release of another's", nil, "orders:42", []string{"r"}, "not acquired here"},
		{"fence with the locks in focus", nil, "orders:42", []string{"C"}, "go to the nodes first"},
		{"force-release with the nodes in focus", nil, "orders:42", []string{"tab", "X"}, "go to the locks first"},
		{"open of a node that serves", nil, "orders:42", []string{"tab", "J"}, "n1 is serving already"},
		{"fence of a node that is down", nil, "orders:42", []string{"tab", "down", "down", "down", "C"}, "n4 cannot be cordoned: down"},
		{"acquire without actions", gone, "orders:42", []string{"a"}, "nothing here to act with"},
		{"force-release of a hash", nil, "session:cache", []string{"X"}, "a hash, not a string"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var with []func(*Options)
			if c.with != nil {
				with = append(with, c.with)
			}
			r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, with...)
			r.under(c.on)
			r.press(c.keys...)
			r.refused(c.says)
		})
	}
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, gone)
	r.press("tab", "c") // never more than a message: no dialog is expected where there is no lab
	r.sees("there is a lab only in redlockctl demo")
	if r.m.Dialog != nil {
		t.Error("a dialog opened")
	}
}

func TestHelpIsMadeFromTheKeyMap(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 150)
	r.press("?")
	r.sees("Works here: overview", "Disabled here", "r release")
	r.seesNot("not acquired here")
	r.press("enter")
	r.sees("Disabled here, and why", "release not acquired here")
	for i := range r.m.keys {
		if b := &r.m.keys[i]; r.m.has(b.Group) {
			r.sees(b.Help().Key)
			if b.Says == nil {
				r.sees(b.Help().Desc)
			}
		}
	}
	r.press("q")
	if r.ended || r.m.Viewed() != page.Overview {
		t.Error("q in the help does not just close it")
	}
	r.press("?")
	r.seesNot("not acquired here")
	lines := strings.Split(r.screen(), "\n")
	row := func(key string) int {
		return slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(strings.TrimLeft(l, "│┃ "), key+"  ") })
	}
	if own, all := row("X"), row("o"); own < 0 || all < own {
		t.Errorf("the page's own keys are not first: X in line %d, o in line %d", own, all)
	}
	r.sees("7 lab")
	r = newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 150, func(o *Options) { o.Lab = nil })
	r.press("?")
	r.seesNot("7 lab")
}

// No key means two things in one mode.
func TestKeysAreUnambiguous(t *testing.T) {
	for bit := page.ModeLocks; bit <= page.ModeWorking; bit <<= 1 {
		seen := map[string]string{}
		for _, b := range newKeyMap(&model{}) {
			if b.In&bit == 0 {
				continue
			}
			for _, k := range b.Keys() {
				if other, ok := seen[k]; ok {
					t.Errorf("mode %b: %q is %q and %q", bit, k, other, b.Help().Desc)
				}
				seen[k] = b.Help().Desc
			}
		}
	}
}

func TestMonitorAloneInventsNoDeadline(t *testing.T) {
	s := monitortest.Degraded(monitortest.Epoch)
	s.Nodes[0].GuardsKnown = true
	r := newRig(t, s, 120, 40, func(o *Options) { o.Guard, o.Delay = nil, 10100*time.Millisecond })
	r.sees("n2 fenced · n4 down", "waits for a guard, D = 10.1s", "no guard here", "guards not known", "connection refused since")
	r = newRig(t, monitortest.Degraded(monitortest.Epoch), 140, 40, func(o *Options) { o.Guard, o.Delay = nil, 10100*time.Millisecond })
	r.sees("waits for a guard, D = 10.1s")
	r = newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, func(o *Options) { o.Guard, o.Delay = nil, 0 })
	r.sees("waits for a guard")
	r.seesNot("D =")
}

// The header and the guard's page say which guard protects the cluster, and the D that
// applies: the greatest, not the one in this program's configuration.
func TestWhichGuardWatches(t *testing.T) {
	r := newRig(t, guardElsewhere(monitortest.Epoch), 160, 40, withoutGuard)
	r.sees("guard@ops1, D 30.35s", "n2 fenced, rejoins not before 12:03:25 (15s)", "not before 12:03:25 (15s), guard@ops1", "✓ verified")
	r.seesNot("1.1s", "no guard here")
	r.press("6")
	r.sees("D = 30.35s, guard@ops1 watches; this console runs no guard")
	late := guardElsewhere(monitortest.Epoch)
	late.Nodes[1].RejoinsAfter = monitortest.Epoch.Add(-30 * time.Second) // its guard waits longer
	r = newRig(t, late, 160, 40, withoutGuard)
	r.sees("seen fenced 12s, D = 30.35s, guard@ops1")
	r.seesNot("not before", "over D")
	late.Nodes[1].Since = monitortest.Epoch.Add(-time.Minute)
	r = newRig(t, late, 200, 40, withoutGuard)
	r.sees("seen fenced 1m00s, over D = 30.35s, guard@")

	s := guardElsewhere(monitortest.Epoch)
	for i := range s.Nodes {
		s.Nodes[i].Guards = append(s.Nodes[i].Guards, announce.Guard{ID: "own", Delay: time.Second, Host: safetext.New("here")},
			announce.Guard{ID: "f1", Delay: time.Second, Host: safetext.New("evil\x1b[2J" + strings.Repeat("x", 90))})
	}
	r = newRig(t, s, 200, 40, func(o *Options) { o.Delay = 1060 * time.Millisecond })
	r.sees("guard here and guard@ops1 and guard@evil\\x1b", "D 30.35s")
	r.press("6")
	r.sees("D = 30.35s, a guard runs in this console, and guard@ops1 and guard@evil", "watches too")

	// A guard that is gone no longer counts.
	r = newRig(t, guardElsewhere(monitortest.Epoch), 160, 40, withoutGuard)
	r.push(monitortest.Degraded(monitortest.Epoch))
	r.seesNot("guard@ops1")
	r.press("6")
	r.sees("guards cannot be seen on all nodes, and none runs in this console")
	gone := monitortest.Degraded(monitortest.Epoch)
	for i := range gone.Nodes {
		gone.Nodes[i].GuardsKnown = true
	}
	r.push(gone)
	r.sees("no guard is seen: nothing lets a fenced node rejoin")
}

func TestCountdown(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	r.sees("n2 fenced, rejoins in 18s", "18s, restarted")
	r.wait(10 * time.Second)
	r.sees("n2 fenced, rejoins in 8s", "8s, restarted")
	r.wait(20 * time.Second)
	r.sees("rejoining")
}

func TestRemainingTimesTick(t *testing.T) {
	s := monitortest.Degraded(monitortest.Epoch)
	s.Locks = monitor.NewLocks(monitortest.LockOf(monitortest.Epoch, "a", monitor.LockHeld, monitortest.TokenA, "9.8 8.8 7.8 6.8 5.8"))
	r := newRig(t, s, 120, 40)
	r.press("W")
	r.sees("9s 8s 7s 6s 5s 7s")
	r.wait(7 * time.Second)
	r.sees("2s 1s <1s 0s 0s <1s")
}

func TestRunIsOverWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out strings.Builder
	// Not a file: a terminal that is closed while the library starts to read it is
	// another race.
	in, end := io.Pipe()
	defer end.Close()
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Options{Cluster: Cluster{Source: newFakeSource(monitortest.Degraded(monitortest.Epoch))}, In: in, Out: &out})
	}()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("the end of the context is an error: %v", err)
	}
}

// An incomplete verdict says what is still being read, and one that is not safe says why.
func TestTheVerdictSaysWhy(t *testing.T) {
	s := monitortest.Safe(monitortest.Epoch)
	s.Cluster.Verdict, s.Cluster.Reason = monitor.VerdictUnknown, "the locks are being read for the first time"
	r := newRig(t, s, 120, 40)
	r.sees("? UNKNOWN the locks are being read for the first time", "leader:billing")
	r.seesNot("safe", "SAFE")

	bad := monitortest.Safe(monitortest.Epoch)
	bad.Cluster.Verdict, bad.Cluster.Reason = monitor.VerdictDanger, "no boot fence"
	bad.Findings = []monitor.Finding{{ID: "x", Severity: monitor.SeverityDanger, Title: "no boot fence"}}
	r.push(bad)
	r.sees("✗ DANGER no boot fence · all 5 nodes serve · losing 3 nodes stops all locking")

	plain := monitortest.Safe(monitortest.Epoch)
	plain.Cluster.Verdict, plain.Cluster.Protected = monitor.VerdictUnprotected, false
	plain.Cluster.Missing = "not protected against restarts: no guard"
	r.push(plain)
	r.sees("UNPROTECTED not protected against restarts: no guard · losing 3 nodes stops all locking")
	r.seesNot("SAFE")

	r.push(monitortest.Safe(monitortest.Epoch))
	r.sees("● SAFE all 5 nodes serve · losing 3 nodes stops all locking")
}

// Terminals read two escapes in one burst as alt+escape.
func TestTwoEscapesInABurst(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	r.press("2", "/")
	r.typed("job")
	r.press("enter", "o")
	r.where(page.Lock)
	r.m.Update(tea.KeyPressMsg{Code: tea.KeyEscape, Mod: tea.ModAlt})
	r.m.View()
	r.where(page.Locks)
	if r.m.Locks.Source != "" {
		t.Errorf("the filter is still %q", r.m.Locks.Source)
	}
}

// Another order than the default is named on every screen.
func TestTheOrderIsAlwaysNamed(t *testing.T) {
	for _, w := range []int{60, 80, 120} {
		for _, filter := range []string{"", "o state:held lib:unknown age>0s"} {
			r := newRig(t, monitortest.Degraded(monitortest.Epoch), w, 24, func(o *Options) {
				o.Store = &fakeStore{p: prefs.Preferences{Tables: prefs.Tables{Table: prefs.Table{Sort: "ends"}}}}
			})
			r.press("m")
			r.press(":")
			r.typed("filter " + filter)
			r.m.Update(keyPress("enter"))
			r.m.View()
			if !strings.Contains(r.screen(), "ENDS↑") {
				t.Errorf("%d columns, filter %q: no order is named:\n%s", w, filter, r.screen())
			}
			checkFrame(t, r.m.View().Content, w, 24, false)
		}
	}
}
