package attempt

import "time"

// Attempt is one attempt to win a quorum for one token, as a pure step
// machine: it has no clock, no goroutine and no connection. Whoever drives it
// carries out what a step asks to send, and feeds it each answer and the
// passing of time, with the current time as a parameter. The client drives it
// over real connections; a simulator can drive the very same code in virtual
// time.
//
// An attempt either acquires (SET NX on every node) or extends (compare and
// PEXPIRE on every node). Its rules:
//
//   - it is granted at the moment when a quorum of the configured N said yes
//     and validity is left, and does not wait for the others;
//   - a node counts once, by its first answer;
//   - a node that has not answered by [Attempt.Deadline] counts as slow;
//   - an acquiring attempt fails as soon as a quorum cannot be reached any more
//     or validity is used up, and then asks for a release on all N nodes: also
//     on those that refused, failed or have not answered, because their copy
//     may be there or still be on its way;
//   - a verdict is final: nothing that comes later changes it.
//
// The zero value is not usable; see [Begin].
type Attempt struct {
	terms    Terms
	quorum   int
	statuses []Status
	yes      int // done as asked
	no       int // answered that the token is not, and cannot be put, there
	failed   int // cannot tell: down, fenced, slow, skipped, error
	verdict  Verdict
}

// Terms are what an [Attempt] is decided by.
type Terms struct {
	// N is the number of configured nodes, whatever is up; at least 1.
	N int
	// Extend tells an extension from an acquisition.
	Extend bool
	// Start is the time before the first request is sent; validity counts from it.
	Start time.Time
	// TTL is what the nodes are asked for.
	TTL time.Duration
	// Drift is the drift allowance that shortens the validity, see redlock.Options.Drift.
	Drift time.Duration
	// Wait is how long the attempt waits for any node.
	Wait time.Duration
	// NotAfter, if set, is when an extension comes too late: the end of the
	// validity that it extends.
	NotAfter time.Time
	// Copies, if set, say which copies count for an extension. One that does not
	// is as good as none.
	Copies *Copies
}

// Verdict is how an [Attempt] stands.
type Verdict uint8

const (
	VerdictPending   Verdict = iota // not decided
	VerdictGranted                  // a quorum said yes, and validity is left
	VerdictContended                // others hold so many nodes that no quorum is left
	VerdictNotHeld                  // an extension: so many nodes lost the token that no quorum is left
	VerdictNoQuorum                 // so many nodes are down, fenced, slow or skipped that no quorum is left
	VerdictExpired                  // validity was used up before a quorum said yes
	VerdictCancelled                // given up by the caller
)

// String is the verdict in a word or two.
func (v Verdict) String() string {
	return [...]string{"pending", "granted", "contended", "not held", "no quorum", "expired", "cancelled"}[v]
}

// Send is what a step asks to be sent to all N nodes at the same time.
type Send uint8

const (
	SendNothing Send = iota // this step asks for nothing
	SendSet                 // SET resource token NX PX ttl
	SendExtend              // compare and PEXPIRE
	SendRelease             // compare and delete, on each node behind the SET
)

// Begin starts an attempt. Of terms that leave no validity to begin with
// nothing is sent, and the verdict is [VerdictExpired].
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

// limit is when a grant would come too late.
func (a *Attempt) limit() time.Time {
	limit := a.Until()
	if na := a.terms.NotAfter; !na.IsZero() && na.Before(limit) {
		return na
	}
	return limit
}

// Deadline is when the attempt ends for want of answers: [Attempt.Tick] must be
// called then.
func (a *Attempt) Deadline() time.Time {
	deadline, limit := a.terms.Start.Add(a.terms.Wait), a.limit()
	if limit.Before(deadline) {
		return limit
	}
	return deadline
}

// Verdict is how the attempt stands.
func (a *Attempt) Verdict() Verdict { return a.verdict }

// Terms are what the attempt is decided by.
func (a *Attempt) Terms() Terms { return a.terms }

// Status is what counts for a node: its first answer before the verdict.
func (a *Attempt) Status(node int) Status { return a.statuses[node] }

// Answer is the answer, or the failure, of a node. Whatever comes after the
// verdict, or a second time from the same node, changes nothing. What comes at the
// deadline or later comes too late, though nobody may have called
// [Attempt.Tick] yet: a process that was stopped reads its answers when it goes
// on, and no grant may come later than the bound that a guard's early rejoin rests
// on.
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

// Tick tells the attempt what time it is.
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

// Cancel gives the attempt up.
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
	spare := a.terms.N - a.quorum // so many may be missing
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
		// It cannot succeed any more; but whether the token is lost or only out of
		// view makes all the difference to its holder, and another answer may tell.
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
