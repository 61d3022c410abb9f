package schedule

// drawFences draws servers whose fences do not stop every client. It has its own dice, so that it
// does not change the rest of a seed's schedule.
func (p *Plan) drawFences(seed uint64, faults Faults) {
	d := &dice{seed ^ 0x9e3779b97f4a7c15}
	if d.next(); !faults.Has(FaultBoot) {
		return
	}
	p.Writable = d.mask(p.N, 6)
	if p.Leaks = d.mask(p.N, 12); p.Leaks != 0 {
		p.Scripts = uint8(d.next()) & (1<<p.Clients - 1)
	}
}
