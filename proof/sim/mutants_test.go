package sim

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"redlockctl/base/race"
	"redlockctl/proof/sim/mutant"
	"redlockctl/proof/sim/schedule"
	"redlockctl/proof/sim/world"
)

// mutantSchedules is how many schedules a mutant may take to be found.
const mutantSchedules = 30_000

var update = flag.Bool("update", false, "write down the seed that killed each mutant")

// killers is the file with the seed of a schedule that killed each mutant.
const killers = "testdata/killers.json"

// TestMutants breaks one rule after the other and expects each to be found. With
// -v it prints how many schedules that took, and the score. With -short it first plays the
// schedule that killed the mutant before.
func TestMutants(t *testing.T) {
	race.Skip(t)
	began := time.Now()
	mutants := mutant.All()
	if len(mutants) < 30 {
		t.Errorf("only %d mutants", len(mutants))
	}
	killed := 0
	var total int64
	before, seeds := map[string]uint64{}, map[string]uint64{}
	if text, err := os.ReadFile(killers); err == nil && testing.Short() && !*update {
		if err := json.Unmarshal(text, &before); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range mutants {
		cfg := Config{Seed: 1, Schedules: mutantSchedules, Faults: schedule.AllFaults, Mutant: m.Name}
		r, force, err := cfg.rules()
		if err != nil {
			t.Fatal(err)
		}
		alone, p := world.New(), new(schedule.Plan)
		if seed := before[m.Name]; seed != 0 {
			p.Draw(seed, cfg.Faults)
			force(p)
			if alone.Play(p, r); alone.Broken != nil {
				killed, total = killed+1, total+1
				continue
			}
		}
		stats, found := search(context.Background(), cfg, r, force)
		total += stats.Schedules
		if found < 0 {
			t.Errorf("%-22s SURVIVED %d schedules: %s", m.Name, mutantSchedules, m.What)
			continue
		}
		seeds[m.Name] = cfg.Seed + uint64(found)
		p.Draw(seeds[m.Name], cfg.Faults)
		force(p)
		if alone.Play(p, r); alone.Broken == nil {
			t.Errorf("%-22s seed %d breaks nothing when it is played alone", m.Name, seeds[m.Name])
		}
		killed++
		t.Logf("%-22s killed by schedule %5d: %s (%s)", m.Name, found+1, m.Property, m.What)
	}
	t.Logf("score: %d of %d killed (%d %%), %d schedules in %s",
		killed, len(mutants), 100*killed/len(mutants), total, time.Since(began).Round(100*time.Millisecond))
	if *update {
		text, err := json.MarshalIndent(seeds, "", "\t")
		if err == nil {
			err = os.WriteFile(killers, append(text, '\n'), 0o644)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// TestMutantsAreKilled plays what is forced upon the schedules of a
// mutant with the right rules: that alone must break nothing.
func TestMutantsAreKilled(t *testing.T) {
	race.Skip(t)
	n := few(1500)
	for _, m := range mutant.All() {
		if m.Force == nil || m.Rules().NoExcuse {
			continue
		}
		w, p := world.New(), new(schedule.Plan)
		for seed := range uint64(n) {
			p.Draw(1+seed, schedule.AllFaults)
			m.Force(p)
			if w.Play(p, mutant.Right()); w.Broken != nil {
				t.Errorf("%s: seed %d breaks without the mutant: %s", m.Name, 1+seed, w.Broken.Text)
				break
			}
		}
	}
}

func TestMutantsHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range mutant.All() {
		if seen[m.Name] || m.Name == "" || strings.ContainsAny(m.Name, " _") || m.What == "" {
			t.Errorf("%q: %q", m.Name, m.What)
		}
		seen[m.Name] = true
	}
}

// What the world asks for is a mutant, and each mutant is asked for somewhere.
func TestMutantsAreAskedFor(t *testing.T) {
	files, err := filepath.Glob("world/*.go")
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]bool{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`Breaks\("([^"]*)"\)`).FindAllStringSubmatch(string(text), -1) {
			asked[m[1]] = true
		}
	}
	for _, m := range mutant.All() {
		r := m.Rules()
		byNumber := r.NoGuard || r.NoExcuse || r.Delay != 1 || r.TTL != 1
		if !asked[m.Name] && !byNumber {
			t.Errorf("nothing asks for %s", m.Name)
		}
		delete(asked, m.Name)
	}
	for name := range asked {
		t.Errorf("there is no mutant %s", name)
	}
}
