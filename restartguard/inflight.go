package restartguard

import "time"

// answeredBy takes note that the order that was sent by a connection has its
// answer, or was never sent: what it is asked next comes behind.
func (m *machine) answeredBy(conn int64) {
	if m.Pending.Until.IsZero() && m.Pending.Conn == conn {
		m.Pending = InFlightCommand{}
	}
}

// sweep ends connections that may still deliver something, and reports whether that is
// to be done before anything else: the one of an order without answer, and at the
// guard's first look those of the guard that had its state directory before it.
func (m *machine) sweep(o *Observation) bool {
	if o.Conn != 0 {
		m.answeredBy(o.Conn)
	}
	if m.Advice {
		return false
	}
	if u := m.Pending.Until; !u.IsZero() && !m.now.Before(u) {
		m.Pending = InFlightCommand{}
	}
	all := m.Sweep && !m.Swept
	if !m.Pending.Sent && !all {
		return false
	}
	m.actions = append(m.actions, Action{Kind: Kill, RunID: m.RunID, Conn: m.Pending.Conn, All: all})
	return true
}

// endRivals ends the connections of all other guards, once the node is fenced. What
// they have sent is not read any more, and who comes again sees the loss first.
func (m *machine) endRivals() {
	m.actions = append(m.actions, Action{Kind: Kill, RunID: m.RunID, Others: true})
}

// killing: the server has ended what may deliver something, or does not let us.
func (m *machine) killing(o *Observation) {
	if o.Others {
		m.Rivals = false
		if !o.Swept && m.Heard > 0 {
			m.tell("in-flight command", "cannot see if another guard is about to remove its fence by what it knew before the loss: %s", o.Err)
		}
		return
	}
	if m.Sweep && !m.Swept {
		m.Swept = true
		if !o.Swept {
			m.tell("in-flight command", "cannot see if an earlier run of this guard has left connections: %s", o.Err)
		}
	}
	switch {
	case !m.Pending.Sent:
	case o.Gone || !m.Pending.Removal:
		if !m.Pending.Until.IsZero() {
			m.tell("in-flight command", "the connection of the in-flight command that removes its fence is ended")
		}
		m.Pending = InFlightCommand{}
	case m.Pending.Until.IsZero():
		// Nobody sends it again by now, but the network may hold it. For D no other
		// lift is sent, so that it finds nothing that was closed again.
		m.Pending.Until = m.now.Add(m.countingDelay(m.Policy.Delay))
		m.tell("in-flight command", "in-flight commands cannot be ruled out: a command that removes its fence has no answer, and its connection cannot be ended: %s", o.Err)
		if m.mayVote(m.now) && o.Params.Fenced() {
			m.waitFrom()
			m.report.Cause = "a command that removes its fence may still be in flight"
		}
	}
}

// removedByUs reports whether the fence was removed early, perhaps by an in-flight command of ours.
func (b *Basis) removedByUs(now time.Time) bool {
	return b.Pending.Removal && !b.Pending.Until.IsZero() && !b.Deadline.IsZero() && !b.mayVote(now) && b.Duty.Kind == DutyWait
}
