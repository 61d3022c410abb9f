package schedule

import "time"

// View is a monitor of the masters, and an operator who acts on what it shows.
type View struct {
	On    bool
	PPM   int64
	Every time.Duration // between two probes of a master
	Eager bool          // it probes right after something has happened
	Trips [GuardTrips]Trip
	Told  bool // after a restart it learns from a guard what was known before
	Acts  bool // the operator force-releases what is shown as orphaned
}

// viewOneIn: one in this many schedules has a monitor.
const viewOneIn = 4

// drawView draws the monitor of a plan. It has its own dice, so that it does not change the
// rest of a seed's schedule.
func (p *Plan) drawView(seed uint64, faults Faults) {
	d := &dice{^seed}
	if d.next(); !d.oneIn(viewOneIn) {
		return
	}
	v := &p.View
	v.On, v.PPM, v.Eager, v.Told, v.Acts = true, d.ppm(), !d.oneIn(3), d.oneIn(2), d.oneIn(2)
	v.Every = d.within(MaxTTL/60, MaxTTL/5)
	for i := range v.Trips {
		v.Trips[i] = d.calm()
	}
	if !faults.Has(FaultOperator) {
		return
	}
	for range d.n(3) {
		f := p.any(d, Cut)
		f.Kind, f.Who = Blind, 0
		p.addLate(f)
	}
	for range d.n(3) {
		f := p.any(d, Cut)
		f.Kind, f.Who, f.Length = Anew, 0, 0
		p.addLate(f)
	}
}

// Calm reports whether nothing goes wrong with masters, guards and clients.
func (p *Plan) Calm() bool {
	for _, f := range p.Fault[:p.Faults] {
		if f.Kind != Blind && f.Kind != Anew {
			return false
		}
	}
	return true
}

// addLate adds a fault; there is always room for it.
func (p *Plan) addLate(f Fault) {
	if p.Faults < MaxFaults {
		p.Fault[p.Faults] = f
		p.Faults++
	}
}
