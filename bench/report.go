package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
)

// report collects figures and prints their medians.
type report struct{ figures []figure }

func (r *report) add(scenario, contender string, round int, unit string, v float64) {
	r.figures = append(r.figures, figure{Scenario: scenario, Contender: contender, Round: round, Unit: unit, Value: v})
}

// baseline is what the ratios are to.
const baseline = "redsync"

func (r *report) print(w io.Writer, head map[string]string) {
	keys := make([]string, 0, len(head))
	for k := range head {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		fmt.Fprintf(w, "%s: %s\n", k, head[k])
	}
	var scenarios []string
	for _, f := range r.figures {
		if !slices.Contains(scenarios, f.Scenario) {
			scenarios = append(scenarios, f.Scenario)
		}
	}
	slices.Sort(scenarios)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range scenarios {
		fmt.Fprintf(tw, "\n%s\tmedian\tmin\tmax\tto redsync\tto the floor\t\n", s)
		for _, m := range makers() {
			values, unit := r.values(s, m.name)
			if len(values) == 0 {
				continue
			}
			fmt.Fprintf(tw, "  %s\t%.4g %s\t%.4g\t%.4g\t%s\t%s\t\n", m.name, median(values), unit,
				slices.Min(values), slices.Max(values), r.ratio(s, m.name, baseline), r.ratio(s, m.name, "floor"))
		}
	}
	_ = tw.Flush()
}

func (r *report) values(scenario, contender string) ([]float64, string) {
	var out []float64
	unit := ""
	for _, f := range r.figures {
		if f.Scenario == scenario && f.Contender == contender {
			out, unit = append(out, f.Value), f.Unit
		}
	}
	return out, unit
}

// ratio is the median over the rounds of the ratio within a round.
func (r *report) ratio(scenario, contender, to string) string {
	mine, _ := r.values(scenario, contender)
	theirs, _ := r.values(scenario, to)
	if len(mine) != len(theirs) || len(mine) == 0 {
		return "–"
	}
	ratios := make([]float64, len(mine))
	for i := range mine {
		if theirs[i] == 0 {
			return "–"
		}
		ratios[i] = mine[i] / theirs[i]
	}
	return fmt.Sprintf("%.2f", median(ratios))
}

func (r *report) write(path string, head map[string]string) error {
	b, err := json.MarshalIndent(map[string]any{"about": head, "figures": r.figures}, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}

func median(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}
