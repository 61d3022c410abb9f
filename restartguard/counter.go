package restartguard

import (
	"time"
)

// readCounter notes the counter, and reports whether its value shows an earlier state of the data:
// the counter only grows, whoever increments it.
func (m *machine) readCounter(o *Observation) (restored bool) {
	if !o.Counted {
		return false
	}
	before, until := m.Counter, m.CounterUntil
	m.Counter = o.Counter
	if o.Counter > before {
		m.CounterUntil = m.now.Add(CounterTTL) // another guard increments it too
	}
	switch {
	case o.Counter >= before:
		return false
	case o.Counter == 0 && m.now.After(until.Add(-time.Minute)):
		return false // it expired: nobody has incremented it for that long
	}
	return true
}

// counting: the counter was incremented. A value that is not above the one before means that it had
// gone back in between.
func (m *machine) counting(o *Observation) {
	if !o.Counted {
		return
	}
	before := m.Counter
	m.Counter = o.Counter
	expired := o.Counter == 1 && m.now.After(m.CounterUntil.Add(-time.Minute))
	m.CounterUntil = m.asked.Add(CounterTTL)
	if o.Counter <= before && !expired {
		m.restored(before, o.Counter)
	}
}

func (m *machine) restored(before, now int64) {
	m.lose()
	if now == 0 {
		m.tell("restored", "the guard's counter is gone, it was %d: its data are not what they were", before)
	} else {
		m.tell("restored", "the guard's counter went back from %d to %d: its data are those of an earlier time", before, now)
	}
	m.report.Cause = "data went back in time"
}
