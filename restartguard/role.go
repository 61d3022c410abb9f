package restartguard

import (
	"redlockctl/server/announce"
	"redlockctl/server/minreplicas"
)

// Foreign returns what a node is instead of an independent master; "": it is one.
func Foreign(role string) string {
	switch role {
	case "master", "":
		return ""
	case "slave":
		return "a replica"
	}
	return "no independent master (" + role + ")"
}

// keepOut has a replica fenced. It has no vote to give, and when somebody promotes it the fence
// must be up already: the next observation would be too late.
func (m *machine) keepOut(o *Observation) {
	if m.Role != "slave" || m.Advice || o.Blind || m.Owed() != minreplicas.FenceNone || o.Params.Fenced() || o.Params.Cordoned() {
		return
	}
	m.waitFrom()
	m.Duty.Kind, m.Holds = DutyWait, false
	m.report.Cause = "is a replica"
}

// leaks notes that a canary write was accepted through a fence that is up.
func (m *machine) leaks(o *Observation, first bool) {
	switch {
	case o.Err != "":
		m.report.Leak = o.Err
	case Foreign(m.Role) != "":
		m.report.Leak = "it is " + Foreign(m.Role) + " that accepts writes (replica-read-only no)"
	default:
		m.report.Leak = "a canary write got through"
	}
	m.expose()
	m.failing("exposed", "its fence does not hold: "+m.report.Leak)
	if m.Role == "slave" || first { // or has become a replica since the look
		m.order(Raise, m.Owed(), false) // which makes it read-only
	}
}

// Fence returns what other views are told about the fence.
func (b *Basis) Fence() announce.Fence {
	switch {
	case b.Leaked:
		return announce.FenceLeaks
	case b.Phase == PhaseFenced:
		return announce.FenceUp
	case b.Phase == PhaseCordoned:
		return announce.FenceCordoned
	case b.Phase == PhaseServing && !b.Blind:
		return announce.FenceNone
	}
	return announce.FenceUnknown
}
