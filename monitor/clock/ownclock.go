package clock

import "time"

// Own notices that our own wall clock was set, or that this machine was
// suspended: the wall clock leaves the monotonic one behind; and that this
// process was stopped while both ran on: no sign of life for longer than the
// probes leave.
type Own struct {
	skew    time.Duration
	suspect time.Duration // skew of the last look, when it lay off
	doubted bool

	beat  time.Duration // last sign of life, monotonic
	beats bool
}

// Check takes the time that has passed since the start by the wall clock and
// by the monotonic clock. The two are not read in one instant, so a jump counts
// when two looks in a row show it; slewing is followed.
func (o *Own) Check(wall, mono time.Duration) (jump time.Duration, jumped bool) {
	skew := wall - mono
	if (skew - o.skew).Abs() <= ownStep {
		o.skew, o.doubted = skew, false
		return 0, false
	}
	if !o.doubted || (skew-o.suspect).Abs() > ownStep {
		o.suspect, o.doubted = skew, true
		return 0, false
	}
	jump = skew - o.skew
	o.skew, o.doubted = skew, false
	return jump, true
}

// Alive takes a sign of life of this process. The next one comes within most,
// or the process was stopped for gap.
func (o *Own) Alive(mono, most time.Duration) (gap time.Duration, stopped bool) {
	if o.beats {
		gap = mono - o.beat
	}
	stopped = gap > most
	o.beat, o.beats = max(o.beat, mono), true
	return gap, stopped
}

// Beat takes the time of a sign of life that was given elsewhere. It may be older than the last one.
func (o *Own) Beat(mono time.Duration) {
	if o.beats {
		o.beat = max(o.beat, mono)
	}
}

// Discontinuity is a moment from which on nothing that was measured before is believed:
// this process was stopped, or its clock moved.
type Discontinuity struct {
	At   time.Time
	Jump time.Duration // of our wall clock; 0: it did not move
	Gap  time.Duration // for which the process was stopped; 0: it was not
	Text string
}

// Recent reports whether the discontinuity was less than d ago.
func (t Discontinuity) Recent(now time.Time, d time.Duration) bool {
	return !t.At.IsZero() && now.Sub(t.At) < d
}
