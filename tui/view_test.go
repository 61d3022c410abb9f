package tui

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/base/race"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/server/safetext"
	"redlockctl/server/safetext/safetexttest"
	"redlockctl/tui/action"
	"redlockctl/tui/page"
	"redlockctl/tui/source"
)

// where checks which page is shown.
func (r *rig) where(want page.Kind) {
	r.t.Helper()
	if r.m.Viewed() != want {
		r.t.Errorf("the page is %s, not %s:\n%s", r.m.Viewed(), want, r.screen())
	}
}

func TestPages(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	for i, c := range []struct {
		view page.Kind
		says string
	}{
		{page.Overview, "DEGRADED n2 fenced, rejoins in 18s · n4 down 40s · losing one more node stops all locking"}, {page.Locks, "Locks 39"}, {page.Nodes, "3 serving"},
		{page.Events, "Events 23"}, {page.Findings, "Findings 3"}, {page.Guard, "D = 30.35s"}, {page.Lab, "Lab nodes of your own"}, {page.Help, "Works here: lab"},
	} {
		r.press(fmt.Sprint(i + 1))
		r.where(c.view)
		r.sees(c.says)
	}
	r.press("esc")
	r.where(page.Lab)
	r.press("1", "esc", "esc")
	r.where(page.Overview)
	for range page.NumTabs {
		r.press("l")
	}
	r.where(page.Overview)
	r.press("left")
	r.where(page.Help)
	r.press("h", "]", "[", "h", "h", "tab")
	r.where(page.Guard)
}

// In the title of a lock a long name is cut, and never its end; a name that fits is whole.
func TestTheTitleOfALockKeepsItsEnd(t *testing.T) {
	long := "billing:invoices:2026-11:customer-4711:nightly-export-of-all-statements"
	s := monitortest.Degraded(monitortest.Epoch)
	monitortest.Put(s, monitortest.LockOf(monitortest.Epoch, long, monitor.LockHeld, monitortest.TokenB, "2880 - 2880 ? 2880"))
	for _, w := range []int{80, 120, 160, 200} {
		r := newRig(t, s, w, 40)
		r.press("2")
		r.under(long)
		r.press("o")
		r.where(page.Lock)
		title := lineWith(r.screen(), "ends in 48m (12:51:10)")
		if !strings.Contains(title, "billing:invo") || !strings.Contains(title, "held, 3/5") {
			t.Errorf("%d columns: %q", w, title)
		}
		if w == 200 && !strings.Contains(r.screen(), "━ "+long[:26]) {
			t.Errorf("%d columns: more is cut than must be: %q", w, title)
		}
	}
}

// esc goes back step by step, and never in a circle.
func TestEscGoesBack(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	r.press("2")
	r.under("orders:42")
	r.press("o")
	r.where(page.Lock)
	r.sees("orders:42 ○ bare majority, 3/5 ends in 9.6s (12:03:19)", "Holder web-7 (pid 811) (told by its token) · DistributedLock · token", "the majority ends here", "Removal its thread works on until it asks again")
	r.press("3", "down", "enter")
	r.where(page.Node)
	r.sees("n2 ◐ fenced", "restarted, 1,180 copies lost")
	r.press("2", "esc") // the list of locks is one step back from a lock, whichever way led there
	r.where(page.Overview)
	r.press("2")
	r.under("orders:42")
	r.press("enter", "3", "esc")
	r.where(page.Lock)
	r.press("esc")
	r.where(page.Locks)
	if r.cursor() != "orders:42" {
		t.Errorf("the cursor is on %s", r.cursor())
	}
	r.press("left") // from a list to the previous page
	r.where(page.Overview)
	r.press("7", "1", "X") // the overview has its own focus
	r.settle()
	r.sees("Force-release orders:42?")
}

// The page of a lock stays on that lock, even after it is gone.
func TestLockPageStaysOnItsLock(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	r.under("orders:42")
	r.press("o")
	s := monitortest.Degraded(monitortest.Epoch)
	monitortest.Drop(s, "orders:42")
	s.Events = append(s.Events, monitor.Event{Seq: 99, At: monitortest.Epoch, Kind: "released", Key: safetext.New("orders:42"), Text: safetext.New("orders:42 released")})
	r.push(s)
	r.sees("orders:42 ✗ gone", "released")
	r.press("X")
	r.refused("no lock under the cursor")
	nothingSent(t, r)
	s = monitortest.Degraded(monitortest.Epoch)
	r.push(s)
	r.press("X")
	r.settle()
	r.sees("Force-release orders:42?")
	r.press("esc")
	r.where(page.Lock)
}

// Actions on a node work on each page that shows one.
func TestActsOnPages(t *testing.T) {
	for _, keys := range [][]string{{"3"}, {"6"}, {"7"}, {"3", "enter"}} {
		r := newLabRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
		r.press(keys...)
		r.press("C")
		r.sees("Cordon n1?")
		r.press("esc")
		if keys[0] == "7" {
			r.press("z")
			r.settle()
			r.press("enter")
			r.run()
			if got := <-r.lab.crashed; got != "stop n1" {
				t.Errorf("the lab did %q", got)
			}
		}
	}
	for _, c := range []struct{ keys, does string }{
		{"7 down Z", "continue n2"}, {"7 F", "flush n1"}, {"7 t", "skew 2s n1"}, {"7 c", "crash n1"},
	} {
		r := newLabRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
		r.press(strings.Fields(c.keys)...)
		r.settle()
		r.press("enter")
		r.run()
		if len(r.lab.crashed) != 1 {
			t.Fatalf("%s: the lab did nothing:\n%s", c.keys, r.screen())
		}
		if got := <-r.lab.crashed; got != c.does {
			t.Errorf("%s: the lab did %q, not %q", c.keys, got, c.does)
		}
	}
	r := newLabRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, func(o *Options) { o.Lab = justCrash{fakeLab{}} })
	r.press("7", "z")
	r.refused("this lab cannot")
	r.press("t")
	r.refused("no clock of their own")
	r = newLabRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, func(o *Options) { o.Lab = nil })
	r.press("7")
	r.where(page.Overview)
	r.sees("there is a lab only in redlockctl demo")
}

type justCrash struct{ fakeLab }

func (justCrash) Cannot(action string) string {
	return map[string]string{"stop": "start it with --redis-server", "skew": "its masters have no clock of their own"}[action]
}

// A lock's page shows earlier events, if they are known.
func TestHistoryOfALock(t *testing.T) {
	src := &knowingSource{fakeSource: newFakeSource(monitortest.Degraded(monitortest.Epoch))}
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, func(o *Options) { o.Source = src })
	r.under("orders:42")
	_, cmd := r.m.Update(keyPress("o"))
	runAll(r.m, cmd)
	r.m.dirty = true
	r.sees("acquired long ago")
	if src.asked != "orders:42" {
		t.Errorf("asked for %q", src.asked)
	}
	msg := r.m.feed.Next(&monitor.Snapshot{}, 23, 0)().(source.SnapshotMsg)
	if !msg.Known || !slices.Equal(msg.Changed, []string{"a"}) || len(msg.Events) != 1 {
		t.Errorf("%+v", msg)
	}
}

type knowingSource struct {
	*fakeSource
	asked string
}

func (s *knowingSource) ChangedSince(uint64) ([]string, bool) { return []string{"a"}, true }

func (s *knowingSource) EventsSince(seq uint64) ([]monitor.Event, uint64) {
	return []monitor.Event{{Seq: seq + 1, At: monitortest.Epoch, Text: safetext.New("one more")}}, 0
}

func (s *knowingSource) History(key string) []monitor.Event {
	s.asked = key
	return []monitor.Event{{Seq: 0, At: monitortest.Epoch.Add(-time.Hour), Key: safetext.New(key), Text: safetext.New("acquired long ago")}}
}

func TestGuardTimeline(t *testing.T) {
	r := newRig(t, monitortest.Safe(monitortest.Epoch), 120, 40, func(o *Options) { o.Guard = safeGuard() })
	turnTo := func(state monitor.NodeState, run string, after time.Duration) {
		r.wait(after)
		s := monitortest.Safe(monitortest.Epoch)
		s.At = r.clock
		s.Nodes[1].State, s.Nodes[1].Since, s.Nodes[1].RunID = state, r.clock, s.Nodes[1].RunID+run
		r.push(s)
	}
	turnTo(monitor.NodeDown, "", 40*time.Second)
	turnTo(monitor.NodeFenced, "two", 20*time.Second)
	turnTo(monitor.NodeServing, "two", 20*time.Second)
	r.wait(20 * time.Second)
	r.press("6")
	var line string
	for l := range strings.SplitSeq(r.screen(), "\n") {
		if strings.Contains(l, "n2") && strings.Contains(l, "×") {
			line = l
		}
	}
	down, restart, closed, open := strings.Index(line, "××"), strings.Index(line, "R"), strings.Index(line, "▒▒"), strings.LastIndex(line, "──")
	if down < 0 || restart < down || closed < restart || open < closed {
		t.Errorf("the time line is %q:\n%s", line, r.screen())
	}
}

// Whatever is pressed, clicked and sent, at any size: a frame fits.
func TestRandomUse(t *testing.T) {
	race.Skip(t)
	keys := []string{"1", "2", "3", "4", "5", "6", "7", "8", "?", "esc", "esc", "enter", "o", "tab", "j", "k", "down", "up", "pgdown", "pgup", "g", "G", "home",
		"end", "left", "right", "s", "W", "m", "M", "space", "f", "y", "/", ":", "a", "r", "X", "C", "U", "J", "c", "z", "t", "n", "F", "ctrl+u", "x", "日", "q"}
	for seed := range 6 {
		rng := rand.New(rand.NewPCG(uint64(seed), 7))
		r := newRig(t, monitortest.Hostile(monitortest.Epoch), 100, 30, func(o *Options) {
			o.ASCII = seed%4 == 3
			o.Mouse = true
		})
		w, h := 100, 30
		for range 200 {
			switch rng.IntN(12) {
			case 0:
				w, h = 1+rng.IntN(220), 1+rng.IntN(70)
				r.m.Update(tea.WindowSizeMsg{Width: w, Height: h})
			case 1:
				s := monitortest.Hostile(r.clock)
				for i := range s.Nodes {
					s.Nodes[i].State = monitor.NodeState(rng.IntN(9))
				}
				monitortest.Put(s, monitortest.LockOf(r.clock, safetexttest.Hostile[rng.IntN(len(safetexttest.Hostile))], monitor.LockState(rng.IntN(10)), monitortest.TokenA, "9 - ? i 4b"))
				if rng.IntN(4) == 0 {
					s.Locks, s.Findings = monitor.Locks{}, nil
				}
				r.push(s)
			case 2:
				r.wait(time.Duration(rng.IntN(3000)) * time.Millisecond)
			case 3:
				r.m.Update(tea.MouseClickMsg{X: rng.IntN(w), Y: rng.IntN(h), Button: tea.MouseLeft})
			case 4:
				r.m.Update(tea.PasteMsg{Content: safetexttest.Hostile[rng.IntN(len(safetexttest.Hostile))]})
			default:
				_, cmd := r.m.Update(keyPress(keys[rng.IntN(len(keys))]))
				if o, ok := first(cmd).(action.Outcome); ok {
					r.m.Update(o)
				}
			}
			checkFrame(t, r.m.View().Content, w, h, seed%4 == 3)
			if t.Failed() {
				t.Fatalf("seed %d, page %s, %d×%d", seed, r.m.Viewed(), w, h)
			}
		}
	}
}

// first returns the message of a single command; others of a batch wait for messages that
// do not arrive.
func first(cmd tea.Cmd) tea.Msg {
	if cmd == nil {
		return nil
	}
	return cmd()
}

// On a wide screen, panes are side by side, and a click goes to the one under it.
func TestPanesSideBySide(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 200, 50, func(o *Options) { o.Mouse = true })
	click := func(text string) {
		t.Helper()
		for y, line := range strings.Split(r.screen(), "\n") {
			if i := strings.Index(line, text); i >= 0 {
				r.m.Update(tea.MouseClickMsg{X: view.Width(line[:i]), Y: y, Button: tea.MouseLeft})
				r.m.View()
				return
			}
		}
		t.Fatalf("there is no %q:\n%s", text, r.screen())
	}
	click("n4 unreachable")
	if e := r.m.selected().Event; e == nil || e.Node != "n4" {
		t.Errorf("the cursor is on %+v", r.m.selected())
	}
	click("n5 ")
	if n := r.m.selected().Node; n == nil || n.Name != "n5" {
		t.Errorf("the cursor is on %+v", r.m.selected())
	}
	click("orders:42 ")
	r.sees("the majority ends here")
	for _, line := range strings.Split(r.screen(), "\n") {
		if strings.Contains(line, "the majority ends here") && !strings.Contains(line, "││") {
			t.Errorf("the detail is not beside the locks: %q", line)
		}
	}
}

// Where no lock is, the page says how much was looked at.
func TestAnEmptyListSaysWhatWasRead(t *testing.T) {
	s := monitortest.Safe(monitortest.Epoch)
	s.Locks = monitor.NewLocks()
	r := newRig(t, s, 120, 40)
	r.sees("no locks: 5 of 5 nodes are read")
}

// What enter does is in the key line as it is: it opens a page, it shows a detail, or it is
// disabled and says why. Where a page has no number, so is the way back.
func TestTheKeyLineSaysWhatEnterAndEscDo(t *testing.T) {
	keyLine := func(r *rig) string {
		lines := strings.Split(r.screen(), "\n")
		return lines[len(lines)-1]
	}
	for _, c := range []struct {
		keys, says, not string
		leads           page.Kind
	}{
		{"2", "enter open", "esc", page.Lock},
		{"3", "enter open", "esc", page.Node},
		{"6", "enter open", "esc", page.Node},
		{"4", "enter detail", "esc", page.Events},
		{"5 down", "enter open", "enter detail", page.Node},
		{"2 o", "esc back", "enter", page.Lock},
		{"3 o", "esc back", "enter", page.Node},
	} {
		r := newRig(t, monitortest.Degraded(monitortest.Epoch), 80, 24)
		r.press(strings.Fields(c.keys)...)
		if line := keyLine(r); !strings.Contains(line, c.says) || strings.Contains(line, c.not) {
			t.Errorf("%s: the key line is %q", c.keys, line)
		}
		r.press("enter")
		r.where(c.leads)
	}
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 80, 24)
	r.press("5", "end", "enter") // about no lock and no node
	r.where(page.Findings)
	r.sees("enter open: it is not about a lock or a node")
	r = newRig(t, monitortest.Degraded(monitortest.Epoch), 80, 24, severalClusters)
	r.press(":")
	r.typed("clusters")
	r.press("enter")
	r.run()
	r.sees("esc back", "enter change to it")
	r.press("esc")
	r.where(page.Overview)
}

// A finding that has no room is scrolled to its end.
func TestAFindingIsReadToItsEnd(t *testing.T) {
	s := monitortest.Degraded(monitortest.Epoch)
	s.Findings[0].Remedy = strings.Repeat("look at it again, ", 40) + "and end"
	r := newRig(t, s, 60, 15)
	r.press("5")
	first := r.m.selected().Finding.ID
	r.sees("more lines: pgdn")
	r.seesNot("and end")
	for range 9 {
		r.press("pgdown")
	}
	r.sees("and end", "pgup")
	if got := r.m.selected().Finding.ID; got != first {
		t.Errorf("the cursor went to %s", got)
	}
	r.press("down", "up")
	r.seesNot("and end") // it is read from its beginning again
}
