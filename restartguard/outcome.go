package restartguard

import (
	"time"
)

func (m *machine) raising(o *Observation) {
	if o.Before.cordoned() && m.Owed == FenceUp {
		// An operator's hold came in between the look and the closing.
		m.Owed = FenceCordon
		m.do(Raise, FenceCordon, false)
		return
	}
	if m.Owed == FenceNone {
		return
	}
	if b := o.Before; b.MaxLag > 0 && b.MinReplicas > 0 && b.MinReplicas < FenceCordon {
		m.Revert = b.MinReplicas
	}
	switch {
	case o.Blind || !o.Params.are(m.Owed):
	case m.Rivals && m.Owed == FenceUp:
		m.endRivals()
		return
	default:
		m.do(Prove, 0, false)
		return
	}
	why := o.Err
	if why == "" {
		why = o.Reads
	}
	if why == "" {
		why = readBack(o.Params)
	}
	if o.Params.fenced() {
		m.failing("waiting", "cannot be cordoned again: "+why)
		return
	}
	m.expose()
	m.failing("exposed", "cannot be fenced: "+why)
	if m.Blind {
		m.do(Prove, 0, false)
	}
}

func (m *machine) proving(o *Observation) {
	switch {
	case m.Blind:
		m.provingBlind(o)
	case o.Canary == CanaryAccepted && (o.Params.fenced() || o.Params.cordoned()):
		m.Leaked, m.Verified, m.Proven = true, false, false
		if m.Owed == FenceNone {
			m.Owed = FenceUp
			if m.Cordoned {
				m.Owed = FenceCordon
			}
		}
		m.expose()
		m.failing("exposed", "a canary write got through although the parameters read as a fence")
	case o.Blind:
		m.Err = o.Err
	case o.Canary == CanaryAccepted:
		m.settle(o)
	case o.Params.cordoned():
		m.proved(o)
		m.confirm(FenceCordon)
	case o.Params.fenced() && m.Owed != FenceCordon && !m.Deadline.IsZero():
		m.proved(o)
		m.confirm(FenceUp)
	}
	// Otherwise somebody changed the fence in between, and the next look tells.
}

// proved: writes are refused, and the parameters say why. A refusal for another
// reason than NOREPLICAS does not speak against the fence, but hides it: the
// node counts as closed, and the canary is tried again at each look.
func (m *machine) proved(o *Observation) {
	m.Proven = o.Canary == CanaryFenced
	if !m.Proven {
		m.Err = o.Err
	}
}

// provingBlind judges by the canary alone. A node that refuses it is closed,
// and stays so: what put up its fence cannot be read, so it may be a hold.
func (m *machine) provingBlind(o *Observation) {
	switch {
	case o.Canary == CanaryFenced && m.Owed == FenceCordon:
		m.Unfenced = false
		m.confirm(FenceCordon)
	case o.Canary == CanaryFenced:
		if m.Deadline.IsZero() {
			m.waitFrom()
		}
		m.Proven, m.Unfenced = true, false
		m.confirm(FenceUp)
		m.Reason = blindlyFenced
	case o.Canary == CanaryAccepted && m.Owed == FenceNone:
		if !m.Deadline.IsZero() {
			m.tell("rejoined", "accepts writes: unfenced by another")
		}
		m.Deadline = time.Time{}
		m.enter(PhaseServing, blindlyServing)
	}
}

func (m *machine) removing(o *Observation) {
	switch {
	case o.Before.cordoned() && !o.Params.cordoned():
		// An operator's hold came in between the look and the lift.
		m.Cordoned, m.Owed = true, FenceCordon
		m.Unfenced, m.UnfencedSince = true, m.asked
		m.tell("cordoned", "an operator cordoned it while it was to rejoin: it is cordoned again")
		m.do(Raise, FenceCordon, false)
	case o.Err != "" || o.Blind:
		m.failing("waiting", "its fence cannot be removed: "+o.Err)
	case o.Params.cordoned() || o.Params.fenced():
		// Closed again by another at the same moment; the next look tells.
	default:
		m.settle(o)
	}
}
