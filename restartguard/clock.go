package restartguard

import (
	"time"
)

const (
	// clockNoise is by how much a step has to exceed the error of its readings.
	clockNoise = 5 * time.Millisecond
	// clockRate is by how much a node's clock may run faster than ours without that
	// being a step: two clocks that are each wrong by up to 0.4 % differ by
	// 1.004/0.996. A client's drift allowance of 1 % covers the same difference
	// between a node's clock and the client's.
	clockRate = 1.004/0.996 - 1 + 0.00002
)

// allowance returns by how much a clock may get ahead between two readings by its rate alone. No
// lock lives longer than D, so a longer gap allows no more: a step could hide in it.
func (m *machine) allowance(passed time.Duration) time.Duration {
	return time.Duration(clockRate * float64(min(max(passed, 0), m.Policy.Delay)))
}

// readClock compares a reading with an earlier one. It returns by how much the node's clock has
// stepped, and within which time: a step forward is a loss, a step back is only reported, 0 is no
// step. A step forward takes two readings in a row.
//
// The earlier reading is the one that shows the clock least far ahead of the greatest allowed rate.
// So what the clock gains beyond that rate adds up over any number of readings, until it exceeds
// the error of two of them. Between any two moments no more than that goes unnoticed.
func (m *machine) readClock(r Reading) (stepped, within time.Duration) {
	base := m.Clock
	switch {
	case r.Wall == 0 || r.Got < r.Sent:
		return 0, 0
	case base.Wall == 0 || r.Sent < base.Got || r.middle() < m.ClockAt:
		m.measureFrom(r)
		return 0, 0
	}
	m.ClockDrift += m.allowance(r.middle() - m.ClockAt)
	m.ClockAt = r.middle()
	passed := r.middle() - base.middle()
	off := r.Wall - base.Wall - passed
	limit := max(base.bound()+r.bound()+clockNoise, m.ClockStep)
	switch {
	case off < -limit-m.ClockDrift:
		// At once, so that the step back hides no later step forward.
		m.measureFrom(r)
		return off, passed
	case off <= limit+m.ClockDrift:
		m.Ahead = 0
		if off+r.bound() <= m.ClockDrift+base.bound() {
			m.measureFrom(r)
		}
		return 0, 0
	}
	if m.Ahead++; m.Ahead < 2 {
		return 0, 0
	}
	m.measureFrom(r)
	if m.ClockStep < 0 {
		switch m.again(off) {
		case 1:
			m.tell("clock", "has a wall clock that went ahead by %s in %s; by the configuration that is not a loss", Round(off), Round(passed))
		case 2:
			m.tell("clock", "has a wall clock that keeps getting ahead, by %s in %s; by the configuration that is not a loss", Round(off), Round(passed))
		}
		return 0, 0
	}
	return off, passed
}

// unsettled reports whether the last reading showed a step that the next one has to confirm.
// Another guard may have seen the step twice already, and fenced the node for it.
func (b *Basis) unsettled() bool { return b.Ahead > 0 && !b.Clockless }

// largeStep is a step that is reported whatever came before it.
const largeStep = time.Second

// again counts steps in one direction that follow each other within D, and returns which one this
// is: 1 for the first, 2 for the second and for a large one, 3 for one that need not be reported. A
// clock that runs too fast or too slow makes a step every few seconds.
func (m *machine) again(step time.Duration) int {
	forward := step > 0
	if forward != m.report.stepsForward || m.now.Sub(m.report.stepped) > m.Policy.Delay {
		m.report.steps = 0
	}
	m.report.stepped, m.report.stepsForward = m.now, forward
	m.report.steps++
	if m.report.steps > 2 && step.Abs() >= largeStep {
		return 2
	}
	return min(m.report.steps, 3)
}

// ahead reports a step forward, which is a loss.
func (m *machine) ahead(step, within time.Duration) {
	m.report.Cause = "clock stepped"
	switch m.again(step) {
	case 1:
		m.tell("clock", "had its wall clock stepped forward by %s in %s: its locks end too early", Round(step), Round(within))
		return
	case 2:
		m.tell("clock", "has a wall clock that keeps getting ahead, by %s in %s: its locks end too early, and D begins anew until that ends", Round(step), Round(within))
	default:
		m.report.announced = m.Deadline // the new deadline is not reported each time either
	}
	m.report.Cause = "clock runs ahead"
}

// behind reports a step back, which is not a loss.
func (m *machine) behind(step, within time.Duration) {
	switch m.again(step) {
	case 1:
		m.tell("clock back", "had its wall clock stepped back by %s in %s: its locks live longer", Round(-step), Round(within))
	case 2:
		m.tell("clock back", "has a wall clock that keeps falling behind, by %s in %s: its locks live longer", Round(-step), Round(within))
	}
}

// measureFrom makes a reading the one that later ones are compared with.
func (m *machine) measureFrom(r Reading) {
	m.Clock, m.ClockAt, m.ClockDrift, m.Ahead = r, r.middle(), 0, 0
}
