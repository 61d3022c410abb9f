package restartguard

import "time"

// CounterKey is a key in which guards count while the node is open. A server
// whose memory is put back to an earlier state, by the snapshot of a virtual
// machine, keeps its run_id; its counter goes back.
const CounterKey = "redlockctl:guard:counter"

// CounterWatch is the highest value that the counter key was seen with, 0: none, when
// the server may expire it, and when it was raised last.
type CounterWatch struct {
	Counter                 int64
	CounterUntil, CountedAt time.Time
}

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
