package tui

import (
	"errors"
	"testing"

	tea "charm.land/bubbletea/v2"

	"redlockctl/monitor/monitortest"
	"redlockctl/tui/page"
	"redlockctl/tui/styles"
)

func TestCommands(t *testing.T) {
	for _, c := range []struct {
		line  string
		check func(*rig)
	}{
		{"guard", func(r *rig) { r.where(page.Guard) }},
		{"ev", func(r *rig) { r.where(page.Events) }},
		{"locks orders:42", func(r *rig) { r.where(page.Lock); r.sees("web-7") }},
		{"lock nowhere", func(r *rig) { r.where(page.Overview); r.sees("there is no lock nowhere") }},
		{"node N2", func(r *rig) { r.where(page.Node); r.sees("n2 ◐ fenced") }},
		{"filter state:orphaned", func(r *rig) { r.sees("/state:orphaned 1") }},
		{"filter ttl<5", func(r *rig) { r.sees("a number with a unit is wanted") }},
		{"sort name", func(r *rig) { r.sees("sorted: name"); r.sameOrder(page.OrderName) }},
		{"sort upside-down", func(r *rig) { r.sees("have: name, state, copies, ttls, n1") }},
		{"force-release orders:42", func(r *rig) { r.sees("Force-release orders:42?") }},
		{"force-release", func(r *rig) { r.sees("Force-release stuck?") }},
		{"node cordon n3", func(r *rig) { r.sees("Cordon n3?") }},
		{"findings --since 1h", func(r *rig) {
			r.sees("findings takes nothing here, not «--since 1h»; flags are for the CLI")
		}},
		{"cordon n9", func(r *rig) { r.sees("there is no command cordon n9: it is node cordon") }},
		{"node cord n9", func(r *rig) { r.refused("node cordon: refused", "there is no node n9"); nothingSent(r.t, r) }},
		{"node rejoin n1", func(r *rig) { r.sees("n1 is serving already") }},
		{"skew n2", func(r *rig) { r.sees("Skew the clock of n2?") }},
		{"acquire", func(r *rig) { r.sees("Acquire a lock by hand") }},
		{"freeze", func(r *rig) { r.sees("FROZEN") }},
		{"columns name", func(r *rig) { r.sees("choose one column beside name at least") }},
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
	r.sees("no-TTL")
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
	line("locks orders:43")
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

// Choices are remembered and restored.
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
	r.theme(styles.ThemeDark) // an explicit option wins
	r = newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, with, withNoColor)
	r.theme(styles.ThemeNone)
	do(r, "theme dark")
	r.sees("no colours here")
	r.theme(styles.ThemeNone)

	r = newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, with) // by key, as with the command
	for _, k := range []string{"W", "s"} {
		_, cmd := r.m.Update(keyPress(k))
		runAll(r.m, cmd)
	}
	r = newRig(t, monitortest.Degraded(monitortest.Epoch), 200, 40, with)
	r.sameOrder("margin")
	r.sees("SEEN FOR")

	store.err = errors.New("disk \x1b[31m full")
	r = newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, with)
	r.sees("default columns, order and theme: disk \\x1b[31m full")
	do(r, "sort name")
	r.m.dirty = true
	r.sees("your choice is not remembered")
}

// runAll runs a command and those inside it, and passes their messages to the program.
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
