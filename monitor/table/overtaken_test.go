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
