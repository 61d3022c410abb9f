package table

import (
	"testing"
	"time"

	"redlockctl/monitor"
)

// A view that hears from a guard of a lock before it reads one of its copies knows the start of the
// token alone. The copies that are left tell the rest: its library and its owner.
func TestTheFormOfALockThatAGuardAnnouncedFirst(t *testing.T) {
	const token = "r-l6vP41LtmNn_p02rImH7Z_PS4:root@vm:23133"
	guard := newRig(5, time.Minute).first()
	guard.pass(time.Hour)
	guard.set("k", token, 50*time.Second, 0, 1, 2, 3, 4)
	guard.scanAll()
	guard.scanAll()
	for _, i := range []int{0, 1, 2} {
		guard.restart(i, true, false)
	}
	guard.rounds()
	o := newRig(5, time.Minute)
	o.now, o.servers = guard.now, guard.servers
	for i := range o.servers {
		o.Met(i, Incarnation{Started: o.now.Add(-time.Minute)}, o.now)
	}
	o.Heard(guard.Vouches(guard.now), o.now)
	o.pass(0)
	o.first()
	for name, r := range map[string]*rig{"that saw it all": guard, "that begins": o} {
		if l := r.lock("k"); l.State != monitor.LockLostMajority || l.Holder.Raw() != token || l.Form == nil || l.Form.Owner.Raw() != "root@vm:23133" {
			t.Errorf("the view %s: %s, %s, form %+v", name, l.State, l.Holder, l.Form)
		}
	}
}
