package small

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"sync"
	"testing"

	"redlockctl/base/race"
	"redlockctl/proof/sim/trace"
)

// shortStates is how many states of a model are visited with -short: those that are fewest steps away.
const shortStates = 200_000

func explore(t *testing.T, cfg Config) Exploration {
	t.Helper()
	r, err := Explore(context.Background(), cfg)
	if err != nil && (cfg.States == 0 || !errors.Is(err, ErrTooManyStates)) {
		t.Errorf("%+v: %v", cfg, err)
	}
	t.Logf("%+v: %d states, %d steps in %s", cfg, r.States, r.Steps, r.Elapsed)
	return r
}

// No order of events breaks a small model. Not both a flush and a guard that starts again
// without its memory: a guard that first sees the node after the flush cannot know of the flush.
func TestNoOrderOfEventsBreaksASmallModel(t *testing.T) {
	race.Skip(t)
	for _, m := range Models() {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			if testing.Short() {
				m.States = shortStates
			}
			r := explore(t, m)
			if r.Trace != nil {
				t.Errorf("%s: %v", m, r.Trace)
			}
			if r.States < 500 {
				t.Errorf("%s: only %d states", m, r.States)
			}
		})
	}
}

var update = flag.Bool("update", false, "write the paths that kill the mutants")

// killers is the file with the path that killed each mutant.
const killers = "testdata/killers.json"

// The model finds what it must. With -short it first plays the path that killed the mutant
// before.
func TestMutantsOfTheSmallModel(t *testing.T) {
	race.Skip(t)
	before := map[string][][3]uint8{}
	if text, err := os.ReadFile(killers); err == nil && testing.Short() && !*update {
		if err := json.Unmarshal(text, &before); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	paths := map[string][][3]uint8{}
	t.Cleanup(func() {
		if !*update {
			return
		}
		text, err := json.Marshal(paths)
		if err == nil {
			err = os.WriteFile(killers, append(bytes.ReplaceAll(text, []byte(`]],`), []byte("]],\n")), '\n'), 0o644)
		}
		if err != nil {
			t.Error(err)
		}
	})
	for _, w := range Mutants() {
		t.Run(w.Name, func(t *testing.T) {
			t.Parallel()
			var path []move
			for _, m := range before[w.Name] {
				path = append(path, move{moveKind(m[0]), m[1], m[2]})
			}
			if len(path) > 0 && breaks(w.Model(), path) {
				return
			}
			r := explore(t, w.Model())
			if r.Trace == nil {
				t.Fatalf("survives %d states: %s", r.States, w.What)
			}
			mu.Lock()
			for _, m := range r.path {
				paths[w.Name] = append(paths[w.Name], [3]uint8{uint8(m.kind), m.who, m.at})
			}
			mu.Unlock()
			if len(r.Trace) > 40 {
				t.Errorf("a trace of %d lines is not for people", len(r.Trace))
			}
			for _, l := range r.Trace {
				t.Logf("%s %s %s", trace.At(l.At), l.Who, l.Text)
			}
		})
	}
}

func TestExploreEnds(t *testing.T) {
	if _, err := Explore(context.Background(), Config{Mutant: "x"}); !errors.Is(err, ErrUnknownMutant) {
		t.Errorf("%v", err)
	}
	if r, err := Explore(context.Background(), Config{Crashes: 1, States: 100}); !errors.Is(err, ErrTooManyStates) || r.States > 101 {
		t.Errorf("%d states, %v", r.States, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Explore(ctx, Config{Crashes: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
