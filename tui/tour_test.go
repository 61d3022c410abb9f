package tui

import (
	"strings"
	"testing"

	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/server/announce"
	"redlockctl/server/safetext"
	"redlockctl/tui/page"
	"redlockctl/tui/prefs"
)

// The tour advances when its step is done, or by a key; another key ends it.
func TestTour(t *testing.T) {
	r := newRig(t, monitortest.Safe(monitortest.Epoch), 80, 24, func(o *Options) { o.Tour = true })
	r.sees("TOUR 1/4", "Crash a node")
	r.push(monitortest.Degraded(monitortest.Epoch))
	r.sees("TOUR 2/4", "n2 forgot the locks")
	r.press("6")
	r.sees("The bar runs for D")
	r.push(monitortest.Safe(monitortest.Epoch))
	r.sees("TOUR 3/4", "Clients die too")
	r.press("T")
	r.seesNot("TOUR")
	r.press("N")
	r.sees("the tour has ended")
	r.press("T", "N", "N")
	r.sees("TOUR 4/4", "goes back")
	r.press("N")
	r.sees("that was the tour")
	r.where(page.Guard)
}

// A question whose reason no longer applies says so.
func TestQuitSaysThatItsReasonWent(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 100, 30, func(o *Options) { o.Lab = nil })
	r.press("q")
	r.sees("Quit?", "the only one")
	r.push(monitortest.Safe(monitortest.Epoch))
	r.m.Guards.Status = nil
	r.sees("no node waits any more")

	r = newRig(t, monitortest.Degraded(monitortest.Epoch), 100, 30, func(o *Options) { o.Lab = nil })
	r.press("q")
	r.sees("Quit?", "the only one")
	r.push(guardElsewhere(monitortest.Epoch))
	r.sees("n2, watched by guard@ops1 too: nothing is in the way")
}

// A narrow header drops the names of guards, not that they watch, and with which D.
func TestTheHeaderKeepsItsGuards(t *testing.T) {
	for _, w := range []int{60, 80, 90, 100, 140} {
		s := guardElsewhere(monitortest.Epoch)
		for i := range s.Nodes {
			if n := &s.Nodes[i]; n.GuardsKnown {
				n.Guards = append(n.Guards, announce.Guard{ID: "f1", Delay: n.Guards[0].Delay, Host: safetext.New("a-host-with-a-long-name")})
			}
		}
		r := newRig(t, s, w, 30, withoutGuard)
		if first, _, _ := strings.Cut(r.screen(), "\n"); !strings.Contains(first, "guard") || !strings.Contains(first, "D 30.35s") {
			t.Errorf("%d columns: %s", w, first)
		}
	}
}

// The hints of a first start are shown once.
func TestHints(t *testing.T) {
	store := &fakeStore{}
	with := func(o *Options) { o.Store = store }
	r := newRig(t, monitortest.Safe(monitortest.Epoch), 80, 24, with)
	r.sees("what works on this page", "esc: close")
	r.press("o")
	r.seesNot("esc: close")
	r.press("esc") // goes back: it does not close the hints, which are only on the first page
	r.where(page.Overview)
	r.sees("esc: close")
	r.press("enter", "esc") // closes what was opened last
	r.sees("esc: close")
	r.press("/")
	r.typed("job")
	r.press("enter", "esc")
	r.sees("esc: close")
	r.seesNot("/job")
	runAll(r.m, r.m.prefs.Keep(func(p *prefs.Preferences) { p.Hinted = true }))
	r.press("esc")
	r.seesNot("esc: close")
	r = newRig(t, monitortest.Safe(monitortest.Epoch), 80, 24, with)
	r.seesNot("what works on this page")
}

// A narrow header says DANGER beside UNAVAILABLE.
func TestTheHeaderOfTooFewNodesTellsADanger(t *testing.T) {
	s := monitortest.Crashed(monitortest.Epoch)
	s.Cluster.Verdict = monitor.VerdictUnavailable
	s.Findings = append([]monitor.Finding{{ID: "split-lock", Severity: monitor.SeverityDanger, Key: safetext.New("invoices:2026-11"), Title: "two clients may rely on one lock"}}, s.Findings...)
	r := newRig(t, s, 80, 24)
	r.press("2")
	if first, _, _ := strings.Cut(r.screen(), "\n"); !strings.Contains(first, "UNAVAILABLE") || !strings.Contains(first, "DANGER") {
		t.Error(first)
	}
}
