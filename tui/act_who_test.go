package tui

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/who"
	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/server/safetext"
)

// The answer of w is in the table, on the lock's page and in the dialog that removes the
// lock, as long as its token holds it; even if everything else is refused.
func TestWhoHoldsIt(t *testing.T) {
	r := only(t, monitortest.LockOf(monitortest.Epoch, "job:1", monitor.LockHeld, monitortest.TokenA, "9 9 9 9 9"))
	r.acts.answer = &who.Answer{
		At: monitortest.Epoch, Key: "job:1", Held: 5, N: 5, Token: safetext.New(monitortest.TokenA), Method: who.Inferred, P: 0.9991, Events: 7,
		Group: &who.Group{Name: "billing"}, Liveness: who.Gone, Extends: 6, Extended: 3 * time.Minute, Usually: 7 * time.Second,
		Conns: []who.NodeConn{{Node: "n1", Conn: who.Conn{ID: 1, Addr: safetext.New("10.0.0.7:4711")}, Gone: 3 * time.Minute}},
	}
	r.press("w")
	r.sees("watching job:1 for up to a minute")
	r.wait(15 * time.Second) // the message stays while the search runs
	r.press("j")
	r.sees("watching job:1 for up to a minute")
	r.run()
	r.seesNot("watching job:1")
	r.sent(`who "job:1"`)
	r.sees("inferred p 0.999, from 7 changes of the lock: held by billing?", "billing? p 0.999  ")
	r.press("X")
	r.sees("gone 3m15s; last extended 3m15s", "its last connection was seen closed 3m", "on 1 of 5 nodes")
	r.press("esc", "enter")
	r.sees("Holder inferred p 0.999, from 7 changes of the lock: billing?, asked", "its last connection was seen closed")
}

// The search leaves the keys of the page where they are; its answer is shown whole, however
// long it is and small the screen, until esc closes it or a minute later.
func TestWhoUnfolds(t *testing.T) {
	r := only(t, monitortest.LockOf(monitortest.Epoch, "job:1", monitor.LockHeld, monitortest.TokenA, "99 99 99 99 99"))
	r.m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	lastLine := func() string { return r.screen()[strings.LastIndexByte(r.screen(), '\n')+1:] }
	a := &who.Answer{At: monitortest.Epoch, Key: "job:1", Held: 5, N: 5, Token: safetext.New(monitortest.TokenA), Method: who.Unknown, Events: 7}
	for _, name := range []string{"billing", "invoices", "reports", "exports-of-the-night"} {
		a.Likely = append(a.Likely, who.Candidate{P: 0.25, Group: who.Group{Name: name}})
	}
	r.acts.answer = a
	r.press("w")
	r.sees("watching job:1")
	if keys := lastLine(); !strings.HasPrefix(keys, " ? help  / filter  enter detail  R revoke  X force-release") {
		t.Errorf("while it watches, the keys are %q", keys)
	}
	r.run()
	for _, w := range []int{60, 80, 120} {
		r.m.Update(tea.WindowSizeMsg{Width: w, Height: 24})
		r.sees("p 0.25 billing", "exports-of-the-night", "--monitor --node NODE --reason TEXT", "esc: close")
	}
	r.press("j", "k", "tab", "tab", "tab") // it stays
	r.sees("exports-of-the-night")
	r.press("enter", "esc")
	r.seesNot("esc: close")
	r.sees("close detail")
	r.press("esc", "w")
	r.run()
	r.sees("exports-of-the-night")
	r.wait(61 * time.Second)
	r.seesNot("exports-of-the-night")
}

// The dialogs of revoke and force-release never show an inferred name without its odds,
// however little room there is.
func TestAnInferredNameHasItsOdds(t *testing.T) {
	r := only(t, monitortest.LockOf(monitortest.Epoch, "job:1", monitor.LockHeld, monitortest.TokenA, "9 9 9 9 9"))
	r.acts.answer = &who.Answer{
		At: monitortest.Epoch, Key: "job:1", Held: 5, N: 5, Token: safetext.New(monitortest.TokenA), Method: who.Inferred, P: 0.9991, Events: 7,
		Group: &who.Group{Name: "billing-" + strings.Repeat("x", 100)},
	}
	r.press("w")
	r.run()
	for _, key := range []string{"X", "R"} {
		r.press(key)
		for w := 60; w <= 160; w += 10 {
			r.m.Update(tea.WindowSizeMsg{Width: w, Height: 40})
			r.sees("Owner", "p 0.999")
			_, owner, _ := strings.Cut(r.screen(), " Owner  ")
			if odds, name := strings.Index(owner, "p 0.999"), strings.Index(owner, "billing-"); odds < 0 || name < odds {
				t.Errorf("%s, %d cells: the name comes first:\n%s", key, w, r.screen())
			}
		}
		r.press("esc")
	}
}

// A holder that was alive at an earlier answer may not be alive now.
func TestAnAnswerAges(t *testing.T) {
	r := only(t, monitortest.LockOf(monitortest.Epoch, "job:1", monitor.LockHeld, monitortest.TokenA, "90 90 90 90 90"))
	r.acts.answer = &who.Answer{
		At: monitortest.Epoch, Key: "job:1", Held: 5, N: 5, Token: safetext.New(monitortest.TokenA), Method: who.Inferred, P: 0.9991, Events: 7,
		Group: &who.Group{Name: "billing"}, Liveness: who.Alive, Extends: 6, Extended: time.Second, Usually: 2 * time.Second,
		Conns: []who.NodeConn{{Node: "n1", Conn: who.Conn{ID: 1, Addr: safetext.New("10.0.0.7:4711")}}},
	}
	r.press("w")
	r.run()
	r.press("X")
	r.sees("alive; last extended 1s ago")
	r.press("esc")
	r.wait(26 * time.Second)
	r.press("X")
	r.sees("silent 27s; last extended 27s ago, usually every 2s; connections open on 1 of 5 nodes", "when asked, 26s ago")
}

// The command that finds the holder's process is on one line of the lock's page and of
// the dialog, on a small screen too, so that it can be copied.
func TestHowToFindTheProcess(t *testing.T) {
	const command = "ss -tnp 'sport = :51322'"
	r := only(t, monitortest.LockOf(monitortest.Epoch, "job:1", monitor.LockHeld, monitortest.TokenA, "9 9 9 9 9"))
	conn := func(node, addr, find string) who.NodeConn {
		return who.NodeConn{Node: node, Conn: who.Conn{ID: 1, Addr: safetext.New(addr), User: safetext.New("orders"), Library: safetext.New("redisson 3.40")}, Find: find}
	}
	r.acts.answer = &who.Answer{
		At: monitortest.Epoch, Key: "job:1", Held: 5, N: 5, Token: safetext.New(monitortest.TokenA), Method: who.Inferred, P: 0.9991, Events: 7, Group: &who.Group{Name: "billing"},
		Conns: []who.NodeConn{conn("n1", "10.10.204.117:51322", command), conn("n2", "10.10.204.117:51324", "ss -tnp 'sport = :51324'")},
	}
	r.press("w")
	r.run()
	r.m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	r.press("o")
	for _, where := range []string{"page", "dialog"} {
		if n := strings.Count(r.screen(), "Find it    "+command+"  # on 10.10.204.117"); n != 1 || strings.Contains(r.screen(), "51324'") {
			t.Errorf("%s: the command stands there %d times:\n%s", where, n, r.screen())
		}
		r.press("X")
	}
}

// If too few nodes can be watched, the screen says nothing about the holder.
func TestWhoCannotBeTold(t *testing.T) {
	r := only(t, monitortest.LockOf(monitortest.Epoch, "job:1", monitor.LockHeld, monitortest.TokenA, "9 9 9 9 9"))
	no := safetext.New("CLIENT TRACKING: ERR no\x1b[2J")
	r.acts.answer = &who.Answer{Key: "job:1", N: 5, Unusable: map[string]safetext.Text{"n3": no, "n1": no, "n2": no}}
	r.press("w")
	r.run()
	r.sees(`who holds it is not known: 2 of 5 nodes can be watched: n1: CLIENT TRACKING: ERR no\x1b[2J`)
	r.seesNot("nobody holds it")
	r.acts.answer = &who.Answer{At: r.clock, Key: "job:1", N: 5, Unusable: map[string]safetext.Text{"n3": no}}
	r.press("w")
	r.run()
	r.sees("nobody holds it any more")
}

// The answer about a lock that has ended says who had it; if the screen shows the next holder already,
// it says that that one has it now, and that nobody watched it.
func TestWhoHadIt(t *testing.T) {
	r := only(t, monitortest.LockOf(monitortest.Epoch, "job:1", monitor.LockHeld, monitortest.TokenA, "9 9 9 9 9"))
	r.acts.answer = &who.Answer{
		At: r.clock, Key: "job:1", N: 5, Ended: true, Token: safetext.New(monitortest.TokenA), LastHeld: r.clock,
		Method: who.Told, Owner: safetext.New("web-7"),
	}
	r.press("w")
	r.run()
	r.sees("job:1: nobody holds it any more", "token "+monitortest.TokenA+" was last seen to hold it at 12:03:10; it has ended since", "was held by web-7  (told by its token)")
	r.press("esc", "w")
	next := monitortest.LockOf(r.clock, "job:1", monitor.LockHeld, monitortest.TokenB, "9 9 9 9 9").Timed(r.clock, r.clock.Add(9*time.Second))
	s := monitortest.Degraded(r.clock)
	s.Locks = monitor.NewLocks(next)
	r.push(s)
	r.run()
	r.sees("job:1: held now by token "+monitortest.TokenB+", first seen 12:03:10: nobody watched it",
		"before that, token "+monitortest.TokenA+", last seen to hold it at 12:03:10: was held by web-7")
	r.seesNot("nobody holds it")
}

// An answer that is still on the screen when the lock has ended says so.
func TestAnAnswerAboutALockThatEnds(t *testing.T) {
	l := monitortest.LockOf(monitortest.Epoch, "job:1", monitor.LockHeld, monitortest.TokenA, "9 9 9 9 9")
	r := only(t, l)
	r.acts.answer = &who.Answer{At: r.clock, Key: "job:1", Held: 5, N: 5, Token: safetext.New(monitortest.TokenA), Method: who.Told, Owner: safetext.New("web-7")}
	r.press("w")
	r.run()
	r.sees("job:1: held by web-7")
	s := monitortest.Degraded(r.clock)
	s.Locks, s.Complete = monitor.Locks{}, true
	r.push(s)
	r.sees("job:1: it has ended since: was held by web-7")
	r.press("esc")
	r.seesNot("web-7")
}

// A refused search says what to do, and nothing is remembered.
func TestWhoIsRefused(t *testing.T) {
	r := only(t, monitortest.LockOf(monitortest.Epoch, "job:1", monitor.LockHeld, monitortest.TokenA, "9 9 9 9 9"))
	r.acts.err = errors.Join(who.ErrTooMany)
	r.press("w")
	r.run()
	r.sees("too many connections", "redlockctl who --force")
}

// Wherever the name of a holder stands, at any size, it says how it is known: told by the
// token, seen in the traffic, or inferred, with its odds.
func TestHowANameIsKnownStandsWithIt(t *testing.T) {
	const name = "billing-worker-7"
	for method, want := range map[who.Method]string{
		who.Told:     `(, told|\s*\(told by its token\))`,
		who.Seen:     `(, seen|\s*\(seen in the traffic of n1\))`,
		who.Inferred: `\?`,
	} {
		r := only(t, monitortest.LockOf(monitortest.Epoch, "job:1", monitor.LockHeld, monitortest.TokenA, "9 9 9 9 9"))
		r.acts.answer = &who.Answer{
			At: monitortest.Epoch, Key: "job:1", Held: 5, N: 5, Token: safetext.New(monitortest.TokenA), Method: method, Events: 7, P: 0.9991, MonitorOn: "n1",
			Group: &who.Group{Name: name}, Owner: safetext.New(name), Liveness: who.Alive, Extended: time.Second, Usually: 2 * time.Second,
		}
		r.press("w")
		r.run()
		r.press("esc")
		known := regexp.MustCompile(`^[-\w…]*` + want)
		for w := 80; w <= 200; w += 20 {
			r.m.Update(tea.WindowSizeMsg{Width: w, Height: 50})
			for _, keys := range [][]string{nil, {"X"}, {"R"}, {"o"}} {
				r.press(keys...)
				text := strings.Join(strings.Fields(strings.NewReplacer("┃", " ", "│", " ").Replace(r.screen())), " ")
				_, rest, found := strings.Cut(text, "billing")
				if !found {
					t.Errorf("%s, %v, %d cells: no name:\n%s", method, keys, w, r.screen())
				}
				for ; found; _, rest, found = strings.Cut(rest, "billing") {
					if !known.MatchString(rest) {
						t.Errorf("%s, %v, %d cells: a name alone, before %.40q:\n%s", method, keys, w, rest, r.screen())
					}
				}
				if method == who.Inferred && !strings.Contains(text, "p 0.999") {
					t.Errorf("%v, %d cells: no odds:\n%s", keys, w, r.screen())
				}
				if keys != nil {
					r.press("esc")
				}
			}
		}
	}
}

// The dialog says that the holder is being looked for, and that it was not found.
func TestADialogWhileTheHolderIsLookedFor(t *testing.T) {
	const unasked = "Liveness not asked: esc, then w says whether its holder is alive, silent or gone"
	r := only(t, monitortest.LockOf(monitortest.Epoch, "job:1", monitor.LockHeld, monitortest.TokenA, "9 9 9 9 9"),
		monitortest.LockOf(monitortest.Epoch, "job:2", monitor.LockHeld, monitortest.TokenB, "9 9 9 9 9"))
	r.acts.answer = &who.Answer{Key: "job:1", N: 5, Unusable: map[string]safetext.Text{"n1": safetext.New("no"), "n2": safetext.New("no"), "n3": safetext.New("no")}}
	r.press("X")
	r.sees(unasked)
	r.press("esc", "w", "X")
	r.wait(3 * time.Second)
	r.sees("Liveness watching it for up to a minute: who holds it… 3s")
	r.run()
	r.wait(2 * time.Second)
	r.sees("Liveness asked 2s ago: job:1: who holds it is not known: 2 of 5 nodes can be watched: n")
	r.press("esc", "esc", "X")
	r.sees("Liveness asked 2s ago: job:1: who holds it is not known")
	r.press("esc", "j", "X")
	r.sees("Force-release job:2?", unasked)
	r.press("esc", "k", "w", "X")
	r.acts.answer = &who.Answer{At: r.clock, Key: "job:1", Held: 5, N: 5, Token: safetext.New(monitortest.TokenA), Method: who.Told, Owner: safetext.New("web-7"), Liveness: who.Alive}
	r.run()
	r.sees("Owner held by web-7 (told by its token), asked 0s ago", "Liveness alive")
	r.seesNot("who holds it is not known", "not asked")
}
