package restartguard

import (
	"fmt"
	"time"

	"redlockctl/server/minreplicas"
)

// machine is one call of Step.
type machine struct {
	*Policy
	*Basis
	report  *Report
	now     time.Time
	asked   time.Time // when the observation was asked for
	connID  int64     // of the observation
	before  time.Time // when the node was seen before this observation
	actions []Action
	events  []Event

	evidence *Evidence // of the observation
}

func (m *machine) order(kind ActionKind, value int64, lag bool) {
	if m.Advice {
		return
	}
	m.sending(kind)
	m.actions = append(m.actions, Action{Kind: kind, RunID: m.RunID, Value: value, SetLag: lag, ReadOnly: kind == Raise && (m.Role == "slave" || m.Leaked || value == minreplicas.FenceCordon)})
}

func (m *machine) tell(kind, format string, args ...any) {
	m.events = append(m.events, Event{At: m.now, Kind: kind, Text: fmt.Sprintf(format, args...)})
}

// alarm is tell, for an event that somebody should look at.
func (m *machine) alarm(kind, format string, args ...any) {
	m.tell(kind, format, args...)
	m.events[len(m.events)-1].Alarm = true
}

func (m *machine) enter(p Phase, reason string) {
	if m.Phase != p {
		m.Phase, m.report.Since, m.report.Failing = p, m.now, ""
	}
	m.report.Reason = reason
}

// failing reports a failure once, however often it comes again.
func (m *machine) failing(kind, why string) {
	if m.report.Failing != why {
		m.report.Failing = why
		m.alarm(kind, "%s", why)
	}
}

// lengthen lets a node wait longer, and be trusted later, if D has grown. It never shortens
// anything: what was lost may have been granted under the longer TTL.
func (m *machine) lengthen() {
	d := m.countingDelay(m.Policy.Delay)
	more := d - m.Basis.Delay
	if more <= 0 {
		return
	}
	if loss := m.lastLoss(); !m.Deadline.IsZero() {
		m.Deadline = MayVoteFrom(loss, d)
	}
	m.Basis.Delay = d
	if !m.Trusted.IsZero() {
		m.Trusted = m.Trusted.Add(more)
	}
}

// waitFrom sets the deadline to D from now. A node that served is taken to be fenced.
func (m *machine) waitFrom() {
	d := m.countingDelay(m.Policy.Delay)
	if m.Duty.Kind == DutyServe {
		m.Duty = Duty{Kind: DutyWait, Holds: true}
	}
	m.Deadline, m.Basis.Delay = MayVoteFrom(Loss{Seen: m.now}, d), d
	m.waits()
}

// waits begins to wait for a new deadline.
func (m *machine) waits() {
	m.Trusted, m.report.Doubt, m.Early = m.Deadline, "", ""
	m.report.From = m.Deadline
	m.report.lastDoubt, m.report.doubtsCounted = "", 0
}

// lose notes that votes may have been lost, now or before.
func (m *machine) lose() {
	m.waitFrom()
	m.Holds = false // the server forgets a cordon with a restart; the operator does not
	m.Proven, m.Leaked, m.Revert = false, false, minreplicas.FenceNone
	m.CountedAt, m.Rivals = time.Time{}, true
	m.report.Unfenced, m.report.Exposed, m.report.UnfencedSince, m.report.AtStart = false, 0, m.LastSeen, false
	if m.report.LastRefused.After(m.report.UnfencedSince) {
		m.report.UnfencedSince = m.report.LastRefused
	}
}

// sending notes a command before it is sent.
func (m *machine) sending(kind ActionKind) {
	if kind != Raise && kind != Remove || !m.Pending.Until.IsZero() {
		return
	}
	m.Pending = InFlightCommand{Sent: true, Removal: kind == Remove, Conn: m.connID}
}
