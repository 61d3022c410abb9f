package restartguard

import (
	"math"
	"time"

	"redlockctl/redlock"
)

// FirstContact is what to do with a serving node that is seen for the first time.
type FirstContact uint8

const (
	// Adopt lets it serve, with its start not seen. But it waits for D if it was added to a
	// cluster in use, or if it started less than D ago.
	Adopt      FirstContact = iota
	Fence                   // fence it and wait D
	AdoptYoung              // as Adopt, but whenever it started
)

// Policy is what [Step] decides by.
type Policy struct {
	Delay        time.Duration // D, see [Delay]
	FirstContact FirstContact
	// Advice: nothing is ever sent. A node that must not vote is reported as exposed for D, and
	// one that may vote again as fenced.
	Advice bool
	// ClockStep is the smallest forward step of a node's clock that is a loss, if it exceeds the
	// error of the readings. 0: the smallest that can be measured. Negative: steps are only
	// reported.
	ClockStep time.Duration
	// CountEvery is how often the counter key of a serving node is incremented; 0: there is no
	// such key. See [CounterTTL].
	CountEvery time.Duration
	// Sweep: with the first observation of a node, the connections of the guard that had the same
	// state directory before are closed.
	Sweep bool
	// EarlyAfter is how long after a loss was first seen the node may rejoin by [Evidence], see
	// the function of this name; 0: never before D.
	EarlyAfter time.Duration
}

// The parts of D beside the longest TTL, see [Delay].
const (
	// DefaultFactor is the drift factor of the lock algorithm: it covers how much slower a
	// client's clock may run than a node's. No D may have a smaller one, because some clients
	// do not read this configuration.
	DefaultFactor = redlock.DefaultDriftFactor
	// DefaultMargin covers what a client's validity does not: its grain, and the time between
	// the loss and its detection.
	DefaultMargin = 50 * time.Millisecond
)

// DefaultDelay returns D with the default factor and margin.
func DefaultDelay(maxTTL time.Duration) time.Duration {
	return Delay(maxTTL, DefaultFactor, DefaultMargin)
}

// Delay returns D, how long a node stays fenced after its loss: maxTTL × (1 + factor) + margin,
// rounded up. A result beyond the range of time.Duration is its maximum; a part that is negative or
// NaN counts as 0.
func Delay(maxTTL time.Duration, factor float64, margin time.Duration) time.Duration {
	d := max(maxTTL, 0)
	if factor > 0 {
		extra := math.Ceil(float64(d) * factor)
		if extra >= math.MaxInt64 {
			return math.MaxInt64
		}
		d = addCapped(d, time.Duration(extra))
	}
	return addCapped(d, max(margin, 0))
}

// grain is the precision with which a server reports the remaining time of a key.
const grain = time.Millisecond

// EarlyAfter returns how long after a loss was first seen no attempt can be granted any more that
// counts a vote from before it: the bound of an attempt, plus the errors of the client's clock and
// of ours.
func EarlyAfter(attemptBound time.Duration) time.Duration {
	return Delay(attemptBound, DefaultFactor, grain)
}

// addCapped adds two numbers that are not negative, up to the maximum.
func addCapped(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// DefaultPoll is the pause between two observations of a node, and DefaultTimeout bounds dialling
// and the answer to one round of commands.
const (
	DefaultPoll    = 200 * time.Millisecond
	DefaultTimeout = 500 * time.Millisecond
)
