package monitor

import (
	"fmt"
	"slices"
	"time"

	"redlockctl/internal/safetext"
	"redlockctl/redlock"
)

// stepHold is for how long the step of a clock is told, at least.
const stepHold = time.Minute

func clockStep(k known, tell func(Finding)) {
	each(k, tell, func(_ int, n *Node) (Finding, bool) {
		by := n.Facts.StepBy
		f := Finding{
			Severity: SeverityDanger, Title: "its clock was stepped",
			Evidence:    safetext.New(fmt.Sprintf("by %s, %s", signed(by), ago(n.Facts.StepAt, k.At))),
			Consequence: "All locks on it end sooner than their holders believe: another client may get in.",
			Remedy:      "Let the time daemon slew (chrony: makestep only at the start; ntpd -x). A node whose clock went forward has to stay closed for the longest TTL.",
		}
		if by < 0 {
			f.Severity, f.Consequence = SeverityWarning, "All locks on it live longer than they should: they block, but do not let anybody in."
		}
		return f, !n.Facts.StepAt.IsZero() && k.At.Sub(n.Facts.StepAt) < max(k.Cluster.MaxTTL, stepHold)
	})
}

// clockRate compares the drift allowance of the lock algorithm with what is
// measured: how much faster the fastest clock runs than the slowest, ours among
// them.
func clockRate(k known, tell func(Finding)) {
	allowance := k.opt.Redlock.DriftFactor
	if allowance == 0 {
		allowance = redlock.DefaultDriftFactor
	}
	s := RateSpread(k.Nodes)
	least := s.PPM - s.Bound // certainly that much
	f := Finding{
		Title: "clocks run at different rates",
		Evidence: safetext.New(fmt.Sprintf("%s runs %.0f ± %.0f ppm faster than %s; the drift allowance is %.0f ppm (drift_factor %g)",
			s.Fastest, s.PPM, s.Bound, s.Slowest, allowance*1e6, allowance)),
		Consequence: "A node whose clock runs fast lets go of a lock before its holder does, by more than the holder allows for.",
		Remedy:      "Mend the time daemon of that node, or raise drift_factor in every client and every guard.",
	}
	switch {
	case least > allowance*1e6:
		f.Severity = SeverityDanger
	case least > min(allowance*1e6/2, mostSlew):
		f.Severity = SeverityWarning
		f.Consequence = "Time daemons slew by 500 ppm at most; this clock is broken or being set, and a good part of the drift allowance is used up."
	default:
		return
	}
	tell(f)
}

// mostSlew is the rate, in ppm, at which two clocks that are slewed part at most.
const mostSlew = 1000

// Spread is how much the rates of clocks differ.
type Spread struct {
	Fastest, Slowest string // names of nodes; "this machine" for our own
	PPM, Bound       float64
}

// RateSpread is the difference between the fastest and the slowest of the
// nodes' clocks and our own, that is the surest to be large. Its bound is a hard
// one: the difference is at least PPM − Bound.
func RateSpread(nodes []Node) Spread {
	best := Spread{Fastest: thisMachine, Slowest: thisMachine}
	rates := []Node{{Name: thisMachine, Drift: Drift{Valid: true}}}
	for i := range nodes {
		if nodes[i].Drift.Valid && readable(nodes[i].State) {
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

// slowAttempts: an attempt waits for the quorum-th fastest node; what it waits
// is taken from the validity.
func slowAttempts(k known, tell func(Finding)) {
	ttl := k.shortest
	which := "the smallest TTL in use"
	if ttl == 0 {
		ttl, which = k.Cluster.MaxTTL, "the max TTL"
	}
	var slow []time.Duration
	for i := range k.Nodes {
		n := &k.Nodes[i]
		if !readable(n.State) || len(n.RTTs) < leastRTTs {
			continue
		}
		slow = append(slow, tailOf(n.RTTs))
	}
	if ttl == 0 || len(slow) < k.Cluster.Quorum {
		return
	}
	slices.Sort(slow)
	attempt := slow[k.Cluster.Quorum-1]
	if attempt < leastSlow || attempt < ttl/4 {
		return
	}
	f := Finding{
		Severity: SeverityWarning, Title: "the round trip is a large part of the TTL",
		Evidence: safetext.New(fmt.Sprintf("a quorum answers within %s at p99; %s is %s",
			attempt.Round(time.Millisecond), which, ttl.Round(time.Millisecond))),
		Consequence: "What an attempt takes is gone from the validity: holders have little time, and more attempts fail.",
		Remedy:      "Use longer TTLs, bring clients and nodes nearer to each other, or find out what holds the nodes up (SLOWLOG, latency doctor).",
	}
	if attempt > ttl/2 {
		f.Severity = SeverityDanger
	}
	tell(f)
}

const (
	leastRTTs = 30
	leastSlow = 20 * time.Millisecond
)

// tailOf is the round trip that all but one stay below: of sixty the nearest
// that there is to p99, without the one that a busy machine always has.
func tailOf(rtts []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(rtts))
	return sorted[len(sorted)-2]
}

func consoleStopped(k known, tell func(Finding)) {
	if !k.tilt.recent(k.At, tiltHold) {
		return
	}
	f := Finding{
		Severity: SeverityInfo, Title: "this console was stopped, or its clock moved",
		Evidence:    safetext.New(k.tilt.text + ", " + ago(k.tilt.at, k.At)),
		Consequence: "What it measured before is not believed: clocks and round trips begin anew. A guard on this machine waits longer, never shorter.",
		Remedy:      "Do not suspend this machine or process while it watches, and let its clock be slewed, not stepped.",
	}
	if k.tilt.jump != 0 || k.tilt.gap >= longGap {
		f.Severity = SeverityWarning
	}
	tell(f)
}
