package table

import (
	"slices"
	"testing"
	"time"

	"redlockctl/monitor"
)

// grantedOn makes a rig of five servers on which a lock is granted for ten seconds.
func grantedOn(nodes ...int) *rig {
	r := newRig(5, 30*time.Second).first()
	r.pass(time.Hour)
	r.set("k", "a", 10*time.Second, nodes...)
	r.scanAll()
	r.scanAll()
	return r
}

// A lock that is extended while nodes cannot be seen continues, and is never reported as
// expired if nobody can know that.
func TestALockOutOfSight(t *testing.T) {
	all := []int{0, 1, 2, 3, 4}
	hide := func(r *rig, nodes ...int) {
		for _, i := range nodes {
			r.Unreachable(i, r.now)
		}
	}
	show := func(r *rig, nodes ...int) {
		for _, i := range nodes {
			r.Reachable(i, false)
			r.scan(i)
		}
		r.scanAll()
	}
	for name, c := range map[string]struct {
		hidden   []int
		extended []int
		during   monitor.LockState // six seconds after the first end; held: not shown
		want     []string
	}{
		"a majority is hidden, extended on all":      {[]int{0, 1, 2}, all, monitor.LockMayBeHeld, []string{"acquired", "extended"}},
		"all are hidden, extended on all":            {all, all, monitor.LockHeld, []string{"acquired", "not seen", "extended"}},
		"a majority is hidden, extended there":       {[]int{0, 1, 2}, []int{0, 1, 2}, monitor.LockHeld, []string{"acquired", "not seen", "extended"}},
		"a majority is hidden, extended elsewhere":   {[]int{0, 1, 2}, []int{3, 4}, monitor.LockMayBeHeld, []string{"acquired", "expired", "orphaned"}},
		"all are hidden, and it expires":             {all, nil, monitor.LockHeld, []string{"acquired", "not seen"}},
		"a minority is hidden, and it expires":       {[]int{0, 1}, nil, monitor.LockHeld, []string{"acquired", "expired"}},
		"a minority is hidden, extended on all":      {[]int{0, 1}, all, monitor.LockBareMajority, []string{"acquired", "extended"}},
		"a minority is hidden, extended on one more": {[]int{0, 1}, []int{4}, monitor.LockMayBeHeld, []string{"acquired", "expired", "orphaned"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := grantedOn(all...)
			hide(r, c.hidden...)
			r.pass(5 * time.Second)
			r.set("k", "a", 20*time.Second, c.extended...)
			r.scanAll()
			r.pass(11 * time.Second)
			r.scanAll()
			if s := r.lock("k").State; s != c.during && (c.during != monitor.LockHeld || r.lock("k").ReliedOn()) {
				t.Errorf("%s, and not %s", s, c.during)
			}
			show(r, c.hidden...)
			r.pass(2 * time.Second)
			if got := r.kinds(); !slices.Equal(got, c.want) {
				t.Error(got)
			}
			if c.want[len(c.want)-1] == "extended" && r.lock("k").Held < 3 {
				t.Errorf("%+v", r.lock("k"))
			}
		})
	}
}

// A lock whose end comes while its nodes are read again has expired only if the read
// shows that.
func TestALockEndsWhileItsNodesAreRead(t *testing.T) {
	for kind, extended := range map[string]bool{"expired": false, "extended": true} {
		r := grantedOn(0, 1, 2, 3, 4)
		r.pass(5 * time.Second)
		for i := range 5 {
			r.Doubt(i)
		}
		if extended {
			r.set("k", "a", 20*time.Second, 0, 1, 2, 3, 4)
		}
		r.pass(6 * time.Second)
		if s := r.lock("k").State; s != monitor.LockPartial {
			t.Errorf("%s: %s", kind, s)
		}
		r.scanAll()
		if got := r.kinds(); !slices.Equal(got, []string{"acquired", kind}) {
			t.Error(got)
		}
	}
}

// Only the holder can move back the end on which it relies.
func TestTheEndOfAGrantShrinksByItsHolderAlone(t *testing.T) {
	for name, c := range map[string]struct {
		cut    []int // to two seconds
		step   []int // servers whose clocks jump by eight seconds
		expire []int // then
		want   []string
	}{
		"the holder extends to a shorter TTL": {cut: []int{0, 1, 2}, want: []string{"acquired", "expired"}},
		"somebody cuts one copy":              {cut: []int{0}, want: []string{"acquired", "lost majority", "expired"}},
		"a clock jumps":                       {step: []int{1}, expire: []int{1}, want: []string{"acquired", "lost majority", "expired"}},
		"all clocks jump":                     {step: []int{0, 1, 2}, expire: []int{0, 1, 2}, want: []string{"acquired", "lost majority", "expired"}},
		"all clocks jump, and it is read":     {step: []int{0, 1, 2}, cut: []int{0, 1, 2}, want: []string{"acquired", "lost majority", "expired"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := grantedOn(0, 1, 2)
			end := r.lock("k").HeldUntil()
			for _, i := range c.step {
				r.Stepped(i, 8*time.Second, r.now)
			}
			if r.set("k", "a", 2*time.Second, c.cut...); c.cut != nil {
				r.scanAll()
			}
			if l := r.lock("k"); c.want[1] == "lost majority" && (!l.HeldUntil().Equal(end) || !l.ReliedOn()) {
				t.Errorf("until %s, not %s", l.HeldUntil(), end)
			}
			r.pass(2500 * time.Millisecond)
			r.del("k", c.expire...)
			r.scanAll()
			r.scanAll()
			if l := r.lock("k"); c.want[1] == "lost majority" && (l.State != monitor.LockLostMajority || !l.HeldUntil().Equal(end)) {
				t.Errorf("%+v", l)
			}
			r.pass(10 * time.Second)
			r.scanAll()
			if got := r.kinds(); !slices.Equal(got, c.want) {
				t.Error(got)
			}
		})
	}
}

// What is lost while it cannot be seen may have been extended before.
func TestLossesOutOfSight(t *testing.T) {
	until := func(t *testing.T, r *rig, token string, want time.Time) {
		t.Helper()
		l := r.lock("k")
		end := l.HeldUntil()
		if e := l.Earlier; e != nil && e.Token.Raw() == token {
			end = e.Until
		} else if l.Holder.Raw() != token || !l.ReliedOn() {
			end = time.Time{}
		}
		if end.Sub(want).Abs() > 20*time.Millisecond {
			t.Errorf("%s until %s, not %s: %+v", token, end, want, l)
		}
	}
	t.Run("and another client's copies are there", func(t *testing.T) {
		r := newRig(2, 30*time.Second).first()
		r.pass(time.Hour)
		r.set("k", "a", 10*time.Second, 0, 1)
		r.scanAll()
		r.pass(time.Millisecond)
		r.Unreachable(0, r.now)
		r.Unreachable(1, r.now)
		r.pass(5 * time.Second)
		end := r.now.Add(20 * time.Second)
		r.set("k", "a", 20*time.Second, 0, 1)
		r.pass(2 * time.Second)
		r.restart(1, false, false)
		r.set("k", "b", 30*time.Second, 1)
		r.scan(1)
		r.Reachable(0, false)
		r.scan(0)
		until(t, r, "a", end)
	})
	t.Run("on a node whose vote was not read before it was silent", func(t *testing.T) {
		r := newRig(5, 30*time.Second).first()
		r.pass(time.Hour)
		r.set("k", "a", 10*time.Second, 0, 1, 2, 3)
		for _, i := range []int{0, 1, 3} {
			r.scan(i)
		}
		r.Unreachable(1, r.now)
		r.Unreachable(2, r.now)
		r.pass(5 * time.Second)
		end := r.now.Add(20 * time.Second)
		r.set("k", "a", 20*time.Second, 1, 2, 3)
		r.scan(3)
		r.pass(time.Second)
		for _, i := range []int{1, 2} {
			r.restart(i, true, false)
			r.scan(i)
		}
		r.pass(6 * time.Second)
		r.scanAll()
		r.scanAll()
		until(t, r, "a", end)
	})
}

// An extension that reaches too few nodes takes nothing from one before it that other nodes confirmed unseen, before
// they lost it to another client's attempt.
func TestAFailedExtensionTakesNothingFromOneThatWasNotSeen(t *testing.T) {
	r := newRig(4, 30*time.Second).first()
	r.pass(time.Hour)
	r.set("k", "a", 30*time.Second, 0, 2, 3)
	for range 3 {
		r.scanAll()
		r.pass(2 * time.Second)
	}
	for i := range 4 {
		r.Unreachable(i, r.now)
	}
	r.pass(4 * time.Second)
	r.set("k", "a", 30*time.Second, 0, 1, 2, 3)
	end := r.now.Add(30 * time.Second)
	r.pass(6 * time.Second)
	for i := range 2 {
		r.restart(i, false, false)
		r.set("k", "b", 20*time.Second, i)
		r.scan(i)
		r.Reachable(i, true)
	}
	for i := 2; i < 4; i++ {
		r.pass(time.Second)
		r.Reachable(i, false)
		r.scan(i)
	}
	for range 12 {
		r.scanAll()
		r.pass(time.Second)
	}
	r.set("k", "a", 30*time.Second, 2, 3)
	for range 3 {
		r.scanAll()
		r.pass(100 * time.Millisecond)
	}
	if l := r.lock("k"); l.State != monitor.LockLostMajority || l.HeldUntil().Sub(end).Abs() > extendedBy {
		t.Errorf("%+v, and not until %s", l, end)
	}
	if r.pass(time.Second); slices.Contains(r.kinds(), "expired") {
		t.Error(r.kinds())
	}
}

// A lost vote on a node that is being read again counts as before.
func TestALostVoteOnANodeThatIsRead(t *testing.T) {
	r := grantedOn(0, 1, 2)
	r.set("k", "a", 10*time.Second+700*time.Millisecond, 1, 2, 3)
	r.scanAll()
	r.scanAll()
	end := r.lock("k").HeldUntil()
	r.Restarted(3, Incarnation{Started: r.now, Keys: true}, r.now)
	r.Refresh(r.now)
	if got := r.lock("k").HeldUntil(); got.Before(end) {
		t.Errorf("held until %s, not %s", got, end)
	}
}

// A copy that was put back has a shorter TTL than the others. A node whose clock is fast
// ends it a little early: that is no release.
func TestACopyThatExpiresAtAFastClock(t *testing.T) {
	r := grantedOn(0, 1, 2)
	r.set("k", "a", 5*time.Second, 3)
	r.scanAll()
	r.pass(5*time.Second - 20*time.Millisecond)
	r.restart(0, true, false)
	r.restart(1, true, false)
	r.restart(2, true, false)
	r.del("k", 3)
	r.scanAll()
	r.scanAll()
	if got := r.kinds(); slices.Contains(got, "released") || !r.lock("k").ReliedOn() {
		t.Error(got, r.lock("k"))
	}
}

// A node restarted while it could not be seen. Its vote may have been extended with the others
// before, so that the lock is held beyond its last known end.
func TestAnExtensionOnANodeThatRestartedOutOfSight(t *testing.T) {
	r := newRig(4, 30*time.Second).first()
	r.pass(time.Hour)
	r.set("k", "a", 10*time.Second, 1, 2)
	r.set("k", "a", 10*time.Second+200*time.Millisecond, 0)
	r.scanAll()
	r.pass(time.Millisecond)
	for i := range 4 {
		r.Unreachable(i, r.now)
	}
	r.pass(5 * time.Second)
	end := r.now.Add(20 * time.Second)
	r.set("k", "a", 20*time.Second, 0, 1, 2)
	r.pass(5*time.Second + 100*time.Millisecond)
	r.restart(2, true, false)
	r.scan(2)
	r.Reachable(3, false)
	r.scan(3)
	r.Reachable(1, false)
	r.scan(1)
	if l := r.lock("k"); l.HeldUntil().Sub(end).Abs() > 20*time.Millisecond {
		t.Errorf("until %s, not %s: %+v", l.HeldUntil(), end, l)
	}
}

// A lock whose grant was not seen, because no node was, may have had a vote that was lost
// before it was first read.
func TestALockThatIsOlderThanItsFirstRead(t *testing.T) {
	r := newRig(4, 30*time.Second).first()
	r.pass(time.Hour)
	for i := range 4 {
		r.Unreachable(i, r.now)
	}
	r.set("k", "a", 20*time.Second, 1, 2, 3)
	end := r.now.Add(20 * time.Second)
	r.set("k", "a", 10*time.Second, 0)
	r.pass(8 * time.Second)
	r.restart(1, false, false)
	r.scan(1)
	r.pass(1500 * time.Millisecond)
	for _, i := range []int{3, 2, 0} {
		r.Reachable(i, false)
		r.scan(i)
	}
	r.Doubt(0)
	r.scanAll()
	if l := r.lock("k"); l.HeldUntil().Sub(end).Abs() > 20*time.Millisecond {
		t.Errorf("until %s, not %s: %+v", l.HeldUntil(), end, l)
	}
}

// A copy expires while its node is not seen, and its extension was only assumed. It was not
// deleted, even if another client's copy is there when the node is read again.
func TestACopyThatExpiredUnseenWasNotDeleted(t *testing.T) {
	r := newRig(5, 30*time.Second).first()
	r.set("k", "a", 2*time.Second, 0, 1, 2, 4)
	r.scanAll()
	r.Unreachable(0, r.now)
	r.set("k", "a", 30*time.Second, 1, 2, 4)
	for i := 1; i < 5; i++ {
		r.scan(i)
	}
	r.pass(4 * time.Second)
	r.set("k", "b", 30*time.Second, 0)
	r.Reachable(0, false)
	r.scanAll()
	r.del("k", 0)
	r.scanAll()
	r.pass(4 * time.Second)
	for _, i := range []int{4, 1, 2} {
		r.restart(i, true, false)
		r.scanAll()
	}
	r.pass(4 * time.Second)
	if slices.Contains(r.kinds(), "released") || !r.lock("k").ReliedOn() {
		t.Errorf("%v, %+v", r.kinds(), r.lock("k"))
	}
}

// An extension that too few nodes have takes nothing from the one before it, whose votes are
// lost or cannot be seen.
func TestAFailedExtensionAfterOneThatWasNotSeenWhole(t *testing.T) {
	r := newRig(4, 30*time.Second).first()
	r.pass(time.Hour)
	extend := func(after time.Duration, nodes ...int) {
		r.pass(after)
		r.set("k", "a", 30*time.Second, nodes...)
		r.scanAll()
		r.scanAll()
	}
	extend(0, 0, 1, 2, 3)
	r.Unreachable(0, r.now)
	extend(10*time.Second, 0, 1, 2, 3)
	r.restart(3, true, false)
	r.scanAll()
	extend(15*time.Second, 0, 1, 2) // node 0 is not seen: granted until 30 s from now
	end := r.now.Add(29 * time.Second)
	r.restart(1, true, false)
	r.scanAll()
	r.pass(10 * time.Second)
	r.set("k", "b", 10*time.Second, 1)
	r.scan(1)
	r.del("k", 1)
	r.scan(1)
	extend(8*time.Second, 0, 2) // two of four
	r.Reachable(0, false)
	for r.now.Before(end) {
		if r.scanAll(); !r.lock("k").ReliedOn() {
			t.Fatalf("%s before the end: %s, %v", end.Sub(r.now), r.lock("k").State, r.kinds())
		}
		r.pass(500 * time.Millisecond)
	}
}

// A lock above the maximum that lost its majority is counted with the loss, and its end is told, as of
// any other lock.
func TestALostMajorityAboveTheMaximum(t *testing.T) {
	for name, seen := range map[string]bool{"its majority was seen": true, "it was lost before it was seen": false} {
		r := oldRig()
		var cost monitor.RestartCost
		r.OnRestart = func(_ int, c monitor.RestartCost, _ time.Time) { cost = c }
		r.set("k", "token-a", 2*viewTTL, 0, 1, 2)
		r.scan(0)
		r.scan(1)
		if seen {
			r.scanAll()
		}
		r.restart(0, true, false)
		r.scanAll()
		r.scanAll()
		if l := r.lock("k"); l.State != monitor.LockOverTTL || !l.LostMajority() {
			t.Fatalf("%s: %+v", name, l)
		}
		if seen && (cost.LostMajority != 1 || !cost.HeldUntil.Equal(r.lock("k").HeldUntil())) {
			t.Errorf("%s: %+v", name, cost)
		}
		r.del("k", 1, 2)
		r.scanAll()
		r.scanAll()
		k := r.kinds()
		if !slices.Contains(k, "lost majority") || k[len(k)-1] != "released" {
			t.Errorf("%s: %v", name, k)
		}
	}
}

// A majority of the nodes goes down and stays so. When the last known end has come, that the lock was not seen
// any more is all that is known: neither that it lost its majority nor that it could not be extended.
func TestTheEndOfALockWhoseNodesAreDown(t *testing.T) {
	const ttl = 10 * time.Second
	for name, c := range map[string]struct {
		copies   []int
		extended []int         // on nodes that are seen, after the others went down
		skew     time.Duration // between the ends of copies
	}{
		"copies on three of five":                    {copies: []int{0, 1, 2}},
		"copies on three of five, apart":             {copies: []int{0, 1, 2}, skew: 3 * time.Millisecond},
		"copies on all":                              {copies: []int{0, 1, 2, 3, 4}},
		"copies on all, apart":                       {copies: []int{0, 1, 2, 3, 4}, skew: 3 * time.Millisecond},
		"copies on all, and an attempt to extend it": {copies: []int{0, 1, 2, 3, 4}, extended: []int{3, 4}},
		"the same, apart":                            {copies: []int{0, 1, 2, 3, 4}, extended: []int{3, 4}, skew: 3 * time.Millisecond},
		"apart the other way":                        {copies: []int{4, 3, 2, 1, 0}, extended: []int{4, 3}, skew: 3 * time.Millisecond},
		"an attempt that reached one":                {copies: []int{0, 1, 2, 3}, extended: []int{3}, skew: 3 * time.Millisecond},
	} {
		for _, step := range []time.Duration{time.Millisecond, 250 * time.Millisecond} {
			r := newRig(5, 30*time.Second).first()
			r.pass(time.Hour)
			for k, i := range c.copies {
				r.set("k", "a", ttl+time.Duration(k)*c.skew, i)
			}
			r.rounds()
			for i := range 3 {
				r.Unreachable(i, r.now)
			}
			r.pass(time.Second)
			for range 3 {
				for k, i := range c.extended {
					r.set("k", "a", ttl+time.Duration(k)*c.skew, i)
				}
				r.rounds()
			}
			for range int(ttl / (250 * time.Millisecond)) {
				if l := r.lock("k"); l.State == monitor.LockMayBeHeld && l.HeldUntil().Sub(r.now) < 600*time.Millisecond {
					break
				}
				r.scanAll()
				r.pass(250 * time.Millisecond)
			}
			for d := time.Duration(0); d < 2*time.Second; d += step {
				if r.pass(step); d%(250*time.Millisecond) == 0 {
					r.scanAll()
				}
			}
			if got := r.kinds(); !slices.Equal(got, []string{"acquired", "not seen"}) || r.events[1].Level != monitor.LevelInfo {
				t.Errorf("%s, %s: %q, %s", name, step, got, r.text("lost majority"))
			}
		}
	}
}
