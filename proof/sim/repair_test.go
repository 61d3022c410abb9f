package sim

import (
	"testing"
	"time"

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

// A copy that expired behind a cordon is put back, without a restart.
func TestRepairsHappenBehindACordon(t *testing.T) {
	_, force, err := Config{Mutant: "repair-of-fenced"}.rules()
	if err != nil {
		t.Fatal(err)
	}
	w, p := world.New(), new(schedule.Plan)
	for seed := range uint64(few(400)) {
		p.Draw(seed, schedule.AllFaults)
		force(p)
		p.Fault[0], p.Faults = p.Fault[1], 1
		p.Fault[0].Length = 35 * time.Second
		for k := range p.Client[0].Attempt[0].Ext {
			p.Client[0].Attempt[0].Ext[k].Hold = 12 * time.Second
		}
		if w.Play(p, mutant.Right()); w.Broken != nil {
			t.Fatalf("seed %d: %s", seed, w.Broken.Text)
		}
	}
	if w.Stats.Repairs*2 < w.Stats.Schedules {
		t.Errorf("only %d copies were put back in %d schedules", w.Stats.Repairs, w.Stats.Schedules)
	}
}
