package observe

import (
	"time"

	"redlockctl/monitor"
)

// noteStart records whether the server of a new incarnation started fenced.
func noteStart(f *monitor.Facts, state monitor.NodeState, uptime time.Duration, at time.Time) {
	switch {
	case state == monitor.NodeFenced, state == monitor.NodeCordoned:
		f.OpenAt = time.Time{}
	case state == monitor.NodeServing && uptime <= youngServer:
		// A node seen later may have started fenced and rejoined since.
		f.OpenAt = at
	}
}

// youngServer is the age up to which a serving server cannot have started fenced: no D is
// so short that a guard could have let it rejoin.
const youngServer = 2 * time.Second

// uptimeBlur is how much older a server may be than its uptime says. The uptime is the
// difference of two whole seconds, and the server reads the later one from a cached
// clock.
const uptimeBlur = 3 * time.Second

// startedAfter returns a moment before which the server cannot have started. sent is when
// its first answered command was sent, lastAnswer when the previous incarnation last answered
// (zero: there was none). Zero: unknown.
func startedAfter(lastAnswer, sent time.Time, info map[string]string) time.Time {
	uptime := time.Duration(monitor.Integer(info, "uptime_in_seconds", -1)) * time.Second
	if uptime < 0 {
		return lastAnswer
	}
	if by := sent.Add(-uptime - uptimeBlur); by.After(lastAnswer) {
		return by
	}
	return lastAnswer
}
