package table

import (
	"testing"
	"time"
)

// A grant is shown beside another client's, too, when copies of that one have replaced all that was known of its votes.
func TestAGrantWhoseVotesWereReplacedIsShownBesideTheOther(t *testing.T) {
	r := newRig(2, 30*time.Second).first()
	r.pass(time.Hour)
	r.set("k", "a", 30*time.Second, 0, 1)
	r.scanAll()
	end := r.lock("k").HeldUntil()
	r.restart(0, false, false)
	r.set("k", "b", 30*time.Second, 0)
	r.scan(0)
	r.restart(0, false, false)
	r.scan(0)
	r.Unreachable(1, r.now)
	r.pass(200 * time.Millisecond)
	r.restart(1, false, false)
	r.set("k", "b", 30*time.Second, 1)
	r.scan(1)
	r.pass(time.Millisecond)
	l := r.lock("k")
	if e := l.Earlier; l.Holder.Raw() == "b" && (e == nil || e.Token.Raw() != "a" || e.Until.Sub(end).Abs() > extendedBy) || l.Holder.Raw() != "b" && !l.ReliedOn() {
		t.Errorf("%+v, beside %+v", l, e)
	}
}

// Nobody holds a copy with too long a TTL by itself; but a client that lost its majority before still relies on the lock.
func TestALostMajorityBesideACopyWithTooLongATTL(t *testing.T) {
	r := newRig(4, 30*time.Second).first()
	r.pass(time.Hour)
	r.Reachable(3, true)
	r.set("k", "left over", 90*time.Second, 0, 1, 2, 3)
	r.scanAll()
	r.del("k", 0, 1, 2)
	for range 4 {
		r.scanAll()
		r.pass(r.Attempt / 2)
	}
	r.set("k", "a", 20*time.Second, 0, 1, 2)
	r.scanAll()
	r.scanAll()
	for i := range 3 {
		r.restart(i, false, false)
		r.scan(i)
	}
	r.pass(2 * time.Second)
	r.set("k", "b", 20*time.Second, 0, 1, 2)
	r.scanAll()
	r.pass(time.Millisecond)
	r.del("k", 0, 1, 2)
	r.rounds()
	if l := r.lock("k"); l.Nobody || !l.ReliedOn() && l.Earlier == nil {
		t.Errorf("%+v", l)
	}
}

// The client that a second one followed too early is the holder again once the second has
// gone, although one of its own lost votes is still known.
func TestTheEarlierClientIsTheHolderAgain(t *testing.T) {
	r := newRig(3, 30*time.Second).first()
	r.pass(time.Hour)
	r.set("k", "a", 10*time.Second, 0, 1, 2)
	r.scanAll()
	r.scanAll()
	r.restart(2, true, false)
	r.scan(2)
	r.pass(8 * time.Second)
	r.set("k", "a", 20*time.Second, 0, 1)
	r.scanAll()
	r.scanAll()
	end := r.lock("k").HeldUntil()
	for i := range 2 {
		r.set("k", "b", 10*time.Second, i)
		r.Wiped(i, r.now)
		r.scan(i)
	}
	r.scanAll()
	r.pass(50 * time.Millisecond)
	r.del("k", 0, 1)
	r.scanAll()
	r.scanAll()
	if l := r.lock("k"); l.Holder.Raw() != "a" || !l.ReliedOn() || l.HeldUntil().Sub(end).Abs() > 20*time.Millisecond {
		t.Errorf("not a until %s: %+v", end, l)
	}
}

// Two clients lost their votes and may still rely on the lock: the one that
// relies on it longer is not forgotten for a third.
func TestTheLaterEndOfTwoStays(t *testing.T) {
	r := newRig(2, 30*time.Second).first()
	r.pass(time.Hour)
	lose := func(token string, ttl time.Duration) {
		r.set("k", token, ttl, 0)
		r.scan(0)
		r.restart(1, false, false)
		r.restart(0, false, false)
	}
	lose("a", 10*time.Second)
	lose("b", 30*time.Second)
	r.set("k", "c", 5*time.Second, 0)
	r.scanAll()
	r.del("k", 0)
	r.pass(12 * time.Second)
	r.scanAll()
	if l := r.lock("k"); !l.ReliedOn() || l.HeldUntil().Before(r.now.Add(10*time.Second)) {
		t.Errorf("%s until %s, now is %s: %+v", l.State, l.HeldUntil(), r.now, l)
	}
}

// Also where a third client is granted the lock, and the first has the sooner end.
func TestTheLaterEndStaysWhenAThirdClientGetsIn(t *testing.T) {
	r := newRig(3, 30*time.Second).first()
	r.pass(time.Hour)
	r.set("k", "a", 10*time.Second, 0, 1, 2)
	r.scanAll()
	r.scanAll()
	r.restart(1, false, false)
	r.restart(2, false, false)
	r.scanAll()
	r.set("k", "b", 30*time.Second, 1)
	r.scan(1)
	r.restart(2, false, false)
	r.restart(1, false, false)
	r.set("k", "c", 30*time.Second, 1, 2)
	r.scan(1)
	r.scan(2)
	if l := r.lock("k"); l.Earlier == nil || l.Earlier.Token.Raw() != "b" {
		t.Errorf("%s, earlier %+v: %v", l.State, l.Earlier, r.kinds())
	}
}

// Three clients got in one after the other, each after all masters had restarted: those of the first two that
// still rely on the lock are named, the one that does so for longest first.
func TestTwoClientsRelyOnALockBesideItsHolder(t *testing.T) {
	r := grantedOn(0, 1, 2, 3, 4)
	for _, c := range []struct {
		token string
		ttl   time.Duration
	}{{"b", 20 * time.Second}, {"c", 3 * time.Second}} {
		for i := range 5 {
			r.restart(i, false, false)
		}
		r.set("k", c.token, c.ttl, 0, 1, 2, 3, 4)
		r.scanAll()
		r.scanAll()
	}
	for _, want := range []struct {
		after  time.Duration
		holder string
		beside string
	}{{0, "c", "b"}, {4 * time.Second, "b", "a"}, {7 * time.Second, "b", ""}} {
		r.pass(want.after)
		l := r.lock("k")
		beside := ""
		if l.Earlier != nil {
			beside = l.Earlier.Token.Raw()
		}
		if l.Holder.Raw() != want.holder || beside != want.beside {
			t.Errorf("%s later: held by %q, and by %q too: %s", want.after, l.Holder, beside, l.State)
		}
	}
}
