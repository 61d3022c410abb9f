package sim

import "testing"

// Copies are put back in so many schedules that it would be noticed if that were
// not safe.
func TestRepairsHappen(t *testing.T) {
	w, p := newWorld(), new(plan)
	for seed := range uint64(few(4000)) {
		p.draw(seed, AllFaults)
		if w.run(p, right()); w.broken != nil {
			t.Fatalf("seed %d: %s", seed, w.broken.text)
		}
	}
	if w.stats.Repairs*20 < w.stats.Schedules {
		t.Errorf("only %d copies were put back in %d schedules", w.stats.Repairs, w.stats.Schedules)
	}
}
