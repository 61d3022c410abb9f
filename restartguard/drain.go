package restartguard

import (
	"time"
)

// drainLease is the part of a guard's own D for which its word counts that a node was drained: less
// than 1, by more than clocks may differ.
const drainLease = 0.98

// Drain is whether a restart of the node forgets nothing: it is cordoned, its fence is proven, and no
// unexpired copy was found there after that.
//
// What makes this safe is that between the last look at the drained node and the first look at
// its next incarnation it did not serve. A guard may miss both, cut off. So each guard announces on the
// node that it takes it for drained, and counts on it only when it has seen its own announcement there;
// and that counts for less than D after the last such look. No guard lets a node
// rejoin that was uncordoned, sooner than D after it has seen that, while another one takes it
// for drained or might do so.
type Drain struct {
	// Empty: no unexpired copy was found under the cordon.
	Empty bool
	// Drained is the last look at which it was empty, cordoned, and announced so; zero: none.
	Drained time.Time
	// Handed is when it was seen to be uncordoned. Recalled is when this guard started with what it had
	// written down: it does not know who took the node for drained before.
	Handed, Recalled time.Time
}

// keepsDrained goes on to take the node for drained by a look, or ends that.
func (m *machine) keepsDrained(before Incarnation, o *Observation) {
	switch {
	case before.RunID != o.RunID: // what was lost is decided by what was known of the former one
	case m.Duty.Kind != DutyCordon || !o.Params.Cordoned() || o.Blind || m.Leaked || o.Role != "master":
		m.Empty, m.Drained = false, time.Time{}
	case m.unsettled(): // a step of its clock may have emptied it
	case m.Empty && o.SaidDrained:
		m.Drained = m.asked
	}
}

// scanned: the copies that a cordoned node has were counted, all of them after a look that
// showed the cordon on the same connection. A look follows before anything else.
func (m *machine) scanned(o *Observation) {
	if m.Duty.Kind == DutyCordon && m.Holds && m.Proven && !m.Leaked && m.LastSeen.Before(m.asked) {
		m.Empty = o.Copies == 0
	}
}

// isDrained reports whether a restart that is seen now lost nothing; own is the guard's D.
func (b *Basis) isDrained(now time.Time, own time.Duration) bool {
	lease := time.Duration(drainLease * float64(own))
	return b.Duty.Kind == DutyCordon && !b.Drained.IsZero() && now.Sub(b.Drained) <= lease
}

// nothingLost sets the deadline after a restart that has forgotten nothing; before is the one that
// it had.
func (m *machine) nothingLost(before time.Time) {
	m.Deadline = MayVoteFrom(Loss{Seen: m.now, Nothing: true, Before: before})
	m.waits()
}

// mayVoteBefore returns from when the node might vote if nothing is lost now. Before [Trust] is
// earned the node may have lost what this guard does not know of.
func (b *Basis) mayVoteBefore() time.Time {
	if b.Deadline.Before(b.Trusted) {
		return b.Trusted
	}
	return b.Deadline
}

// uncordoned hands the node back to the guards. It cancels nothing: what the node has lost before,
// or while it was cordoned, has the deadline that it had.
func (m *machine) uncordoned() {
	d := m.countingDelay(m.Policy.Delay)
	if before := m.mayVoteBefore(); m.Deadline.IsZero() || before.After(m.Deadline) {
		m.Deadline = MayVoteFrom(Loss{Seen: m.now, Nothing: true, Before: before})
	}
	m.Basis.Delay, m.Handed = d, m.now
	m.Duty.Kind, m.Proven = DutyWait, false
	m.report.Doubt, m.Early, m.report.From = "", "", m.Deadline
	m.report.Cause = "it was uncordoned, for the guards to let it rejoin"
}

// mayBeDrainedElsewhere reports whether another guard may take a node for drained that was
// uncordoned or has restarted since. After D none does any more.
func (b *Basis) mayBeDrainedElsewhere(now time.Time, own time.Duration) bool {
	d := b.countingDelay(own)
	if unknown := !b.Recalled.IsZero() && now.Sub(b.Recalled) < d; !b.Believed && !unknown {
		return false
	}
	since := b.Handed
	if since.IsZero() {
		since = b.lastLoss().Seen
	}
	return now.Sub(since) < d
}

// removedEarly reports whether somebody has removed the fence before the node may vote, and no
// guard that this one knows of has.
func (b *Basis) removedEarly(now time.Time) bool {
	return !b.Deadline.IsZero() && !b.mayVote(now) && b.Early == "" && !b.Allowed
}

// Cordoned reports whether the guard keeps the node cordoned.
func (b *Basis) Cordoned() bool { return b.Duty.Kind == DutyCordon }
