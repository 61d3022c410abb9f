package restartguard

// foreign is what a node is instead of an independent master; "": it is one.
func foreign(role string) string {
	switch role {
	case "master", "":
		return ""
	case "slave":
		return "a replica"
	}
	return "no independent master (" + role + ")"
}

// keepOut has a replica fenced that is not. It has no vote to give, and whoever promotes it must meet
// the fence: the next look would be too late.
func (m *machine) keepOut(o *Observation) {
	if m.Role != "slave" || m.Advice || o.Blind || m.owed() != FenceNone || o.Params.fenced() || o.Params.cordoned() {
		return
	}
	m.waitFrom()
	m.Duty.Kind, m.Holds = DutyWait, false
	m.Cause = "is a replica"
}

// leak is why a canary got through a fence that is up.
func (m *machine) leak(o *Observation) string {
	switch {
	case o.Err != "":
		return ": " + o.Err
	case foreign(m.Role) != "":
		return ": it is " + foreign(m.Role) + " that accepts writes (replica-read-only no)"
	}
	return ""
}
