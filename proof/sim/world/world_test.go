package world

import (
	"testing"

	"redlockctl/proof/sim/mutant"
	"redlockctl/proof/sim/schedule"
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
	for p, name := range map[mutant.Property]string{
		mutant.Exclusion: "no-drift-allowance", mutant.LeftBehind: "release-yes-only", mutant.EarlyRejoin: "delay-0.98", mutant.CordonRemoved: "cordon-is-fence",
	} {
		m, _ := mutant.Named(name)
		r := m.Rules()
		r.Checks = 1 << p
		w, pl := New(), new(schedule.Plan)
		for seed := range uint64(2000) {
			pl.Draw(seed, schedule.AllFaults)
			if w.Play(pl, r); w.Broken != nil {
				break
			}
		}
		if m.Name == "" || w.Broken == nil || w.Broken.Property != p {
			t.Errorf("%s is never broken", p)
		}
	}
}
