package attempt

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const (
	testTTL   = 10 * time.Second
	testDrift = 102 * time.Millisecond
	testWait  = 50 * time.Millisecond
)

func testStart() time.Time { return time.Unix(1_000_000, 0) }

func TestAttempt(t *testing.T) {
	const (
		ok   = StatusOK
		held = StatusHeld
		gone = StatusAbsent
		down = StatusDown
		slow = StatusSlow
	)
	early, deadline, over := time.Millisecond, testWait, testTTL-testDrift
	type step struct {
		at     time.Duration
		node   int
		status Status // StatusUnanswered: a tick
	}
	answers := func(at time.Duration, statuses ...Status) (steps []step) {
		for i, s := range statuses {
			steps = append(steps, step{at, i, s})
		}
		return steps
	}
	tick := func(at time.Duration) step { return step{at: at} }
	tests := []struct {
		name     string
		n        int
		extend   bool
		notAfter time.Duration
		steps    []step
		want     Verdict
	}{
		{name: "one node is a lock of its own", n: 1, steps: answers(early, ok), want: VerdictGranted},
		{name: "one node refuses", n: 1, steps: answers(early, held), want: VerdictContended},
		{name: "one node is down", n: 1, steps: answers(early, down), want: VerdictNoQuorum},
		{name: "two nodes need both", n: 2, steps: answers(early, ok), want: VerdictPending},
		{name: "two nodes, one refuses", n: 2, steps: answers(early, held), want: VerdictContended},
		{name: "half of four is no quorum", n: 4, steps: append(answers(early, ok, ok), tick(early)), want: VerdictPending},
		{name: "three of four is a quorum", n: 4, steps: answers(early, ok, ok, ok), want: VerdictGranted},
		{name: "two of four refusing is the end", n: 4, steps: answers(early, held, held), want: VerdictContended},
		{name: "granted with three of five, without the others", n: 5, steps: answers(early, ok, ok, ok), want: VerdictGranted},
		{name: "granted beside a down minority", n: 5, steps: answers(early, down, down, ok, ok, ok), want: VerdictGranted},
		{name: "two yes are not enough among five", n: 5, steps: answers(early, ok, ok, down, held), want: VerdictPending},
		{name: "a quorum of the connected is no quorum", n: 5, steps: answers(early, ok, ok, down, down, down), want: VerdictNoQuorum},
		{name: "contended as soon as three refuse", n: 5, steps: answers(early, held, held, held), want: VerdictContended},
		{name: "contended when refusals make the difference", n: 5, steps: answers(early, ok, down, down, held), want: VerdictContended},
		{name: "no quorum as soon as three are down", n: 5, steps: answers(early, down, down, down), want: VerdictNoQuorum},
		{name: "nothing happens before the deadline", n: 5, steps: append(answers(early, ok, ok), tick(deadline-1)), want: VerdictPending},
		{name: "silence counts as failure at the deadline", n: 5, steps: append(answers(early, ok, ok), tick(deadline)), want: VerdictNoQuorum},
		{name: "silence and refusals", n: 5, steps: append(answers(early, ok, ok, held), tick(deadline)), want: VerdictContended},
		{name: "the same node twice is one vote", n: 3, steps: []step{{early, 0, ok}, {early, 0, ok}}, want: VerdictPending},
		{name: "a node that said no cannot say yes", n: 3, steps: []step{{early, 0, held}, {early, 0, ok}, {early, 1, ok}}, want: VerdictPending},
		{name: "a quorum with no validity left is no grant", n: 3, steps: append(answers(early, ok), step{over, 1, ok}), want: VerdictExpired},
		{name: "a quorum one nanosecond before the deadline is a grant", n: 3, steps: append(answers(early, ok), step{deadline - 1, 1, ok}), want: VerdictGranted},
		{name: "a quorum at the deadline is none, though no tick came", n: 3, steps: append(answers(early, ok), step{deadline, 1, ok}), want: VerdictNoQuorum},
		{name: "a quorum while validity is left, read after a stop", n: 3, steps: append(answers(early, ok), step{over - 1, 1, ok}), want: VerdictNoQuorum},
		{name: "a tick that comes when all is over", n: 3, steps: append(answers(early, ok), tick(over)), want: VerdictExpired},
		{name: "a late yes does not turn a failure", n: 3, steps: append(answers(early, down, down), step{early, 2, ok}, step{early, 0, ok}), want: VerdictNoQuorum},
		{name: "a late no does not turn a grant", n: 3, steps: append(answers(early, ok, ok), step{over, 2, held}, tick(over)), want: VerdictGranted},

		{name: "extended by a quorum", n: 5, extend: true, steps: answers(early, ok, ok, ok), want: VerdictGranted},
		{name: "extended, not by a minority", n: 5, extend: true, steps: append(answers(early, ok, ok), tick(deadline)), want: VerdictNoQuorum},
		{name: "lost when a quorum cannot have it", n: 5, extend: true, steps: answers(early, gone, held, gone), want: VerdictNotHeld},
		{name: "failed, but lost or not is still open", n: 5, extend: true, steps: answers(early, down, gone, gone), want: VerdictPending},
		{name: "failed and lost", n: 5, extend: true, steps: answers(early, down, gone, gone, gone), want: VerdictNotHeld},
		{name: "failed and not known to be lost", n: 5, extend: true, steps: answers(early, down, gone, gone, ok), want: VerdictPending},
		{name: "failed and certainly not lost", n: 5, extend: true, steps: answers(early, down, slow, ok, down), want: VerdictNoQuorum},
		{name: "failed, at the deadline", n: 5, extend: true, steps: append(answers(early, down, gone, gone, ok), tick(deadline)), want: VerdictNoQuorum},
		{name: "extended in time", n: 3, extend: true, notAfter: 20 * time.Millisecond, steps: answers(20*time.Millisecond-1, ok, ok), want: VerdictGranted},
		{name: "extended after the old validity", n: 3, extend: true, notAfter: 20 * time.Millisecond, steps: answers(20*time.Millisecond, ok, ok), want: VerdictExpired},
		{name: "extending what is over already", n: 3, extend: true, notAfter: -1, want: VerdictExpired},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			terms := Terms{N: tt.n, Extend: tt.extend, Start: testStart(), TTL: testTTL, Drift: testDrift, Wait: testWait}
			if tt.notAfter != 0 {
				terms.NotAfter = testStart().Add(tt.notAfter)
			}
			a, first := Begin(terms)
			var sends []Send
			for _, s := range tt.steps {
				now := testStart().Add(s.at)
				var send Send
				if s.status == StatusUnanswered {
					send, _ = a.Tick(now)
				} else {
					send, _ = a.Answer(s.node, s.status, now)
				}
				if send != SendNothing {
					sends = append(sends, send)
				}
			}
			if got := a.Verdict(); got != tt.want {
				t.Errorf("verdict %s, want %s", got, tt.want)
			}
			switch {
			case tt.extend && len(sends) > 0:
				t.Errorf("an extension asked for %v", sends)
			case !tt.extend && first != SendSet:
				t.Errorf("began with %v", first)
			case !tt.extend && (tt.want == VerdictPending || tt.want == VerdictGranted) && len(sends) > 0:
				t.Errorf("asked for %v while %s", sends, tt.want)
			case !tt.extend && tt.want > VerdictGranted && (len(sends) != 1 || sends[0] != SendRelease):
				t.Errorf("asked for %v, want one release", sends)
			case tt.extend && tt.notAfter < 0 && first != SendNothing:
				t.Errorf("sent %v for a validity that is over", first)
			}
		})
	}
}

func TestAttemptCancel(t *testing.T) {
	a, _ := Begin(Terms{N: 3, Start: testStart(), TTL: testTTL, Drift: testDrift, Wait: testWait})
	if send, v := a.Cancel(); send != SendRelease || v != VerdictCancelled {
		t.Errorf("got %v, %v", send, v)
	}
	if send, v := a.Cancel(); send != SendNothing || v != VerdictCancelled {
		t.Errorf("again: got %v, %v", send, v)
	}
	if send, v := a.Answer(0, StatusOK, testStart()); send != SendNothing || v != VerdictCancelled {
		t.Errorf("after it: got %v, %v", send, v)
	}
}

func TestAttemptDeadlineIsNeverBehindTheValidity(t *testing.T) {
	a, _ := Begin(Terms{N: 3, Start: testStart(), TTL: 4 * time.Millisecond, Drift: 2 * time.Millisecond, Wait: testWait})
	if got := a.Deadline().Sub(testStart()); got != 2*time.Millisecond {
		t.Errorf("deadline after %s", got)
	}
	if a, send := Begin(Terms{N: 3, Start: testStart(), TTL: time.Millisecond, Drift: time.Millisecond}); send != SendNothing || a.Verdict() != VerdictExpired {
		t.Errorf("no validity to begin with: %v, %v", send, a.Verdict())
	}
}

// decided computes the expected verdict of an attempt independently.
type decided struct {
	verdict  Verdict
	releases int
	yesAt    time.Time // when the deciding yes came
}

// stepper is what the property tests drive: the attempt, or a broken mutant.
type stepper interface {
	Answer(node int, s Status, now time.Time) (Send, Verdict)
	Tick(now time.Time) (Send, Verdict)
	Cancel() (Send, Verdict)
	Verdict() Verdict
}

// checkAttempt drives a machine through a random schedule and compares it with
// the rules at every step.
func checkAttempt(t *rapid.T, begin func(Terms) stepper) error {
	terms := Terms{
		N:      rapid.SampledFrom([]int{1, 2, 3, 4, 5, 6, 7, 9}).Draw(t, "N"),
		Extend: rapid.Bool().Draw(t, "extend"),
		Start:  testStart(), TTL: testTTL, Drift: testDrift,
		Wait: rapid.SampledFrom([]time.Duration{testWait, testTTL}).Draw(t, "wait"),
	}
	if terms.Extend && rapid.Bool().Draw(t, "bounded") {
		terms.NotAfter = testStart().Add(time.Duration(rapid.Int64Range(1, int64(testTTL)).Draw(t, "notAfter")))
	}
	limit := testStart().Add(testTTL - testDrift)
	if !terms.NotAfter.IsZero() && terms.NotAfter.Before(limit) {
		limit = terms.NotAfter
	}
	a := begin(terms)
	now := testStart()
	first := make([]Status, terms.N)
	var d decided
	for step := range rapid.IntRange(0, 3*terms.N).Draw(t, "steps") {
		if rapid.IntRange(0, 7).Draw(t, "jump") == 0 {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(testTTL)).Draw(t, "long")))
		} else {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(10*time.Millisecond)).Draw(t, "short")))
		}
		before := a.Verdict()
		var send Send
		switch kind := rapid.IntRange(0, 9).Draw(t, "kind"); {
		case kind == 0:
			send, _ = a.Tick(now)
		case kind == 1 && step > terms.N:
			send, _ = a.Cancel()
		default:
			node := rapid.IntRange(0, terms.N-1).Draw(t, "node")
			status := rapid.SampledFrom([]Status{StatusOK, StatusOK, StatusHeld, StatusAbsent, StatusDown, StatusSlow, StatusFenced, StatusSkipped, StatusProtocol, StatusDenied}).Draw(t, "status")
			send, _ = a.Answer(node, status, now)
			if before == VerdictPending && first[node] == StatusUnanswered {
				first[node] = status
				d.yesAt = now
			}
		}
		after := a.Verdict()
		if before != VerdictPending && after != before {
			return fmt.Errorf("the verdict %s became %s", before, after)
		}
		if send == SendRelease {
			d.releases++
		}
		if before != VerdictPending && send != SendNothing {
			return fmt.Errorf("asked for %v after the verdict", send)
		}
		if after == VerdictPending && !now.Before(limit) && send == SendNothing && before == VerdictPending {
			if s, v := a.Tick(now); v == VerdictPending {
				return fmt.Errorf("pending (%v) though nothing is left", s)
			} else if s == SendRelease {
				d.releases++
			}
		}
	}
	d.verdict = a.Verdict()

	yes, no, failed := 0, 0, 0
	for _, s := range first {
		switch s {
		case StatusUnanswered:
		case StatusOK:
			yes++
		case StatusHeld, StatusAbsent:
			no++
		default:
			failed++
		}
	}
	quorum := terms.N/2 + 1
	if 2*quorum <= terms.N {
		return fmt.Errorf("two quorums of %d in %d need not meet", quorum, terms.N)
	}
	switch d.verdict {
	case VerdictGranted:
		if yes < quorum {
			return fmt.Errorf("granted with %d of %d", yes, terms.N)
		}
		if !d.yesAt.Before(limit) {
			return fmt.Errorf("granted %s after all was over", d.yesAt.Sub(limit))
		}
	case VerdictPending:
		if yes >= quorum {
			return fmt.Errorf("pending with %d of %d", yes, terms.N)
		}
		if !terms.Extend && no+failed > terms.N-quorum {
			return fmt.Errorf("pending with %d missing of %d", no+failed, terms.N)
		}
	case VerdictNotHeld:
		if no <= terms.N-quorum {
			return fmt.Errorf("lost though only %d of %d lack it", no, terms.N)
		}
	}
	want := 1
	if terms.Extend || d.verdict == VerdictGranted || d.verdict == VerdictPending {
		want = 0
	}
	if d.releases != want {
		return fmt.Errorf("%s: %d releases asked for, want %d", d.verdict, d.releases, want)
	}
	return nil
}

func TestAttemptProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if err := checkAttempt(t, whole); err != nil {
			t.Fatal(err)
		}
	})
}

func whole(terms Terms) stepper {
	a, _ := Begin(terms)
	return a
}
