package table

import (
	"slices"
	"testing"
	"time"

	"redlockctl/monitor"
)

// A copy on a node that is down does not make a lock that was released an orphan. If the node comes
// back with it, it is one.
func TestAReleaseWhileANodeIsDown(t *testing.T) {
	const ttl = 30 * time.Second
	r := newRig(5, ttl).first()
	r.pass(time.Hour)
	r.set("k", "a", ttl, 0, 1, 2, 3, 4)
	r.scanAll()
	r.pass(2 * time.Second)
	r.Unreachable(4, r.now)
	r.pass(2 * time.Second)
	r.del("k", 0, 1, 2, 3)
	r.scanAll()
	r.pass(2 * time.Second)
	r.scanAll()
	if got := r.kinds(); !slices.Equal(got, []string{"acquired", "released"}) || r.Locks().Get("k") != nil {
		t.Errorf("%v, %+v", got, r.lock("k"))
	}
	// The next client's lock leaves nothing either.
	r.set("k", "b", ttl, 0, 1, 2, 3)
	r.scanAll()
	r.pass(2 * time.Second)
	r.del("k", 0, 1, 2, 3)
	r.scanAll()
	r.pass(2 * time.Second)
	r.scanAll()
	if r.Locks().Get("k") != nil {
		t.Errorf("%+v", r.lock("k"))
	}
	r.Reachable(4, false)
	r.scanAll()
	r.pass(2 * time.Second)
	r.scanAll()
	if l := r.lock("k"); l.State != monitor.LockOrphaned || l.Held != 1 {
		t.Errorf("%+v", l)
	}
}
