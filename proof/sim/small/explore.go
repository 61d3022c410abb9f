// Package small visits all states of small models of the guard and of a lock that is
// kept: three masters, two clients, and all orders of what may happen, at all moments
// at which anything ends. Its clocks are right, and a look of the guard, with what
// follows from it but the end of a fence, takes no time. What decides is the product's
// code. proof/simulator.md says what the models leave out.
package small

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// ErrUnknownMutant is returned by [Explore] for the name of a mutant that there is not.
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
