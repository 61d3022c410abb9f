package schedule

import "time"

// joinOneIn is in how many schedules a master is replaced, or all of them lose their
// power and an operator takes them for a new cluster.
const joinOneIn = 8

// drawJoin draws that. It has dice of its own: without it the schedule of a seed is the same.
func (p *Plan) drawJoin(seed uint64, faults Faults) {
	d := &dice{seed ^ 0x6a6f696e}
	if d.next(); !faults.Has(FaultOperator) || !faults.Has(FaultCrash) || !d.oneIn(joinOneIn) {
		return
	}
	if d.oneIn(2) {
		p.addLate(p.replacement(d))
		return
	}
	cut := p.dangerous(d)
	cut.Choice, cut.Mask, cut.Stagger, cut.Silent = OfMask, 1<<p.N-1, 0, d.oneIn(2)
	p.addLate(cut)
	p.addLate(Fault{Kind: NewCluster, On: OnUp, Nth: uint8(p.N), After: d.within(0, 2*time.Second)})
}

// replacement draws that masters which hold votes are replaced by servers that were never
// in the cluster.
func (p *Plan) replacement(d *dice) Fault {
	f := p.dangerous(d)
	f.Kind = Replace
	f.Memory = d.oneIn(2)
	f.Stagger = d.within(0, 5*time.Second)
	if d.oneIn(3) {
		f.Stagger = d.within(0, 5*ms)
	}
	return f
}
