package sim

import (
	"testing"

	"redlockctl/proof/sim/mutant"
	"redlockctl/proof/sim/schedule"
	"redlockctl/proof/sim/world"
)

// Copies are put back in so many schedules that it would be noticed if that were
// not safe.
func TestRepairsHappen(t *testing.T) {
	w, p := world.New(), new(schedule.Plan)
	for seed := range uint64(few(4000)) {
		p.Draw(seed, schedule.AllFaults)
		if w.Play(p, mutant.Right()); w.Broken != nil {
			t.Fatalf("seed %d: %s", seed, w.Broken.Text)
		}
	}
	if w.Stats.Repairs*20 < w.Stats.Schedules {
		t.Errorf("only %d copies were put back in %d schedules", w.Stats.Repairs, w.Stats.Schedules)
	}
}
