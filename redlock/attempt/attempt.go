package attempt

import "time"

// Attempt is one attempt to win a quorum for one token, as a pure step machine: it has
// no clock, no goroutine and no connection. Its driver sends what a step asks for, and
// passes on each answer and the current time. The client drives it over real
// connections; a simulator drives the same code in virtual time.
//
// An attempt either acquires (SET NX on every node) or extends (compare and
// PEXPIRE on every node). Its rules:
//
//   - it is granted when a quorum of the configured N said yes and validity is left,
//     and does not wait for the others;
//   - a node counts once, by its first answer;
//   - a node that has not answered by [Attempt.Deadline] counts as slow;
//   - an acquiring attempt fails as soon as a quorum is out of reach or the validity is
//     used up. It then asks for a release on all N nodes, also on those that refused,
//     failed or have not answered: a copy may be there, or still be on its way;
//   - a verdict is final: later answers do not change it.
//
// The zero value is not usable; see [Begin].
type Attempt struct {
	terms    Terms
	quorum   int
	statuses []Status
	yes      int // done as asked
	no       int // answered that the token is not there and was not set
	failed   int // cannot tell: down, fenced, slow, skipped, error
	verdict  Verdict
}

// Terms are the inputs to the decision of an [Attempt].
type Terms struct {
	// N is the number of configured nodes, whatever is up; at least 1.
	N int
	// Extend: this is an extension, not an acquisition.
	Extend bool
	// Start is the time before the first request is sent; validity counts from it.
	Start time.Time
	// TTL is the TTL in the requests.
	TTL time.Duration
	// Drift is the drift allowance that shortens the validity, see redlock.Options.Drift.
	Drift time.Duration
	// Wait is how long the attempt waits for any node.
	Wait time.Duration
	// NotAfter, if set, is when it is too late for an extension: the end of the
	// validity that it extends.
	NotAfter time.Time
	// Copies, if set, says which copies count for an extension. A copy that does not
	// count is treated as missing.
	Copies *Copies
}

// Verdict is the decision of an [Attempt].
type Verdict uint8

const (
	VerdictPending   Verdict = iota // not decided
	VerdictGranted                  // a quorum said yes, and validity is left
	VerdictContended                // others hold so many nodes that no quorum is left
	VerdictNotHeld                  // an extension: so many nodes lost the token that no quorum is left
	VerdictNoQuorum                 // so many nodes are down, fenced, slow or skipped that no quorum is left
	VerdictExpired                  // validity was used up before a quorum said yes
	VerdictCancelled                // cancelled by the caller
)

// String is the verdict in a word or two.
func (v Verdict) String() string {
	return [...]string{"pending", "granted", "contended", "not held", "no quorum", "expired", "cancelled"}[v]
}

// Send is the request that a step asks to send to all N nodes at the same time.
type Send uint8

const (
	SendNothing Send = iota // nothing to send
	SendSet                 // SET resource token NX PX ttl
	SendExtend              // compare and PEXPIRE
	SendRelease             // compare and delete, on each node after the SET
)

// Begin starts an attempt. If the terms leave no validity at all, nothing is sent and
// the verdict is [VerdictExpired].
func Begin(t Terms) (*Attempt, Send) {
	a := &Attempt{terms: t, quorum: Quorum(t.N), statuses: make([]Status, t.N)}
	if !t.Start.Before(a.limit()) {
		a.verdict = VerdictExpired
		return a, SendNothing
	}
	if t.Extend {
		return a, SendExtend
	}
	return a, SendSet
}

// Until is the end of the validity that a grant has: start + TTL − drift
// allowance.
func (a *Attempt) Until() time.Time { return a.terms.Start.Add(a.terms.TTL - a.terms.Drift) }

// limit is when it is too late for a grant.
func (a *Attempt) limit() time.Time {
	limit := a.Until()
	if na := a.terms.NotAfter; !na.IsZero() && na.Before(limit) {
		return na
	}
	return limit
}

// Deadline is when the attempt ends without the missing answers: [Attempt.Tick] must be
// called then.
func (a *Attempt) Deadline() time.Time {
	deadline, limit := a.terms.Start.Add(a.terms.Wait), a.limit()
	if limit.Before(deadline) {
		return limit
	}
	return deadline
}

// Verdict is the decision so far.
func (a *Attempt) Verdict() Verdict { return a.verdict }

// Terms returns the terms of the attempt.
func (a *Attempt) Terms() Terms { return a.terms }

// Status is what counts for a node: its first answer before the verdict.
func (a *Attempt) Status(node int) Status { return a.statuses[node] }

// Answer records the answer, or the failure, of a node. An answer after the verdict, or
// a second answer from a node, changes nothing. An answer at the deadline or later is
// too late, even if [Attempt.Tick] was not called yet: a stopped process reads old
// answers when it resumes, and no grant may come later than the bound on which a
// guard's early rejoin relies.
func (a *Attempt) Answer(node int, s Status, now time.Time) (Send, Verdict) {
	if a.verdict != VerdictPending || s == StatusUnanswered || a.statuses[node] != StatusUnanswered {
		return SendNothing, a.verdict
	}
	if !now.Before(a.Deadline()) {
		return a.Tick(now)
	}
	a.count(node, s)
	return a.judge()
}

// Tick passes the current time.
func (a *Attempt) Tick(now time.Time) (Send, Verdict) {
	switch {
	case a.verdict != VerdictPending:
		return SendNothing, a.verdict
	case !now.Before(a.limit()):
		return a.end(VerdictExpired)
	case now.Before(a.Deadline()):
		return SendNothing, VerdictPending
	}
	for node, s := range a.statuses {
		if s == StatusUnanswered {
			a.count(node, StatusSlow)
		}
	}
	return a.judge()
}

// Cancel cancels the attempt.
func (a *Attempt) Cancel() (Send, Verdict) {
	if a.verdict != VerdictPending {
		return SendNothing, a.verdict
	}
	return a.end(VerdictCancelled)
}

func (a *Attempt) count(node int, s Status) {
	a.statuses[node] = s
	switch {
	case s == StatusOK && a.terms.Copies.Counts(node):
		a.yes++
	case s == StatusOK, s == StatusHeld, s == StatusAbsent:
		a.no++
	default:
		a.failed++
	}
}

func (a *Attempt) judge() (Send, Verdict) {
	spare := a.terms.N - a.quorum // this many may be missing
	pending := a.terms.N - a.yes - a.no - a.failed
	switch {
	case a.yes >= a.quorum:
		a.verdict = VerdictGranted
		return SendNothing, a.verdict
	case a.no+a.failed <= spare:
		return SendNothing, VerdictPending
	case a.terms.Extend && a.no > spare:
		return a.end(VerdictNotHeld)
	case a.terms.Extend && pending > 0 && a.no+pending > spare:
		// It cannot succeed any more. But its holder must know whether the token is
		// lost or only not seen, and another answer may say so.
		return SendNothing, VerdictPending
	case a.terms.Extend || a.failed > spare:
		return a.end(VerdictNoQuorum)
	default:
		return a.end(VerdictContended)
	}
}

func (a *Attempt) end(v Verdict) (Send, Verdict) {
	a.verdict = v
	if a.terms.Extend {
		// The copies belong to a grant that may still be valid.
		return SendNothing, v
	}
	return SendRelease, v
}
