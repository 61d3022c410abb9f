package table

import (
	"testing"
	"time"

	"redlockctl/monitor"
)

// Some clients have one token for all their grants (Redisson: one per thread). What is known of a
// grant that ended is not known of the next one.
func TestATokenIsUsedAgain(t *testing.T) {
	const ttl = 30 * time.Second
	again := func(copies ...int) *rig {
		r := newRig(5, ttl).first()
		r.pass(time.Hour) // so that the servers are older than any lock
		r.set("k", "a", ttl, 0, 1, 2, 3, 4)
		r.scanAll()
		r.pass(2 * time.Second)
		r.del("k", 0, 1, 2, 3, 4)
		r.scanAll()
		r.pass(2 * time.Second)
		r.set("k", "a", ttl, copies...)
		r.scanAll()
		r.pass(2 * time.Second)
		return r
	}
	t.Run("its copies are lost", func(t *testing.T) {
		r := again(0, 1, 2)
		end := r.lock("k").MajorityEnd()
		r.restart(0, true, false)
		r.scanAll()
		r.scanAll()
		if l := r.lock("k"); l.State != monitor.LockLostMajority || l.Lost != 1 || l.HeldUntil().Sub(end).Abs() > 10*time.Millisecond {
			t.Errorf("%+v", l)
		}
	})
	t.Run("it may have a majority where nobody looks", func(t *testing.T) {
		r := newRig(5, ttl).first()
		r.pass(time.Hour)
		r.set("k", "a", ttl, 0, 1, 2, 3, 4)
		r.scanAll()
		r.pass(2 * time.Second)
		r.del("k", 0, 1, 2, 3, 4)
		r.scanAll()
		for i := 2; i < 5; i++ {
			r.Unreachable(i, r.now)
		}
		r.pass(2 * time.Second)
		r.set("k", "a", ttl, 0, 1)
		r.scanAll()
		r.pass(5 * time.Second)
		r.scanAll()
		if s := r.lock("k").State; s != monitor.LockMayBeHeld {
			t.Error(s)
		}
	})
	t.Run("two of them split the votes", func(t *testing.T) {
		r := again(0, 1)
		r.set("k", "b", ttl, 2, 3)
		r.scanAll()
		r.scanAll()
		if s := r.lock("k").State; s != monitor.LockSplit {
			t.Error(s)
		}
	})
	t.Run("it was force-released before", func(t *testing.T) {
		r := again(0, 1)
		r.TakenBy = func(string, string) (monitor.Action, bool) {
			return monitor.Action{Act: "force-release", Actor: "ops", At: r.Time(r.records["k"].lock.Span.Begin).Add(-time.Second)}, true
		}
		r.set("k", "b", ttl, 2, 3)
		r.scanAll()
		r.scanAll()
		if s := r.lock("k").State; s != monitor.LockSplit {
			t.Error(s)
		}
		r.set("k", "a", ttl, 0, 1, 2, 3)
		r.scanAll()
		r.del("k", 0, 1, 2, 3)
		r.scanAll()
		r.scanAll()
		if got := r.kinds(); got[len(got)-1] != "released" {
			t.Error(got)
		}
	})
}
