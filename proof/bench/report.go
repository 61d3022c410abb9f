package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// fact is a line of what has to be known about a run to compare it.
type fact struct{ Name, Value string }

// line is one measured value.
type line struct {
	What  string  `json:"what"`
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
	Limit float64 `json:"limit"`          // to reach, at most; below 0: there is none
	More  string  `json:"more,omitempty"` // what else was seen of it
}

const noLimit = -1

func (l line) toReach() (limit, reached string) {
	switch {
	case l.Limit < 0:
		return "", ""
	case l.Value <= l.Limit:
		reached = "reached"
	default:
		reached = "NOT REACHED"
	}
	return "≤ " + number(l.Limit) + " " + l.Unit, reached
}

// report prints what is measured as Markdown, as it comes.
type report struct {
	facts []fact
	lines []line
}

// about prints what is known beforehand.
func (r *report) about(title string, facts ...fact) {
	r.facts = facts
	fmt.Printf("# %s\n\n", title)
	for _, f := range facts {
		fmt.Printf("- %s: `%s`\n", f.Name, f.Value)
	}
}

// line adds a value, and prints it.
func (r *report) line(what, unit string, value, limit float64, format string, args ...any) {
	if len(r.lines) == 0 {
		fmt.Print("\n| | to reach | measured | | |\n| --- | ---: | ---: | --- | --- |\n")
	}
	l := line{what, unit, value, limit, fmt.Sprintf(format, args...)}
	r.lines = append(r.lines, l)
	toReach, reached := l.toReach()
	fmt.Printf("| %s | %s | %s %s | %s | %s |\n", what, toReach, number(value), unit, reached, l.More)
}

// times adds a line about times, of which the p-th percentile counts; 100 is the
// longest.
func (r *report) times(what string, all []time.Duration, p int, limit time.Duration) {
	r.line(what, "ms", ms(percentile(all, p)), ms(limit), "p%d of %d; median %s, longest %s ms", p, len(all), number(ms(percentile(all, 50))), number(ms(percentile(all, 100))))
}

// writeJSON writes figures to a file; no path: nothing.
func (r *report) writeJSON(path string, figures any) error {
	if path == "" {
		return nil
	}
	head := map[string]string{}
	for _, f := range r.facts {
		head[f.Name] = f.Value
	}
	text, err := json.MarshalIndent(map[string]any{"about": head, "figures": figures}, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// number has four digits that count, and no exponent.
func number(v float64) string {
	switch {
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.4g", v)
}
