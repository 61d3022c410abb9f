package tui

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/monitor/monitortest"
	"redlockctl/server/safetext/safetexttest"
	"redlockctl/tui/page"
)

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
	r.sees("the name may not be in the clipboard: NOPERM")
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
	r.press("esc", "2")
	shown := r.screen()
	_, cmd = r.m.Update(keyPress("Y"))
	runAll(r.m, cmd)
	if text := put[len(put)-1]; !strings.HasPrefix(shown, strings.TrimRight(text, "\n")) || !strings.Contains(text, "NAME") || strings.ContainsRune(text, 0x1b) {
		t.Errorf("of a page this is copied:\n%s\nit is\n%s", text, shown)
	}
	r.m.W, r.m.H = 400, 400
	if cmd := r.m.copyPage(); cmd != nil {
		t.Error("more is copied than a terminal accepts")
	}
}

func TestMouse(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, func(o *Options) { o.Mouse = true })
	if r.m.View().MouseMode != tea.MouseModeCellMotion {
		t.Error("the mouse is not asked for")
	}
	click := func(text string) {
		t.Helper()
		for y, line := range strings.Split(r.screen(), "\n") {
			if before, _, ok := strings.Cut(line, text); ok {
				r.m.Update(tea.MouseClickMsg{X: view.Width(before), Y: y, Button: tea.MouseLeft})
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
	if !r.m.Overview.OnNodes || r.m.Nodes.Selected().Name != "n3" {
		t.Errorf("the cursor is on %s", r.m.Nodes.Selected().Name)
	}
	click("job:003")
	click("job:003") // twice
	r.where(page.Lock)
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
	if f := r.m.selected().Finding; f.ID != "eviction" {
		t.Errorf("the cursor is on %s", f.ID)
	}
	click("4 events")
	click("job:015 acquired")
	if e := r.m.Events.Selected(); !strings.HasPrefix(e.Text.Raw(), "job:015") {
		t.Errorf("the cursor is on %s", e.Text)
	}
	click("3 nodes")
	r.press("X")
	r.press("C")
	r.settle()
	d := r.m.Dialog
	click("2 locks")
	if r.m.Dialog != d || d == nil || r.m.Viewed() != page.Nodes {
		t.Error("a click went past a dialog")
	}
}
