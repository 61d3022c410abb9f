package table

import (
	"testing"
	"time"

	"redlockctl/monitor"
)

// A lock that lost its majority is the same lost majority again, until its end, when a second client
// that got in before that end has gone: released its lock, or let it expire.
func TestALostMajorityAfterASecondClient(t *testing.T) {
	for name, expires := range map[string]bool{"released": false, "expired": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(5, 30*time.Second).first()
			r.pass(time.Hour)
			r.set("k", "client-a", 15*time.Second, 0, 1, 2, 3, 4)
			r.scanAll()
			r.scanAll()
			end := r.lock("k").HeldUntil()
			for i := range r.servers {
				clear(r.servers[i])
				r.Wiped(i, r.now)
			}
			r.rounds()
			want := *r.lock("k")
			if want.State != monitor.LockLostMajority {
				t.Fatal(want.State)
			}
			r.set("k", "client-b", 4*time.Second, 0, 1, 2, 3, 4)
			r.scanAll()
			r.scanAll()
			if l := r.lock("k"); l.Holder.Raw() != "client-b" || l.Earlier == nil || l.Earlier.Token.Raw() != "client-a" {
				t.Fatalf("%+v", l)
			}
			if expires {
				r.pass(4 * time.Second)
			} else {
				r.pass(1500 * time.Millisecond)
				r.del("k", 0, 1, 2, 3, 4)
			}
			for r.scanAll(); r.now.Before(end.Add(-time.Second)); r.scanAll() {
				if l := r.lock("k"); l.State != monitor.LockLostMajority || l.Holder != want.Holder || l.HeldUntil().Sub(end).Abs() > 20*time.Millisecond || l.Earlier != nil {
					t.Fatalf("%s by %s until %s, want lost majority until %s", l.State, l.Holder, l.HeldUntil(), end)
				}
				r.pass(time.Second)
			}
			r.pass(2 * time.Second)
			r.scanAll()
			if l := r.Locks().Get("k"); l != nil {
				t.Errorf("after its end: %+v", l)
			}
		})
	}
}

// A view that begins while the second client holds the lock hears of the first one from a guard, and
// says the same as the guard once the second has gone.
func TestAViewThatBeginsWhileASecondClientHoldsTheLock(t *testing.T) {
	const first, second = "client-a0123456789", "client-b0123456789"
	guard := newRig(5, 30*time.Second).first()
	guard.pass(time.Hour)
	guard.set("k", first, 20*time.Second, 0, 1, 2, 3, 4)
	guard.scanAll()
	guard.scanAll()
	end := guard.lock("k").HeldUntil()
	for i := range guard.servers {
		clear(guard.servers[i])
		guard.Wiped(i, guard.now)
	}
	guard.rounds()
	guard.set("k", second, 5*time.Second, 0, 1, 2, 3, 4)
	guard.scanAll()
	guard.scanAll()
	o := guard.beside()
	listen := func(n int) {
		for range n {
			o.Heard(guard.Vouches(guard.now), o.now)
			o.pass(200 * time.Millisecond)
			o.scanAll()
			guard.now = o.now
			guard.Heard(guard.Vouches(guard.now), guard.now) // itself
			guard.scanAll()
		}
	}
	listen(5)
	if l := o.lock("k"); l.Earlier == nil || l.Holder.Raw() != second {
		t.Fatalf("%+v", l)
	}
	guard.del("k", 0, 1, 2, 3, 4)
	listen(10)
	for view, r := range map[string]*rig{"goes on": guard, "begins": o} {
		if l := r.lock("k"); l.State != monitor.LockLostMajority || l.HeldUntil().Sub(end).Abs() > time.Second {
			t.Errorf("the view that %s: %s by %s until %s, want lost majority until %s", view, l.State, l.Holder, l.HeldUntil(), end)
		}
	}
}

// A client that was granted a lock without a TTL relies on it without end. When nothing is left of the lock, also
// not of the client that got in beside it, nobody is said to hold it.
func TestNothingIsLeftOfAnEndlessLockThatWasOvertaken(t *testing.T) {
	r := newRig(5, 30*time.Second).first()
	r.pass(time.Hour)
	r.set("k", "a", 0, 0, 1, 2)
	r.rounds()
	r.restart(0, false, false)
	r.scanAll()
	r.set("k", "b", 20*time.Second, 0, 3, 4)
	r.rounds()
	if l := r.lock("k"); l.Earlier == nil {
		t.Fatalf("%+v", l)
	}
	r.set("k", "redlockctl:revoked:x", 20*time.Second, 0, 1, 2, 3, 4)
	r.rounds()
	r.pass(21 * time.Second)
	r.rounds()
	r.rounds()
	if l := r.Locks().Get("k"); l != nil {
		t.Errorf("%s, %+v", l.State, l)
	}
}
