package restartguard

import "time"

const (
	// clockNoise is what a step must have beyond the error of its readings.
	clockNoise = 5 * time.Millisecond
	// clockRate is by how much a node's clock may run faster than ours without
	// that being a step: half of the least drift allowance, the other half of which
	// is the clients'.
	clockRate = 0.005
)

// Reading is one reading of a node's wall clock, on which the server decides
// when a lock ends.
type Reading struct {
	// Sent and Got are the moments around it, on a clock of ours that nobody sets
	// and that goes on while the machine sleeps ([BootTime]).
	Sent, Got time.Duration
	// Wall is what the node said, since the UNIX epoch; 0: nothing.
	Wall time.Duration
}

// middle is the moment for which Wall holds, give or take bound.
func (r Reading) middle() time.Duration { return r.Sent + (r.Got-r.Sent)/2 }

func (r Reading) bound() time.Duration { return (r.Got - r.Sent) / 2 }

// allowance is by how much a clock may have gone ahead in a time, by its rate
// alone. No lock lives longer than D, so over a longer time no more is allowed:
// a step could hide behind it.
func (m *machine) allowance(passed time.Duration) time.Duration {
	return time.Duration(clockRate * float64(min(passed, m.Policy.Delay)))
}

// readClock compares a reading with the one before, and returns by how much the
// node's clock has stepped: more than 0 is a loss, less is only told, 0 is no
// step. It takes two readings in a row to make a step.
func (m *machine) readClock(r Reading) time.Duration {
	base := m.Clock
	switch {
	case r.Wall == 0 || r.Got < r.Sent:
		return 0
	case base.Wall == 0 || r.Sent < base.Got:
		m.Clock, m.Ahead, m.Behind = r, 0, 0
		return 0
	}
	passed := r.middle() - base.middle()
	off := r.Wall - base.Wall - passed
	drift := m.allowance(passed)
	limit := max(base.bound()+r.bound()+clockNoise, m.ClockStep) + drift
	switch {
	case off > limit:
		m.Ahead, m.Behind = m.Ahead+1, 0
	case off < -limit:
		m.Ahead, m.Behind = 0, m.Behind+1
	default:
		m.Ahead, m.Behind = 0, 0
		// A reading that took long says little: the older one is the better measure
		// then, as long as its age leaves room for a clock's rate.
		if r.bound() <= base.bound()+drift || passed > m.Policy.Delay/2 {
			m.Clock = r
		}
		return 0
	}
	if m.Ahead < 2 && m.Behind < 2 {
		return 0
	}
	m.Clock, m.Ahead, m.Behind = r, 0, 0
	if off > 0 && m.ClockStep < 0 {
		m.tell("clock", "its wall clock stepped forward by %s; by the configuration that is no loss", round(off))
		return 0
	}
	return off
}
