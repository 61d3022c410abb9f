package view

import (
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
)

// A copy that ends early because its node's clock was stepped forward says so, until the lock is
// extended.
func TestACopyCutShortByAClockStep(t *testing.T) {
	now := monitortest.Epoch
	s := monitortest.Safe(now)
	s.Nodes[2].Facts.StepAt, s.Nodes[2].Facts.StepBy = now.Add(-3*time.Second), 20*time.Second
	ctx := &Context{Glyphs: Plain(true), Snap: s, Now: now}
	const text = "n3 was stepped by +20s"
	for _, c := range []struct {
		state  monitor.LockState
		copies string
		since  time.Duration
		said   bool
	}{
		{monitor.LockHeld, "29 29 9 29 29", time.Minute, true},
		{monitor.LockBareMajority, "29 - 9 29 -", time.Minute, true},
		{monitor.LockLostMajority, "- - 9 29 -", time.Minute, true},
		{monitor.LockHeld, "29 29 29 29 29", time.Minute, false},  // extended since
		{monitor.LockHeld, "29 29 9 29 29", time.Second, false},   // acquired since
		{monitor.LockHeld, "29 9 29 29 29", time.Minute, false},   // another copy
		{monitor.LockSplit, "29 29 9b 29 29", time.Minute, false}, // another client's
		{monitor.LockOrphaned, "- - 9 - -", time.Minute, false},   // nothing says that it was longer
	} {
		l := monitortest.LockOf(now, "job:1", c.state, monitortest.TokenA, c.copies).Timed(now.Add(-c.since), time.Time{})
		said := ""
		for _, f := range LockFacts(ctx, &l) {
			if f.Label == "Clock" {
				said = f.Text
			}
		}
		if strings.HasPrefix(said, text) != c.said || c.said == (said == "") {
			t.Errorf("%s: %q", c.copies, said)
		}
		if note := LockBars(ctx, &l, Axis(ctx, &l), 20)[2].Note.Text; strings.Contains(note, "clock step") != c.said {
			t.Errorf("%s: note %q", c.copies, note)
		}
	}
}
