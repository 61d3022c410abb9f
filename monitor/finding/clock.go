package finding

import (
	"cmp"
	"slices"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/words"
	"redlockctl/redlock"
)

// slewRemedy keeps a clock from being stepped.
const slewRemedy = "Let the time daemon slew (chrony: makestep only at the start; ntpd -x)."

// stepHold is how long a clock step is reported, at least.
const stepHold = time.Minute

func clockStep(k known, n *monitor.Node, f *found) bool {
	by := n.Facts.StepBy
	f.Title, f.Since = "its clock was stepped by "+words.Signed(by), n.Facts.StepAt
	switch {
	case by < 0:
		f.Severity, f.Consequence = monitor.SeverityWarning, "All locks on it expire later than they should. They block, but let nobody in."
	case n.State == monitor.NodeFenced, n.State == monitor.NodeCordoned:
		f.Severity, f.Consequence = monitor.SeverityWarning, "All locks on it expire earlier than their holders believe. It has accepted no new ones since it was fenced."
		f.Remedy = "Nothing, while a guard keeps it fenced. " + slewRemedy
	case k.At.Sub(n.Facts.StepAt) >= k.Cluster.MaxTTL && k.Cluster.MaxTTL > 0:
		f.Severity, f.Consequence = monitor.SeverityWarning, "All locks that it had then have expired, or were extended since."
		f.Remedy = slewRemedy
	}
	return !n.Facts.StepAt.IsZero() && k.At.Sub(n.Facts.StepAt) < max(k.Cluster.MaxTTL, stepHold) &&
		f.seen("by %s, %s", words.Signed(by), words.At(n.Facts.StepAt, k.At))
}

// clockRate compares the drift allowance of the lock algorithm with the measured difference
// between the fastest and the slowest clock, this machine's included.
func clockRate(k known, f *found) bool {
	allowance := cmp.Or(k.opt.DriftFactor, redlock.DefaultDriftFactor)
	s := monitor.RateSpread(k.Nodes)
	least := s.PPM - s.Bound // the certain minimum
	if least > allowance*1e6 {
		f.Severity = monitor.SeverityDanger
		f.Consequence = "A node with a fast clock expires a lock earlier than its holder allows for."
	}
	return least > min(allowance*1e6/2, mostSlew) && f.seen("%s runs %.0f ± %.0f ppm faster than %s; the drift allowance is %.0f ppm (drift_factor %g)",
		s.Fastest, s.PPM, s.Bound, s.Slowest, allowance*1e6, allowance)
}

// mostSlew is the greatest difference in rate, in ppm, between two slewed clocks.
const mostSlew = 1000

// slowAttempts: an attempt waits for the quorum-th fastest node, and the time that it waits is
// subtracted from the validity.
func slowAttempts(k known, f *found) bool {
	ttl, which := k.shortest, "the smallest TTL in use"
	if ttl == 0 {
		ttl, which = k.Cluster.MaxTTL, "the max TTL"
	}
	var slow []time.Duration
	for i := range k.Nodes {
		if n := &k.Nodes[i]; n.State.Readable() && len(n.RTTs) >= leastRTTs {
			slow = append(slow, tailOf(n.RTTs))
		}
	}
	if ttl == 0 || len(slow) < k.Cluster.Quorum {
		return false
	}
	slices.Sort(slow)
	attempt := slow[k.Cluster.Quorum-1]
	if attempt > ttl/2 {
		f.Severity = monitor.SeverityDanger
	}
	return attempt >= leastSlow && attempt >= ttl/4 && f.seen("a quorum answers within %s at p99; %s is %s",
		attempt.Round(time.Millisecond), which, ttl.Round(time.Millisecond))
}

const (
	leastRTTs = 30
	leastSlow = 20 * time.Millisecond
)

// tailOf returns the second greatest round trip: of sixty samples the nearest to p99, without
// the one outlier that a busy machine always has.
func tailOf(rtts []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(rtts))
	return sorted[len(sorted)-2]
}

const (
	longGap           = 5 * time.Second // more than a busy machine explains
	discontinuityHold = time.Minute     // how long a discontinuity is reported
)

func consoleStopped(k known, f *found) bool {
	if k.discontinuity.Jump != 0 || k.discontinuity.Gap >= longGap {
		f.Severity = monitor.SeverityWarning
	}
	f.Title = k.discontinuity.Text
	return k.discontinuity.Recent(k.At, discontinuityHold) && f.seen("%s, %s", k.discontinuity.Text, words.At(k.discontinuity.At, k.At))
}
