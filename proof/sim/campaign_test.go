package sim

import (
	"context"
	"errors"
	"slices"
	"testing"

	"redlockctl/base/race"
	"redlockctl/proof/sim/mutant"
	"redlockctl/proof/sim/schedule"
	"redlockctl/proof/sim/trace"
	"redlockctl/proof/sim/world"
)

func play(t *testing.T, cfg Config) Report {
	t.Helper()
	r, err := Run(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// few is how many schedules to play of so many: a fifth with -short, as in CI. The race
// detector makes each ten times slower, and sees as much in few of them as in many.
func few(n int64) int64 {
	switch {
	case race.Enabled:
		return n / 20
	case testing.Short():
		return n / 5
	}
	return n
}

func TestTheGuardLetsNothingHappen(t *testing.T) {
	n := few(20_000)
	r := play(t, Config{Seed: 500_000, Schedules: n, Faults: schedule.AllFaults})
	if v := r.Violation; v != nil {
		t.Fatalf("seed %d: %s: %s\n%s\n%v", v.Seed, v.Property, v.What, v.About, v.Trace)
	}
	if race.Enabled {
		return // of so few schedules chance decides how much has happened
	}
	// That nothing was found means something only if much has happened.
	for what, got := range map[string]int64{
		"grants": r.Grants, "extensions": 3 * r.Extensions, "crashes": r.Crashes, "votes forgotten": r.LostVotes,
		"rejoins": r.Rejoins, "crashes of guards": 20 * r.GuardCrashes,
	} {
		if got < n {
			t.Errorf("too few %s in %d schedules: %+v", what, n, r.Stats)
		}
	}
	if r.Exposed > n/10 {
		t.Errorf("%d of %d schedules are excused for an open master: that hides too much", r.Exposed, n)
	}
}

func TestWithoutFaultsNothingIsFoundOrLost(t *testing.T) {
	r := play(t, Config{Seed: 1, Schedules: few(5000), Faults: schedule.NoFaults})
	if r.Violation != nil {
		t.Fatalf("%+v", r.Violation)
	}
	if r.Crashes+r.LostVotes+r.GuardCrashes+r.Exposed > 0 {
		t.Errorf("faults in a schedule without any: %+v", r.Stats)
	}
}

func TestWeakGuardsAreFoundSoon(t *testing.T) {
	for name, c := range map[string]struct {
		cfg    Config
		within int64
	}{
		"no guard":     {Config{WithoutGuard: true}, 50},
		"0.9 of D":     {Config{Delay: 0.9}, 200},
		"0.98 of D":    {Config{Delay: 0.98}, 2000},
		"only crashes": {Config{Delay: 0.9, Faults: schedule.FaultCrash}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			c.cfg.Seed, c.cfg.Schedules = 1, 10*c.within
			if c.cfg.Faults == 0 {
				c.cfg.Faults = schedule.AllFaults
			}
			v := play(t, c.cfg).Violation
			if v == nil {
				t.Fatal("not found")
			}
			if v.Property != mutant.Exclusion || v.Played > c.within {
				t.Errorf("%s in schedule %d, not in the first %d", v.Property, v.Played, c.within)
			}
			if len(v.Trace) > 40 {
				t.Errorf("a trace of %d lines is not for people", len(v.Trace))
			}
			if last := v.Trace[len(v.Trace)-1]; last.Who != "!!" || last.Text != v.What {
				t.Errorf("the trace ends with %+v, and the witness said %q", last, v.What)
			}
		})
	}
}

// The edge of safety lies where the arithmetic says, at 0.9864 × D: a client's
// own drift allowance covers the last percent (see proof/simulator.md).
func TestTheEdgeOfDelay(t *testing.T) {
	if r := play(t, Config{Seed: 1, Schedules: few(10_000), Faults: schedule.AllFaults, Delay: 0.99}); r.Violation != nil {
		t.Errorf("0.99 of D is found: %+v", r.Violation)
	}
}

func TestASeedIsASchedule(t *testing.T) {
	cfg := Config{Seed: 40, Schedules: 3000, Faults: schedule.AllFaults, Delay: 0.98}
	cfg.Workers = 1
	one := play(t, cfg).Violation
	cfg.Workers = 3
	three := play(t, cfg).Violation
	if one == nil || three == nil {
		t.Fatal("not found")
	}
	if one.Seed != three.Seed || !slices.Equal(one.Trace, three.Trace) {
		t.Errorf("one worker finds seed %d, three find %d", one.Seed, three.Seed)
	}
	cfg.Seed, cfg.Schedules = one.Seed, 1
	again := play(t, cfg).Violation
	if again == nil || !slices.Equal(one.Trace, again.Trace) {
		t.Errorf("seed %d played alone is another schedule", one.Seed)
	}
}

func TestShrinkingKeepsTheViolationAndDropsTheRest(t *testing.T) {
	r := mutant.Right()
	r.Delay, r.Checks = 0.9, 1<<mutant.Exclusion
	w, p := world.New(), new(schedule.Plan)
	found := 0
	for seed := range uint64(300) {
		p.Draw(seed, schedule.AllFaults)
		if w.Play(p, r); w.Broken == nil {
			continue
		}
		found++
		enough := 5
		if race.Enabled {
			enough = 1
		}
		length := func(p *schedule.Plan) int {
			w.Trace = new(trace.Log)
			defer func() { w.Trace = nil }()
			if w.Play(p, r); w.Broken == nil || w.Broken.Property != mutant.Exclusion {
				t.Fatalf("seed %d: nothing is broken any more", seed)
			}
			return len(w.Trace.Lines)
		}
		before := length(p)
		small, tries := shrink(w, *p, r, mutant.Exclusion)
		if after := length(small); after > before || tries > shrinkTries || small.Clients > 2 {
			t.Errorf("seed %d: from %d lines to %d with %d clients in %d tries", seed, before, after, small.Clients, tries)
		}
		if found == enough {
			return
		}
	}
	t.Errorf("only %d violations in 300 schedules", found)
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cfg := Config{Schedules: 1 << 40, Faults: schedule.AllFaults, Progress: func(int64) { cancel() }}
	if _, err := Run(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestUnknownMutant(t *testing.T) {
	if _, err := Run(context.Background(), Config{Mutant: "x"}); !errors.Is(err, ErrUnknownMutant) {
		t.Errorf("%v", err)
	}
}
