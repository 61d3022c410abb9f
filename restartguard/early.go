package restartguard

import (
	"fmt"
	"strings"
)

// early reports whether the node may rejoin before its deadline.
func (m *machine) early(e *Evidence) bool {
	m.report.Doubt = ""
	if m.EarlyAfter <= 0 || m.Advice || e == nil {
		return false
	}
	if m.Pending.Removal {
		// Two removals of ours must not be in flight at once.
		m.report.Doubt = certain + "a command that removes its fence may still be in flight"
		m.doubts()
		return false
	}
	lost := m.lastLoss().Seen
	switch {
	case e.Doubt != "":
		m.report.Doubt = e.Doubt
		m.doubts()
	case e.RunID != m.RunID || e.Began.Before(lost.Add(m.EarlyAfter)):
		m.report.Doubt = certain + "what the others hold was read too soon after the loss"
	default:
		m.Early = "rejoined early: no lock was found elsewhere"
		if e.Locks > 0 {
			m.Early = fmt.Sprintf("rejoined early: %d locks, each with a quorum of copies elsewhere", e.Locks)
		}
		return true
	}
	return false
}

// mostDoubts is how many doubts are reported while a node waits: they come and go with each lock.
const mostDoubts = 3

// doubts reports a doubt once.
func (m *machine) doubts() {
	if strings.HasPrefix(m.report.Doubt, certain) && m.report.Doubt != m.report.lastDoubt && m.report.doubtsCounted < mostDoubts {
		m.report.lastDoubt = m.report.Doubt
		m.report.doubtsCounted++
		m.tell("waiting", "%s", m.report.Doubt)
	}
}

// trust sets from when the node's copies count as evidence for others: by then nobody relies on
// anything that it may have forgotten.
func (m *machine) trust(old, now Reading) {
	if m.Trusted.IsZero() {
		m.Basis.Delay = m.countingDelay(m.Policy.Delay)
		m.Trusted = m.now.Add(m.Basis.Delay)
	}
	m.Blur = forever
	if now.Wall != 0 {
		m.Blur, m.Offset = old.bound()+now.bound(), now.Wall-now.middle()
	}
}
