package tui

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"redlockctl/internal/view"
	"redlockctl/monitor/monitortest"
	"redlockctl/tui/page"
)

// What a terminal reports of the mouse, as bytes on the program's input: a click selects, a
// double click opens, the wheel scrolls, a click on the head of a column sorts by it, and
// what is done with shift is the terminal's.
func TestMouseInATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		in, keyboard := io.Pipe()
		out := &terminal{}
		opt := Options{Cluster: Cluster{Source: newFakeSource(monitortest.Degraded(time.Now())), Guard: fakeGuardStatus(time.Now()), Actions: &fakeActions{}}, In: in, Out: out, Mouse: true}
		m := newModel(ctx, opt, time.Now)
		p := newProgram(m, opt, tea.WithWindowSize(120, 40), tea.WithEnvironment([]string{"TERM=xterm-256color"}))
		done := make(chan error, 1)
		go func() { _, err := p.Run(); done <- err }()
		send := func(bytes string) {
			t.Helper()
			if _, err := io.WriteString(keyboard, bytes); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		at := func(text string) (x, y int) {
			t.Helper()
			synctest.Wait()
			for y, line := range strings.Split(ansi.Strip(m.view.Content), "\n") {
				if before, _, ok := strings.Cut(line, text); ok {
					return view.Width(before) + 1, y + 1
				}
			}
			t.Fatalf("%q is not on the screen:\n%s", text, ansi.Strip(m.view.Content))
			return 0, 0
		}
		// Buttons as a terminal counts them: 0 left, 64 and 65 the wheel, and 4 more with shift.
		mouse := func(button int, text string) {
			t.Helper()
			x, y := at(text)
			send(fmt.Sprintf("\x1b[<%d;%d;%dM", button, x, y))
			if button < 64 {
				send(fmt.Sprintf("\x1b[<%d;%d;%dm", button, x, y))
			}
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
		}
		under := func(want string) {
			t.Helper()
			if l := m.Locks.Selected(); l == nil || l.Key.Raw() != want {
				t.Errorf("the cursor is on %v, not on %s", l, want)
			}
		}
		order := func(l *page.Layout, want page.Order) {
			t.Helper()
			if l.Order != want {
				t.Errorf("%s are sorted by %q, not by %q", l.Of, l.Order, want)
			}
		}
		time.Sleep(time.Second)

		mouse(0, "orders:42")
		under("orders:42")
		time.Sleep(2 * twice)
		mouse(0, "orders:42") // too late for a double click
		if m.Viewed() != page.Overview {
			t.Fatalf("two slow clicks opened %s", m.Viewed())
		}
		mouse(0, "orders:42")
		if place := m.Page.Place(); place.Kind != page.Lock || place.Name != "orders:42" {
			t.Fatalf("a double click opened %v", place)
		}
		mouse(0, "2 locks")
		under("orders:42")
		pos := m.Locks.Pos
		mouse(65, "orders:42")
		if m.Locks.Pos != pos+wheelStep {
			t.Errorf("the wheel moved from %d to %d", pos, m.Locks.Pos)
		}
		mouse(64, "orders:42")
		under("orders:42")

		locks := m.Layouts()[0]
		mouse(0, "COPIES")
		order(locks, "copies")
		mouse(0, "COPIES")
		order(locks, "copies:desc")
		mouse(0, "NAME")
		order(locks, "name")
		under("orders:42")
		mouse(4, "ENDS") // with shift
		order(locks, "name")
		mouse(0, "1 overview")
		mouse(0, "GUARD") // in the head of the nodes
		order(m.Nodes.Layout(), "guard")
		order(locks, "name")
		mouse(0, "5 findings")
		mouse(0, "SEVERITY")
		order(m.listed(), "severity:desc")

		p.Quit()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := keyboard.Close(); err != nil {
			t.Error(err)
		}
		cancel()
	})
}

// The order is said by an arrow in the head of its column, in the colour of a warning where it
// is not the default, and nowhere else. Only if that column is not shown, the title names it.
func TestTheOrderIsAnArrow(t *testing.T) {
	for _, key := range []string{"1", "2"} {
		r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
		warned := func(column string) bool {
			return strings.Contains(r.m.View().Content, column+r.m.St.Label.Close+r.m.St.Warn.Of(r.m.St.Up)) ||
				strings.Contains(r.m.View().Content, column+r.m.St.Title.Close+r.m.St.Warn.Of(r.m.St.Up))
		}
		r.press(key)
		r.sees("STATE↑")
		r.seesNot("needs you first", "sort:")
		if warned("STATE") {
			t.Error("the default order is a warning")
		}
		r.press(":")
		r.typed("sort ends")
		r.press("enter")
		r.m.notice = ""
		r.m.dirty = true
		r.sees("ENDS↑")
		r.seesNot("ends soonest", "sort:", "STATE↑")
		if !warned("ENDS") {
			t.Error("another order is no warning")
		}
		r.press(":")
		r.typed("columns state copies")
		r.press("enter")
		r.sees("sort: ends soonest")
	}
}
