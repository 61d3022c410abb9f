package restartguard

import (
	"fmt"
	"strings"
	"time"

	"redlockctl/server/announce"
)

// lossKind is why an incarnation may have forgotten votes.
type lossKind uint8

const (
	noLoss lossKind = iota
	lossRestart
	lossRole
	lossReplaced
	lossWipe
	lossEviction
)

// losses has for each kind the event, its text, and why the node waits.
var losses = [...]struct{ kind, text, cause string }{
	lossRestart:  {"restart", "", "restarted"},
	lossRole:     {"role", "", "role changed"},
	lossReplaced: {"role", "was a replica of another server meanwhile, which replaced its data", "role changed"},
	lossWipe:     {"wiped", "had its data wiped, by FLUSHALL, FLUSHDB, SWAPDB or DEBUG", "data wiped"},
	lossEviction: {"evicted", "evicted keys for lack of memory; set maxmemory-policy noeviction", "evicted keys"},
}

// lossBy returns what happened between two readings.
func (old Incarnation) lossBy(now Incarnation) lossKind {
	reset := now.Commands < old.Commands
	switch {
	case old.RunID != now.RunID:
		return lossRestart
	case old.Role != now.Role:
		return lossRole
	case promoted(old.Former, now.Former):
		return lossReplaced
	case wiped(old.Wipes, now.Wipes, reset):
		return lossWipe
	case wiped(old.Evicted, now.Evicted, reset):
		return lossEviction
	}
	return noLoss
}

// noteLoss notes and reports a loss.
func (m *machine) noteLoss(why lossKind, old Incarnation, o *Observation) {
	loss := losses[why]
	drained, before := m.isDrained(m.now, m.Policy.Delay), m.mayVoteBefore()
	age := m.now.Sub(m.Drained)
	m.Empty, m.Drained, m.Relied = false, time.Time{}, time.Time{}
	m.lose()
	tell, text := m.tell, loss.text
	switch why {
	case lossRestart:
		fenced := o.Params.Fenced() || o.Params.Cordoned()
		// If nobody could see this start, an earlier unfenced one stays known.
		m.report.Known = !o.Configured && !o.Blind || m.report.Known && !m.report.Verified
		m.report.Verified = m.report.Known && fenced && !o.Configured && !o.Blind
		m.report.AtStart, m.report.BootExposed, m.Rivals = true, 0, false
		if !o.Blind && !fenced {
			tell, loss.cause = m.alarm, "started unfenced"
		}
		text = fmt.Sprintf("restarted (run %s → %s), %s", short(old.RunID), short(o.RunID), m.howStarted(o))
		switch {
		case o.Peer != m.report.Peer: // nobody watched this server before; it may have served
			m.report.UnfencedSince = time.Time{}
			text = fmt.Sprintf("another server answers, at %s instead of %s (run %s → %s), %s", o.Peer, m.report.Peer, short(old.RunID), short(o.RunID), m.howStarted(o))
		case drained && m.report.Verified:
			m.nothingLost(before, age)
			text += "; it was drained, and has lost nothing"
		}
	case lossRole:
		text = fmt.Sprintf("role changed from %s to %s", old.Role, o.Role)
	}
	tell(loss.kind, "%s", text)
	m.report.Cause = loss.cause
}

// wiped reports whether data were wiped between two readings of a counter. A counter that went back
// was reset (CONFIG RESETSTAT); so was one that did not change while the count of all commands went
// back. What it counts now happened after the reset, so after the last reading.
func wiped(before, now int64, reset bool) bool {
	return now > before || (now < before || reset) && now > 0
}

// promoted reports whether a server was made a replica and a master again between two readings:
// then the replication id from before its last promotion has changed. A server that only drops its
// backlog has none.
func promoted(before, now string) bool {
	return before != "" && now != "" && before != now && strings.Trim(now, "0") != ""
}

func (m *machine) howStarted(o *Observation) string {
	switch fenced := o.Params.Fenced() || o.Params.Cordoned(); {
	case o.Blind:
		return "and whether it started fenced cannot be read"
	case fenced && m.report.Verified:
		return "started fenced"
	case fenced:
		return "is fenced, but was configured before it was first seen: whether it started fenced is not known"
	default:
		return "started UNFENCED"
	}
}

// hearStart: another guard saw a start that this one did not. It is kept, so that all say the same of
// the node, also when that guard has ended.
func (m *machine) hearStart(o *Observation) {
	if m.report.Known || m.Leaked || o.Started == announce.BootUnknown {
		return
	}
	m.report.Known, m.report.Verified = true, o.Started == announce.BootFenced
	m.report.BootExposed = o.BootExposed
}

func (m *machine) firstContact(o *Observation) {
	m.report.UnfencedSince = m.asked
	wait := m.mustWait(o)
	m.Joins = false
	switch {
	case o.Blind:
		m.tell("first contact", "seen for the first time; its fence cannot be read")
		if wait != "" {
			m.waitFrom()
			m.Holds, m.report.UnfencedSince = false, time.Time{}
		} else {
			m.order(Prove, 0, false)
		}
		m.report.Cause = "first contact"
	case o.Params.Cordoned():
		m.tell("first contact", "seen for the first time, cordoned by an operator: what it may have lost is not known, so D counts from now")
		m.waitFrom()
		m.report.Cause = "first contact"
	case o.Params.Fenced():
		how := "fenced"
		if !o.Configured { // as it started
			m.report.Known, m.report.Verified = true, true
			how = "started fenced"
		}
		m.tell("first contact", "seen for the first time, %s: what it may have lost is not known, so D counts from now", how)
		m.waitFrom()
		m.report.Cause = "first contact"
	case wait != "":
		m.tell("first contact", "seen for the first time, serving: %s", wait)
		m.waitFrom()
		m.Holds, m.report.UnfencedSince = false, time.Time{} // nobody watched it before
		m.report.Cause = "first contact"
	case m.report.Verified: // by who has just started it
		m.tell("first contact", "seen for the first time: serving, started fenced")
		m.report.Cause = "started fenced"
	default:
		m.tell("first contact", "seen for the first time: serving, start not seen yet")
		m.report.Cause = "adopted, start not seen yet"
	}
}
