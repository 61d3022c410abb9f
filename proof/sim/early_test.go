package sim

import (
	"testing"

	"redlockctl/proof/sim/mutant"
	"redlockctl/proof/sim/schedule"
	"redlockctl/proof/sim/world"
)

// Early rejoin lets nothing happen either, as long as clients keep to the bound of
// an attempt.
func TestEarlyRejoinLetsNothingHappen(t *testing.T) {
	n := few(20_000)
	r := play(t, Config{Seed: 900_000, Schedules: n, Faults: schedule.AllFaults, EarlyRejoin: true})
	if v := r.Violation; v != nil {
		t.Fatalf("seed %d: %s: %s\n%s\n%v", v.Seed, v.Property, v.What, v.About, v.Trace)
	}
	if r.Early < n/10 {
		t.Errorf("only %d early rejoins in %d schedules: %+v", r.Early, n, r.Stats)
	}
}

// What is forced upon the schedules of a mutant of early rejoin breaks nothing by
// itself, with early rejoin unchanged.
func TestMutantsOfEarlyRejoinAreKilled(t *testing.T) {
	n := uint64(few(1500))
	r := mutant.Right()
	r.EarlyRejoin = true
	for _, m := range mutant.All() {
		if !m.Rules().EarlyRejoin || m.Force == nil {
			continue
		}
		w, p := world.New(), new(schedule.Plan)
		for seed := range n {
			p.Draw(1+seed, schedule.AllFaults)
			m.Force(p)
			if w.Play(p, r); w.Broken != nil {
				t.Errorf("%s: seed %d breaks without the mutant: %s", m.Name, 1+seed, w.Broken.Text)
				break
			}
		}
		if w.Stats.Early == 0 {
			t.Errorf("%s: no master rejoins early in %d schedules", m.Name, n)
		}
	}
}
