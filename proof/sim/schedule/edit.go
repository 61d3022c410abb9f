package schedule

import "time"

// DropFault leaves a fault out.
func (p *Plan) DropFault(i int) {
	copy(p.Fault[i:], p.Fault[i+1:])
	p.Faults--
	p.Fault[p.Faults] = Fault{}
}

// DropClient leaves a client out.
func (p *Plan) DropClient(i int) {
	copy(p.Client[i:], p.Client[i+1:])
	p.Clients--
	p.Client[p.Clients] = Client{}
	for k := range p.Faults {
		if f := &p.Fault[k]; f.Kind == ClientPause && int(f.Who) >= i && f.Who > 0 {
			f.Who--
		}
	}
}

// DropAttempt leaves an attempt out.
func (c *Client) DropAttempt(k int) {
	copy(c.Attempt[k:], c.Attempt[k+1:])
	c.Attempts--
	c.Attempt[c.Attempts] = Attempt{}
}

// Durations visits those durations of a plan that a trace shows.
func (p *Plan) Durations(visit func(get func(*Plan) *time.Duration)) {
	for i := range p.Faults {
		visit(func(p *Plan) *time.Duration { return &p.Fault[i].After })
		visit(func(p *Plan) *time.Duration { return &p.Fault[i].Length })
	}
	for i := range p.Guards {
		visit(func(p *Plan) *time.Duration { return &p.Guard[i].Start })
		visit(func(p *Plan) *time.Duration { return &p.Guard[i].Poll })
	}
	for c := range p.Clients {
		for k := range p.Client[c].Attempts {
			visit(func(p *Plan) *time.Duration { return &p.Client[c].Attempt[k].Pause })
			visit(func(p *Plan) *time.Duration { return &p.Client[c].Attempt[k].Hold })
			visit(func(p *Plan) *time.Duration { return &p.Client[c].Attempt[k].TTL })
			for e := range p.Client[c].Attempt[k].Extends {
				visit(func(p *Plan) *time.Duration { return &p.Client[c].Attempt[k].Ext[e].Hold })
				visit(func(p *Plan) *time.Duration { return &p.Client[c].Attempt[k].Ext[e].TTL })
			}
		}
	}
}
