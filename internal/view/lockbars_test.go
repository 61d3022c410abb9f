package view

import (
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
)

// The copies that nodes which do not answer may have count no longer than the lock may be held: one view has one end.
func TestACopyThatIsNotSeenEndsWithTheLock(t *testing.T) {
	s := monitortest.Safe(monitortest.Epoch)
	l := monitortest.LockOf(s.At, "import", monitor.LockMayBeHeld, monitortest.TokenA, "- - - 7 7").Until(s.At.Add(7 * time.Second))
	monitortest.Change(&l, func(c *monitor.Copy) { *c = monitor.Copy{State: monitor.CopyUnknown} }, 0)
	n := &s.Nodes[0]
	n.State, n.Since = monitor.NodeDown, s.At.Add(-10*time.Second)
	ctx := &Context{Glyphs: &Unicode, Snap: s, Now: s.At}
	if got, want := UnknownCopy(ctx, n, &l, 0), "a copy there, if any, expires by "+Clock(l.HeldUntil())+" unless extended"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
}
