package restartguard

import "time"

// answeredBy notes that the last command sent on a connection was answered or was never sent,
// because a later question has its answer.
func (m *machine) answeredBy(conn int64) {
	if m.Pending.Until.IsZero() && m.Pending.Conn == conn {
		m.Pending = InFlightCommand{}
	}
}

// sweep orders the end of connections that may still deliver a command: the one of an in-flight
// command, and with the first observation those of the guard that had the state directory before.
// It reports whether that has to be done first.
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

// endRivals closes the connections of all other guards, once the node is fenced. The server reads
// nothing more of what they sent, and a guard that reconnects sees the loss first.
func (m *machine) endRivals() {
	m.actions = append(m.actions, Action{Kind: Kill, RunID: m.RunID, Others: true})
}

// killing: the server has closed connections that may deliver something, or refuses to.
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
		// Its sender has given up, but the network may still deliver it. For D this guard sends
		// no other removal, so that the late one finds no later fence.
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
