package restartguard

import (
	"cmp"
	"fmt"
	"time"

	"redlockctl/server/minreplicas"
)

// MaxActions bounds how many actions follow one observation, whatever a server answers.
const MaxActions = 8

// Step decides. It has no clock and does no I/O: now is when the observation was complete, on the
// monotonic clock. It returns the new state, the actions to carry out, and the events to report;
// Node is empty in the events.
func Step(p Policy, s State, o Observation, now time.Time) (State, []Action, []Event) {
	actions, events := s.Step(&p, &o, now)
	return s, actions, events
}

// Step is the function of this name in place, so that a simulator with millions of steps need not
// copy states. It changes only s, and keeps neither p nor o.
func (s *State) Step(p *Policy, o *Observation, now time.Time) ([]Action, []Event) {
	m := machine{Policy: p, Basis: &s.Basis, report: &s.Report, now: now, asked: o.Sent, connID: o.Conn, before: s.Basis.LastSeen, evidence: o.Evidence}
	if o.Sent.IsZero() {
		m.asked = now
	}
	switch {
	case o.About == Unreached:
		m.unreached(o)
	case o.About == Seen:
		m.seen(o)
	case o.RunID != s.Basis.RunID:
		// The outcome of an action on an earlier incarnation.
	case o.About == Killing:
		m.killing(o)
		m.settle(o)
	case o.About == Raising:
		m.answeredBy(o.Conn)
		m.raising(o)
	case o.About == Proving:
		m.proving(o)
	case o.About == Removing:
		m.answeredBy(o.Conn)
		m.removing(o)
	case o.About == Counting:
		m.counting(o)
	case o.About == Scanned:
		m.scanned(o)
	}
	m.vote()
	return m.actions, m.events
}

// vote notes when the node lost its vote. An exposed node should have none, and has one.
func (m *machine) vote() {
	switch {
	case m.Phase == PhaseServing && !m.Lacking:
		m.report.Out, m.report.Served = time.Time{}, true
	case m.Phase == PhaseExposed:
		m.report.Out, m.report.Served = time.Time{}, true
	case m.report.Out.IsZero():
		m.report.Out = m.now
	}
}

func (m *machine) unreached(o *Observation) {
	if o.Refused {
		m.report.LastRefused = m.asked
	}
	if m.Phase != PhaseUnreachable || m.report.Denied != o.Denied || m.report.Absent != "" && o.Refused {
		if o.Denied {
			m.tell("denied", "refuses the guard, which cannot protect it: %s", o.Err)
		} else {
			m.tell("unreachable", "is %s: %s", cmp.Or(o.Absent, "down"), o.Err)
		}
	}
	why := "does not answer the guard"
	if o.Denied {
		why = "refuses the guard: it may well serve"
	}
	m.enter(PhaseUnreachable, why)
	m.report.Err, m.report.Denied, m.report.Nobody, m.report.Absent = o.Err, o.Denied, o.Refused, o.Absent
}

func (m *machine) seen(o *Observation) {
	back := m.Phase == PhaseUnreachable && m.RunID == o.RunID
	old, counted, before := m.Incarnation, m.Counter, m.Clock
	m.Incarnation, m.Blind, m.report.Err = o.incarnation(), o.Blind, o.Err
	m.report.Denied, m.report.Nobody, m.report.Absent = false, false, ""
	if o.Clock.Denied && !m.Clockless {
		m.alarm("clock unseen", "%s", Clockless)
	}
	m.Clockless = o.Clock.Denied
	if old.RunID != o.RunID {
		m.Pending = InFlightCommand{} // its connection ended with the former incarnation
		m.ClockBase, m.Ahead, m.CounterWatch = ClockBase{}, 0, CounterWatch{}
		m.report.Incarnations++
	}
	m.Heard, m.Least, m.Lacking = o.Heard, o.Least, o.Lacking
	m.lengthen()
	m.reconsiders()
	m.Allowed, m.Later, m.Believed = o.Allowed, o.Later, o.Believed
	level := m.ClockBase // no step had happened by then
	stepped, within := m.readClock(o.Clock)
	m.looksAgain()
	m.keepsDrained(old, o)
	restored := m.readCounter(o)
	switch loss := old.lossBy(m.Incarnation); {
	case old.RunID == "":
		m.firstContact(o)
	case loss != noLoss:
		m.noteLoss(loss, old, o)
	case restored:
		m.restored(counted, o.Counter)
	case stepped > 0:
		m.lose()
		m.report.UnfencedSince = m.asked.Add(level.Clock.Sent - o.Clock.Sent)
		m.ahead(stepped, within)
	case back:
		m.tell("reachable", "answers again, in the same incarnation")
	}
	m.hearStart(o)
	if stepped < 0 {
		m.behind(stepped, within)
	}
	m.trust(before, o.Clock)
	m.LastSeen, m.report.Peer = m.asked, o.Peer
	if !m.sweep(o) {
		m.settle(o)
	}
}

// settle compares what the node has to do with what it does, and orders the difference.
func (m *machine) settle(o *Observation) {
	m.keepOut(o)
	if m.unfencedUntilDeadline(o) {
		m.giveUp()
		return
	}
	if readsUnfenced(o) && m.Owed() == minreplicas.FenceNone && m.removedByUs(m.now) {
		m.Holds, m.Proven = false, false
		m.report.UnfencedSince = m.before
		m.alarm("in-flight command", "serves early, it seems by an in-flight command of ours: to be fenced again")
	}
	switch {
	case o.Blind:
		m.settleBlind()
	case m.leaksAndMustNot(o):
		m.expose()
		m.order(Raise, m.Owed(), o.Params.MaxLag <= 0)
	case o.Params.Cordoned():
		m.confirm(minreplicas.FenceCordon)
		if !m.Proven {
			m.order(Prove, 0, false)
		}
	case o.Params.Fenced() && m.Owed() == minreplicas.FenceCordon:
		m.enter(PhaseFenced, "cordoned by an operator before: to be cordoned again")
		m.order(Raise, minreplicas.FenceCordon, false)
	case o.Params.Fenced() && m.Rivals && !m.Advice:
		m.endRivals()
	case o.Params.Fenced():
		m.settleFenced()
	case m.Owed() != minreplicas.FenceNone:
		m.expose()
		m.order(Raise, m.Owed(), o.Params.MaxLag <= 0)
	default:
		m.settleServing(o)
	}
}

// readsUnfenced reports whether an observation shows that no fence is up.
func readsUnfenced(o *Observation) bool {
	return !o.Blind && !o.Params.Fenced() && !o.Params.Cordoned()
}

// unfencedUntilDeadline reports whether the node should have been fenced, and its deadline has come.
func (m *machine) unfencedUntilDeadline(o *Observation) bool {
	return m.Owed() == minreplicas.FenceUp && m.mayVote(m.now) && !o.Params.Fenced() && (o.Blind || !o.Params.Cordoned())
}

// leaksAndMustNot reports whether a fence lets writes through that the node must refuse: it is up,
// and not counted as up, because a canary write was accepted.
func (m *machine) leaksAndMustNot(o *Observation) bool {
	switch {
	case !m.Leaked:
		return false
	case m.Owed() == minreplicas.FenceCordon:
		return true
	}
	return m.Owed() == minreplicas.FenceUp && !m.mayVote(m.now) && !o.Params.Cordoned()
}

// giveUp ends an exposure that lasted until the deadline. By then nobody relies on a lost vote any
// more, and a fence would protect nobody.
func (m *machine) giveUp() {
	m.report.Exposed = m.exposure()
	if m.report.AtStart {
		m.report.BootExposed = m.report.Exposed
	}
	m.Duty, m.Revert = Duty{}, minreplicas.FenceNone
	m.report.Unfenced, m.Leaked, m.Proven, m.Rivals = false, false, false, false
	if m.Advice {
		m.alarm("rejoined", "served for the whole of D, since nothing may fence it; what it lost has run out by now")
	} else {
		m.alarm("rejoined", "could not be fenced for the whole of D; what it lost has run out by now")
	}
	m.report.Cause = "was exposed for the whole of D"
	m.enter(PhaseServing, m.report.Cause)
}

func (m *machine) expose() {
	m.report.Unfenced = true
	if m.Advice && m.Phase != PhaseExposed {
		m.enter(PhaseExposed, m.report.Cause)
		m.tell("exposed", "should be fenced for %s, and its fence is \"none\": it may give away locks that are still held", Round(m.Deadline.Sub(m.now)))
	}
	m.enter(PhaseExposed, m.report.Cause)
}

// exposure returns how long the node served, at most; 0 if that is not known, because this guard
// did not see the node before.
func (m *machine) exposure() time.Duration {
	if m.report.UnfencedSince.IsZero() {
		return 0
	}
	return AtMost(m.now.Sub(m.report.UnfencedSince))
}

// settleFenced: the parameters read as the fence of a guard.
func (m *machine) settleFenced() {
	switch {
	case m.Duty.Kind == DutyCordon:
		m.uncordoned()
	case m.Duty.Kind == DutyServe:
		// Somebody else fenced it, and may know of a loss that we did not see.
		m.Proven, m.report.Unfenced, m.report.Exposed, m.report.UnfencedSince = false, false, 0, m.now
		m.waitFrom()
		m.report.Cause = "fenced by another"
	}
	m.confirm(minreplicas.FenceUp)
	switch {
	case Foreign(m.Role) != "":
		m.report.Reason = "is " + Foreign(m.Role) + ": it stays fenced until it is a master, and for D from then on"
		if !m.Proven {
			m.order(Prove, 0, false)
		}
	case m.mayVote(m.now) && m.Advice:
		m.report.Reason = "may rejoin: its delay has passed, and no guard lets it rejoin"
	case m.mayVote(m.now) && m.unsettled():
		m.report.Reason = "its clock may have stepped: it is read once more before the node rejoins"
	case m.mayVote(m.now) && m.mayBeDrainedElsewhere(m.now, m.Policy.Delay):
		m.report.Reason = "uncordoned: another guard, which may not know that yet, could take it for drained"
		if !m.Proven {
			m.order(Prove, 0, false)
		}
	case m.mayVote(m.now) && m.Later:
		m.report.Reason = "another guard lets it vote later: it may know of a loss that this one did not see"
	case m.mayVote(m.now):
		m.order(Remove, m.Revert, false)
	case !m.Proven:
		m.order(Prove, 0, false)
	case !m.unsettled() && !m.mayBeDrainedElsewhere(m.now, m.Policy.Delay) && m.early(m.evidence):
		m.order(Remove, m.Revert, false)
	}
}

// settleServing: the node serves, and has to do nothing else. If it was fenced before, another
// guard let it rejoin at its own deadline, or an operator did. Both know what they do, and this
// incarnation has forgotten nothing since.
func (m *machine) settleServing(o *Observation) {
	if !m.Deadline.IsZero() {
		switch m.report.From = m.Deadline; {
		case o.New:
			m.report.From = time.Time{} // no loss is known
		case m.Allowed || m.Early != "":
			m.report.From = m.now
		}
	}
	switch {
	case m.removedEarly(m.now) && !o.New:
		m.alarm("rejoined", "unfenced by somebody %s early: until then a lock that it lost can be granted a second time", Round(m.Deadline.Sub(m.now)))
		m.report.Cause = "unfenced by somebody, early"
	case m.Duty.Kind == DutyCordon:
		m.tell("rejoined", "uncordoned by hand")
		m.report.Cause = "rejoined by hand"
	case m.mayVote(m.now):
		m.tell("rejoined", "rejoined")
		m.report.Cause = "rejoined"
	case !m.Deadline.IsZero() && m.Early != "":
		m.tell("rejoined", "%s; D would have ended %s later", m.Early, Round(m.Deadline.Sub(m.now)))
		m.report.Cause, m.Trusted = m.Early, m.now
	case !m.Deadline.IsZero():
		m.tell("rejoined", "unfenced by another %s before this guard would have", Round(m.Deadline.Sub(m.now)))
		m.report.Cause = "unfenced by another"
	}
	m.Duty, m.Proven, m.Revert = Duty{}, false, minreplicas.FenceNone
	m.report.Doubt, m.Early = "", ""
	reason := m.report.Cause
	switch {
	case m.Lacking:
		reason = "refuses writes for lack of replicas: no fence, and nothing that a guard can change"
	case o.Params.MinReplicas != minreplicas.FenceNone && o.Params.MaxLag > 0:
		reason = fmt.Sprintf("min-replicas-to-write is %d: no fence", o.Params.MinReplicas)
	case o.Params.MinReplicas != minreplicas.FenceNone:
		reason = fmt.Sprintf("min-replicas-to-write is %d, switched off by min-replicas-max-lag 0", o.Params.MinReplicas)
	}
	m.enter(PhaseServing, reason)
	if m.CountEvery > 0 && (m.CountedAt.IsZero() || m.now.Sub(m.CountedAt) >= m.CountEvery) {
		// Only a node that rightly serves counts. A count that fails is not repeated before
		// its next turn.
		m.CountedAt = m.now
		m.order(Count, 0, false)
	}
}

// settleBlind: CONFIG is denied, so only a canary write shows whether the node refuses writes.
func (m *machine) settleBlind() {
	switch {
	case m.Owed() != minreplicas.FenceNone:
		m.expose()
		m.order(Raise, m.Owed(), false)
	case m.Duty.Kind == DutyCordon:
		m.enter(PhaseCordoned, "cordoned by an operator")
	case !m.Deadline.IsZero():
		m.enter(PhaseFenced, blindlyFenced)
		m.order(Prove, 0, false)
	default:
		m.enter(PhaseServing, blindlyServing)
	}
}

// confirm notes that the fence holds.
func (m *machine) confirm(value int64) {
	cordoned, again := m.Duty.Kind == DutyCordon, m.Owed() == minreplicas.FenceCordon
	m.Holds, m.Leaked = true, false
	if m.report.Unfenced {
		m.report.Unfenced = false
		m.report.Exposed = m.exposure()
		if m.report.AtStart {
			m.report.BootExposed = m.report.Exposed
		}
		if m.report.Exposed > 0 {
			m.alarm("fenced", "fenced; it served for at most %s", AtMost(m.report.Exposed))
		} else {
			m.alarm("fenced", "fenced; for how long it served is not known")
		}
	}
	if value == minreplicas.FenceCordon {
		switch {
		case again:
			m.tell("cordoned", "cordoned again, as an operator wanted it")
		case !cordoned:
			m.tell("cordoned", "cordoned by an operator: no guard lets it rejoin")
		}
		if !cordoned {
			m.Basis.Delay = m.countingDelay(m.Policy.Delay) // it counts on when it is uncordoned
		}
		m.Duty = Duty{Kind: DutyCordon, Deadline: m.Deadline, Holds: true}
		m.enter(PhaseCordoned, "cordoned by an operator")
		return
	}
	m.enter(PhaseFenced, m.report.Cause)
	if m.report.announced != m.Deadline {
		m.report.announced = m.Deadline
		switch {
		case m.mayVote(m.now): // it rejoins at once, and there is nothing to wait for
		case Foreign(m.Role) != "":
			m.tell("waiting", "fenced, and does not rejoin: it is %s", Foreign(m.Role))
		default:
			m.tell("waiting", "fenced, may rejoin in %s", Round(m.Deadline.Sub(m.now)))
		}
	}
}

func (m *machine) raising(o *Observation) {
	if o.Before.Cordoned() && m.Owed() == minreplicas.FenceUp {
		// An operator cordoned it between the observation and the fencing.
		m.Duty.Kind = DutyCordon
		m.order(Raise, minreplicas.FenceCordon, false)
		return
	}
	if m.Owed() == minreplicas.FenceNone {
		return
	}
	if b := o.Before; b.MaxLag > 0 && b.MinReplicas > 0 && b.MinReplicas < minreplicas.FenceCordon {
		m.Revert = b.MinReplicas
	}
	switch {
	case o.Blind || !o.Params.Are(m.Owed()):
	case m.Rivals && m.Owed() == minreplicas.FenceUp:
		m.endRivals()
		return
	default:
		m.order(Prove, 0, false)
		return
	}
	why := o.Err
	if why == "" {
		why = o.Reads
	}
	if why == "" {
		why = o.Params.String()
	}
	if o.Params.Fenced() {
		m.failing("waiting", "cannot be cordoned again: "+why)
		return
	}
	m.expose()
	m.failing("exposed", "cannot be fenced: "+why)
	if m.Blind {
		m.order(Prove, 0, false)
	}
}

func (m *machine) proving(o *Observation) {
	switch {
	case m.Blind:
		m.provingBlind(o)
	case o.Canary == CanaryAccepted && (o.Params.Fenced() || o.Params.Cordoned()):
		first := !m.Leaked
		m.Leaked, m.report.Verified, m.Proven = true, false, false
		m.Holds = false
		m.leaks(o, first)
	case o.Blind:
		m.report.Err = o.Err
	case o.Canary == CanaryAccepted:
		m.settle(o)
	case o.Params.Cordoned():
		m.proved(o)
		m.confirm(minreplicas.FenceCordon)
	case o.Params.Fenced() && m.Owed() != minreplicas.FenceCordon && !m.Deadline.IsZero():
		m.proved(o)
		m.confirm(minreplicas.FenceUp)
	}
	// Otherwise somebody changed the fence meanwhile, and the next observation shows it.
}

// proved notes that writes are refused and the parameters explain why. A refusal for another reason
// than NOREPLICAS does not contradict the fence, but hides it: the node counts as fenced, and the
// canary write is tried again with each observation.
func (m *machine) proved(o *Observation) {
	m.Proven = o.Canary == CanaryFenced
	if !m.Proven {
		m.report.Err = o.Err
	}
}

// provingBlind decides by the canary write alone. A node that refuses it counts as fenced and stays
// so, because the fence may be a cordon that cannot be read.
func (m *machine) provingBlind(o *Observation) {
	switch {
	case o.Canary == CanaryFenced && m.Owed() == minreplicas.FenceCordon:
		m.report.Unfenced = false
		m.confirm(minreplicas.FenceCordon)
	case o.Canary == CanaryFenced:
		if m.Deadline.IsZero() {
			m.waitFrom()
		}
		m.Proven, m.report.Unfenced = true, false
		m.confirm(minreplicas.FenceUp)
		m.report.Reason = blindlyFenced
	case o.Canary == CanaryAccepted && m.Owed() == minreplicas.FenceNone:
		if !m.Deadline.IsZero() {
			m.tell("rejoined", "accepts writes: unfenced by another")
		}
		m.Duty = Duty{}
		m.enter(PhaseServing, blindlyServing)
	}
}

func (m *machine) removing(o *Observation) {
	switch {
	case o.Before.Cordoned() && !o.Params.Cordoned():
		// An operator cordoned it between the observation and the removal.
		m.Duty.Kind, m.Holds = DutyCordon, false
		m.report.Unfenced, m.report.UnfencedSince = true, m.asked
		m.tell("cordoned", "an operator cordoned it while it was to rejoin: it is cordoned again")
		m.order(Raise, minreplicas.FenceCordon, false)
	case o.Err != "" || o.Blind:
		m.failing("waiting", "its fence cannot be removed: "+o.Err)
	case o.Params.Cordoned() || o.Params.Fenced():
		// Somebody else fenced it at the same moment; the next observation shows it.
	default:
		m.settle(o)
	}
}
