package observe

import (
	"time"

	"redlockctl/monitor"
)

// noteBirth takes note of how the server of a new incarnation was met.
func noteBirth(f *monitor.Facts, state monitor.NodeState, uptime time.Duration, at time.Time) {
	switch {
	case state == monitor.NodeFenced, state == monitor.NodeCordoned:
		f.OpenAt = time.Time{}
	case state == monitor.NodeServing && uptime <= youngLife:
		// Who was out of sight for longer may have waited closed, and been opened.
		f.OpenAt = at
	}
}

// youngLife is the age up to which an open server has not waited closed: no D
// is that short that a guard could have opened it.
const youngLife = 2 * time.Second

// uptimeBlur is how much longer ago a server started than its uptime says, which is the difference of two
// whole seconds, the later one from a clock that the server reads now and then.
const uptimeBlur = 3 * time.Second

// startedAfter is a moment before which the server did not start that answers for the first time what was
// sent at that moment: the one before it still answered at told (zero: there was none). Zero: not known.
func startedAfter(told, sent time.Time, info map[string]string) time.Time {
	uptime := time.Duration(monitor.Integer(info, "uptime_in_seconds", -1)) * time.Second
	if uptime < 0 {
		return told
	}
	if by := sent.Add(-uptime - uptimeBlur); by.After(told) {
		return by
	}
	return told
}
