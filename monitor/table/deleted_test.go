package table

import (
	"testing"
	"time"

	"redlockctl/monitor"
)

// beside returns a view that begins now, on the same servers, which have run for an hour.
func (r *rig) beside() *rig {
	o := newRig(len(r.servers), r.maxTTL)
	o.now, o.servers = r.now, r.servers
	for i := range r.servers {
		o.Met(i, Incarnation{Started: r.now.Add(-time.Hour)}, r.now)
		o.Reachable(i, r.nodes[i].closed)
	}
	return o.first()
}

// Copies that somebody deleted, while others stay on nodes that take writes, were not released once a
// release would have come to an end: the holder relies on the lock. Who learns that from a guard
// believes the same.
func TestCopiesThatSomebodyDeleted(t *testing.T) {
	r := newRig(5, time.Minute).first()
	r.pass(time.Hour)
	r.set("k", "0123456789abcdefghij", 50*time.Second, 0, 1, 2, 3, 4)
	r.scanAll()
	r.scanAll()
	end := r.lock("k").HeldUntil()
	r.del("k", 0, 1, 2)
	for range 8 {
		r.scanAll()
		r.pass(100 * time.Millisecond)
	}
	if s := r.lock("k").State; s != monitor.LockPartial {
		t.Errorf("%s while a release may be under way", s)
	}
	for range 4 {
		r.scanAll()
		r.pass(100 * time.Millisecond)
	}
	first := r.beside()
	for range 5 {
		r.scanAll()
		first.scanAll()
		first.Heard(r.Vouches(r.now), first.now)
		r.pass(time.Second)
		first.pass(time.Second)
	}
	for view, r := range map[string]*rig{"goes on": r, "begins": first} {
		if l := r.lock("k"); l.State != monitor.LockLostMajority || l.HeldUntil().Sub(end).Abs() > time.Second {
			t.Errorf("the view that %s: %s until %s; want lost majority until %s", view, l.State, l.HeldUntil(), end)
		}
	}
}

// A lock that a view takes for perhaps held, as a guard announces it, is announced no stronger by it.
func TestAnEchoIsNoStronger(t *testing.T) {
	r := newRig(5, time.Minute).first()
	r.set("k", "0123456789abcdefghij", 50*time.Second, 0, 1, 2, 3, 4)
	r.scanAll()
	r.scanAll()
	for range 12 {
		r.del("k", 0, 1, 2, 3, 4)
		r.set("k", "redlockctl:revoked:xyz", 50*time.Second, 0, 1)
		r.scanAll()
		r.pass(time.Second / 4)
	}
	if s := r.lock("k").State; s != monitor.LockMayBeHeld {
		t.Fatal(s)
	}
	for _, v := range r.Vouches(r.now) {
		if !v.Certain || v.Short == "" {
			t.Errorf("%+v", v)
		}
	}
}
