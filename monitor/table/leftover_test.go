package table

import (
	"testing"
	"time"

	"redlockctl/monitor"
)

// A copy that a release left on a cordoned node rivals nobody, also once the node serves: not for the
// view that saw the release, and not for one that hears of it. If nobody saw it, it may be a rival.
func TestACopyLeftOnACordonedNode(t *testing.T) {
	r := newRig(5, time.Minute).first()
	r.pass(time.Hour)
	r.set("k", "0123456789abcdefghij", 30*time.Second, 0, 1, 2, 3, 4)
	r.scanAll()
	r.scanAll()
	r.Reachable(3, true) // cordoned
	r.del("k", 0, 1, 2, 4)
	r.scanAll()
	r.scanAll()
	r.set("k", "b", 30*time.Second, 0, 1, 2, 4)
	r.scanAll()
	r.scanAll()
	r.pass(time.Second)
	r.Reachable(3, false)
	first, alone := r.beside(), r.beside()
	r.events = nil
	for range 8 {
		for _, view := range []*rig{r, first, alone} {
			view.scanAll()
			view.pass(500 * time.Millisecond)
		}
		first.Heard(r.Vouches(r.now), first.now)
	}
	for view, r := range map[string]*rig{"goes on": r, "begins": first} {
		if l := r.lock("k"); l.State != monitor.LockHeld || l.Holder.Raw() != "b" || l.Tokens != 2 {
			t.Errorf("the view that %s: %+v", view, l)
		}
	}
	if len(r.events) > 0 {
		t.Errorf("%+v", r.events)
	}
	if l := alone.lock("k"); l.State != monitor.LockSplit {
		t.Errorf("a view that nobody told: %+v", l)
	}
}
