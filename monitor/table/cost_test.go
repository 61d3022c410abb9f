package table

import (
	"fmt"
	"testing"
	"time"

	"redlockctl/monitor"
)

// The cost of a restart or a wipe goes by the token that lost its copy: another client may have the
// majority by the time of the event, and what another client loses is no loss of the holder.
func TestTheCostOfALossGoesByItsToken(t *testing.T) {
	const ttl = 28 * time.Second
	all := []int{0, 1, 2, 3, 4}
	type cost struct{ lost, bare, fell, others int }
	restart := func(r *rig) { r.restart(2, false, false) }
	for name, c := range map[string]struct {
		before, after func(r *rig) // the loss
		lose          func(r *rig)
		unread        bool // the process was stopped: all nodes must be read again
		want          cost
	}{
		"another client gets in while this process is stopped": {
			before: func(r *rig) { r.set("k", "a", ttl, 0, 1, 2) },
			after:  func(r *rig) { r.set("k", "b", ttl, 2, 3, 4) },
			lose:   restart, unread: true, want: cost{lost: 1, fell: 1},
		},
		"another client gets a minority": {
			before: func(r *rig) { r.set("k", "a", ttl, 0, 1, 2) },
			after:  func(r *rig) { r.set("k", "b", ttl, 2) },
			lose:   restart, unread: true, want: cost{lost: 1, fell: 1},
		},
		"four are left, and a minority": {
			before: func(r *rig) { r.set("k", "a", ttl, all...) },
			after:  func(r *rig) { r.set("k", "b", ttl, 2) },
			lose:   restart, unread: true, want: cost{lost: 1},
		},
		"three are left": {
			before: func(r *rig) { r.set("k", "a", ttl, 0, 1, 2, 3) },
			lose:   restart, unread: true, want: cost{lost: 1, bare: 1},
		},
		"three are left, at once": {
			before: func(r *rig) { r.set("k", "a", ttl, 0, 1, 2, 3) },
			lose:   restart, want: cost{lost: 1, bare: 1},
		},
		"a rival loses its copy": {
			before: func(r *rig) { r.set("k", "a", ttl, 0, 1, 3); r.set("k", "b", ttl, 2, 4) },
			lose:   restart, want: cost{others: 1},
		},
		"a rival's copy is wiped": {
			before: func(r *rig) { r.set("k", "a", ttl, 0, 1, 3); r.set("k", "b", ttl, 2, 4) },
			lose:   func(r *rig) { clear(r.servers[2]); r.Wiped(2, r.now) }, want: cost{others: 1},
		},
		"the holder's copy is wiped": {
			before: func(r *rig) { r.set("k", "a", ttl, 0, 1, 2) },
			lose:   func(r *rig) { clear(r.servers[2]); r.Wiped(2, r.now) }, want: cost{lost: 1, fell: 1},
		},
		"a minority loses a copy": {
			before: func(r *rig) { r.set("k", "a", ttl, 2, 4) },
			lose:   restart, want: cost{lost: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(5, 30*time.Second).first()
			r.pass(time.Hour)
			c.before(r)
			r.rounds()
			var got cost
			told := 0
			r.OnRestart = func(_ int, c monitor.RestartCost, _ time.Time) {
				told++
				got = cost{c.Lost, c.Bare, c.LostMajority, c.Others}
			}
			if c.unread {
				for i := range r.servers {
					r.Doubt(i)
				}
			}
			c.lose(r)
			if c.after != nil {
				c.after(r)
			}
			r.Refresh(r.now)
			r.rounds()
			if told != 1 || got != c.want {
				t.Errorf("told %d times: %+v, want %+v; it is %s", told, got, c.want, r.lock("k").State)
			}
		})
	}
}

// Nodes crash while a lock is held and come back empty after its end: their copies were lost while its holder
// relied on them. A lock that was released meanwhile, or whose node only did not answer, lost nothing so.
func TestCopiesThatExpireWhileTheirNodeIsDown(t *testing.T) {
	for name, c := range map[string]struct {
		down           []int
		released, back bool // back: the servers ran on
		want           int  // copies of each node
	}{
		"a majority crashes":                        {down: []int{0, 1, 2}, want: 1},
		"a minority crashes":                        {down: []int{0, 1}, want: 1},
		"all crash":                                 {down: []int{0, 1, 2, 3, 4}, want: 1},
		"a minority crashes, and it is released":    {down: []int{0, 1}, released: true},
		"a majority does not answer, crashes later": {down: []int{0, 1, 2}, back: true},
	} {
		for _, skew := range []time.Duration{0, 3 * time.Millisecond} {
			t.Run(fmt.Sprint(name, skew), func(t *testing.T) {
				r := newRig(5, 30*time.Second).first()
				r.pass(time.Hour)
				for i := range 5 {
					r.set("k", "a", 10*time.Second-time.Duration(i)*skew, i)
				}
				r.scanAll()
				r.scanAll()
				end := r.now.Add(10 * time.Second)
				for _, i := range c.down {
					r.Unreachable(i, r.now)
				}
				r.pass(2 * time.Second)
				if c.released {
					r.del("k", 2, 3, 4)
					r.rounds()
				}
				for range 50 {
					r.pass(250 * time.Millisecond)
				}
				told := 0
				r.OnRestart = func(_ int, cost monitor.RestartCost, _ time.Time) {
					told++
					if cost.Expired != c.want || c.want > 0 && (cost.ExpiredAt.Sub(end).Abs() > time.Second || len(cost.Locks) != 1 || cost.Lost != 0) {
						t.Errorf("%+v", cost)
					}
				}
				if c.back {
					for _, i := range c.down {
						r.Reachable(i, false)
						r.scan(i)
						r.Unreachable(i, r.now)
					}
				}
				for _, i := range c.down {
					r.restart(i, false, false)
				}
				r.rounds()
				if told != len(c.down) {
					t.Error(told, r.kinds())
				}
			})
		}
	}
}

// A wipe took a copy, and another client's is read in its place: it was lost all the same.
func TestACopyThatWasReplacedAfterAWipe(t *testing.T) {
	r := newRig(5, time.Minute).first()
	r.pass(time.Hour)
	r.set("k", "token-a", 30*time.Second, 0, 1, 4)
	r.scanAll()
	var cost monitor.RestartCost
	r.OnRestart = func(_ int, c monitor.RestartCost, _ time.Time) { cost = c }
	r.pass(time.Second)
	r.wipe(0)
	r.set("k", "token-b", 30*time.Second, 0, 2, 3)
	r.scanAll()
	r.pass(2 * time.Second)
	if cost.Lost != 1 || cost.LostMajority != 1 {
		t.Errorf("%+v", cost)
	}
}
