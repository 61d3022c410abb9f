package table

import (
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
)

// A step of a clock ends copies early. That they are gone may be seen before the step is.
func TestAStepIsSeenAfterTheCopiesAreGone(t *testing.T) {
	const ttl = 30 * time.Second
	r := newRig(5, ttl).first()
	r.pass(time.Hour)
	r.set("bare", "a", ttl, 0, 1, 2)
	r.set("spare", "b", ttl, 0, 1, 2, 3)
	r.scanAll()
	end := r.lock("bare").MajorityEnd()
	r.pass(3 * time.Second)
	r.del("bare", 2)
	r.del("spare", 2)
	r.scan(2)
	r.pass(200 * time.Millisecond)
	r.Stepped(2, 50*time.Second, r.now)
	for range 20 {
		r.scanAll()
		r.pass(100 * time.Millisecond)
	}
	l := r.lock("bare")
	if l.State != monitor.LockLostMajority || l.HeldUntil().Sub(end).Abs() > 10*time.Millisecond || monitor.LossCause(r.records["bare"].Copies[2].Type) != monitor.LostByClock {
		t.Errorf("%+v", l)
	}
	if text := r.text("lost majority"); strings.Contains(text, "deleted") {
		t.Error(text)
	}
	if text := r.text("lost copy"); !strings.Contains(text, "its clock was stepped") {
		t.Error(text)
	}
}

// While a copy that a step cut short is there, a view that begins hears from a guard until when the
// holder relies on the lock: the copies alone show the end of the cut one. It stays so when that is gone.
func TestAViewThatBeginsAfterAStep(t *testing.T) {
	const ttl, by = 30 * time.Second, 20 * time.Second
	for name, first := range map[string]bool{"it hears first": true, "it reads first": false} {
		r := newRig(5, ttl).first()
		r.pass(time.Hour)
		r.set("k", "0123456789abcdefghij", ttl, 0, 1, 2)
		r.scanAll()
		end := r.lock("k").HeldUntil()
		r.pass(2 * time.Second)
		cut := r.servers[2]["k"]
		cut.expires = cut.expires.Add(-by)
		r.servers[2]["k"] = cut
		r.Stepped(2, by, r.now)
		r.scanAll()
		r.scanAll()
		if l := r.lock("k"); l.HeldUntil().Sub(end).Abs() > 10*time.Millisecond {
			t.Errorf("%s: it saw the step: %+v", name, l)
		}
		o := newRig(5, ttl)
		o.now, o.servers = r.now, r.servers
		for i := range 5 {
			o.Met(i, Incarnation{Started: r.now.Add(-time.Hour)}, r.now)
		}
		if first {
			o.Heard(r.Vouches(r.now), o.now)
		}
		o.first()
		if !first {
			o.Heard(r.Vouches(r.now), o.now)
		}
		o.scanAll()
		if l := o.lock("k"); l.State != monitor.LockBareMajority || l.HeldUntil().Sub(end).Abs() > 10*time.Millisecond {
			t.Errorf("%s: %+v", name, l)
		}
		for o.now.Before(cut.expires.Add(2 * time.Second)) {
			if o.now.After(cut.expires) {
				delete(r.servers[2], "k")
			}
			o.pass(200 * time.Millisecond)
			o.scanAll()
			if l := o.lock("k"); !l.ReliedOn() || l.HeldUntil().Sub(end).Abs() > 10*time.Millisecond {
				t.Fatalf("%s, %s after the end of the cut copy: %+v", name, o.now.Sub(cut.expires), l)
			}
		}
	}
}

// Clocks of a majority may be stepped at once. A view that begins then hears from a guard until when the
// holder relies on the lock, before the guard has read the copies again and after, also if it read them before it
// saw the steps.
func TestAViewThatBeginsAfterAMajorityWasStepped(t *testing.T) {
	const ttl, by = 28 * time.Second, 12 * time.Second
	for _, read := range []string{"not again", "before it saw the steps", "after"} {
		for _, first := range []string{"hears", "reads"} {
			name := "the guard read the copies " + read + "; the view first " + first
			r := newRig(5, 30*time.Second).first()
			r.pass(time.Hour)
			r.set("k", "0123456789abcdefghij", ttl, 0, 1, 2, 3, 4)
			r.scanAll()
			end := r.lock("k").HeldUntil()
			r.pass(2 * time.Second)
			for i := range 3 {
				cut := r.servers[i]["k"]
				cut.expires = cut.expires.Add(-by)
				r.servers[i]["k"] = cut
			}
			if read == "before it saw the steps" {
				r.scanAll()
			}
			r.pass(300 * time.Millisecond)
			for i := range 3 {
				r.Stepped(i, by, r.now)
			}
			r.Refresh(r.now)
			if read == "after" {
				r.scanAll()
			}
			if l := r.lock("k"); l.HeldUntil().Sub(end).Abs() > 10*time.Millisecond {
				t.Errorf("%s: the guard: until %s, not %s", name, l.HeldUntil(), end)
			}
			o := newRig(5, 30*time.Second)
			o.now, o.servers = r.now, r.servers
			for i := range 5 {
				o.Met(i, Incarnation{Started: r.now.Add(-time.Hour)}, r.now)
			}
			if first == "hears" {
				o.Heard(r.Vouches(r.now), o.now)
			}
			o.first()
			if first == "reads" {
				o.Heard(r.Vouches(r.now), o.now)
			}
			o.scanAll()
			for o.now.Before(end.Add(-100 * time.Millisecond)) {
				if l := o.lock("k"); !l.ReliedOn() || l.HeldUntil().Sub(end).Abs() > 100*time.Millisecond {
					t.Fatalf("%s, %s before the end: %+v", name, end.Sub(o.now), l)
				}
				o.pass(200 * time.Millisecond)
				o.scanAll()
			}
		}
	}
}

// A step back makes the copies there last longer. The holder does not rely on them for longer, its TTL is not above
// the maximum, and what is left of them beyond the end is left over by the step.
func TestAStepBackMakesNoLongerGrant(t *testing.T) {
	const ttl = 28 * time.Second
	for _, by := range []time.Duration{20 * time.Second, 35 * time.Second} {
		for _, order := range []string{"step first", "copies first"} {
			name := by.String() + ", " + order
			r := newRig(5, 30*time.Second).first()
			r.pass(time.Hour)
			r.set("bare", "a", ttl, 2, 3, 4)
			r.set("four", "b", ttl, 0, 1, 2, 4)
			r.set("full", "c", ttl, 0, 1, 2, 3, 4)
			r.scanAll()
			end := r.lock("bare").HeldUntil()
			r.pass(4 * time.Second)
			for key, h := range r.servers[4] {
				h.expires = h.expires.Add(by)
				r.servers[4][key] = h
			}
			if order == "step first" {
				r.Stepped(4, -by, r.now)
				r.scanAll()
			} else {
				r.scanAll()
				r.Stepped(4, -by, r.now)
				r.Refresh(r.now)
			}
			for r.now.Before(end) {
				r.pass(200 * time.Millisecond)
				r.scanAll()
				for _, key := range []string{"bare", "four", "full"} {
					l := r.lock(key)
					if r.now.Before(end.Add(-300*time.Millisecond)) && (l.Over || l.State == monitor.LockOverTTL || l.HeldUntil().Sub(end).Abs() > 20*time.Millisecond) {
						t.Fatalf("%s, %s before the end: %s is %s until %s, over: %v, not until %s", name, end.Sub(r.now), key, l.State, l.HeldUntil(), l.Over, end)
					}
				}
			}
			r.rounds()
			for _, key := range []string{"bare", "four", "full"} {
				if l := r.lock(key); l.State != monitor.LockOrphaned || !l.LeftByStep || l.ReliedOn() {
					t.Errorf("%s: after the end: %s: %+v", name, key, l)
				}
			}
			o := newRig(5, 30*time.Second)
			o.now, o.servers = r.now, r.servers
			for i := range 5 {
				o.Met(i, Incarnation{Started: r.now.Add(-time.Hour)}, r.now)
			}
			o.Stepped(4, -by, r.now.Add(-ttl))
			o.Heard(r.Vouches(r.now), o.now)
			o.first()
			o.rounds()
			for _, key := range []string{"bare", "four", "full"} {
				if l := o.lock(key); l.State != monitor.LockOrphaned || !l.LeftByStep {
					t.Errorf("%s: after the end, a view that begins: %s: %+v", name, key, l)
				}
			}
			if text := r.text("orphaned"); !strings.Contains(text, "left over, by the step of a clock") {
				t.Errorf("%s: %q", name, text)
			}
			for _, kind := range []string{"lost majority", "over max TTL"} {
				if text := r.text(kind); text != "" && order == "step first" {
					t.Errorf("%s: %s", name, text)
				}
			}
		}
	}
}

// After a step back its holder extends a lock: then all copies count as they are.
func TestAnExtensionAfterAStepBack(t *testing.T) {
	const ttl, by = 28 * time.Second, 20 * time.Second
	for _, unread := range []bool{false, true} {
		r := newRig(5, 30*time.Second).first()
		r.pass(time.Hour)
		r.set("k", "a", ttl, 2, 3, 4)
		r.scanAll()
		r.pass(by)
		h := r.servers[4]["k"]
		h.expires = h.expires.Add(by)
		r.servers[4]["k"] = h
		r.Stepped(4, -by, r.now)
		if !unread {
			r.scanAll()
		}
		r.set("k", "a", ttl, 2, 3, 4)
		end := r.now.Add(ttl)
		for _, i := range []int{4, 2, 3} {
			r.scan(i)
		}
		if l := r.lock("k"); l.HeldUntil().Sub(end).Abs() > 20*time.Millisecond || l.Over {
			t.Errorf("unread %v: until %s, not %s", unread, l.HeldUntil(), end)
		}
	}
}

// A view that begins learns that a clock was stepped back, and which copies that left.
func TestAViewThatBeginsAfterAStepBack(t *testing.T) {
	const ttl, by = 28 * time.Second, 20 * time.Second
	for _, heard := range []string{"first", "later"} {
		r := newRig(5, 30*time.Second)
		r.pass(time.Hour)
		for i := range 5 {
			r.Met(i, Incarnation{Started: r.now.Add(-40 * time.Second)}, r.now)
		}
		r.set("k", "a", ttl, 2, 3, 4)
		end := r.now.Add(ttl)
		r.pass(4 * time.Second)
		h := r.servers[4]["k"]
		h.expires = h.expires.Add(by)
		r.servers[4]["k"] = h
		at := r.now
		r.pass(2 * time.Second)
		if heard == "first" {
			r.Stepped(4, -by, at)
		}
		r.first()
		if heard == "later" {
			r.Stepped(4, -by, at)
		}
		r.rounds()
		if l := r.lock("k"); l.State != monitor.LockBareMajority || l.Over || l.HeldUntil().Sub(end).Abs() > 20*time.Millisecond {
			t.Errorf("heard %s: %s until %s, not %s", heard, l.State, l.HeldUntil(), end)
		}
	}
}

// A view that begins learns only the steps forward, as a guard announces a limited number of locks: a holder may
// rely on the copies as long as before, and as long as on those that were not cut.
func TestAViewThatBeginsHearsOfStepsAlone(t *testing.T) {
	const ttl, by = 28 * time.Second, 12 * time.Second
	r := newRig(5, 30*time.Second)
	r.pass(time.Hour)
	for i := range 5 {
		r.Met(i, Incarnation{Started: r.now.Add(-time.Hour)}, r.now)
	}
	r.set("k", "a", ttl, 0, 1, 2, 3, 4)
	r.set("all", "b", ttl, 0, 1, 2)
	end := r.now.Add(ttl)
	r.pass(2 * time.Second)
	for i := range 3 {
		for key, h := range r.servers[i] {
			h.expires = h.expires.Add(-by)
			r.servers[i][key] = h
		}
	}
	at := r.now
	r.pass(time.Second)
	for i := range 3 {
		r.Stepped(i, by, at)
	}
	r.first()
	r.rounds()
	for _, key := range []string{"k", "all"} {
		if l := r.lock(key); !l.ReliedOn() || l.HeldUntil().Before(end.Add(-20*time.Millisecond)) || key == "k" && l.HeldUntil().After(end.Add(20*time.Millisecond)) {
			t.Errorf("%s: %s until %s, not %s", key, l.State, l.HeldUntil(), end)
		}
	}
}

// watch reads all nodes every 20 ms, for d.
func (r *rig) watch(d time.Duration) {
	for end := r.now.Add(d); r.now.Before(end); r.pass(20 * time.Millisecond) {
		r.scanAll()
	}
}

// An extension reaches a node right before a step of its clock takes the copy, which is read no more, and the other
// nodes a moment later: its holder has a majority, and relies on the new end, also where another client's vote was in
// the place of the copy for a moment.
func TestAnExtensionRightBeforeAStep(t *testing.T) {
	const ttl = 10 * time.Second
	r := newRig(5, ttl).first()
	r.Attempt = 3 * time.Second
	r.pass(time.Hour)
	r.set("k", "token-a", ttl, 0, 1, 2, 3, 4)
	r.scanAll()
	r.watch(time.Second)
	r.del("k", 0, 1)
	r.Stepped(0, 2*ttl, r.now)
	r.Stepped(1, 2*ttl, r.now)
	r.watch(1500 * time.Millisecond)
	end := r.now.Add(ttl)
	r.del("k", 2) // it was extended there, and nobody read that
	r.watch(150 * time.Millisecond)
	r.set("k", "token-b", ttl, 2)
	r.watch(20 * time.Millisecond)
	r.del("k", 2)
	r.watch(100 * time.Millisecond)
	r.Stepped(2, 2*ttl, r.now)
	r.Reachable(2, true)
	r.watch(1500 * time.Millisecond)
	r.set("k", "token-a", ttl, 3, 4)
	r.watch(200 * time.Millisecond)
	if l := r.lock("k"); !l.ReliedOn() || l.HeldUntil().Before(end.Add(-extendedBy)) {
		t.Errorf("%s until %s, and its holder relies on it until %s", l.State, l.HeldUntil(), end)
	}
}

// A step cuts a copy short, and extensions on the nodes that are left fail. When the copy has expired, the holder still
// relies on the end that it had before the step, and on no later one.
func TestACopyThatAStepCutExpires(t *testing.T) {
	const ttl, by = 15 * time.Second, 3 * time.Second
	r := newRig(5, ttl).first()
	r.Attempt = 2 * time.Second
	r.pass(time.Hour)
	r.set("k", "token-a", ttl, 0, 1, 4)
	r.scanAll()
	end := r.lock("k").HeldUntil()
	r.watch(time.Second)
	cut := r.servers[1]["k"]
	cut.expires = cut.expires.Add(-by)
	r.servers[1]["k"] = cut
	r.watch(150 * time.Millisecond)
	r.Stepped(1, by, r.now)
	r.Reachable(1, true)
	for r.now.Before(end.Add(-2500 * time.Millisecond)) {
		r.watch(2 * time.Second)
		r.set("k", "token-a", ttl, 0, 4)
		r.watch(200 * time.Millisecond)
		r.until(t, "an extension has failed", end)
	}
	if l := r.lock("k"); l.Lost != 1 {
		t.Errorf("%+v", l)
	}
	r.watch(3 * time.Second)
	if l := r.lock("k"); l.ReliedOn() {
		t.Errorf("after its end: %s until %s", l.State, l.HeldUntil())
	}
}
