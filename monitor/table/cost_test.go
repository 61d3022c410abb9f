package table

import (
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
