package monitor

import "time"

// Estimate is a clock offset with the bound that the round trip leaves.
type Estimate struct {
	Valid  bool
	Offset time.Duration
	Bound  time.Duration // ±
}

// Drift is the rate of a node's clock to ours.
type Drift struct {
	Valid bool
	PPM   float64
	Bound float64 // ± ppm
}

// Spread is how much the rates of clocks differ.
type Spread struct {
	Fastest, Slowest string // names of nodes; "this machine" for our own
	PPM, Bound       float64
}

// RateSpread is the difference between the fastest and the slowest of the
// nodes' clocks and our own, that is the surest to be large. Its bound is a hard
// one: the difference is at least PPM − Bound.
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

// ThisMachine is the name of our own clock and host beside those of nodes.
const ThisMachine = "this machine"
