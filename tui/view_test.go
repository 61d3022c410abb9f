package tui

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/safetext"
	"redlockctl/internal/safetext/safetexttest"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/tui/action"
	"redlockctl/tui/page"
	"redlockctl/tui/styles"
)

// where is the page that is shown.
func (r *rig) where(want page.Kind) {
	r.t.Helper()
	if r.m.viewed() != want {
		r.t.Errorf("the page is %s, not %s:\n%s", r.m.viewed(), want, r.screen())
	}
}

func TestPages(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	for i, c := range []struct {
		view page.Kind
		says string
	}{
		{page.Overview, "DEGRADED n2 fenced, rejoins in 18s · n4 down 40s · losing one more node stops all locking"}, {page.Locks, "Locks 39"}, {page.Nodes, "3 serve, a quorum is 3"},
		{page.Events, "Events 23"}, {page.Findings, "Findings 3"}, {page.Guard, "D = 30.35s"}, {page.Lab, "Lab nodes of your own"}, {page.Help, "Looking"},
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

// esc leads back step by step, and never in a circle.
func TestEscGoesBack(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	r.press("2")
	r.under("orders:42")
	r.press("o")
	r.where(page.Lock)
	r.sees("orders:42 ○ bare majority, 3/5, by web-7 (pid 811)", "Made by DistributedLock", "the majority ends here", "Removal its thread works on until it asks again")
	r.press("3", "down", "enter")
	r.where(page.Node)
	r.sees("n2 ◐ fenced", "restarted, 1,180 copies lost")
	r.press("2", "esc") // the locks are one step back from the lock, however one came
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
	r.press("left") // from a list to the page before it
	r.where(page.Overview)
	r.press("7", "1", "X") // the overview's focus is its own
	r.settle()
	r.sees("Force-release orders:42 ?")
}

// The page of a lock is about that lock, also when it is gone.
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
	r.sees("no lock under the cursor")
	nothingSent(t, r)
	s = monitortest.Degraded(monitortest.Epoch)
	r.push(s)
	r.press("X")
	r.settle()
	r.sees("Force-release orders:42 ?")
	r.press("esc")
	r.where(page.Lock)
}

// A node can be acted on from each page that shows one.
func TestActsOnPages(t *testing.T) {
	for _, keys := range [][]string{{"3"}, {"6"}, {"7"}, {"3", "enter"}} {
		r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
		r.press(keys...)
		r.press("f")
		r.sees("Cordon n1 ?")
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
		{"7 down Z", "continue n2"}, {"7 F", "flush n1"}, {"7 t", "skew 2s n1"}, {"7 n", "start 1 leak"}, {"7 c", "n1"},
	} {
		r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
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
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, func(o *Options) { o.Lab = justCrash{fakeLab{}} })
	r.press("7", "z")
	r.sees("this lab cannot")
	r.press("t")
	r.sees("no clock of their own")
	r = newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, func(o *Options) { o.Lab = nil })
	r.press("7")
	r.where(page.Overview)
	r.sees("there is a lab only in redlockctl demo")
}

type justCrash struct{ fakeLab }

func (justCrash) Cannot(action string) string {
	return map[string]string{"stop": "start it with --redis-server", "skew": "its masters have no clock of their own"}[action]
}

func TestEventsFollow(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 80, 24)
	r.press("4")
	r.sees("following")
	more := func(n int) {
		s := monitortest.Degraded(monitortest.Epoch)
		for i := range n {
			s.Events = append(s.Events, monitor.Event{Seq: r.m.Events.Seq + 1 + uint64(i), At: monitortest.Epoch, Level: monitor.LevelInfo, Kind: "acquired", Key: safetext.New("x"), Text: safetext.New("x acquired")})
		}
		r.push(s)
	}
	r.press("down", "down")
	r.seesNot("following")
	at := r.m.Events.Selected().Seq
	more(5)
	if got := r.m.Events.Selected().Seq; got != at {
		t.Errorf("the cursor slid from event %d to %d", at, got)
	}
	r.press("f")
	more(5)
	if got := r.m.Events.Selected().Seq; got != r.m.Events.Seq {
		t.Errorf("the newest is not followed: %d of %d", got, r.m.Events.Seq)
	}
	r.press("space") // frozen: what comes is kept, and not shown
	before := len(r.m.Events.List())
	more(7)
	if n := len(r.m.Events.List()); n != before {
		t.Errorf("%d events are listed in a frozen screen, not %d", n, before)
	}
	r.press("space")
	if n := len(r.m.Events.List()); n != before+7 {
		t.Errorf("%d events after it, not %d", n, before+7)
	}
	r.press("/")
	r.typed("kind:restart")
	r.sees("1 of ")
	r.press("enter", "enter")
	r.sees("restart, node n2")
	r.press("o")
	r.where(page.Node)
}

// What weighs is kept however much else happens, and there is an end to it.
func TestEventsAreBounded(t *testing.T) {
	et := page.NewEventTable()
	et.Add([]monitor.Event{{Seq: 1, Level: monitor.LevelAlarm, Text: safetext.New("the one that matters")}})
	for i := range 20 {
		var batch []monitor.Event
		for k := range 1000 {
			batch = append(batch, monitor.Event{Seq: uint64(2 + i*1000 + k)})
		}
		et.Add(batch)
		et.Add(batch) // what was seen is not taken twice
	}
	if n := len(et.All); n > 3*page.MostEvents || et.All[0].Seq != 1 || et.Seq != 20001 {
		t.Errorf("%d events, the first is %d, the last %d", n, et.All[0].Seq, et.Seq)
	}
}

func TestCommands(t *testing.T) {
	for _, c := range []struct {
		line  string
		check func(*rig)
	}{
		{"guard", func(r *rig) { r.where(page.Guard) }},
		{"ev", func(r *rig) { r.where(page.Events) }},
		{"lock orders:42", func(r *rig) { r.where(page.Lock); r.sees("web-7") }},
		{"lock nowhere", func(r *rig) { r.where(page.Overview); r.sees("there is no lock nowhere") }},
		{"node N2", func(r *rig) { r.where(page.Node); r.sees("n2 ◐ fenced") }},
		{"filter state:orphaned", func(r *rig) { r.sees("/state:orphaned 1") }},
		{"filter ttl<5", func(r *rig) { r.sees("a number with a unit is wanted") }},
		{"sort name", func(r *rig) { r.sees("sorted: name"); r.sameOrder(page.OrderName) }},
		{"sort upside-down", func(r *rig) { r.sees("have: name, state, copies, ends") }},
		{"force-release orders:42", func(r *rig) { r.sees("Force-release orders:42 ?") }},
		{"force-release", func(r *rig) { r.sees("Force-release stuck ?") }},
		{"cordon n3", func(r *rig) { r.sees("Cordon n3 ?") }},
		{"cordon n9", func(r *rig) { r.sees("cordon: there is no node n9"); nothingSent(r.t, r) }},
		{"rejoin n1", func(r *rig) { r.sees("n1 is serving already") }},
		{"skew n2", func(r *rig) { r.sees("Skew the clock of n2 ?") }},
		{"acquire", func(r *rig) { r.sees("Acquire a lock by hand") }},
		{"freeze", func(r *rig) { r.sees("FROZEN") }},
		{"columns name", func(r *rig) { r.sees("no column \"name\"") }},
		{"columns ends holder", func(r *rig) { r.seesNot("STATE COPIES"); r.sees("NAME ENDS HOLDER") }},
		{"columns -nodes -at +seen", func(r *rig) { r.sees("COPIES TTLS ENDS", "SEEN FOR") }},
		{"theme light", func(r *rig) { r.theme(styles.ThemeLight) }},
		{"theme pink", func(r *rig) { r.sees("dark, light, high-contrast"); r.theme("") }},
		{"ascii", func(r *rig) { checkFrame(r.t, r.m.View().Content, 120, 40, true) }},
		{"mark all", func(r *rig) { r.sees("39 locks more marked", "39 marked") }},
		{"mouse", func(r *rig) {
			if r.m.View().MouseMode != tea.MouseModeCellMotion {
				r.t.Error("the mouse is not taken")
			}
		}},
		{"cluster other", func(r *rig) { r.sees("there is no command cluster") }},
		{"f", func(r *rig) { r.sees("f may be") }},
		{"\x1b[31m", func(r *rig) { r.sees("there is no command [31m") }},
		{"quit", nil},
		{"q", nil},
	} {
		t.Run(c.line, func(t *testing.T) {
			r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
			r.press(":")
			r.m.Update(tea.PasteMsg{Content: c.line})
			checkFrame(t, r.m.View().Content, 120, 40, false)
			_, cmd := r.m.Update(keyPress("enter"))
			r.m.View()
			if c.check == nil {
				if _, ok := cmd().(tea.QuitMsg); !ok {
					t.Error("it does not quit")
				}
				return
			}
			c.check(r)
		})
	}
}

func (r *rig) sameOrder(o page.Order) {
	r.t.Helper()
	if r.m.Locks.Order != o {
		r.t.Errorf("the order is %s", r.m.Locks.Order)
	}
}

func (r *rig) theme(want styles.Theme) {
	r.t.Helper()
	if r.m.St.Look.Theme != want {
		r.t.Errorf("the theme is %q", r.m.St.Look.Theme)
	}
}

func TestCompletion(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	line := func(want string) {
		t.Helper()
		if got := r.m.line.String(); got != want {
			t.Errorf("the line is %q, not %q", got, want)
		}
	}
	r.press(":")
	r.typed("fi")
	r.press("tab")
	line("filter")
	r.press("tab")
	line("findings")
	r.press("tab")
	line("filter")
	r.typed(" state:no-t")
	r.sees("state:no-TTL")
	r.press("tab")
	line("filter state:no-TTL ")
	r.typed("node:n")
	r.press("tab", "tab")
	line("filter state:no-TTL node:n2")
	r.press("enter")
	r.sees("/state:no-TTL node:n2")
	r.press("esc", ":")
	r.typed("lock ord")
	r.press("tab", "tab")
	line("lock orders:43")
	r.press("enter", ":", "up", "up")
	line("filter state:no-TTL node:n2")
	r.press("down", "down", "down")
	line("")
	r.typed("zz")
	r.press("up", "down")
	line("zz")
	r.press("tab")
	line("zz")
	r.press("esc")
	r.where(page.Lock)
}

// What is chosen is kept, and found again.
func TestPreferences(t *testing.T) {
	store := &fakeStore{}
	with := func(o *Options) { o.Store = store }
	do := func(r *rig, line string) {
		r.press(":")
		r.m.Update(tea.PasteMsg{Content: line})
		r.press("enter")
		for _, cmd := range r.pending {
			runAll(r.m, cmd)
		}
		r.pending = nil
	}
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, with)
	do(r, "columns state ends")
	do(r, "sort ends")
	do(r, "theme light")
	if store.saves < 3 {
		t.Fatalf("kept %d times", store.saves)
	}
	r = newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, with)
	r.sameOrder(page.OrderEnds)
	r.theme(styles.ThemeLight)
	r.sees("NAME STATE ENDS LOCKS"[:15])
	r.seesNot("COPIES")
	r.press(":", "up")
	if got := r.m.line.String(); got != "theme light" {
		t.Errorf("the history ends with %q", got)
	}
	r = newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, with, func(o *Options) { o.Theme = styles.ThemeDark })
	r.theme(styles.ThemeDark) // what is asked for counts more
	r = newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, with, withNoColor)
	r.theme(styles.ThemeNone)
	do(r, "theme dark")
	r.sees("no colours here")
	r.theme(styles.ThemeNone)

	r = newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, with) // by key, as by command
	for _, k := range []string{"s", "W"} {
		_, cmd := r.m.Update(keyPress(k))
		runAll(r.m, cmd)
	}
	r = newRig(t, monitortest.Degraded(monitortest.Epoch), 200, 40, with)
	r.sameOrder("margin")
	r.sees("SEEN FOR")

	store.err = errors.New("disk \x1b[31m full")
	r = newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, with)
	r.sees("what was chosen last time cannot be read: disk \\x1b[31m full")
	do(r, "sort name")
	r.m.dirty = true
	r.sees("your choice is not remembered")
}

// runAll runs a command and those that it is made of, and gives the program what
// they bring.
func runAll(m *model, cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case nil:
	case tea.BatchMsg:
		for _, c := range msg {
			runAll(m, c)
		}
	default:
		m.Update(msg)
	}
}

func TestMarks(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	r.under("orders:42")
	r.press("m")
	r.under("orders:44")
	r.press("m")
	r.sees("2 marked")
	if got := r.m.Marks.Sorted(); !slices.Equal(got, []string{"orders:42", "orders:44"}) {
		t.Errorf("%q", got)
	}
	s := monitortest.Degraded(monitortest.Epoch)
	monitortest.Drop(s, "orders:42")
	r.push(s)
	r.wait(time.Second)
	if got := r.m.Marks.Sorted(); !slices.Equal(got, []string{"orders:44"}) {
		t.Errorf("a lock that is gone is marked still: %q", got)
	}
	r.under("orders:44")
	r.press("m")
	r.seesNot("marked")
	r.press("M")
	r.sees("none is marked")
	r.press("tab", "m")
	r.sees("only locks are marked")
}

func TestCopy(t *testing.T) {
	var put []string
	r := newRig(t, monitortest.Hostile(monitortest.Epoch), 120, 40, func(o *Options) {
		o.Clipboard = func(_ context.Context, text string) error { put = append(put, text); return errFake }
	})
	r.under(safetexttest.Hostile[0])
	_, cmd := r.m.Update(keyPress("y"))
	runAll(r.m, cmd)
	if len(put) != 1 || put[0] != `$'\033[2J\033]0;owned\007clear'` || strings.ContainsRune(put[0], 0x1b) {
		t.Errorf("copied %q", put)
	}
	r.m.dirty = true
	r.sees("the name went to the terminal only: NOPERM")
	r.press("6")
	if text, _ := r.m.copyText(); !strings.HasPrefix(text, "127.0.0.1:") {
		t.Errorf("of a node %q is copied", text)
	}
	r.press("5")
	if text, _ := r.m.copyText(); !strings.Contains(text, "known to be dead") {
		t.Errorf("of a finding %q is copied", text)
	}
	r.press("?", "y")
	r.where(page.Help)
	r.sees("there is nothing here to copy")
}

func TestMouse(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, func(o *Options) { o.Mouse = true })
	if r.m.View().MouseMode != tea.MouseModeCellMotion {
		t.Error("the mouse is not asked for")
	}
	click := func(text string) {
		t.Helper()
		for y, line := range strings.Split(r.screen(), "\n") {
			if i := strings.Index(line, text); i >= 0 {
				r.m.Update(tea.MouseClickMsg{X: view.Width(line[:i]), Y: y, Button: tea.MouseLeft})
				r.m.View()
				return
			}
		}
		t.Fatalf("%q is not on the screen", text)
	}
	click("orders:42")
	if r.cursor() != "orders:42" {
		t.Errorf("the cursor is on %s", r.cursor())
	}
	click("n3 ")
	if !r.m.Overview.OnNodes || r.m.Nodes.Name != "n3" {
		t.Errorf("the cursor is on %s", r.m.Nodes.Name)
	}
	click("job:003")
	click("job:003") // again: enter
	r.sees("job:003 ● held, 3/5")
	click("2 locks")
	r.where(page.Locks)
	before := r.m.Locks.Pos
	r.m.Update(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	if r.m.Locks.Pos != before+wheelStep {
		t.Errorf("the wheel moved to %d", r.m.Locks.Pos)
	}
	click("invoices")
	if r.cursor() != "invoices:2026-11" {
		t.Errorf("the cursor is on %s", r.cursor())
	}
	click("5 findings")
	click("keys may be evicted")
	if f := r.m.Findings.Selected(); f.ID != "eviction" {
		t.Errorf("the cursor is on %s", f.ID)
	}
	click("4 events")
	click("job:015 acquired")
	if e := r.m.Events.Selected(); !strings.HasPrefix(e.Text.Raw(), "job:015") {
		t.Errorf("the cursor is on %s", e.Text)
	}
	click("3 nodes")
	r.press("X")
	r.press("f")
	r.settle()
	d := r.m.Dialog
	click("2 locks")
	if r.m.Dialog != d || d == nil || r.m.viewed() != page.Nodes {
		t.Error("a click went past a dialog")
	}
}

// A lock's page shows what happened before it was looked at, where somebody
// knows.
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
	msg := r.m.feed.next(&monitor.Snapshot{}, 23, 0)().(snapshotMsg)
	if !msg.known || !slices.Equal(msg.changed, []string{"a"}) || len(msg.events) != 1 {
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

type fakeClusters struct {
	err     error
	next    Cluster
	watched []context.Context
}

func (c *fakeClusters) Names() []string { return []string{"prod", "test"} }
func (c *fakeClusters) Open(_ context.Context, name string) (Cluster, error) {
	return c.next, c.err
}

func (c *fakeClusters) Watch(ctx context.Context) func() []view.Cluster {
	c.watched = append(c.watched, ctx)
	return func() []view.Cluster {
		return []view.Cluster{
			{Name: "prod-locks", Snap: monitortest.Degraded(monitortest.Epoch), Delay: 30350 * time.Millisecond},
			{Name: "test", Snap: monitortest.Safe(monitortest.Epoch), Delay: time.Minute},
			{Name: "broken", Err: "no password"},
		}
	}
}

// All clusters are looked at while their page is shown; enter changes to another one.
func TestClustersPage(t *testing.T) {
	all := &fakeClusters{next: Cluster{Source: newFakeSource(monitortest.Safe(monitortest.Epoch)), Actions: &fakeActions{readOnly: true}}}
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, func(o *Options) { o.Clusters, o.Guard = all, nil })
	open := func() {
		r.press(":")
		r.typed("clusters")
		r.press("enter")
		r.run()
	}
	open()
	r.sees("Clusters 3", "prod-locks", "broken", "no password", "SERVING")
	if got := r.m.Set.Clusters.Name; got != "prod-locks" {
		t.Errorf("the cursor is on %q", got)
	}
	r.press("esc")
	r.where(page.Overview)
	if all.watched[0].Err() == nil {
		t.Error("the clusters are looked at although nobody sees them")
	}
	open()
	r.press("enter")
	r.where(page.Overview)
	r.pending = nil
	open()
	r.press("down", "enter")
	r.run()
	r.sees("this is test")
	if last := all.watched[len(all.watched)-1]; len(all.watched) != 3 || last.Err() == nil {
		t.Errorf("%d looks, and the last goes on", len(all.watched))
	}
}

func TestAnotherCluster(t *testing.T) {
	other := monitortest.Safe(monitortest.Epoch)
	other.Cluster.Name = "the-other"
	all := &fakeClusters{next: Cluster{Source: newFakeSource(other), Actions: &fakeActions{readOnly: true}}}
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, func(o *Options) { o.Clusters = all })
	change := func() {
		r.press(":")
		r.typed("cluster test")
		_, cmd := r.m.Update(keyPress("enter"))
		if cmd != nil {
			r.m.Update(cmd())
		}
		r.m.View()
	}
	r.m.Mine["job:001"] = action.Grant{Key: "job:001", Token: monitortest.TokenB, Until: monitortest.Epoch.Add(time.Minute)}
	change()
	r.sees("prod-locks", "1 lock acquired here: release them first")
	clear(r.m.Mine)
	all.err = errFake
	change()
	r.sees("prod-locks", "test cannot be opened: NOPERM")
	all.err = nil
	r.press("3")
	old := r.m.feed
	change()
	r.where(page.Overview)
	r.sees("the-other", "this is test", "orders:42")
	r.seesNot("stuck", "n2 fenced")
	r.press("a")
	r.sees("read-only")
	// What the old cluster still brings is not shown.
	r.m.Update(snapshotMsg{cluster: old.cluster, snap: monitortest.Degraded(monitortest.Epoch)})
	r.m.Update(tickMsg{cluster: old.cluster, guard: guardState{"own", fakeGuardStatus(monitortest.Epoch)}})
	r.m.dirty = true
	r.seesNot("stuck")
}

// To change to another cluster ends the guard in the console as well.
func TestAnotherClusterAsksWhereNobodyElseGuards(t *testing.T) {
	all := &fakeClusters{next: Cluster{Source: newFakeSource(monitortest.Safe(monitortest.Epoch)), Actions: &fakeActions{}}}
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, func(o *Options) { o.Clusters, o.Lab = all, nil })
	r.press(":")
	r.typed("cluster test")
	r.press("enter")
	r.sees("Change to test ?", "n2 (18s) waits", "only one")
	r.pending = nil
	r.settle()
	r.press("enter")
	if len(r.pending) != 1 {
		t.Fatal("enter does nothing")
	}
	r.run()
	r.sees("this is test")
	if r.m.Dialog != nil {
		t.Error("the dialog is still there")
	}
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
	for _, l := range strings.Split(r.screen(), "\n") {
		if strings.Contains(l, "n2") && strings.Contains(l, "×") {
			line = l
		}
	}
	down, restart, closed, open := strings.Index(line, "××"), strings.Index(line, "R"), strings.Index(line, "▒▒"), strings.LastIndex(line, "──")
	if down < 0 || restart < down || closed < restart || open < closed {
		t.Errorf("the time line is %q:\n%s", line, r.screen())
	}
}

// Whatever is pressed, clicked and sent, at whatever size: a frame fits.
func TestRandomUse(t *testing.T) {
	keys := []string{"1", "2", "3", "4", "5", "6", "7", "8", "?", "esc", "esc", "enter", "o", "tab", "j", "k", "down", "up", "pgdown", "pgup", "g", "G", "home",
		"end", "left", "right", "s", "W", "m", "M", "space", "f", "y", "/", ":", "a", "r", "X", "O", "c", "z", "t", "n", "F", "ctrl+u", "x", "日", "q"}
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
				t.Fatalf("seed %d, page %s, %d×%d", seed, r.m.viewed(), w, h)
			}
		}
	}
}

// first is what a single command brings; the others of a batch wait for what
// does not come.
func first(cmd tea.Cmd) tea.Msg {
	if cmd == nil {
		return nil
	}
	return cmd()
}
