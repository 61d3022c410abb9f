package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"redlockctl/internal/safetext"
	"redlockctl/internal/sim"
)

// exploreJSON is the document of simulate --exhaustive.
type exploreJSON struct {
	Schema    string         `json:"schema"`
	Mutant    *safetext.Text `json:"mutant,omitempty"`
	Models    []modelJSON    `json:"models"`
	ElapsedMs int64          `json:"elapsed_ms"`
}

type modelJSON struct {
	Model     safetext.Text `json:"model"`
	States    int           `json:"states"`
	Steps     int           `json:"steps"`
	ElapsedMs int64         `json:"elapsed_ms"`
	Trace     []lineJSON    `json:"trace,omitempty"`
}

// models are those to visit; a weakness has one of its own.
func (o simulateOptions) models() ([]sim.Small, error) {
	weak := sim.Weaknesses()
	if o.withoutGuard {
		if o.mutant != "" {
			return nil, errors.New("--mutant and --without-guard: one at a time")
		}
		o.mutant = "no-guard"
	}
	if o.delay != 1 {
		return nil, errors.New("--delay does not go with --exhaustive; there is --mutant delay-0.9")
	}
	if o.mutant == "" {
		models := sim.SmallModels()
		if o.early {
			models = slices.DeleteFunc(models, func(m sim.Small) bool { return !m.EarlyRejoin })
		}
		return models, nil
	}
	var names []string
	for _, w := range weak {
		if w.Name == o.mutant {
			return []sim.Small{w.Model()}, nil
		}
		names = append(names, w.Name)
	}
	return nil, fmt.Errorf("--exhaustive has no mutant %q; there are %s", safetext.Escape(o.mutant), strings.Join(names, ", "))
}

// explore visits all states of small models.
func (a *commandLine) explore(ctx context.Context, o simulateOptions) error {
	models, err := o.models()
	if err != nil {
		return usageError{err}
	}
	began := time.Now()
	doc := exploreJSON{Schema: Schema, Mutant: optional(models[0].Weakness)}
	var broken []sim.Line
	for _, m := range models {
		r, err := sim.Explore(ctx, m)
		if err != nil {
			return err
		}
		part := modelJSON{Model: text(m.String()), States: r.States, Steps: r.Steps, ElapsedMs: ms(r.Elapsed)}
		for _, l := range r.Trace {
			part.Trace = append(part.Trace, lineJSON{l.At.Microseconds(), text(l.Who), text(l.Text)})
		}
		doc.Models = append(doc.Models, part)
		if r.Trace != nil {
			broken = r.Trace
		}
		if a.output == "json" {
			continue
		}
		verdict := "no violation"
		if r.Trace != nil {
			verdict = "VIOLATION: two clients hold one lock"
		}
		fmt.Fprintf(a.out, "3 masters, 2 clients, %s: %d states visited, %s (%s)\n", m, r.States, verdict, r.Elapsed.Round(100*time.Millisecond))
	}
	doc.ElapsedMs = ms(time.Since(began))
	switch {
	case a.output == "json":
		err = printJSON(a.out, doc)
	case broken != nil:
		writeTrace(a.out, broken)
	}
	if err == nil && broken != nil {
		err = silent{errViolation}
	}
	return err
}
