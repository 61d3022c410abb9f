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
	// Step is the step of a clock that explains it: of this node, or of another one, which is of
	// those that most agree with. No Node: none is known.
	Step ClockStep
}

// ClockStep is a step of the clock of a node.
type ClockStep struct {
	Node string
	By   time.Duration
	At   time.Time
}

// ClocksApart returns the nodes whose clocks certainly differ from most of the nodes'
// clocks and our own. Redlock counts durations and does not depend on that, but a
// difference is what remains of a clock step, perhaps of one that nobody saw.
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
			apart = append(apart, ClockApart{n.Name, by, stepBehind(nodes, n, most)})
		}
	}
	return apart
}

// stepBehind returns the step because of which the clock of n differs from the offset of most: its own,
// or the opposite one of a node that shows that offset since. The zero value: none is known.
func stepBehind(nodes []Node, n *Node, most time.Duration) ClockStep {
	near := func(a, b time.Duration, n *Node) bool { return (a - b).Abs() <= clockApart+n.Offset.Bound }
	by := n.Offset.Offset - most
	for _, own := range []bool{true, false} {
		for i := range nodes {
			o := &nodes[i]
			explains := o.Name == n.Name && near(o.Facts.StepBy, by, o)
			if !own {
				explains = o.Offset.Valid && near(o.Offset.Offset, most, o) && near(o.Facts.StepBy, -by, o)
			}
			if explains && !o.Facts.StepAt.IsZero() {
				return ClockStep{o.Name, o.Facts.StepBy, o.Facts.StepAt}
			}
		}
	}
	return ClockStep{}
}
