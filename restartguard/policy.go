package restartguard

import (
	"math"
	"time"

	"redlockctl/redlock"
)

// FirstContact is what to do with an open node that is seen for the first time.
type FirstContact uint8

const (
	// Adopt takes it as it is and shows it as unverified; but it has to wait for D if it
	// came to a cluster that was in use, or started less than D ago.
	Adopt      FirstContact = iota
	Fence                   // fence it and wait D
	AdoptYoung              // as Adopt, but whenever it started
)

// Policy is what [Step] decides by.
type Policy struct {
	Delay        time.Duration // D, see [Delay]
	FirstContact FirstContact
	// Advice: nothing is ever sent. A node that must not vote is shown as
	// exposed until D is over, and one that may vote again as closed.
	Advice bool
	// ClockStep is the least forward step of a node's wall clock that is a loss;
	// it never goes below what can be told from the error of the reading. 0: as
	// little as can be told. Negative: steps are reported, and no loss.
	ClockStep time.Duration
	// CountEvery is how often the counter key of an open node is raised; 0: there
	// is none. See [CounterTTL].
	CountEvery time.Duration
	// Sweep: at the first look at a node the connections of the guard that had
	// this one's state directory before are ended.
	Sweep bool
	// EarlyAfter is how long after the first sight of a loss a node may be opened
	// by [Evidence], see the function of this name; 0: never before D.
	EarlyAfter time.Duration
}

// The parts of D beside the longest TTL, see [Delay].
const (
	// DefaultFactor is the drift factor of the lock algorithm: it covers how much slower
	// than a node's a client's clock may run. No D
	// may have less: locks are also taken by clients that read no configuration.
	DefaultFactor = redlock.DefaultDriftFactor
	// DefaultMargin covers what a client's validity leaves out: its grain, and the moment
	// between the loss and its end.
	DefaultMargin = 50 * time.Millisecond
)

// DefaultDelay is D by the defaults.
func DefaultDelay(maxTTL time.Duration) time.Duration {
	return Delay(maxTTL, DefaultFactor, DefaultMargin)
}

// Delay is D, how long a node stays fenced after its loss was provably over:
// maxTTL × (1 + factor) + margin, rounded up. A result beyond the range of
// time.Duration is its maximum; a part that is negative or no number counts as
// 0.
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

// grain is to what a server tells how long a key is left.
const grain = time.Millisecond

// EarlyAfter is how long after the first sight of a loss no attempt can be
// granted any more that counts a vote from before it: the bound of an attempt,
// stretched by the errors of the client's clock and of ours.
func EarlyAfter(attemptBound time.Duration) time.Duration {
	return Delay(attemptBound, DefaultFactor, grain)
}

// addCapped adds what is not negative, up to the maximum.
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
