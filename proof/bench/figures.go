package main

import (
	"fmt"
	"slices"
)

// figure is one measured number of one contender in one round.
type figure struct {
	Scenario  string  `json:"scenario"`
	Contender string  `json:"contender"`
	Round     int     `json:"round"`
	Unit      string  `json:"unit"`
	Value     float64 `json:"value"`
}

// figures are those of all rounds.
type figures []figure

func (all *figures) add(scenario, contender string, round int, unit string, v float64) {
	*all = append(*all, figure{scenario, contender, round, unit, v})
}

// What the ratios are to: a rival, and what cannot be done better. The floor is
// a lock and an unlock over raw connections; the ceiling is to hold for as long
// and to lock nothing.
const (
	baseline = "redsync"
	floorRow = "floor"
	ceilRow  = "ceiling"
)

const legend = `
Five real redis-servers on loopback. The contenders take turns within each
round, in random order, so that drift of the machine hits all alike. Shown are
the median, the least and the greatest of the rounds, and medians of the ratios
within a round. Absolute times are of one machine at one hour; the ratios are
what to compare. A number that is worse than a rival's stands here too.

The *floor* is no lock but what the wire allows: one raw connection per node,
prepared bytes, the third OK; nothing that locks can be faster. The *ceiling* is
to hold for 5 ms and to lock nothing. A *handover* is from the moment at which a
holder calls unlock to the moment at which the next lock returns; with one
client it is an unlock and a lock. redsync and its FailFast let the client that
has just unlocked lock again, so that their handover with eight clients is mostly that of
one; the longest wait tells what the others pay for it. The floor beside eight clients
is that of one alone, which has nobody to wait for. rueidislock locks five keys
on one server, the others one key on each of five.`

// print prints a table for each scenario, as Markdown.
func (all figures) print() {
	fmt.Println(legend)
	scenarios := map[string]map[string]figures{} // by scenario and contender
	var names, contenders []string
	for _, f := range all {
		if scenarios[f.Scenario] == nil {
			scenarios[f.Scenario] = map[string]figures{}
			names = append(names, f.Scenario)
		}
		scenarios[f.Scenario][f.Contender] = append(scenarios[f.Scenario][f.Contender], f)
	}
	for _, m := range makers() {
		contenders = append(contenders, m.name)
	}
	slices.Sort(names)
	for _, name := range names {
		of := scenarios[name]
		best := floorRow
		if of[ceilRow] != nil {
			best = ceilRow
		}
		fmt.Printf("\n### %s\n\n| | median | min | max | to redsync | to the floor or ceiling |\n| --- | ---: | ---: | ---: | ---: | ---: |\n", name)
		for _, c := range append(contenders, ceilRow) {
			if v := of[c].values(); v != nil {
				fmt.Printf("| %s | %s %s | %s | %s | %s | %s |\n", c, number(median(v)), of[c][0].Unit,
					number(slices.Min(v)), number(slices.Max(v)), ratio(v, of[baseline].values()), ratio(v, of[best].values()))
			}
		}
	}
}

func (all figures) values() (v []float64) {
	for _, f := range all {
		v = append(v, f.Value)
	}
	return v
}

// ratio is the median over the rounds of the ratio within a round.
func ratio(mine, theirs []float64) string {
	if len(mine) != len(theirs) || slices.Contains(theirs, 0) {
		return "–"
	}
	ratios := make([]float64, len(mine))
	for i := range mine {
		ratios[i] = mine[i] / theirs[i]
	}
	return fmt.Sprintf("%.2f", median(ratios))
}
