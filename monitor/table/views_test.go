package table

import (
	"slices"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/server/announce"
)

const viewTTL = 30 * time.Second

// oldRig makes a rig of servers that are older than any lock.
func oldRig() *rig {
	r := newRig(5, viewTTL).first()
	r.pass(time.Hour)
	return r
}

// beside makes a first view of the servers of another rig, after fenced of them were
// fenced.
func beside(r *rig, fenced int) *rig {
	o := newRig(5, viewTTL)
	o.now, o.servers = r.now, r.servers
	for i := range 5 {
		o.Met(i, Incarnation{Started: o.now.Add(-time.Hour), Fenced: i < fenced}, o.now)
		o.Reachable(i, i < fenced)
	}
	return o
}

// besideRestart makes a first view of the servers of another rig, of which node i
// restarted five seconds ago and is fenced, or serves again.
func besideRestart(r *rig, i int, fenced bool) *rig {
	o := beside(r, 0)
	o.Met(i, Incarnation{Started: o.now.Add(-5 * time.Second), Fenced: true}, o.now)
	o.Reachable(i, fenced)
	return o
}

// Copies and lost votes that make a majority are a grant, even if no majority was ever
// seen: it is reported, announced, and ends.
func TestAMajorityThatWasLostBeforeItWasSeen(t *testing.T) {
	r := oldRig()
	r.set("k", "token-a", viewTTL, 0, 1, 2)
	r.scan(0)
	r.scan(1)
	r.restart(0, true, false)
	r.scanAll()
	r.scanAll()
	l := r.lock("k")
	if l.State != monitor.LockLostMajority || !slices.Equal(r.kinds(), []string{"lost majority"}) {
		t.Fatal(l.State, r.kinds())
	}
	if e := r.events[0]; e.Token.Raw() != "token-a" || !e.Until.Equal(l.HeldUntil()) {
		t.Errorf("%+v", e)
	}
	if all := r.Vouches(r.now); len(all) != 1 || all[0].Ended || all[0].Token != announce.TokenSum("token-a") {
		t.Errorf("%+v", all)
	}
	r.del("k", 1, 2)
	r.scanAll()
	r.scanAll()
	if got := r.kinds(); !slices.Equal(got, []string{"lost majority", "released"}) {
		t.Error(got)
	}
}

// A monitor that did not see the release of a lock without majority learns it from one
// that did; what a guard announced earlier does not bring the lock back.
func TestTheEndOfALostMajorityIsAnnounced(t *testing.T) {
	guard := oldRig()
	guard.set("k", "token-a", viewTTL, 0, 1, 2)
	guard.scanAll()
	guard.scanAll()
	guard.restart(0, true, false)
	guard.scanAll()
	guard.scanAll()
	before := guard.Vouches(guard.now)
	other := beside(guard, 1)
	other.Heard(before, other.now)
	other.first()
	if s := other.lock("k").State; s != monitor.LockLostMajority {
		t.Fatal(s)
	}
	guard.del("k", 1, 2)
	guard.scanAll()
	guard.scanAll()
	guard.Heard(before, guard.now) // its own announcement, read late
	guard.pass(0)
	if guard.Locks().Len() != 0 {
		t.Errorf("%+v", guard.lock("k"))
	}
	for _, i := range []int{1, 2} {
		other.Unreachable(i, guard.now)
	}
	other.now = guard.now
	after := guard.Vouches(guard.now)
	if len(after) != 1 || !after[0].Ended {
		t.Fatalf("%+v", after)
	}
	other.Heard(after, other.now)
	other.pass(time.Millisecond)
	if l := other.lock("k"); l.ReliedOn() && l.State != monitor.LockMayBeHeld {
		t.Errorf("%+v", l)
	}
	guard.set("k", "token-b", viewTTL, 1, 2, 3)
	guard.scanAll()
	guard.scanAll()
	if all := guard.Vouches(guard.now); len(all) != 0 {
		t.Errorf("%+v", all)
	}
}

// A guard announces the end of a lock of which a copy is on a node that is down: a monitor that
// is cut off from others cannot know it.
func TestTheEndOfALockWithACopyOnADeadNodeIsAnnounced(t *testing.T) {
	guard := oldRig()
	guard.set("k", "token-a", viewTTL, 0, 1, 2, 3, 4)
	guard.scanAll()
	guard.scanAll()
	other := beside(guard, 0)
	other.first()
	for _, r := range []*rig{guard, other} {
		r.Unreachable(0, r.now)
	}
	other.Unreachable(1, other.now)
	other.Unreachable(2, other.now)
	guard.del("k", 1, 2, 3, 4)
	for range 2 {
		guard.scanAll()
		other.scanAll()
	}
	if s := other.lock("k").State; s != monitor.LockMayBeHeld && s != monitor.LockLostMajority {
		t.Fatal(s)
	}
	other.Heard(guard.Vouches(guard.now), other.now)
	other.pass(time.Millisecond)
	if l := other.lock("k"); l.State == monitor.LockLostMajority || l.State == monitor.LockMayBeHeld {
		t.Errorf("%s, and the guard knows that it was released", l.State)
	}
}

// A copy on a node that cannot be seen may have been extended with the others: the lock
// does not end with its last known grant.
func TestAnExtensionThatIsNotSeenWhole(t *testing.T) {
	r := oldRig()
	r.set("k", "a", 10*time.Second, 0, 1, 2)
	r.scanAll()
	r.scanAll()
	for _, i := range []int{0, 1} {
		r.Unreachable(i, r.now)
	}
	r.pass(5 * time.Second)
	r.set("k", "a", 10*time.Second, 0, 1, 2)
	end := r.now.Add(10 * time.Second)
	r.scanAll()
	r.scanAll()
	for _, after := range []time.Duration{0, 6 * time.Second} { // after the old end
		r.pass(after)
		if l := r.lock("k"); l.State != monitor.LockMayBeHeld || l.HeldUntil().Sub(end).Abs() > 10*time.Millisecond {
			t.Errorf("%+v until %s, not %s", l, l.HeldUntil(), end)
		}
	}
	if got := r.kinds(); slices.Contains(got, "expired") {
		t.Error(got)
	}
}

// A majority that is first seen when one of its copies has fallen silent may have been
// extended there, as on the node that shows it.
func TestAnExtensionOfAGrantThatWasNotSeen(t *testing.T) {
	r := newRig(3, viewTTL)
	r.Reachable(2, false)
	r.set("k", "a", 10*time.Second, 0, 1, 2)
	r.scan(2)
	r.Unreachable(2, r.now)
	r.pass(5 * time.Second)
	r.set("k", "a", 10*time.Second, 0)
	end := r.now.Add(10 * time.Second)
	for _, i := range []int{0, 1} {
		r.Reachable(i, false)
		r.scan(i)
	}
	r.pass(time.Millisecond)
	if l := r.lock("k"); !l.ReliedOn() || l.HeldUntil().Sub(end).Abs() > 10*time.Millisecond {
		t.Errorf("%s until %s, not %s", l.State, l.HeldUntil(), end)
	}
}

// A guard that saw an extension announces the new end, also to a monitor that knows the
// grant.
func TestALaterEndIsHeard(t *testing.T) {
	r := oldRig()
	r.set("k", "token-a", 10*time.Second, 0, 1, 2)
	r.scanAll()
	r.scanAll()
	r.restart(0, true, false)
	r.scanAll()
	r.scanAll()
	end := r.lock("k").HeldUntil().Add(5 * time.Second)
	r.Heard([]announce.Lock{announceLock("k", "token-a", end)}, r.now)
	r.pass(time.Millisecond)
	if l := r.lock("k"); l.State != monitor.LockLostMajority || !l.HeldUntil().Equal(end) {
		t.Errorf("%+v", l)
	}
}

// A minority beside a node that may have forgotten a vote is not reported as held before
// there was time to hear from a guard that saw it all.
func TestAFirstLookWaitsForTheGuard(t *testing.T) {
	guard := oldRig()
	guard.restart(0, true, false)
	guard.scanAll()
	guard.pass(5 * time.Second)
	guard.scanAll()
	guard.set("k", "token-a", 20*time.Second, 1, 2)
	guard.scanAll()
	o := beside(guard, 1)
	o.first()
	for end := o.now.Add(o.Attempt + HearTime - 100*time.Millisecond); o.now.Before(end); o.pass(50 * time.Millisecond) {
		if s := o.lock("k").State; s != monitor.LockPartial {
			t.Fatal(s)
		}
	}
	guard.now = o.now
	guard.scanAll()
	o.Heard(guard.Vouches(guard.now), o.now)
	o.pass(50 * time.Millisecond)
	o.scanAll()
	if s := o.lock("k").State; s != monitor.LockOrphaned {
		t.Error(s)
	}
}

// Several tokens do not hide that one of them may be held.
func TestASplitWhoseHolderIsNotDecided(t *testing.T) {
	r := oldRig()
	o := beside(r, 0)
	for _, i := range []int{0, 1} {
		o.Unreachable(i, o.now)
	}
	o.set("k", "a", viewTTL, 0, 1, 2)
	o.set("k", "b", viewTTL, 3)
	o.first()
	o.scanAll()
	o.scanAll()
	if l := o.lock("k"); l.State != monitor.LockSplit || !l.ReliedOn() {
		t.Errorf("%+v", l)
	}
}

// An extension reaches a node that is killed before it is read: the holder relies on it.
func TestAnExtensionThatWasLostUnseen(t *testing.T) {
	r := oldRig()
	r.set("k", "a", 10*time.Second, 0, 1, 2, 3, 4)
	r.scanAll()
	r.scanAll()
	r.pass(5 * time.Second)
	r.set("k", "a", 10*time.Second, 0, 1, 2) // n4 and n5 are cordoned, and refuse it
	end := r.now.Add(10 * time.Second)
	r.restart(0, true, false)
	r.scanAll()
	r.scanAll()
	for _, after := range []time.Duration{0, 6 * time.Second} { // after the old end
		r.pass(after)
		if l := r.lock("k"); !l.ReliedOn() || l.HeldUntil().Sub(end).Abs() > 10*time.Millisecond {
			t.Errorf("%+v until %s, not %s", l, l.HeldUntil(), end)
		}
	}
}

// A vote that a guard knows to be lost on a node that is silent here is lost here too: who
// remembers the copy says the same as who looks for the first time.
func TestAGuardsWordForASilentNode(t *testing.T) {
	guard := oldRig()
	console := beside(guard, 0).first()
	guard.set("k", "token-a", viewTTL, 0, 1, 2)
	for _, r := range []*rig{guard, console} {
		r.scanAll()
		r.scanAll()
	}
	console.Unreachable(0, guard.now)
	guard.restart(0, true, false)
	guard.scanAll()
	guard.scanAll()
	first := beside(guard, 1)
	first.Unreachable(0, guard.now)
	for name, r := range map[string]*rig{"console": console, "first": first} {
		r.now = guard.now
		r.Heard(guard.Vouches(guard.now), r.now)
		for _, i := range []int{1, 2, 3, 4} {
			r.scan(i)
			r.scan(i)
		}
		if name == "first" {
			r.Settle(r.now)
		}
		r.pass(2 * time.Second)
		if s, held, lost := r.states("k"); s != monitor.LockLostMajority || held != 2 || lost != 1 {
			t.Errorf("%s: %s, %d held, %d lost", name, s, held, lost)
		}
	}
}

// A lock that may be held shows its end, even before all nodes have been read again.
func TestAMinorityThatIsLostHasAnEnd(t *testing.T) {
	r := oldRig()
	r.set("k", "left", viewTTL, 0, 1)
	r.scanAll()
	r.scanAll()
	end := r.now.Add(viewTTL)
	r.pass(100 * time.Millisecond)
	for i := range 2 {
		r.restart(i, true, false)
	}
	r.pass(0)
	if l := r.lock("k"); l.State != monitor.LockMayBeHeld || l.HeldUntil().Sub(end).Abs() > 200*time.Millisecond {
		t.Errorf("%s until %s", l.State, l.HeldUntil())
	}
}

// A first view assumes no lost votes besides those of which a guard knows: it says until
// when the holder relies on a lock that was extended on a minority, that an attempt is
// only under way, and that a lock without any copy left may be held.
func TestNoMoreVotesWereLostThanTheGuardKnows(t *testing.T) {
	grown := func() *rig {
		guard := oldRig()
		guard.restart(0, true, false)
		guard.scanAll()
		guard.pass(3 * time.Second)
		guard.scanAll()
		return guard
	}
	t.Run("extended on a minority", func(t *testing.T) {
		guard := grown()
		guard.set("k", "token-a", 10*time.Second, 1, 2, 3)
		guard.scanAll()
		guard.scanAll()
		guard.pass(3 * time.Second)
		guard.set("k", "token-a", 10*time.Second, 1, 2)
		guard.scanAll()
		guard.scanAll()
		o := beside(guard, 1)
		o.first()
		want := guard.lock("k").HeldUntil()
		if got := o.lock("k").HeldUntil(); !got.After(want.Add(time.Second)) {
			t.Fatalf("without the guard until %s, and it knows %s", got, want)
		}
		o.Heard(guard.Vouches(guard.now), o.now)
		o.pass(time.Millisecond)
		if l := o.lock("k"); l.State != guard.lock("k").State || l.HeldUntil().Sub(want).Abs() > extendedBy {
			t.Errorf("%s until %s, not %s until %s", l.State, l.HeldUntil(), guard.lock("k").State, want)
		}
		o.pass(2 * certainKept) // the guard says it no more
		if l := o.lock("k"); !l.HeldUntil().After(want.Add(time.Second)) {
			t.Errorf("without the guard again: %s until %s", l.State, l.HeldUntil())
		}
		o.Heard(guard.Vouches(guard.now), o.now)
		o.pass(time.Millisecond)
		o.restart(4, true, false) // of this loss the guard did not know
		o.scanAll()
		o.scanAll()
		if l := o.lock("k"); !l.HeldUntil().After(want) {
			t.Errorf("after another loss: %s until %s", l.State, l.HeldUntil())
		}
	})
	t.Run("under way", func(t *testing.T) {
		guard := grown()
		guard.set("k", "token-a", 10*time.Second, 1, 2)
		guard.scanAll()
		o := beside(guard, 1)
		o.Heard(guard.Vouches(guard.now), o.now)
		o.first()
		o.pass(2 * HearTime)
		o.scanAll()
		if l := o.lock("k"); l.ReliedOn() {
			t.Errorf("%+v", l)
		}
	})
	t.Run("a majority with what was lost", func(t *testing.T) {
		guard := oldRig()
		guard.set("k", "token-a", 10*time.Second, 0, 1, 2)
		guard.scan(0)
		guard.scan(2)
		for i := range 2 { // n1 may have lost a vote that was not read
			guard.restart(i, true, false)
			guard.scan(i)
		}
		if s := guard.lock("k").State; s != monitor.LockPartial {
			t.Fatal(s)
		}
		for _, v := range guard.Vouches(guard.now) {
			if v.Certain {
				t.Errorf("%s: %+v", guard.lock("k").State, v)
			}
		}
	})
	t.Run("no copy left", func(t *testing.T) {
		guard := oldRig()
		guard.restart(0, true, false)
		guard.set("k", "token-a", 10*time.Second, 1, 2)
		guard.scanAll()
		guard.scanAll()
		guard.pass(2 * time.Second)
		guard.scanAll()
		guard.restart(1, true, false)
		guard.restart(2, true, false)
		guard.scanAll()
		guard.scanAll()
		if s := guard.lock("k").State; s != monitor.LockMayBeHeld {
			t.Fatal(s)
		}
		o := beside(guard, 3)
		o.Heard(guard.Vouches(guard.now), o.now)
		o.first()
		console := beside(guard, 3) // it saw nothing of the copies, and all else
		console.first()
		console.Heard(guard.Vouches(guard.now), console.now)
		guard.Heard(guard.Vouches(guard.now), guard.now) // itself
		for name, r := range map[string]*rig{"first": o, "console": console, "guard": guard} {
			r.pass(time.Millisecond)
			r.scanAll()
			r.pass(time.Millisecond)
			if l := r.lock("k"); l.State != monitor.LockMayBeHeld || l.HeldUntil().Sub(guard.lock("k").HeldUntil()).Abs() > extendedBy {
				t.Errorf("%s: %+v", name, l)
			}
		}
	})
}

// A guard that finds out that too few votes can be left says so to those that have heard
// from it, or have seen, that the lock may be held; and does not believe what it said itself.
func TestALockThatCannotBeHeldAnyMore(t *testing.T) {
	guard := oldRig()
	console := beside(guard, 0).first()
	guard.set("k", "token-a", viewTTL, 0, 1)
	for _, r := range []*rig{guard, console} {
		r.scanAll()
		r.Unreachable(2, r.now)
	}
	for i := range 2 {
		guard.restart(i, true, false)
		console.Restarted(i, Incarnation{Started: guard.now, Fenced: true}, guard.now)
		console.Reachable(i, true)
	}
	for _, r := range []*rig{guard, console} {
		r.scanAll()
		r.pass(2 * time.Second)
		r.scanAll()
		r.pass(0)
	}
	heard := guard.Vouches(guard.now)
	first := beside(guard, 2)
	first.Unreachable(2, first.now)
	first.Heard(heard, first.now)
	first.first()
	for name, r := range map[string]*rig{"guard": guard, "first": first, "console": console} {
		if s := r.lock("k").State; s != monitor.LockMayBeHeld {
			t.Fatal(name, s, heard)
		}
	}
	guard.Reachable(2, false)
	guard.scanAll()
	guard.pass(time.Millisecond)
	guard.Heard(heard, guard.now) // what it said itself, read late
	guard.pass(time.Millisecond)
	if guard.Locks().Len() != 0 {
		t.Fatalf("%+v", guard.lock("k"))
	}
	for name, r := range map[string]*rig{"first": first, "console": console} {
		r.now = guard.now
		r.Heard(guard.Vouches(guard.now), r.now)
		r.pass(time.Millisecond)
		if l := r.lock("k"); l.ReliedOn() {
			t.Errorf("%s: %+v", name, l)
		}
	}
}

// A minority that another client's attempt had more copies than for a moment is no younger
// for that: it may be held as soon as for a view that saw nothing of the attempt.
func TestAnAttemptMeanwhile(t *testing.T) {
	for _, attempt := range []bool{false, true} {
		r := oldRig()
		for i := range 2 {
			r.restart(i, true, false)
			r.scan(i)
		}
		r.set("k", "token-a", viewTTL, 2)
		r.scanAll()
		begun := r.now
		r.pass(r.Attempt / 2)
		if attempt {
			r.set("k", "token-b", viewTTL, 3, 4)
			r.scanAll()
			r.pass(0)
			if l := r.lock("k"); l.Holder.Raw() != "token-b" {
				t.Errorf("%+v", l)
			}
			r.del("k", 3, 4)
		}
		r.scanAll()
		for r.lock("k").State == monitor.LockPartial && r.now.Sub(begun) < 5*time.Second {
			r.pass(10 * time.Millisecond)
			r.scanAll()
		}
		if l := r.lock("k"); l.State != monitor.LockMayBeHeld || l.Holder.Raw() != "token-a" || r.now.Sub(begun) > r.Attempt+HearTime+200*time.Millisecond {
			t.Errorf("with an attempt %t: %s by %s after %s", attempt, l.State, l.Holder.Raw(), r.now.Sub(begun))
		}
	}
}

// A holder may have extended its lock on nodes that were silent before they lost the copy:
// it relies on the lock until the end that another copy shows, also one that is read later.
func TestAnExtensionBeforeALossThatWasNotSeen(t *testing.T) {
	seen := func() *rig {
		r := newRig(3, viewTTL).first()
		r.set("k", "a", 10*time.Second, 0, 1, 2)
		r.scanAll()
		r.scanAll()
		return r
	}
	check := func(t *testing.T, r *rig, end time.Time) {
		t.Helper()
		if l := r.lock("k"); !l.ReliedOn() || l.HeldUntil().Sub(end).Abs() > 10*time.Millisecond {
			t.Errorf("%s until %s, not %s", l.State, l.HeldUntil(), end)
		}
	}
	t.Run("the copy that shows it is read last", func(t *testing.T) {
		r := seen()
		r.pass(time.Second)
		for i := range 3 {
			r.Unreachable(i, r.now)
		}
		r.pass(5 * time.Second)
		r.set("k", "a", 10*time.Second, 0, 1, 2)
		end := r.now.Add(10 * time.Second)
		for i := range 2 {
			r.restart(i, true, false)
			r.scan(i)
		}
		r.pass(2 * time.Second)
		r.Reachable(2, false)
		r.scan(2)
		r.pass(time.Millisecond)
		check(t, r, end)
	})
	t.Run("it was seen while others were silent", func(t *testing.T) {
		r := newRig(3, viewTTL).first()
		r.set("k", "a", 10*time.Second, 0, 1) // a majority is never seen
		r.scan(0)
		r.pass(time.Second)
		r.Unreachable(0, r.now)
		r.pass(4 * time.Second)
		r.set("k", "a", 10*time.Second, 0, 1)
		end := r.now.Add(10 * time.Second)
		r.scan(1)
		r.scan(2)
		r.pass(time.Second)
		r.Unreachable(1, r.now)
		for i := range 2 {
			r.pass(time.Second)
			r.restart(i, true, false)
			r.scan(i)
			r.pass(time.Second)
		}
		check(t, r, end)
	})
}

// The end of a grant is not certain while a node is silent, if lost copies may have been
// extended with its copy: the grant is «not seen», and its token no left-over when it is
// seen again.
func TestAnEndWhileCopiesAreLostAndNodesSilent(t *testing.T) {
	r := newRig(3, viewTTL).first()
	r.set("k", "a", 10*time.Second, 0, 1, 2)
	r.scanAll()
	r.scanAll()
	r.Unreachable(2, r.now)
	r.pass(2 * time.Second)
	r.restart(0, true, false)
	r.scan(0)
	r.del("k", 1)
	r.Restarted(1, Incarnation{Started: r.now, Fenced: true}, r.now)
	r.Reachable(1, true)
	r.scan(1)
	for range 24 {
		r.pass(500 * time.Millisecond)
		r.scan(0)
		r.scan(1)
	}
	if got := r.kinds(); !slices.Contains(got, "not seen") || slices.Contains(got, "expired") {
		t.Error(got)
	}
}

// A first view after a loss does not know which votes were lost: a token that appears later may be a copy that
// its holder has put back.
func TestACopyThatIsPutBackAfterALossBeforeTheFirstLook(t *testing.T) {
	first := beside(oldRig(), 3).first()
	first.pass(10 * time.Second)
	first.scanAll()
	first.set("k", "token-a", viewTTL, 3)
	first.rounds()
	if s := first.lock("k").State; s != monitor.LockMayBeHeld {
		t.Error(s)
	}
}

// An attempt goes on although nobody could have been granted the lock for a moment: what was lost until then counts.
func TestAnAttemptThatLosesVotes(t *testing.T) {
	r := oldRig()
	r.Unreachable(3, r.now)
	r.set("k", "token-a", viewTTL, 0, 1)
	r.scanAll()
	r.restart(0, true, false)
	r.restart(1, true, false)
	r.scanAll()
	r.scanAll()
	if s := r.lock("k").State; s != monitor.LockMayBeHeld {
		t.Fatal(s)
	}
	heard := r.Vouches(r.now)
	r.Reachable(3, false)
	r.scanAll()
	r.scanAll()
	r.Heard(heard, r.now) // what it said itself, read late
	r.pass(time.Millisecond)
	if len(heard) == 0 || r.Locks().Len() != 0 {
		t.Fatalf("%+v, after %+v", r.lock("k"), heard)
	}
	r.set("k", "token-a", viewTTL, 4)
	r.rounds()
	if s := r.lock("k").State; s != monitor.LockMayBeHeld {
		t.Error(s)
	}
}

// A copy on a node that refuses extensions does not tell how long the votes last that other nodes may have lost.
func TestTheEndOfACopyThatCannotBeExtended(t *testing.T) {
	for _, open := range []bool{false, true} {
		r := oldRig()
		r.set("k", "token-a", viewTTL/2, 3)
		if open {
			r.set("k", "token-a", viewTTL/2, 4)
		}
		first := beside(r, 4).first()
		first.pass(3 * first.Attempt)
		first.scanAll()
		l := first.lock("k")
		if end := l.HeldUntil().Sub(r.now); l.State != monitor.LockMayBeHeld || (end > viewTTL/2+time.Second) == open {
			t.Errorf("with a copy that can be extended %t: %s for %s", open, l.State, end)
		}
	}
}

// A server that was fenced a moment after its start may have given a vote in between. If
// it says that it loaded no keys, its copies are votes.
func TestAFreshServerHasLoadedNothing(t *testing.T) {
	for _, fresh := range []bool{false, true} {
		r := oldRig()
		clear(r.servers[2])
		r.set("k", "b", viewTTL, 2)
		r.Restarted(2, Incarnation{Started: r.now, Fenced: true, Keys: true, Fresh: fresh}, r.now)
		r.Reachable(2, true)
		r.scanAll()
		r.scanAll()
		if l := r.loaded(2); (l == monitor.Loaded{}) != fresh {
			t.Errorf("%v: %+v", fresh, l)
		}
	}
}

// Locks without a TTL that were found so have nothing to wait for: a time that never comes
// was taken for one that has passed, and no command decided.
func TestLocksWithoutTTLWaitForNothing(t *testing.T) {
	old := oldRig()
	old.set("a", "token-a", -1, 0)
	old.set("b", "token-b", -1, 0, 1, 3)
	r := beside(old, 0)
	r.first()
	for range 5 {
		r.pass(time.Second)
		r.scanAll()
	}
	if next := r.Next(); !next.IsZero() && !next.After(r.now) {
		t.Errorf("due at %s, now is %s", next, r.now)
	}
	if s := r.lock("b").State; s != monitor.LockNoTTL {
		t.Error(s)
	}
}
