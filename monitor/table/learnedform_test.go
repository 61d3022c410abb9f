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

// Of a token that a guard announced, only the start is known: it is shown as cut, and announced further
// as it was heard.
func TestATokenOfWhichOnlyTheStartIsKnown(t *testing.T) {
	const token = "token-1"
	guard := newRig(5, time.Minute).first()
	guard.pass(time.Hour)
	guard.set("k", token, 30*time.Second, 0, 1, 2, 3, 4)
	guard.scanAll()
	guard.scanAll()
	for i := range 5 {
		guard.restart(i, true, false)
	}
	guard.rounds()
	heard := guard.Vouches(guard.now)
	o := newRig(5, time.Minute)
	o.now, o.servers = guard.now, guard.servers
	for i := range o.servers {
		o.Met(i, Incarnation{Started: o.now.Add(-time.Minute)}, o.now)
	}
	o.Heard(heard, o.now)
	o.pass(0)
	o.first()
	l := o.lock("k")
	if l.State != monitor.LockLostMajority || l.Holder.Raw() != "to…" {
		t.Errorf("%s by %q", l.State, l.Holder.Raw())
	}
	if again := o.Vouches(o.now); len(heard) == 0 || len(again) == 0 || again[0].Short != "to" || again[0].Token != heard[0].Token {
		t.Errorf("heard %+v, announced %+v", heard, again)
	}
	o.pass(time.Minute)
	o.scanAll()
	if text := o.text("expired"); text != "expired (to…)" {
		t.Errorf("%q", text)
	}
}
