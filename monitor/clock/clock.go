// Package clock follows clocks: those of nodes, their offset, rate and steps, and our own, that is
// set or stands still with us. It is pure: time comes with the samples.
package clock

import (
	"math"
	"time"

	"redlockctl/monitor"
)

const (
	clockRecent  = 10                      // samples among which the best offset is chosen
	clockBuckets = 60                      // seconds of history; one best sample each
	StepMargin   = 5 * time.Millisecond    // beyond the bounds, before it is a step
	agePPM       = 500.0                   // how much worse an old sample is taken to be: the most that NTP slews
	leastSpan    = 5 * time.Second         // of history, before a drift is told
	leastBuckets = 4                       // likewise
	slewChange   = 1000.0                  // ppm by which the rate of two clocks changes while nobody looks: both slew anew
	leastGap     = 5 * time.Second         // without a sample, before that counts
	ownStep      = 20 * time.Millisecond   // of our own wall clock against the monotonic one
	LateGap      = 750 * time.Millisecond  // without any sign of our own life: what time alone says of a lock has to be confirmed
	OwnGap       = 1500 * time.Millisecond // without any sign of our own life, beyond the time between two probes: we were stopped
)

// Sample is one reading of a node's clock.
type Sample struct {
	at     time.Duration // when it was read, monotonic, since the start of the monitor
	offset time.Duration // node's wall clock − ours
	bound  time.Duration // the offset is right within ± bound
}

// NewSample makes a sample of a TIME command: the server read its clock
// somewhere between sent and received, so the midpoint is wrong by half the
// round trip at most, and TIME cuts off below a microsecond. Our wall clock
// is what it was (wall) at the start of the monitor (base), carried on by the
// monotonic clock, so that setting our clock does not look like a step of all
// nodes.
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
	buckets []Sample // the best sample of each second, oldest first
	suspect *Sample  // lies where a step would put it; the next one decides
	fit     monitor.Drift
	fitAt   time.Duration
}

// Observe takes a sample. When it is the second in a row that no steady clock
// explains, by the same amount, the clock was stepped by that: history begins
// anew. suspect asks for another sample soon.
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
			// No steady rate explains the history: the rate has changed. The later
			// half will tell the new one.
			c.buckets = append(c.buckets[:0], c.buckets[len(c.buckets)/2:]...)
		}
	}
}

// predict is the offset that a steady clock has at time at, with its bound.
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
			// Nobody saw if the rate has changed meanwhile.
			b += time.Duration((age - float64(leastGap)) * slewChange * 1e-6)
		}
		if !ok || b < bound {
			offset, bound, ok = o, b, true
		}
	}
	return offset, bound, ok
}

// Estimate is the offset at time at.
func (c *Clock) Estimate(at time.Duration) monitor.Estimate {
	offset, bound, ok := c.predict(at)
	return monitor.Estimate{Valid: ok, Offset: offset, Bound: bound}
}

// Drift is the rate, as far as it is known.
func (c *Clock) Drift() monitor.Drift { return c.fit }

// fitDrift is the rate that fits the samples best, by least squares weighted
// with their bounds. Its bound is a hard one for a clock of steady rate: each
// pair of samples shuts the rate in, since each offset is right within its bound.
// Invalid while the samples are too few, or if no steady rate fits them.
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
