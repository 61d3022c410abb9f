package record

import (
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
)

// At a moment, the last restart or wipe of its node since the grant began says when and why a copy
// was lost; without one, nothing does.
func TestTheCauseOfALossAtAMoment(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	s := monitortest.Safe(now)
	event := func(before time.Duration, node, kind string) {
		s.Events = append(s.Events, monitor.Event{At: now.Add(-before), Kind: kind, Node: node})
	}
	names := make([]string, len(s.Nodes))
	for i := range names {
		names[i] = s.Nodes[i].Name
	}
	event(time.Hour, names[2], "restart")
	event(20*time.Second, names[0], "data wiped")
	event(10*time.Second, names[1], "restart")
	event(5*time.Second, names[0], "lost copy")
	var l monitor.Lock
	recallCopies(s, &l, now.Add(-time.Minute), "!!!A-", "0123456789abcdef")
	for i, want := range []monitor.Copy{
		{Cause: monitor.LostByWipe, LostAt: now.Add(-20 * time.Second)},
		{Cause: monitor.LostByRestart, LostAt: now.Add(-10 * time.Second)},
		{Cause: monitor.LostUnseen},
	} {
		if c := l.Copies.At(i); c.State != monitor.CopyLost || c.Cause != want.Cause || !c.LostAt.Equal(want.LostAt) {
			t.Errorf("%s: %+v", names[i], c)
		}
	}
}
