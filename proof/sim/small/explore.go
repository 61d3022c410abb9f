// Package small visits all states of small models of the guard and of a kept lock:
// three masters, two clients, and all orders of events, at all moments at which
// anything ends. Its clocks are right, and a probe of the guard takes no time, with all
// that follows except the end of a fence. The product's code makes the decisions.
// proof/simulator.md says what the models leave out.
package small

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// ErrUnknownMutant is returned by [Explore] for an unknown name of a mutant.
var ErrUnknownMutant = errors.New("no such mutant")

// Explore visits all states. It ends early with the error of ctx, or with
// [ErrTooManyStates], and fails with [ErrUnknownMutant].
func Explore(ctx context.Context, cfg Config) (Exploration, error) {
	if cfg.Mutant != "" && !slices.ContainsFunc(Mutants(), func(w Mutant) bool { return w.Name == cfg.Mutant }) {
		return Exploration{}, fmt.Errorf("%w: %q", ErrUnknownMutant, cfg.Mutant)
	}
	say := &teller{}
	if cfg.Extensions > 0 {
		return exploreModel(ctx, newKeptModel(cfg, say), cfg.States, say)
	}
	return exploreModel(ctx, newRestartModel(cfg, say), cfg.States, say)
}

// breaks reports whether a path breaks a model.
func breaks(cfg Config, path []move) bool {
	say := &teller{}
	if cfg.Extensions > 0 {
		return (&explorer[keptState]{model: newKeptModel(cfg, say)}).play(path)
	}
	return (&explorer[state]{model: newRestartModel(cfg, say)}).play(path)
}
