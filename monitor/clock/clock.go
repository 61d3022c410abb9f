// Package clock follows the clocks of nodes (offset, rate, steps) and our own clock,
// which may be stepped or stop with this process. It is pure: time comes with the
// samples.
package clock

import (
	"math"
	"time"

	"redlockctl/monitor"
)

const (
	clockRecent  = 10                      // samples from which the best offset is taken
	clockBuckets = 60                      // seconds of history; one best sample each
	StepMargin   = 5 * time.Millisecond    // beyond the error bounds, before it counts as a step
	agePPM       = 500.0                   // assumed drift of an old sample: the most that NTP slews
	leastSpan    = 5 * time.Second         // of history, before a drift is reported
	leastBuckets = 4                       // likewise
	slewChange   = 1000.0                  // ppm by which the relative rate of two clocks may change unobserved: both may slew
	leastGap     = 5 * time.Second         // without a sample, before slewChange applies
	ownStep      = 20 * time.Millisecond   // of our own wall clock against the monotonic one
	LateGap      = 750 * time.Millisecond  // without a heartbeat: lock states that follow from time alone must be confirmed
	OwnGap       = 1500 * time.Millisecond // without a heartbeat of this process, beyond the time between two probes: it was stopped
)

// Sample is one reading of a node's clock.
type Sample struct {
	at     time.Duration // when it was read, monotonic, since the start of the monitor
	offset time.Duration // node's wall clock − ours
	bound  time.Duration // the error of offset is at most bound
}

// NewSample makes a sample of a TIME command. The server read its clock between sent and
// received, so the midpoint is wrong by at most half the round trip, plus the microsecond
// to which TIME truncates. Our wall clock is taken as wall at the start of the monitor
// (base) plus the monotonic time since, so that a step of our clock does not look like a
// step of all nodes.
func NewSample(base, wall, sent, received, server time.Time) Sample {
	from, to := sent.Sub(base), received.Sub(base)
	mid := from + (to-from)/2
	return Sample{
		at:     mid,
		offset: server.Sub(wall) - mid,
		bound:  (to-from)/2 + time.Microsecond,
	}
}

// Clock follows the clock of one node. It is a pure step machine: time comes
// with the samples.
type Clock struct {
	Recent  []Sample // the latest, oldest first
	buckets []Sample // best sample of each second, oldest first
	suspect *Sample  // fits only a step; the next sample decides
	fit     monitor.Drift
	fitAt   time.Duration
}

// Observe adds a sample. If two in a row fit no steady clock and differ by the same
// amount, the clock was stepped by that amount, and history starts again. suspect asks
// for another sample soon.
func (c *Clock) Observe(s Sample) (step time.Duration, stepped, suspect bool) {
	if expected, bound, ok := c.predict(s.at); ok {
		off := s.offset - expected
		if limit := s.bound + bound + StepMargin; off > limit || off < -limit {
			last := c.suspect
			c.suspect = &s
			if last == nil || (s.offset-last.offset).Abs() > s.bound+last.bound+StepMargin {
				return 0, false, true
			}
			*c = Clock{}
			c.keep(*last)
			c.keep(s)
			return off, true, false
		}
	}
	c.suspect = nil
	c.keep(s)
	return 0, false, false
}

func (c *Clock) keep(s Sample) {
	if len(c.Recent) == clockRecent {
		c.Recent = append(c.Recent[:0], c.Recent[1:]...)
	}
	c.Recent = append(c.Recent, s)
	second := s.at / time.Second
	if n := len(c.buckets); n > 0 && c.buckets[n-1].at/time.Second == second {
		if s.bound < c.buckets[n-1].bound {
			c.buckets[n-1] = s
		}
	} else {
		c.buckets = append(c.buckets, s)
	}
	old := 0
	for old < len(c.buckets) && c.buckets[old].at <= s.at-clockBuckets*time.Second {
		old++
	}
	c.buckets = append(c.buckets[:0], c.buckets[old:]...)
	if s.at-c.fitAt >= time.Second || !c.fit.Valid {
		c.fit, c.fitAt = fitDrift(c.buckets), s.at
		if !c.fit.Valid && len(c.buckets) >= clockBuckets/4 {
			// No steady rate explains the history: the rate has changed. Keep the later
			// half.
			c.buckets = append(c.buckets[:0], c.buckets[len(c.buckets)/2:]...)
		}
	}
}

// predict returns the offset of a steady clock at a time, with its error bound.
func (c *Clock) predict(at time.Duration) (offset, bound time.Duration, ok bool) {
	rate, unsure := 0.0, agePPM
	if c.fit.Valid && c.fit.Bound < agePPM {
		rate, unsure = c.fit.PPM, c.fit.Bound
	}
	for _, s := range c.Recent {
		age := float64(at - s.at)
		o := s.offset + time.Duration(age*rate*1e-6)
		b := s.bound + time.Duration(math.Abs(age)*unsure*1e-6)
		if at-s.at > leastGap {
			// The rate may have changed unobserved.
			b += time.Duration((age - float64(leastGap)) * slewChange * 1e-6)
		}
		if !ok || b < bound {
			offset, bound, ok = o, b, true
		}
	}
	return offset, bound, ok
}

// Estimate returns the offset at a time.
func (c *Clock) Estimate(at time.Duration) monitor.Estimate {
	offset, bound, ok := c.predict(at)
	return monitor.Estimate{Valid: ok, Offset: offset, Bound: bound}
}

// Drift returns the rate, as far as it is known.
func (c *Clock) Drift() monitor.Drift { return c.fit }

// fitDrift returns the rate that fits the samples best: least squares, weighted by their
// bounds. Its bound is certain for a clock of steady rate, because each pair of samples
// limits the rate. The result is invalid if the samples are too few or fit no steady
// rate.
func fitDrift(samples []Sample) monitor.Drift {
	n := len(samples)
	if n < leastBuckets || samples[n-1].at-samples[0].at < leastSpan {
		return monitor.Drift{}
	}
	lo, hi := math.Inf(-1), math.Inf(1)
	for j := range samples {
		for i := range j {
			dt := float64(samples[j].at - samples[i].at)
			if dt <= 0 {
				continue
			}
			rise := float64(samples[j].offset - samples[i].offset)
			slack := float64(samples[j].bound + samples[i].bound)
			lo = max(lo, (rise-slack)/dt)
			hi = min(hi, (rise+slack)/dt)
		}
	}
	if lo > hi {
		return monitor.Drift{}
	}
	var sw, sx, sy float64
	x0, y0 := samples[0].at, samples[0].offset
	for _, s := range samples {
		w := 1 / (float64(s.bound) * float64(s.bound))
		sw += w
		sx += w * float64(s.at-x0)
		sy += w * float64(s.offset-y0)
	}
	mx, my := sx/sw, sy/sw
	var sxx, sxy float64
	for _, s := range samples {
		w := 1 / (float64(s.bound) * float64(s.bound))
		dx := float64(s.at-x0) - mx
		sxx += w * dx * dx
		sxy += w * dx * (float64(s.offset-y0) - my)
	}
	rate := min(max(sxy/sxx, lo), hi)
	return monitor.Drift{Valid: true, PPM: rate * 1e6, Bound: max(hi-rate, rate-lo) * 1e6}
}
