package restartguard

import (
	"time"
)

// drainLease is the part of D for which a guard's statement counts that a node was drained: less
// than 1, by more than clocks may differ.
const drainLease = 0.98

// Drain is whether a restart of the node forgets nothing: it is cordoned, its fence is proven, and
// after that no unexpired copy was found.
//
// This is safe if the node did not serve between the last observation of the drained node and the
// first one of its next incarnation. A guard that is cut off may miss that. So each guard announces
// on the node that it takes it for drained, and relies on that only after it has seen its own
// announcement there, for less than D after the last such observation, and only if it has watched the
// node for D before: then each guard that saw the node in that time knows of it. And no guard lets an
// uncordoned node rejoin earlier than D after it saw that, while another guard takes it for drained
// or might, or while it does not know because it has just started or had not seen the node for long.
// Where guards have different D, the least counts for the statement: a guard that has heard of no
// other lets the node rejoin after its own.
type Drain struct {
	// Empty: no unexpired copy was found under the cordon.
	Empty bool
	// Drained is when it was last seen empty, cordoned and announced so; zero: never.
	Drained time.Time
	// Handed is when it was seen to be uncordoned. Unsure is from when on it is known who takes the
	// node for drained: when this guard started with the memory of an earlier run, or saw the node
	// again after a long time.
	Handed, Unsure time.Time
	// Met is when this guard first saw the node since it started.
	Met time.Time
	// Relied is when a restart was seen that lost nothing by this statement, which was Age old then;
	// zero: the last loss was none of these.
	Relied time.Time
	Age    time.Duration
}

// longUnseen is the part of D after which a guard may have missed another one on a node.
const longUnseen = 0.9

// looksAgain notes whether other guards may have been missed since the last observation.
func (m *machine) looksAgain() {
	if m.Met.IsZero() {
		m.Met = m.asked
	}
	if long := time.Duration(longUnseen * float64(m.countingDelay(m.Policy.Delay))); !m.LastSeen.IsZero() && m.asked.Sub(m.LastSeen) > long {
		m.Unsure = m.asked
	}
}

// keepsDrained goes on to take the node for drained after an observation, or stops.
func (m *machine) keepsDrained(before Incarnation, o *Observation) {
	switch {
	case before.RunID != o.RunID: // the loss is decided by what was known of the former incarnation
	case m.Duty.Kind != DutyCordon || !o.Params.Cordoned() || o.Blind || m.Leaked || o.Role != "master":
		m.Empty, m.Drained = false, time.Time{}
	case m.unsettled(): // a step of its clock may have emptied it
	case m.Empty && o.SaidDrained && m.asked.Sub(m.Met) >= m.countingDelay(m.Policy.Delay):
		m.Drained = m.asked
	}
}

// scanned: all copies of a cordoned node were counted, after an observation on the same connection
// that showed the cordon. Another observation follows before anything else.
func (m *machine) scanned(o *Observation) {
	if m.Duty.Kind == DutyCordon && m.Holds && m.Proven && !m.Leaked && m.LastSeen.Before(m.asked) {
		m.Empty = o.Copies == 0
	}
}

// isDrained reports whether a restart that is seen now lost nothing; own is the guard's D.
func (b *Basis) isDrained(now time.Time, own time.Duration) bool {
	return b.Duty.Kind == DutyCordon && !b.Drained.IsZero() && now.Sub(b.Drained) <= b.lease(own)
}

// lease is for how long the statement counts that a node was drained.
func (b *Basis) lease(own time.Duration) time.Duration {
	if b.Least > 0 {
		own = min(own, b.Least)
	}
	return time.Duration(drainLease * float64(own))
}

// reconsiders takes back that a restart lost nothing: a guard with a shorter D is heard of, which may
// have let the node vote before that restart.
func (m *machine) reconsiders() {
	if m.Relied.IsZero() || m.Deadline.IsZero() || m.Age <= m.lease(m.Policy.Delay) {
		return
	}
	d := m.countingDelay(m.Policy.Delay)
	m.Deadline, m.Basis.Delay = MayVoteFrom(Loss{Seen: m.Relied, Before: m.Deadline}, d), d
	m.Relied = time.Time{}
	m.waits()
	m.tell("waiting", "a guard with a shorter D is heard of: it may have let the node vote before the restart, which then lost votes, so D counts")
}

// nothingLost sets the deadline after a restart that forgot nothing; before is the former one,
// and age that of the statement.
func (m *machine) nothingLost(before time.Time, age time.Duration) {
	m.Relied, m.Age = m.now, age
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

// uncordoned hands the node back to the guards. It cancels nothing: what the node lost before, or
// while it was cordoned, keeps its deadline.
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
	if unknown := !b.Unsure.IsZero() && now.Sub(b.Unsure) < d; !b.Believed && !unknown {
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
