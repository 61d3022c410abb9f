package world

import (
	"testing"

	"redlockctl/internal/sim/mutant"
	"redlockctl/internal/sim/schedule"
)

// A world that has played other schedules plays this one as a new one does.
func TestNothingIsLeftOfTheScheduleBefore(t *testing.T) {
	used, p := New(), new(schedule.Plan)
	for seed := range uint64(200) {
		p.Draw(seed, schedule.AllFaults)
		before := used.Stats
		used.Play(p, mutant.Right())
		fresh, q := New(), new(schedule.Plan)
		q.Draw(seed, schedule.AllFaults)
		fresh.Play(q, mutant.Right())
		sum := before
		sum.Add(fresh.Stats)
		if used.Stats != sum || used.now != fresh.now {
			t.Fatalf("seed %d: %+v at %s, and alone %+v at %s", seed, used.Stats, used.now, fresh.Stats, fresh.now)
		}
	}
}

func BenchmarkSchedule(b *testing.B) {
	w, p, r := New(), new(schedule.Plan), mutant.Right()
	b.ReportAllocs()
	seed := uint64(0)
	for b.Loop() {
		p.Draw(seed, schedule.AllFaults)
		w.Play(p, r)
		seed++
	}
	b.ReportMetric(float64(seed)/b.Elapsed().Seconds(), "schedules/s")
}

// Each check of the witness must be able to fail.
func TestEachPropertyCanBeBroken(t *testing.T) {
	for p, weaken := range map[mutant.Property]func(*mutant.Rules){
		mutant.Exclusion:     func(r *mutant.Rules) { r.NoDrift = true },
		mutant.LeftBehind:    func(r *mutant.Rules) { r.ReleaseYesOnly = true },
		mutant.EarlyRejoin:   func(r *mutant.Rules) { r.Delay = 0.999 - 2*float64(schedule.MaxPPM)/1e6 },
		mutant.CordonRemoved: func(r *mutant.Rules) { r.GuardBroken, r.CordonIsFence = true, true },
	} {
		r := mutant.Right()
		r.Checks = 1 << p
		weaken(&r)
		w, pl := New(), new(schedule.Plan)
		for seed := range uint64(2000) {
			pl.Draw(seed, schedule.AllFaults)
			if w.Play(pl, r); w.Broken != nil {
				break
			}
		}
		if w.Broken == nil || w.Broken.Property != p {
			t.Errorf("%s is never broken", p)
		}
	}
}
