package table

import (
	"testing"
	"time"

	"redlockctl/monitor"
)

// Whoever looks at fenced nodes for the first time says the same end of a lock, whenever that is,
// if a guard announces since when they are fenced: no vote is given or extended there.
func TestTheEndOnFencedNodesDoesNotMove(t *testing.T) {
	fenced := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for known, moves := range map[bool]bool{true: false, false: true} {
		var ends []time.Time
		for _, after := range []time.Duration{time.Minute, 5 * time.Minute} {
			r := newRig(5, 10*time.Minute)
			r.now = fenced.Add(after)
			for i := range 5 {
				inc := Incarnation{Started: fenced, Fenced: true}
				if known {
					inc.Lost = fenced
				}
				r.Met(i, inc, r.now)
				r.Reachable(i, true)
			}
			for i := range 2 {
				r.servers[i]["k"] = held{typ: "string", token: "a", expires: fenced.Add(8 * time.Minute)}
			}
			r.first()
			for range 12 {
				r.pass(200 * time.Millisecond)
				r.scanAll()
			}
			l := r.lock("k")
			if l.State != monitor.LockMayBeHeld {
				t.Fatalf("%+v", l)
			}
			ends = append(ends, l.HeldUntil())
		}
		if moved := ends[1].Sub(ends[0]) > time.Second; moved != moves {
			t.Errorf("known %t: %s", known, ends)
		}
		if last := fenced.Add(10*time.Minute + 5*time.Second); known && ends[0].After(last) {
			t.Errorf("%s is after %s", ends[0], last)
		}
	}
}
