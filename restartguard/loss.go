package restartguard

import (
	"strings"
	"time"
)

// wiped tells if data were wiped between two readings of the counter. One that
// went back was reset (CONFIG RESETSTAT), as was one that is where it was while
// the count of all commands went back; what it counts now came after that, and
// so after the last reading.
func wiped(before, now int64, reset bool) bool {
	return now > before || (now < before || reset) && now > 0
}

// promoted tells if a server was made a replica and a master again between two
// looks: then the replication id before the last promotion is another one. A
// server that only lets go of its backlog has none any more.
func promoted(before, now string) bool {
	return before != "" && now != "" && before != now && strings.Trim(now, "0") != ""
}

func (m *machine) cameUp(o *Observation) string {
	switch shut := o.Params.closed() || o.Params.held(); {
	case o.Blind:
		return "and whether it came up closed cannot be read"
	case shut && m.Known:
		return "came up closed"
	case shut:
		return "is closed, but was configured before it was first seen: whether it came up closed is not known"
	default:
		return "is OPEN"
	}
}

func (m *machine) firstContact(o *Observation) {
	m.OpenSince = m.asked
	switch {
	case o.Blind:
		m.tell("first contact", "seen for the first time; its fence cannot be read")
		if m.FirstContact == Fence {
			m.Owed = FenceClosed
			m.waitFrom()
		} else {
			m.do(Prove, 0, false)
		}
		m.Cause = "first contact"
	case o.Params.held():
		m.tell("first contact", "seen for the first time, held by an operator")
	case o.Params.closed():
		m.tell("first contact", "seen for the first time, closed: what it may have lost is not known, so D counts from now")
		m.waitFrom()
		m.Cause = "first contact"
	case m.FirstContact == Fence:
		m.tell("first contact", "seen for the first time, open: to be closed")
		m.Owed = FenceClosed
		m.waitFrom()
		m.Cause = "first contact"
	default:
		m.tell("first contact", "seen for the first time, open: taken as it is, not verified")
		m.Cause = "adopted, not verified"
	}
}

// lose takes note that votes may have been lost, at or before now.
func (m *machine) lose() {
	m.waitFrom()
	m.Owed = FenceClosed
	if m.Hold {
		// A restart forgets the hold; the operator did not.
		m.Owed = FenceHold
	}
	m.Proven, m.Leaked, m.Revert = false, false, FenceOpen
	m.CountedAt, m.Rivals = time.Time{}, true
	m.Open, m.Exposed, m.OpenSince, m.AtStart = false, 0, m.LastSeen, false
	if m.LastRefused.After(m.OpenSince) {
		m.OpenSince = m.LastRefused
	}
}

func (m *machine) restored(before, now int64) {
	m.lose()
	if now == 0 {
		m.tell("restored", "the guard's counter is gone, it was %d: its data are not what they were", before)
	} else {
		m.tell("restored", "the guard's counter went back from %d to %d: its data are those of an earlier time", before, now)
	}
	m.Cause = "its data went back in time"
}
