package table

import (
	"slices"
	"testing"
	"time"

	"redlockctl/monitor"
)

// A contender whose copies, with all that may be unseen, are no quorum is no second holder of a lock that
// has lost its majority. It may be one if it can have copies on a node that does not answer.
func TestAContenderOfALostMajority(t *testing.T) {
	const ttl, over = 30 * time.Second, 3 * time.Minute
	for name, c := range map[string]struct {
		ttl    time.Duration // of the holder
		silent bool
		nodes  []int // on which the contender has a copy
		want   monitor.LockState
	}{
		"one copy":                         {ttl, false, []int{0}, monitor.LockLostMajority},
		"two copies":                       {ttl, false, []int{0, 1}, monitor.LockLostMajority},
		"two copies, and a node is silent": {ttl, true, []int{0, 1}, monitor.LockSplit},
		"a quorum":                         {ttl, false, []int{0, 1, 2}, monitor.LockSplit},
		"one copy, over the maximum":       {over, false, []int{0}, monitor.LockOverTTL},
	} {
		r := newRig(5, time.Minute).first()
		r.pass(time.Hour)
		r.set("k", "a", c.ttl, 0, 1, 2, 3, 4)
		r.scanAll()
		r.pass(2 * time.Second)
		for i := range 3 {
			r.restart(i, false, true)
			r.del("k", i)
		}
		r.scanAll()
		r.pass(3 * time.Second)
		r.scanAll()
		if l := r.lock("k"); !l.LostMajority() {
			t.Fatalf("%s: before: %+v", name, l)
		}
		if c.silent {
			r.Unreachable(2, r.now)
		}
		r.events = nil
		r.set("k", "b", 10*time.Second, c.nodes...)
		for range 6 {
			r.scanAll()
			r.pass(500 * time.Millisecond)
		}
		l := r.lock("k")
		if l.State != c.want || l.Tokens != 2 || (c.want == monitor.LockSplit) == (l.Earlier == nil) {
			t.Errorf("%s: %+v", name, l)
		}
		if alarm := r.text("split") != ""; alarm != (c.want == monitor.LockSplit) {
			t.Errorf("%s: %v", name, r.kinds())
		}
		if c.want != monitor.LockSplit && (l.Holder.Raw() != "a" || l.Held != 2) {
			t.Errorf("%s: %+v", name, l)
		}
	}
}

// Where two clients rely on a lock is an alarm of its own, also after it was told that several tokens
// have copies; an attempt that failed beside a holder is none.
func TestTwoHoldersAreToldApartFromAFailedAttempt(t *testing.T) {
	const ttl = 28 * time.Second
	for name, c := range map[string]struct {
		deleted bool // a vote of the holder, before the other client comes
		nodes   []int
		want    []string
	}{
		"a failed attempt": {false, []int{3, 4}, []string{"notice: several tokens at once"}},
		"a vote was deleted, and another client got in": {true, []int{2, 3, 4}, []string{"notice: several tokens at once",
			"alarm: another client got in before the holder's end: two clients rely on the lock"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(5, 30*time.Second).first()
			r.pass(time.Hour)
			r.set("k", "a", ttl, 0, 1, 2)
			r.scanAll()
			r.pass(time.Second)
			if c.deleted {
				r.del("k", 2)
			}
			r.set("k", "b", ttl, c.nodes...)
			for range 20 {
				r.scanAll()
				r.pass(200 * time.Millisecond)
			}
			var got []string
			for _, e := range r.events {
				if e.Kind == "split" {
					got = append(got, e.Level.String()+": "+e.Text.String())
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q", got)
			}
		})
	}
}

// Where two clients may rely on a lock, that is its state, also if one of them set no TTL.
func TestTwoHoldersOfWhomOneSetNoTTL(t *testing.T) {
	r := newRig(5, 30*time.Second).first()
	r.pass(time.Hour)
	r.set("k", "a", 0, 0, 1, 2)
	r.rounds()
	if l := r.lock("k"); l.State != monitor.LockNoTTL || !l.Unending {
		t.Fatalf("%+v", l)
	}
	r.set("k", "b", 10*time.Second, 3) // an attempt
	r.rounds()
	if l := r.lock("k"); l.State != monitor.LockNoTTL {
		t.Errorf("%+v", l)
	}
	r.del("k", 2)
	r.set("k", "b", 10*time.Second, 2, 3, 4)
	r.rounds()
	l := r.lock("k")
	if l.State != monitor.LockSplit || l.Earlier == nil || l.Earlier.Token.Raw() != "a" || !l.Earlier.Until.IsZero() || !monitor.ParseFilter("state:split").Match(l, nil) {
		t.Errorf("%+v", l)
	}
	if !slices.Contains(r.kinds(), "split") {
		t.Error(r.kinds())
	}
	r.pass(10 * time.Second)
	r.rounds()
	if l := r.lock("k"); l.State != monitor.LockNoTTL || l.Holder.Raw() != "a" || l.Earlier != nil {
		t.Errorf("after the second client's end: %+v", l)
	}
}

// Several tokens of which none is known to be relied on are a split, also where a copy lasts for longer than the
// cluster's maximum.
func TestAContenderBesideACopyOverTheMaximum(t *testing.T) {
	r := newRig(7, time.Minute).first()
	r.pass(time.Hour)
	r.set("k", "a", 0, 2)
	r.scanAll()
	for i := range 4 {
		r.restart(i, false, true)
		r.del("k", i)
	}
	r.set("k", "a", 2*time.Minute, 4)
	r.scanAll()
	r.pass(1500 * time.Millisecond)
	r.scanAll()
	r.set("k", "b", 20*time.Second, 5)
	for range 6 {
		r.scanAll()
		r.pass(500 * time.Millisecond)
	}
	if l := r.lock("k"); l.State != monitor.LockSplit || !l.Over {
		t.Errorf("%+v", l)
	}
}

// A majority that has no copy to lose is shown so, whatever a client does whose attempts fail on the other nodes.
func TestABareMajorityBesideFailingAttempts(t *testing.T) {
	r := newRig(5, time.Minute).first()
	r.pass(time.Hour)
	r.set("k", "a", 30*time.Second, 0, 1, 2)
	r.rounds()
	if l := r.lock("k"); l.State != monitor.LockBareMajority {
		t.Fatalf("%+v", l)
	}
	for range 20 {
		for _, nodes := range [][]int{{3}, {3, 4}} {
			r.set("k", "b", 10*time.Second, nodes...)
			for _, i := range []int{3, 4, 0} {
				r.scan(i)
				if l := r.lock("k"); l.State != monitor.LockBareMajority && l.State != monitor.LockSplit {
					t.Fatalf("%s, with %d copies", l.State, l.Held)
				}
			}
			r.scanAll()
			r.del("k", 3, 4)
			for _, i := range []int{4, 3} {
				r.scan(i)
				if l := r.lock("k"); l.State != monitor.LockBareMajority && l.State != monitor.LockSplit {
					t.Fatalf("%s, with %d copies", l.State, l.Held)
				}
			}
			r.pass(20 * time.Millisecond)
		}
	}
	r.set("k", "a", 30*time.Second, 0, 1, 2, 3)
	r.scanAll()
	if l := r.lock("k"); l.State != monitor.LockHeld {
		t.Errorf("four copies: %s", l.State)
	}
}
