package monitor

import (
	"slices"
	"time"
)

// Spread is the difference between the rates of clocks.
type Spread struct {
	Fastest, Slowest string // names of nodes; "this machine" for our own clock
	PPM, Bound       float64
}

// RateSpread returns the largest certain difference between the rates of two clocks, of
// the nodes and our own. The true difference is at least PPM − Bound.
func RateSpread(nodes []Node) Spread {
	best := Spread{Fastest: ThisMachine, Slowest: ThisMachine}
	rates := []Node{{Name: ThisMachine, Drift: Drift{Valid: true}}}
	for i := range nodes {
		if nodes[i].Drift.Valid && nodes[i].State.Readable() {
			rates = append(rates, nodes[i])
		}
	}
	first := true
	for i := range rates {
		for j := range rates {
			a, b := rates[i], rates[j]
			s := Spread{a.Name, b.Name, a.Drift.PPM - b.Drift.PPM, a.Drift.Bound + b.Drift.Bound}
			if i != j && s.PPM >= 0 && (first || s.PPM-s.Bound > best.PPM-best.Bound) {
				best, first = s, false
			}
		}
	}
	return best
}

// ThisMachine names our own clock and host beside those of nodes.
const ThisMachine = "this machine"

// clockApart is the difference from which a clock is reported as wrong.
const clockApart = time.Second

// ClockApart is a node whose clock differs from most.
type ClockApart struct {
	Node string
	By   time.Duration // ahead of most clocks
}

// ClocksApart returns the nodes whose clocks certainly differ from most of the nodes'
// clocks and our own. Redlock counts durations and does not depend on that, but a
// difference is what remains of a clock step that nobody saw.
func ClocksApart(nodes []Node) (apart []ClockApart) {
	shown := []time.Duration{0}
	for i := range nodes {
		if nodes[i].Offset.Valid && nodes[i].State.Readable() {
			shown = append(shown, nodes[i].Offset.Offset)
		}
	}
	slices.Sort(shown)
	most := shown[(len(shown)-1)/2]
	for i := range nodes {
		n := &nodes[i]
		if by := n.Offset.Offset - most; n.Offset.Valid && n.State.Readable() && by.Abs()-n.Offset.Bound > clockApart {
			apart = append(apart, ClockApart{n.Name, by})
		}
	}
	return apart
}
