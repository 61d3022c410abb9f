package restartguard

import (
	"time"
)

// readCounter takes note of the counter, and reports whether it is not what it must
// be: it only ever grows, whoever counts.
func (m *machine) readCounter(o *Observation) (restored bool) {
	if !o.Counted {
		return false
	}
	before, until := m.Counter, m.CounterUntil
	m.Counter = o.Counter
	if o.Counter > before {
		m.CounterUntil = m.now.Add(CounterTTL) // another guard counts too
	}
	switch {
	case o.Counter >= before:
		return false
	case o.Counter == 0 && m.now.After(until.Add(-time.Minute)):
		return false // by its TTL: nobody has counted for that long
	}
	return true
}

// counting: the counter was raised. One that is not above what it was before
// had gone back in between.
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
