package sim

import "testing"

// A guard with a shorter D opens nothing before the longer one is over, as long as the
// guard that has the longer one lives. Where that is down, cut off, or not there yet,
// nobody can tell it of that: such lifts are excused, and few.
func TestALongerDelayIsHeardWhereItsGuardLives(t *testing.T) {
	for name, faults := range map[string]Faults{"it lives": AllFaults &^ FaultGuard, "all faults": AllFaults} {
		t.Run(name, func(t *testing.T) {
			n := uint64(few(3000))
			w, p := newWorld(), new(plan)
			for seed := range n {
				p.draw(seed, faults)
				differing(p)
				if w.run(p, right()); w.broken != nil {
					t.Fatalf("seed %d: %s", seed, w.broken.text)
				}
			}
			t.Logf("%d of %d lifts for want of a guard to hear of", w.stats.Unheard, w.stats.Removals)
			if w.stats.Removals < int64(n) {
				t.Errorf("only %d lifts in %d schedules", w.stats.Removals, n)
			}
			if faults.Has(FaultGuard) && w.stats.Unheard*50 > w.stats.Removals || !faults.Has(FaultGuard) && w.stats.Unheard > 0 {
				t.Errorf("%d of %d lifts are excused", w.stats.Unheard, w.stats.Removals)
			}
		})
	}
}
