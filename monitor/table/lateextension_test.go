package table

import (
	"testing"
	"time"

	"redlockctl/monitor"
)

// wipe empties some servers of the rig.
func (r *rig) wipe(nodes ...int) {
	for _, i := range nodes {
		clear(r.servers[i])
		r.Wiped(i, r.now)
	}
}

// until checks that the lock k may be relied on until then, and no longer.
func (r *rig) until(t *testing.T, when string, want time.Time) {
	t.Helper()
	if l := r.lock("k"); !l.ReliedOn() || l.HeldUntil().Sub(want).Abs() > extendedBy {
		t.Errorf("%s: %s until %s, not %s", when, l.State, l.HeldUntil(), want)
	}
}

// A node that was known to have lost its copy, or to have none, before an extension had no part in it. If too few
// others have the extension, it failed: the holder relies on the lock until the end before it.
func TestAFailedExtensionMovesNoEnd(t *testing.T) {
	const ttl = 28 * time.Second
	for name, c := range map[string]struct {
		granted []int
		silent  []int // after the failed extension
		again   bool  // it fails once more
	}{
		"on the nodes that are left":                      {granted: []int{0, 1, 2}},
		"it was granted on all":                           {granted: []int{0, 1, 2, 3, 4}},
		"then four nodes are silent for a while":          {granted: []int{0, 1, 2}, silent: []int{0, 1, 3, 4}},
		"granted on all, then four are silent":            {granted: []int{0, 1, 2, 3, 4}, silent: []int{0, 1, 3, 4}},
		"then all are silent":                             {granted: []int{0, 1, 2}, silent: []int{0, 1, 2, 3, 4}},
		"it fails again":                                  {granted: []int{0, 1, 2}, again: true},
		"it fails again, and four are silent for a while": {granted: []int{0, 1, 2}, silent: []int{0, 1, 3, 4}, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(5, 30*time.Second).first()
			r.pass(time.Hour)
			r.set("k", "a", ttl, c.granted...)
			end := r.now.Add(ttl)
			r.scanAll()
			r.pass(800 * time.Millisecond)
			r.wipe(2, 3, 4)
			r.scanAll()
			r.pass(4 * time.Second)
			r.scanAll()
			r.until(t, "after the loss", end)
			extend := func() {
				r.set("k", "a", ttl, 0, 1)
				r.scanAll()
				r.until(t, "after the failed extension", end)
				r.pass(3 * time.Second)
				r.scanAll()
				r.until(t, "later", end)
			}
			if extend(); c.again {
				extend()
			}
			for _, i := range c.silent {
				r.Unreachable(i, r.now)
				r.pass(10 * time.Millisecond)
			}
			r.pass(1500 * time.Millisecond)
			r.until(t, "in the silence", end)
			for _, i := range c.silent {
				r.Reachable(i, false)
				r.scan(i)
				r.until(t, "after the silence", end)
			}
			r.rounds()
			r.until(t, "at last", end)
			r.set("k", "b", ttl, 2) // another client's attempt
			r.scan(2)
			r.until(t, "with a copy of another client", end)
			r.del("k", 2)
			r.scan(2)
			r.pass(end.Sub(r.now) + time.Millisecond)
			r.rounds()
			if l := r.lock("k"); l.ReliedOn() || l.State != monitor.LockOrphaned {
				t.Errorf("after the end: %+v", l)
			}
		})
	}
}

// An extension that nodes may have received before they lost their copies, or while they were not seen, counts.
func TestAnExtensionThatOthersMayHaveReceivedMovesTheEnd(t *testing.T) {
	const ttl = 28 * time.Second
	for name, do := range map[string]func(r *rig){
		"just after the loss": func(r *rig) {
			r.wipe(2, 3, 4)
			r.scanAll()
			r.pass(500 * time.Millisecond)
			r.scanAll()
		},
		"just after the loss of two that may have forgotten a vote": func(r *rig) {
			r.wipe(2)
			r.scanAll()
			r.pass(100 * time.Millisecond)
			r.wipe(3, 4)
			r.scanAll()
			r.pass(950 * time.Millisecond)
			r.scanAll()
		},
		"the loss is known later": func(r *rig) {
			for i := 2; i < 5; i++ {
				r.Unreachable(i, r.now)
			}
			r.pass(4 * time.Second)
			r.scanAll()
		},
		"nodes were not seen since a while before it": func(r *rig) {
			r.wipe(2)
			r.scanAll()
			r.pass(2 * time.Second)
			r.scanAll()
			r.Unreachable(3, r.now)
			r.pass(2 * time.Second)
			r.scanAll()
		},
		"the copies were read long before it": func(r *rig) {
			r.wipe(2, 3, 4)
			for i := 2; i < 5; i++ {
				r.scan(i)
			}
			r.pass(4 * time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(5, 30*time.Second).first()
			r.pass(time.Hour)
			r.set("k", "a", ttl, 0, 1, 2)
			r.scanAll()
			r.pass(800 * time.Millisecond)
			lost := r.now
			do(r)
			r.set("k", "a", ttl, 0, 1)
			end := r.now.Add(ttl)
			r.scan(0)
			r.scan(1)
			for i := range 5 {
				if !r.nodes[i].reachable {
					if i == 2 {
						r.wipe(2)
					}
					r.Reachable(i, false)
				}
				r.scan(i)
			}
			want := lost.Add(31 * time.Second) // a vote that was lost then ends by then
			if want.After(end) {
				want = end
			}
			if l := r.lock("k"); l.HeldUntil().Before(want.Add(-extendedBy)) {
				t.Errorf("%s until %s, not %s", l.State, l.HeldUntil(), want)
			}
		})
	}
}

// A first look at copies that were extended too late says the same as the guard that saw how it came: the end that
// the guard announces.
func TestAFirstLookAfterAFailedExtension(t *testing.T) {
	const ttl = 28 * time.Second
	guard := newRig(5, 30*time.Second).first()
	guard.pass(time.Hour)
	guard.set("k", "token-a", ttl, 0, 1, 2)
	end := guard.now.Add(ttl)
	guard.scanAll()
	guard.pass(800 * time.Millisecond)
	guard.wipe(2, 3, 4)
	guard.scanAll()
	guard.pass(4 * time.Second)
	guard.scanAll()
	guard.set("k", "token-a", ttl, 0, 1)
	guard.scanAll()
	guard.pass(time.Second)
	guard.until(t, "the guard", end)

	other := newRig(5, 30*time.Second)
	other.now, other.servers = guard.now, guard.servers
	for i := range 5 {
		other.Met(i, Incarnation{Started: other.now.Add(-ago(i > 1, 0)), Fenced: i > 1}, other.now)
		other.Reachable(i, i > 1)
	}
	other.Heard(guard.Vouches(guard.now), other.now)
	other.first()
	for range 4 {
		other.pass(200 * time.Millisecond)
		other.Heard(guard.Vouches(other.now), other.now)
		other.scanAll()
		other.until(t, "the first look", end)
	}
}
