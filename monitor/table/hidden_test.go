package table

import (
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/server/announce"
)

// A lock whose copies are all on nodes that do not answer is announced, so that who looks for the first
// time shows the same as the guard. It ends when it ends.
func TestALockOnSilentNodesAloneIsAnnounced(t *testing.T) {
	guard := oldRig()
	guard.set("k", "token-a", viewTTL, 0, 1, 2)
	guard.set("seen", "token-b", viewTTL, 0, 1, 2, 3)
	guard.scanAll()
	guard.scanAll()
	if all := guard.Vouches(guard.now); len(all) != 0 {
		t.Errorf("while all is seen: %+v", all)
	}
	look := beside(guard, 0)
	for _, r := range []*rig{guard, look} {
		for i := range 3 {
			r.Unreachable(i, r.now)
		}
	}
	look.scan(3)
	look.scan(4)
	look.Settle(look.now)
	guard.pass(2 * time.Second)
	look.pass(2 * time.Second)
	all := guard.Vouches(guard.now)
	if len(all) != 1 || all[0].Key.Raw() != "k" || all[0].Token != announce.TokenSum("token-a") {
		t.Fatalf("%+v", all)
	}
	look.Heard(all, look.now)
	look.pass(time.Second)
	g, l := guard.lock("k"), look.lock("k")
	if g.State != monitor.LockMayBeHeld || l.State != g.State || !l.ReliedOn() || !l.HeldUntil().Equal(g.HeldUntil()) {
		t.Errorf("%s until %s, and the guard says %s until %s", l.State, l.HeldUntil(), g.State, g.HeldUntil())
	}
	if s := look.lock("seen").State; s != monitor.LockMayBeHeld {
		t.Errorf("a lock with a copy on a node that answers: %s", s)
	}
	for _, r := range []*rig{guard, look} {
		r.pass(viewTTL)
		if l := r.Locks().Get("k"); l != nil {
			t.Errorf("after its end: %+v", l)
		}
	}
	if all := guard.Vouches(guard.now); len(all) != 0 {
		t.Errorf("after its end: %+v", all)
	}
}
