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
