package table

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/server/announce"
)

// Two tokens of which none has a majority, on nodes that may have forgotten a vote: each
// may be held, and no view names one as the holder. A guard that saw it all knows that
// none is, and says so.
func TestASplitThatIsUndecidedHasNoHolder(t *testing.T) {
	guard := oldRig()
	guard.restart(4, true, false)
	guard.scanAll()
	guard.pass(5 * time.Second)
	guard.scanAll()
	for _, i := range []int{2, 3, 0, 1} { // the first node's token is the last to arrive
		guard.set("k", []string{"a", "a", "b", "b"}[i], 20*time.Second, i)
		guard.scan(i)
	}
	o := besideRestart(guard, 4, true)
	o.first()
	for range 20 {
		o.pass(100 * time.Millisecond)
		o.scanAll()
	}
	guard.now = o.now
	guard.scanAll()
	guard.scanAll()
	if l := guard.lock("k"); l.State != monitor.LockSplit || !l.Nobody || l.Holder.Raw() != "a" {
		t.Errorf("the guard: %+v", l)
	}
	if l := o.lock("k"); l.State != monitor.LockSplit || l.Nobody || !l.Contested || l.NobodyText() != "not known: 2 + 2 of 5" || l.Holder.Raw() != "a" {
		t.Errorf("a first view: %+v: %s", l, l.NobodyText())
	}
	o.Heard(guard.Vouches(guard.now), o.now)
	o.pass(50 * time.Millisecond)
	if l := o.lock("k"); !l.Nobody || l.Contested {
		t.Errorf("once it has heard from the guard: %+v", l)
	}
}

// A guard that saw it all says that nobody else relies on a lock with a majority and a
// few copies of another token.
func TestTheMinorityBesideAMajorityIsHeard(t *testing.T) {
	guard := oldRig()
	guard.restart(0, true, false)
	guard.scanAll()
	guard.pass(5 * time.Second)
	guard.scanAll()
	guard.Reachable(0, false)
	guard.scanAll()
	guard.set("k", "d", 20*time.Second, 3, 4)
	guard.scanAll()
	guard.set("k", "c", 20*time.Second, 0, 1, 2)
	guard.scanAll()
	o := besideRestart(guard, 0, false)
	o.first()
	for range 20 {
		o.pass(100 * time.Millisecond)
		o.scanAll()
	}
	if l := o.lock("k"); l.Holder.Raw() != "c" || l.Earlier == nil {
		t.Errorf("a first view: %+v", l)
	}
	guard.now = o.now
	guard.scanAll()
	if l := guard.lock("k"); l.Earlier != nil {
		t.Errorf("the guard: %+v", l)
	}
	o.Heard(guard.Vouches(guard.now), o.now)
	o.pass(50 * time.Millisecond)
	if l := o.lock("k"); l.State != monitor.LockSplit || l.Earlier != nil {
		t.Errorf("once it has heard from the guard: %+v", l)
	}
}

// The copies that are left of a lost majority are extended: a first view beside a fenced
// node that may have forgotten a vote says the same end as the guard that saw it all.
func TestAnExtensionOfALostMajorityMakesItNoLonger(t *testing.T) {
	guard := oldRig()
	guard.restart(4, true, false)
	guard.scanAll()
	guard.pass(5 * time.Second)
	guard.scanAll()
	guard.set("k", "token-a", 20*time.Second, 0, 1, 2)
	guard.scanAll()
	guard.scanAll()
	end := guard.now.Add(20 * time.Second)
	guard.pass(2 * time.Second)
	guard.scanAll()
	guard.restart(2, true, false)
	guard.scanAll()
	guard.scanAll()
	guard.pass(5 * time.Second)
	guard.set("k", "token-a", 29*time.Second, 0, 1)
	guard.scanAll()
	guard.scanAll()
	o := besideRestart(guard, 2, true)
	o.Met(4, Incarnation{Started: o.now.Add(-12 * time.Second), Fenced: true}, o.now)
	o.Reachable(4, true)
	o.first()
	for range 20 {
		o.pass(100 * time.Millisecond)
		o.scanAll()
		guard.now = o.now
		guard.scanAll()
		o.Heard(guard.Vouches(guard.now), o.now)
	}
	for view, r := range map[string]*rig{"the guard": guard, "a first view": o} {
		if l := r.lock("k"); l.State != monitor.LockLostMajority || l.HeldUntil().Sub(end).Abs() > 100*time.Millisecond {
			t.Errorf("%s: %s until %s, not %s", view, l.State, l.HeldUntil().Sub(end), end)
		}
	}
}

// Copies that another client left beside a lost majority, after the restart: a guard that
// saw it all says that nobody relies on them.
func TestTheMinorityBesideALostMajorityIsHeard(t *testing.T) {
	guard := oldRig()
	guard.set("k", "a", 25*time.Second, 0, 1, 2)
	guard.scanAll()
	guard.scanAll()
	guard.restart(2, true, false)
	guard.scanAll()
	guard.pass(5 * time.Second)
	guard.scanAll()
	guard.set("k", "b", 25*time.Second, 3, 4)
	guard.scanAll()
	guard.scanAll()
	o := besideRestart(guard, 2, true)
	o.first()
	for range 20 {
		o.pass(100 * time.Millisecond)
		o.scanAll()
	}
	guard.now = o.now
	guard.scanAll()
	o.Heard(guard.Vouches(guard.now), o.now)
	o.pass(50 * time.Millisecond)
	for view, r := range map[string]*rig{"the guard": guard, "a first view": o} {
		if l := r.lock("k"); l.State != monitor.LockLostMajority || l.Holder.Raw() != "a" || !l.ReliedOn() || l.Earlier != nil {
			t.Errorf("%s: %+v", view, l)
		}
	}
}

// A guard announces a limited number of locks: those that need a person come first.
func TestUrgentLocksAreAnnouncedFirst(t *testing.T) {
	guard := oldRig()
	for k := range announce.MostLocks + 50 {
		guard.set(fmt.Sprintf("a%03d", k), "t"+strconv.Itoa(k), 20*time.Second, 0, 1, 2)
	}
	guard.scanAll()
	guard.scanAll()
	guard.restart(0, true, false) // they lose their majority
	guard.scanAll()
	guard.pass(5 * time.Second)
	guard.set("z", "left", 20*time.Second, 1)
	guard.scanAll()
	guard.pass(guard.Attempt + time.Second)
	guard.scanAll()
	if l := guard.lock("z"); l.State != monitor.LockOrphaned {
		t.Fatalf("%+v", l)
	}
	all := guard.Vouches(guard.now)
	if !slices.ContainsFunc(all, func(v announce.Lock) bool { return v.Key.Raw() == "z" && v.Ended }) || len(all) < announce.MostLocks {
		t.Errorf("%d locks, without the orphan", len(all))
	}
}
