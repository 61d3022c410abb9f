package clock

import "time"

// Own detects that our wall clock was stepped or this machine suspended (the wall clock
// jumps relative to the monotonic one), and that this process was stopped while both
// clocks ran (no heartbeat for longer than the probes allow).
type Own struct {
	skew    time.Duration
	suspect time.Duration // skew at the last check, if it was off
	doubted bool

	beat  time.Duration // last heartbeat, monotonic
	beats bool
}

// Check takes the time since the start by the wall clock and by the monotonic clock. They
// cannot be read at the same instant, so a jump counts when two checks in a row show it.
// Slewing is followed.
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

// Doubted reports whether the last check showed a jump that the next one has to confirm.
func (o *Own) Doubted() bool { return o.doubted }

// Alive records a heartbeat of this process. The next one must come within most, or the
// process was stopped for gap.
func (o *Own) Alive(mono, most time.Duration) (gap time.Duration, stopped bool) {
	if o.beats {
		gap = mono - o.beat
	}
	stopped = gap > most
	o.beat, o.beats = max(o.beat, mono), true
	return gap, stopped
}

// Beat records a heartbeat sent elsewhere, which may be older than the last one.
func (o *Own) Beat(mono time.Duration) {
	if o.beats {
		o.beat = max(o.beat, mono)
	}
}

// Discontinuity is a moment after which earlier measurements are dropped: this process
// was stopped, or its clock jumped.
type Discontinuity struct {
	At   time.Time
	Jump time.Duration // of our wall clock; 0: none
	Gap  time.Duration // how long the process was stopped; 0: it was not
	Text string
}

// Recent reports whether the discontinuity was less than d ago.
func (t Discontinuity) Recent(now time.Time, d time.Duration) bool {
	return !t.At.IsZero() && now.Sub(t.At) < d
}
