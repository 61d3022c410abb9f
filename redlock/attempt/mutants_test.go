package attempt

import (
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"pgregory.net/rapid"
)

// mutantSchedules bounds the search for a schedule on which a mutant fails.
const mutantSchedules = 20_000

// TestMutants breaks one rule after another, expects that checkAttempt notices, and
// prints how many schedules that took. [TestAttemptProperties] runs the same check on
// the real attempt.
func TestMutants(t *testing.T) {
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "rule\tbroken\tschedules")
	for _, m := range []struct {
		rule   string
		broken string // what the mutant does instead
		begin  func(Terms) stepper
	}{
		{"quorum of the configured N", "a node that is down does not count in N", quorumOfTheConnected(StatusDown)},
		{"a skipped node counts in N", "a node that the breaker skips does not count in N", quorumOfTheConnected(StatusSkipped)},
		{"more than half, of even N too", "N/2 is a quorum", halfIsAQuorum},
		{"a node has one vote", "it counts as often as it answers", countsTwice},
		{"granted at quorum", "waits for all nodes", waitsForAll},
		{"no grant without validity", "the time that an attempt took is not looked at", validityIgnored},
		{"the monotonic clock decides", "the wall clock does, and is set back meanwhile", wallClock},
		{"a verdict is final", "a yes that comes late makes a failure good", lateYes},
		{"a failed attempt is released", "it is left to expire", noRelease},
		{"an extension needs a quorum", "one copy less will do", minorityExtends},
		{"an extension comes before the old end", "it may come later", lateExtension},
		{"a failed extension is no release", "it releases", extensionReleases},
		{"uncertain is not lost", "an extension that fails is a loss", lostAtOnce},
	} {
		t.Run(m.rule, func(t *testing.T) {
			gen := rapid.Custom(func(t *rapid.T) error { return checkAttempt(t, m.begin) })
			for seed := range mutantSchedules {
				if err := gen.Example(seed); err != nil {
					t.Logf("schedule %d: %v", seed, err)
					fmt.Fprintf(w, "%s\t%s\t%d\n", m.rule, m.broken, seed+1)
					return
				}
			}
			t.Errorf("%s: not noticed in %d schedules", m.broken, mutantSchedules)
		})
	}
	_ = w.Flush()
	t.Log("\n" + table.String())
}

// mutant is an attempt with one rule broken.
type mutant struct {
	*Attempt
	answer func(a *Attempt, node int, s Status, now time.Time) (Send, Verdict)
}

func (b mutant) Answer(node int, s Status, now time.Time) (Send, Verdict) {
	return b.answer(b.Attempt, node, s, now)
}

func answers(f func(a *Attempt, node int, s Status, now time.Time) (Send, Verdict)) func(Terms) stepper {
	return func(terms Terms) stepper {
		a, _ := Begin(terms)
		return mutant{a, f}
	}
}

func quorumOfTheConnected(missing Status) func(Terms) stepper {
	return answers(func(a *Attempt, node int, s Status, now time.Time) (Send, Verdict) {
		if s == missing && a.statuses[node] == StatusUnanswered && a.verdict == VerdictPending {
			a.quorum = min(a.quorum, Quorum(a.terms.N-a.failed-1))
		}
		return a.Answer(node, s, now)
	})
}

func halfIsAQuorum(terms Terms) stepper {
	a, _ := Begin(terms)
	a.quorum = max(1, (terms.N+1)/2)
	return a
}

func waitsForAll(terms Terms) stepper {
	a, _ := Begin(terms)
	a.quorum = terms.N
	return a
}

func minorityExtends(terms Terms) stepper {
	a, _ := Begin(terms)
	if terms.Extend {
		a.quorum = max(1, a.quorum-1)
	}
	return a
}

func lateExtension(terms Terms) stepper {
	terms.NotAfter = time.Time{}
	a, _ := Begin(terms)
	return a
}

func countsTwice(terms Terms) stepper {
	return answers(func(a *Attempt, node int, s Status, now time.Time) (Send, Verdict) {
		a.statuses[node] = StatusUnanswered
		return a.Answer(node, s, now)
	})(terms)
}

func validityIgnored(terms Terms) stepper {
	return answers(func(a *Attempt, node int, s Status, _ time.Time) (Send, Verdict) {
		return a.Answer(node, s, a.terms.Start)
	})(terms)
}

func wallClock(terms Terms) stepper {
	return answers(func(a *Attempt, node int, s Status, now time.Time) (Send, Verdict) {
		if now.Sub(a.terms.Start) > time.Second {
			now = now.Add(-time.Hour)
		}
		return a.Answer(node, s, now)
	})(terms)
}

func lateYes(terms Terms) stepper {
	return answers(func(a *Attempt, node int, s Status, now time.Time) (Send, Verdict) {
		if a.verdict > VerdictGranted && s == StatusOK {
			a.verdict = VerdictPending
		}
		return a.Answer(node, s, now)
	})(terms)
}

func noRelease(terms Terms) stepper {
	return answers(func(a *Attempt, node int, s Status, now time.Time) (Send, Verdict) {
		_, v := a.Answer(node, s, now)
		return SendNothing, v
	})(terms)
}

func extensionReleases(terms Terms) stepper {
	return answers(func(a *Attempt, node int, s Status, now time.Time) (Send, Verdict) {
		before := a.verdict
		send, v := a.Answer(node, s, now)
		if a.terms.Extend && before == VerdictPending && v > VerdictGranted {
			send = SendRelease
		}
		return send, v
	})(terms)
}

func lostAtOnce(terms Terms) stepper {
	return answers(func(a *Attempt, node int, s Status, now time.Time) (Send, Verdict) {
		send, v := a.Answer(node, s, now)
		if a.terms.Extend && v == VerdictNoQuorum {
			a.verdict = VerdictNotHeld
		}
		return send, a.verdict
	})(terms)
}
