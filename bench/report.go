package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// report collects figures and prints their medians.
type report struct{ figures []figure }

func (r *report) add(scenario, contender string, round int, unit string, v float64) {
	r.figures = append(r.figures, figure{Scenario: scenario, Contender: contender, Round: round, Unit: unit, Value: v})
}

// What the ratios are to: a rival, and what cannot be done better. The floor is
// a lock and an unlock over raw connections; the ceiling is to hold for as long
// and to lock nothing.
const (
	baseline = "redsync"
	floorRow = "floor"
	ceilRow  = "ceiling"
)

// row is one line of the table.
type row struct {
	contender           string
	unit                string
	median, least, most float64
	toBaseline, toBest  string
}

// table is what was measured in one scenario.
type table struct {
	scenario string
	rows     []row
}

func (r *report) tables() []table {
	var names []string
	for _, f := range r.figures {
		if !slices.Contains(names, f.Scenario) {
			names = append(names, f.Scenario)
		}
	}
	slices.Sort(names)
	var contenders []string
	for _, m := range makers() {
		contenders = append(contenders, m.name)
	}
	contenders = append(contenders, ceilRow)
	var tables []table
	for _, s := range names {
		best := floorRow
		if v, _ := r.values(s, ceilRow); len(v) > 0 {
			best = ceilRow
		}
		t := table{scenario: s}
		for _, c := range contenders {
			values, unit := r.values(s, c)
			if len(values) == 0 {
				continue
			}
			t.rows = append(t.rows, row{c, unit, median(values), slices.Min(values), slices.Max(values), r.ratio(s, c, baseline), r.ratio(s, c, best)})
		}
		tables = append(tables, t)
	}
	return tables
}

const bestColumn = "to the floor or ceiling"

func (r *report) print(w io.Writer, about []fact) {
	printFacts(w, about)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, t := range r.tables() {
		fmt.Fprintf(tw, "\n%s\tmedian\tmin\tmax\tto redsync\t%s\t\n", t.scenario, bestColumn)
		for _, row := range t.rows {
			fmt.Fprintf(tw, "  %s\t%s %s\t%s\t%s\t%s\t%s\t\n", row.contender, number(row.median), row.unit,
				number(row.least), number(row.most), row.toBaseline, row.toBest)
		}
	}
	_ = tw.Flush()
}

// document writes the same table as a document of its own.
func (r *report) document(w io.Writer, about []fact) {
	fmt.Fprint(w, `# Benchmarks

Five real redis-servers on loopback. The contenders take turns within each
round, in random order, so that drift of the machine hits all alike. Shown are
the median, the least and the greatest of the rounds, and medians of the ratios
within a round. Absolute times are of one machine at one hour; the ratios are
what to compare. A number that is worse than a rival's stands here too.
`)
	markdownFacts(w, about)
	fmt.Fprint(w, `
The *floor* is no lock but what the wire allows: one raw connection per node,
prepared bytes, the third OK; nothing that locks can be faster. The *ceiling* is
to hold for 5 ms and to lock nothing. A *handover* is from the moment at which a
holder calls unlock to the moment at which the next lock returns; with one
client it is an unlock and a lock. redsync and its FailFast let the client that
has just unlocked lock again, so that their handover with eight clients is mostly that of
one; the longest wait tells what the others pay for it. The floor beside eight clients
is that of one alone, which has nobody to wait for. rueidislock locks five keys
on one server, the others one key on each of five.
`)
	for _, t := range r.tables() {
		fmt.Fprintf(w, "\n### %s\n\n| | median | min | max | to redsync | %s |\n| --- | ---: | ---: | ---: | ---: | ---: |\n", t.scenario, bestColumn)
		for _, row := range t.rows {
			fmt.Fprintf(w, "| %s | %s %s | %s | %s | %s | %s |\n", row.contender, number(row.median), row.unit,
				number(row.least), number(row.most), row.toBaseline, row.toBest)
		}
	}
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

// figure is one measured number of one contender in one round.
type figure struct {
	Scenario  string  `json:"scenario"`
	Contender string  `json:"contender"`
	Round     int     `json:"round"`
	Unit      string  `json:"unit"`
	Value     float64 `json:"value"`
	Note      string  `json:"note,omitempty"`
}
