package sim

import (
	"testing"

	"redlockctl/proof/sim/mutant"
	"redlockctl/proof/sim/schedule"
	"redlockctl/proof/sim/world"
)

// A guard with a shorter D lets no node rejoin before the longer D has passed, as long
// as the guard with the longer one runs. If that guard is down, cut off, or not started
// yet, the other cannot know its D: such rejoins are excused, and rare.
func TestALongerDelayIsHeardWhereItsGuardLives(t *testing.T) {
	for name, faults := range map[string]schedule.Faults{"it lives": schedule.AllFaults &^ schedule.FaultGuard, "all faults": schedule.AllFaults} {
		t.Run(name, func(t *testing.T) {
			n := uint64(few(3000))
			m, _ := mutant.Named("latest-delay")
			w, p := world.New(), new(schedule.Plan)
			for seed := range n {
				p.Draw(seed, faults)
				m.Force(p)
				if w.Play(p, mutant.Right()); w.Broken != nil {
					t.Fatalf("seed %d: %s", seed, w.Broken.Text)
				}
			}
			t.Logf("%d of %d rejoins for want of a guard to hear of", w.Stats.Unheard, w.Stats.Rejoins)
			if w.Stats.Rejoins < int64(n) {
				t.Errorf("only %d rejoins in %d schedules", w.Stats.Rejoins, n)
			}
			if faults.Has(schedule.FaultGuard) && w.Stats.Unheard*50 > w.Stats.Rejoins || !faults.Has(schedule.FaultGuard) && w.Stats.Unheard > 0 {
				t.Errorf("%d of %d rejoins are excused", w.Stats.Unheard, w.Stats.Rejoins)
			}
		})
	}
}
