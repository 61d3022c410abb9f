package tui

import (
	"fmt"
	"testing"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/server/lockform"
	"redlockctl/server/safetext"
	"redlockctl/tui/page"
	"redlockctl/tui/source"
)

// Fields and values are completed while a filter is typed, and the hits are counted.
func TestFilterCompletion(t *testing.T) {
	for _, w := range []int{60, 80, 120} {
		r := newRig(t, monitortest.Degraded(monitortest.Epoch), w, 24)
		line := func(want string) {
			t.Helper()
			if got := r.m.editor().String(); got != want {
				t.Errorf("%d columns: the filter is %q, not %q", w, got, want)
			}
			checkFrame(t, r.m.View().Content, w, 24, false)
		}
		r.press("2", "/")
		r.sees("state: node: holder:", "39 of 39")
		r.typed("st")
		r.press("tab")
		line("state:")
		r.sees("held expiring", "39 of 39") // an incomplete term is no error
		r.seesNot("what follows the colon?")
		r.typed("or")
		r.press("tab")
		line("state:orphaned ")
		r.sees("1 of 39")
		r.typed("|") // removes the blank again
		line("state:orphaned|")
		r.typed(`"no `)
		r.press("tab")
		line(`state:orphaned|"no TTL" `)
		r.sees("2 of 39")
		r.typed("!node:")
		r.press("tab", "tab")
		line(`state:orphaned|"no TTL" !node:n2`)
		r.press("shift+tab")
		line(`state:orphaned|"no TTL" !node:n1`)
		r.sees("1 of 39")
		r.press("esc", "/")
		r.typed("stat:held")
		r.sees("0 of 39", `"stat" is not a field: searched as text in the name (fields: state,`)
		r.press("esc", "/")
		r.typed("state:no TTL")
		r.sees("1 of 39")
		r.press("esc", "/")
		r.typed("no TTL")
		r.sees("0 of 39", `"no TTL" is searched as text in the name: state:no-TTL chooses by state`)
		r.press("esc", "/")
		r.typed("state:x")
		r.sees("! state:x: no state begins so (have:")
		r.press("esc", "/")
		r.typed("~(")
		r.sees("! ~(: no regular expression")
		r.press("esc", "/")
		r.typed("library:red")
		r.press("tab")
		line("library:redsync ")
		r.typed("owner:web")
		r.press("tab")
		line(`library:redsync owner:"web-7 (pid 811)" `)
	}
}

// With many locks, the values to offer are collected in the background once a field is
// typed, and no key waits for that.
func TestFilterValuesOfManyLocks(t *testing.T) {
	s := monitortest.Degraded(monitortest.Epoch)
	var locks []monitor.Lock
	for i := range 5000 {
		l := monitortest.LockOf(monitortest.Epoch, fmt.Sprintf("k%05d", i), monitor.LockHeld, monitortest.TokenA, "60 60 60 60 60")
		l.Form = &lockform.Form{Library: "redsync", Owner: safetext.New(fmt.Sprintf("web-%d", i%3))}
		locks = append(locks, l)
	}
	monitortest.Put(s, locks...)
	r := newRig(t, s, 120, 40)
	r.press("/")
	r.typed("owner")
	if r.m.learnt {
		t.Error("values are looked for where none is asked for")
	}
	_, cmd := r.m.Update(keyPress(":"))
	r.typed("web-")
	r.seesNot("web-0")
	r.press("tab")
	runAll(r.m, cmd)
	r.m.dirty = true
	r.sees("web-0 web-1 web-2 \"web-7 (pid 811)\"")
	r.press("tab", "tab")
	if got := r.m.editor().String(); got != "owner:web-1" {
		t.Errorf("the filter is %q", got)
	}
}

// Events and audit entries have the same filter language.
func TestFilterOfEventsAndActs(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 80, 24, withAudit)
	r.press("4", "/")
	r.typed("level:al")
	r.press("tab")
	r.typed("kind:")
	r.press("tab")
	r.sees("/ level:alarm kind:")
	r.press("esc", "/")
	r.typed("~^job:01[0-4]|n2 !age>5s")
	r.sees("5 of")
	r.press("enter")
	r.sees("job:014 acquired")
	r.seesNot("job:015", "n2 started")
	r.press("/", "esc", ":")
	r.typed("filter node:n")
	r.press("tab", "tab", "enter")
	r.sees("n2 started fenced")
	r.seesNot("n4 unreachable", "job:014")
	r.where(page.Events)

	r.m.here.Audit = func() *view.AuditLog { return anAudit() }
	r.press(":")
	r.typed("audit show")
	r.pending = nil
	r.press("enter")
	r.m.Update(r.pending[0]().(source.SeenMsg[*view.AuditLog]))
	r.m.dirty = true
	r.sees("Audit 3", "orders:42", "node cordon")
	r.press("/")
	r.typed("phase:f")
	r.press("tab")
	r.typed("actor:ops")
	r.press("tab")
	r.sees("phase:failed actor:ops@host1", "1 of 3")
	r.press("enter")
	r.sees("ps@host1 1 ·", "node cordon")
	r.seesNot("orders:42")
	if r.m.selected().Audit.ID != "b" {
		t.Errorf("the cursor is on %+v", r.m.selected().Audit)
	}
	r.press("/")
	r.typed("who:x")
	r.sees("0 of 3", "no line matches the filter: esc clears it", `"who" is not a field`)
	r.press("esc")
	r.sees("orders:42")
}

// A filter with a problem is refused: it is never shown as applied, and its error stays, in
// full, until it is corrected or cleared.
func TestARefusedFilterIsNotApplied(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 80, 24, withAudit)
	for _, pageKey := range []string{"2", "4"} {
		r.press(pageKey, "/")
		r.typed("job:01")
		r.press("enter", "/")
		r.typed(" ~(")
		r.press("enter")
		r.sees("/job:01 ", "~(: no regular expression", "! not applied", "/ job:01 ~(")
		r.press("backspace")
		r.seesNot("no regular expression", "! not applied")
		r.press("backspace", "backspace", "enter")
		r.sees("/job:01 ")
		r.press("esc")
	}
	r.press("2", "/")
	r.typed("state=split")
	r.press("enter")
	r.seesNot("/state=split ")
	r.sees("state:", "! not applied")
	r.press("esc", ":")
	r.typed("filter job:01")
	r.press("enter", ":")
	r.typed("filter ~(")
	r.press("enter")
	r.sees("no regular expression", "/job:01 ")
}
