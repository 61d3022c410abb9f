package schedule

import "time"

// drainOneIn is in how many schedules masters are cordoned to be restarted when they are empty.
const drainOneIn = 8

// drawDrain draws that; the one who does it may not wait until they are. It has dice of its own: without it
// the schedule of a seed is the same.
func (p *Plan) drawDrain(seed uint64, faults Faults) {
	d := &dice{seed ^ 0x647261696e}
	if d.next(); !faults.Has(FaultOperator) || !faults.Has(FaultCrash) || !d.oneIn(drainOneIn) {
		return
	}
	mask := uint8(1) << d.n(p.N)
	if d.oneIn(3) {
		mask = uint8(1 + d.n(1<<p.N-1))
	}
	at, drained, down := d.within(0, MaxTTL), d.within(MaxTTL/6, MaxTTL*5/4), d.within(ms, 2*time.Second)
	restart := Fault{Kind: Crash, Choice: OfMask, Mask: mask, After: at + drained, Length: down}
	p.addLate(Fault{Kind: Cordon, Choice: OfMask, Mask: mask, After: at, Length: drained + down + d.within(0, 5*time.Second), Memory: true})
	p.addLate(restart)
	if d.oneIn(2) {
		again := restart
		again.After += d.within(0, MaxTTL)
		p.addLate(again)
	}
	if faults.Has(FaultGuard) && d.oneIn(2) {
		p.addLate(Fault{Kind: Cut, Choice: OfMask, Mask: mask, Who: uint8(d.n(p.Guards)),
			After: restart.After - d.within(0, 3*time.Second), Length: d.within(0, MaxTTL)})
	}
}
