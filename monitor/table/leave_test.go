package table

import (
	"slices"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/server/announce"
)

// briefly locks and releases k again and again with new tokens on these nodes, and returns when each
// had its majority.
func (r *rig) briefly(n int, held time.Duration, nodes ...int) (began []time.Time) {
	for k := range n {
		token := "token-" + string(rune('b'+k))
		r.set("k", token, 5*time.Second, nodes...)
		r.scanAll()
		began = append(began, r.now)
		for end := r.now.Add(held); r.now.Before(end); r.pass(10 * time.Millisecond) {
			r.scanAll()
		}
		r.del("k", nodes...)
		for end := r.now.Add(held); r.now.Before(end); r.pass(10 * time.Millisecond) {
			r.scanAll()
		}
	}
	return began
}

// A release that never reaches one node delays no grant after it, and hides none: a majority of a new
// token is a grant at once. What the copy that is left means is decided meanwhile.
func TestALeftOverCopyDelaysNoGrant(t *testing.T) {
	for name, held := range map[string]time.Duration{"for a moment each": 100 * time.Millisecond, "for long": 1200 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			r := newRig(5, time.Minute).first()
			r.pass(time.Hour)
			r.set("k", "token-a", 30*time.Second, 0, 1, 2, 3, 4)
			r.scanAll()
			r.pass(time.Second)
			r.del("k", 0, 1, 2, 3)
			r.scanAll()
			r.pass(100 * time.Millisecond)
			began := r.briefly(10, held, 0, 1, 2, 3)
			r.pass(2 * time.Second)
			r.scanAll()
			at := map[string]time.Time{}
			ended := map[string][]string{}
			for _, e := range r.events {
				if token := e.Token.Raw(); e.Kind == "acquired" {
					at[token] = e.At
				} else if token != "" {
					ended[token] = append(ended[token], e.Kind)
				}
			}
			for k, want := range began {
				token := "token-" + string(rune('b'+k))
				if got := at[token]; got.Sub(want).Abs() > 50*time.Millisecond {
					t.Errorf("%s: acquired at %s, want %s", token, got, want)
				}
				if got := ended[token]; !slices.Equal(got, []string{"released"}) {
					t.Errorf("%s: %v", token, got)
				}
			}
			if got := ended["token-a"]; !slices.Equal(got, []string{"lost majority"}) {
				t.Errorf("the first: %v", got)
			}
		})
	}
}

// A release of which the last part comes after another client got in is a release.
func TestALateReleaseAfterTheNextGrant(t *testing.T) {
	r := newRig(5, time.Minute).first()
	r.pass(time.Hour)
	r.set("k", "token-a", 30*time.Second, 0, 1, 2, 3, 4)
	r.scanAll()
	r.pass(time.Second)
	r.del("k", 0, 1, 2, 3)
	r.set("k", "token-b", 30*time.Second, 0, 1, 2, 3)
	for range 60 {
		r.scanAll()
	}
	r.del("k", 4)
	r.scanAll()
	r.scanAll()
	r.pass(2 * time.Second)
	if got := r.kinds(); !slices.Equal(got, []string{"acquired", "split", "acquired", "released"}) && !slices.Equal(got, []string{"acquired", "acquired", "split", "released"}) {
		t.Error(got)
	}
	if l := r.lock("k"); l.State != monitor.LockHeld || l.Holder.Raw() != "token-b" || l.Earlier != nil {
		t.Errorf("%+v", l)
	}
}

// Somebody deletes three of five copies, and another client gets in at once: it begins at once, and
// the first one, whose other copies stay, lost its majority and relies on the lock besides.
func TestARivalThatGetsInWithADeletion(t *testing.T) {
	r := newRig(5, time.Minute).first()
	r.pass(time.Hour)
	r.set("k", "token-a", 30*time.Second, 0, 1, 2, 3, 4)
	r.scanAll()
	end := r.lock("k").HeldUntil()
	r.pass(time.Second)
	r.set("k", "token-b", 30*time.Second, 0, 1, 2)
	begin := r.now
	for r.now.Before(begin.Add(1500 * time.Millisecond)) {
		r.scanAll()
		r.pass(20 * time.Millisecond)
	}
	at := map[string]time.Duration{}
	for _, e := range r.events {
		at[e.Kind+" "+e.Token.Raw()] = e.At.Sub(begin)
	}
	if got, ok := at["acquired token-b"]; !ok || got > 50*time.Millisecond {
		t.Errorf("acquired after %s: %v", got, r.kinds())
	}
	if got, ok := at["lost majority token-a"]; !ok || got < releasePatience || got > releasePatience+100*time.Millisecond {
		t.Errorf("the loss is told after %s: %v", got, r.kinds())
	}
	if l := r.lock("k"); l.State != monitor.LockSplit || l.Holder.Raw() != "token-b" || l.Earlier == nil || l.Earlier.Token.Raw() != "token-a" || l.Earlier.Until.Sub(end).Abs() > 10*time.Millisecond {
		t.Errorf("%+v", l)
	}
	r.del("k", 0, 1, 2)
	r.scanAll()
	r.scanAll()
	r.scanAll()
	if l := r.lock("k"); l.State != monitor.LockLostMajority || l.Holder.Raw() != "token-a" {
		t.Errorf("once it has gone: %+v", l)
	}
}

// A copy whose deletion was seen before the next client got in, and which that replaces then, was not lost: the
// release is still going on, also where nodes are known for too short a time to rule out forgotten votes.
func TestACopyOfAReleaseIsNotLostWhenItIsReplaced(t *testing.T) {
	r := newRig(5, time.Minute).first()
	r.pass(time.Second)
	r.set("k", "token-a", 10*time.Second, 0, 1, 2, 3, 4)
	r.scanAll()
	r.pass(50 * time.Millisecond)
	r.del("k", 3)
	r.scanAll()
	r.del("k", 0, 1, 4)
	r.set("k", "token-b", 10*time.Second, 0, 1, 4)
	r.scanAll()
	r.pass(confirmsWithin + 10*time.Millisecond)
	r.set("k", "token-b", 10*time.Second, 3)
	r.scanAll()
	r.pass(10 * time.Millisecond)
	r.del("k", 2)
	r.set("k", "token-b", 10*time.Second, 2)
	r.scanAll()
	r.scanAll()
	r.pass(2 * time.Second)
	if l := r.lock("k"); l.State == monitor.LockSplit || l.Earlier != nil || slices.Contains(r.kinds(), "split") {
		t.Errorf("%+v, %v", l, r.kinds())
	}
}

// A holder extends its lock and releases it at once, which one node refuses, and another client gets in. A guard does
// not announce the first holder while its copies are being deleted, and ignores such an announcement.
func TestAReleaseRightAfterAnExtension(t *testing.T) {
	released := func() *rig {
		r := newRig(5, 6*time.Second).first()
		r.pass(time.Hour)
		r.set("k", "token-a", 5*time.Second, 0, 1, 2, 3, 4)
		r.scanAll()
		r.pass(500 * time.Millisecond)
		r.Reachable(1, true)
		r.pass(2 * time.Second)
		r.scanAll()
		r.set("k", "token-a", 5*time.Second, 0, 2, 3, 4)
		r.scan(0)
		r.scan(2)
		r.scan(3)
		r.del("k", 0, 2, 3, 4)
		r.scan(0)
		r.pass(5 * time.Millisecond)
		return r
	}
	r := released()
	if g := r.records["k"].grant; !g.shrank || g.deleted == 0 {
		t.Fatalf("%+v", g)
	}
	if all := r.Vouches(r.now); len(all) > 0 {
		t.Errorf("it announces %+v", all)
	}
	r.set("k", "token-b", 5*time.Second, 0, 2, 3, 4)
	for _, i := range []int{0, 2, 3, 4} {
		r.scan(i)
	}
	r.pass(2 * confirmsWithin)
	if len(r.leaving) == 0 {
		t.Fatal("its end is known")
	}
	r.Heard([]announce.Lock{announceLock("k", "token-a", r.now.Add(4*time.Second))}, r.now)
	for range 40 {
		if r.pass(time.Millisecond); r.lock("k").State == monitor.LockSplit {
			t.Fatalf("%+v", r.lock("k"))
		}
	}
	r.scanAll()
	r.pass(2 * time.Second)
	if got := r.kinds(); slices.Contains(got, "split") || !slices.Contains(got, "released") {
		t.Error(got)
	}
}
