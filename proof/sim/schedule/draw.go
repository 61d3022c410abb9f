package schedule

import (
	"time"

	"redlockctl/redlock"
)

// ppm draws a clock error: often one of the extremes, which is where safety
// ends.
func (d *dice) ppm() int64 {
	switch d.n(4) {
	case 0:
		return -MaxPPM
	case 1:
		return MaxPPM
	case 2:
		return 0
	default:
		return int64(d.n(2*MaxPPM+1)) - MaxPPM
	}
}

// calm is a trip on a good network.
func (d *dice) calm() Trip {
	r := d.next()
	return Trip{time.Duration(r&0xfffff) + 50_000, time.Duration(r>>20&0xfffff) + 50_000} // up to 1.1 ms
}

// rough is one way on a bad network: up to 1.5 TTL.
func (d *dice) rough() time.Duration {
	switch d.n(8) {
	case 0:
		return d.within(0, MaxTTL*3/2)
	case 1:
		return d.within(0, MaxTTL/10)
	case 2, 3:
		return d.within(0, 200*ms)
	default:
		return d.within(50_000, 2*ms)
	}
}

func (d *dice) trips(t *Trips, n int, bad bool) {
	for i := range n {
		t[i] = d.calm()
		if bad {
			if d.oneIn(2) {
				t[i].Out = d.rough()
			}
			if d.oneIn(3) {
				t[i].Back = d.rough()
			}
		}
	}
}

// mask draws some nodes: none mostly.
func (d *dice) mask(n, oneIn int) uint8 {
	if !d.oneIn(oneIn) {
		return 0
	}
	return uint8(d.next()) & (1<<n - 1)
}

// Draw makes the plan of a seed.
func (p *Plan) Draw(seed uint64, faults Faults) {
	// What is forced upon a plan may use what was not drawn: it must not be what the
	// plan before has left.
	*p = Plan{}
	d := &dice{seed}
	d.next()
	sizes := [...]int{3, 3, 3, 3, 2, 4, 4, 5, 5, 1, 6, 7}
	p.N = sizes[d.n(len(sizes))]
	p.Fenced = !d.oneIn(6) || !faults.Has(FaultBoot)
	p.LagZero = d.oneIn(16) && faults.Has(FaultBoot)
	p.Replicas = d.oneIn(12)
	for i := range p.N {
		p.NodePPM[i] = d.ppm()
	}
	p.Patience = MaxTTL + MaxTTL/5
	if d.oneIn(4) {
		p.Patience = d.within(MaxTTL/20, 2*MaxTTL)
	}
	p.Clients = [...]int{2, 2, 2, 3, 3, 4}[d.n(6)]
	bad := faults.Has(FaultNetwork)
	for i := range p.Clients {
		p.Client[i].draw(d, p.N, i, bad && !d.oneIn(3))
	}
	p.Guards = 1
	if d.oneIn(4) {
		p.Guards = 2
	}
	for i := range p.Guard { // both: a mutant may need the second
		p.Guard[i].draw(d, i, bad && d.oneIn(3))
	}
	p.drawFaults(d, faults)
	p.ACL = d.oneIn(8)
	p.Counter = d.oneIn(3)
	p.Blind = 0
	if faults.Has(FaultBoot) && d.oneIn(16) {
		p.Blind = 1 << d.n(p.N)
	}
	if d.oneIn(6) {
		p.drawKept(d, faults)
	}
	if p.Shorter = d.oneIn(2); p.Shorter && p.Guards > 1 && d.oneIn(4) {
		p.Guard[0].Start, p.Guard[1].Start = p.Guard[1].Start, p.Guard[0].Start // it is there first
	}
	p.drawJoin(seed, faults)
	p.drawDrain(seed, faults)
	p.drawView(seed, faults)
	p.drawFences(seed, faults)
}

// drawKept lets the first client keep its lock for long while masters restart one after
// the other. An operator may force-release the lock while copies are put back.
func (p *Plan) drawKept(d *dice, faults Faults) {
	a := &p.Client[0].Attempt[0]
	a.On, a.Pause, a.TTL, a.Hold, a.Keep, a.Extends = OnTime, d.within(0, 100*ms), MaxTTL, d.within(MaxTTL/4, MaxTTL/2), d.oneIn(2), MaxExtends
	for i := range a.Extends {
		e := &a.Ext[i]
		e.Hold, e.TTL, e.Wait, e.Mute = d.within(MaxTTL/4, MaxTTL*4/5), MaxTTL, d.wait(MaxTTL), d.mask(p.N, 8)
		d.trips(&e.Trips, p.N, d.oneIn(6))
	}
	if !faults.Has(FaultCrash) {
		return
	}
	p.Faults = 0
	for i := range 1 + d.n(3) {
		f := Fault{Kind: Crash, Choice: OfMask, Mask: 1 << d.n(p.N), After: d.within(0, MaxTTL) + time.Duration(i)*MaxTTL*6/5, Length: d.within(ms, 100*ms)}
		p.add(f)
	}
	if faults.Has(FaultOperator) {
		p.add(Fault{Kind: Take, On: OnRepair, Nth: uint8(1 + d.n(2)), After: d.within(0, 2*MaxTTL),
			Choice: OfMask, Mask: 1<<p.N - 1, Stagger: d.within(0, 300*ms), Length: d.within(0, time.Second)})
		if d.oneIn(2) {
			p.Fault[p.Faults-1].After = 0 // while it happens
		}
	}
}

func (c *Client) draw(d *dice, n, index int, bad bool) {
	c.PPM = d.ppm()
	c.Skew = d.within(-5*time.Second, 5*time.Second)
	if index == 0 && d.oneIn(2) {
		c.PPM = -MaxPPM // who believes for longest
	}
	c.Attempts = 1 + d.n(MaxAttempts)
	if index > 0 {
		c.Attempts = max(c.Attempts, 2)
	}
	for k := range c.Attempts {
		c.Attempt[k].draw(d, n, index == 0 && k == 0, bad)
	}
}

func (a *Attempt) draw(d *dice, n int, first, bad bool) {
	bad = bad && d.oneIn(2)
	a.On = OnTime
	if !first {
		a.On = [...]Trigger{OnTime, OnTime, OnFree, OnFree, OnFree, OnRemoval, OnUp, OnGrant}[d.n(8)]
	}
	switch d.n(4) {
	case 0:
		a.Pause = d.within(0, MaxTTL/5)
	case 1:
		a.Pause = d.within(0, 200*ms)
	default:
		a.Pause = d.within(0, 3*ms)
	}
	a.TTL = MaxTTL
	if d.oneIn(4) {
		a.TTL = d.within(MaxTTL/100, MaxTTL).Truncate(ms)
	}
	a.Wait = d.wait(a.TTL)
	d.trips(&a.Set, n, bad)
	d.trips(&a.Release, n, bad)
	a.Deaf, a.Lost, a.Mute = 0, 0, 0
	if bad {
		a.Deaf, a.Lost, a.Mute = d.mask(n, 6), d.mask(n, 6), d.mask(n, 6)
	}
	a.Keep = d.oneIn(2)
	a.Hold = d.within(0, a.TTL)
	if d.oneIn(3) {
		a.Hold = d.within(0, 200*ms)
	}
	a.Extends = 0
	if d.oneIn(3) {
		a.Extends = 1 + d.n(2)
	}
	for i := range a.Extends {
		e := &a.Ext[i]
		e.Hold = d.within(0, a.TTL)
		e.TTL = MaxTTL
		if d.oneIn(2) {
			e.TTL = d.within(MaxTTL/100, MaxTTL).Truncate(ms)
		}
		e.Wait = d.wait(e.TTL)
		d.trips(&e.Trips, n, bad)
		e.Mute = 0
		if bad {
			e.Mute = d.mask(n, 6)
		}
	}
}

// wait draws how long a client waits for any node: mostly what the product's
// client does, but the algorithm must be safe with any.
func (d *dice) wait(ttl time.Duration) time.Duration {
	switch d.n(4) {
	case 0:
		return ttl
	case 1:
		return ttl / 10
	default:
		return min(redlock.DefaultNodeTimeout, ttl/10)
	}
}

func (g *Guard) draw(d *dice, index int, bad bool) {
	g.PPM = d.ppm()
	if d.oneIn(3) {
		g.PPM = MaxPPM // the one whose D is shortest
	}
	g.Start = 0
	if index > 0 {
		g.Start = d.within(0, 2*MaxTTL)
	}
	g.Poll = [...]time.Duration{MaxTTL / 30, MaxTTL / 10, MaxTTL / 5, MaxTTL / 3}[d.n(4)]
	g.Eager = !d.oneIn(4)
	for i := range g.Trips {
		g.Trips[i] = d.calm()
		if bad && d.oneIn(3) {
			g.Trips[i] = Trip{d.rough(), d.rough()}
		}
	}
}

// drawFaults draws the faults, with a bias to what is dangerous: masters that
// hold votes, at the moment when these were given, back at once.
func (p *Plan) drawFaults(d *dice, faults Faults) {
	p.Faults = 0
	var kinds [24]FaultKind
	m := 0
	add := func(f Faults, times int, k ...FaultKind) {
		if !faults.Has(f) {
			return
		}
		for range times {
			m += copy(kinds[m:], k)
		}
	}
	add(FaultCrash, 3, Crash)
	add(FaultFlush, 1, Flush, Evict, Restore, Reset)
	add(FaultStep, 1, Step, Creep)
	add(FaultGuard, 1, GuardCrash, GuardPause, GuardStep, Cut)
	add(FaultOperator, 1, Cordon, Role)
	add(FaultPause, 1, ClientPause)
	if m == 0 {
		return
	}
	if faults.Has(FaultCrash) && !d.oneIn(4) {
		p.add(p.dangerous(d))
	}
	for range d.n(4) {
		f := p.any(d, kinds[d.n(m)])
		p.add(f)
	}
	if faults.Has(FaultCrash) && d.oneIn(4) {
		// Once more inside the fence.
		f := p.dangerous(d)
		f.On, f.Nth, f.Choice = OnUp, 1, OfTrigger
		f.After = d.within(0, MaxTTL)
		p.add(f)
	}
}

func (p *Plan) add(f Fault) {
	if p.Faults < mostFaults {
		p.Fault[p.Faults] = f
		p.Faults++
	}
}

// dangerous draws a crash of so many holders that another client could win, at
// the moment of a grant, and a quick restart.
func (p *Plan) dangerous(d *dice) Fault {
	f := Fault{Kind: Crash, On: OnGrant, Nth: uint8(1 + d.n(2)), Choice: OfHolders}
	f.After = d.within(0, 2*ms)
	if d.oneIn(3) {
		f.After = d.within(0, MaxTTL)
	}
	f.Count = uint8(redlock.Quorum(p.N))
	if d.oneIn(3) {
		f.Count = uint8(1 + d.n(p.N))
	}
	f.Mask = uint8(1 + d.n(1<<p.N-1))
	f.Length = d.within(ms, 5*ms)
	if d.oneIn(3) {
		f.Length = d.within(ms, 2*time.Second)
	}
	if d.oneIn(4) {
		f.Stagger = d.within(0, MaxTTL/3)
	}
	f.Silent = d.oneIn(6)
	return f
}

// any draws a fault of a kind at any moment.
func (p *Plan) any(d *dice, kind FaultKind) Fault {
	f := p.dangerous(d)
	f.Kind = kind
	if d.oneIn(2) {
		f.On = Trigger(d.n(int(OnFree))) // none of the later ones
		f.Nth = uint8(1 + d.n(4))
	}
	if f.On == OnTime {
		f.After = d.within(0, 3*MaxTTL)
	}
	f.Choice = Choice(d.n(3))
	switch kind {
	case Step:
		// Large enough for any reading to show it.
		f.Length = d.within(time.Second, 2*MaxTTL)
		if d.oneIn(4) {
			f.Length = -f.Length
		}
	case GuardStep:
		f.Length = d.within(-MaxTTL, 2*MaxTTL)
		f.Who = uint8(d.n(p.Guards))
	case Creep:
		f.Length = d.within(time.Second, MaxTTL/5)
		f.Stagger = d.within(200*ms, 2*time.Second)
		f.Count = uint8(10 + d.n(20)) // steps
	case Role:
		f.Length = d.within(ms, 2*MaxTTL)
		if d.oneIn(2) {
			f.Length = d.within(ms, 100*ms) // over before a guard looks
		}
	case Cordon:
		f.Length = d.within(0, 2*MaxTTL)
	case Cut:
		f.Length = d.within(0, 2*MaxTTL)
		f.Who = uint8(d.n(p.Guards))
		if d.oneIn(2) {
			// Cut off from all before the first locks are granted.
			f.On, f.Choice, f.Mask = OnTime, OfMask, 1<<p.N-1
			f.After, f.Length = d.within(0, MaxTTL/5), d.within(0, MaxTTL)
		}
	case GuardCrash, GuardPause:
		f.Length = d.within(0, 50*ms)
		if d.oneIn(2) {
			f.Length = d.within(0, 2*MaxTTL)
		}
		f.Who, f.Memory = uint8(d.n(p.Guards)), d.oneIn(2)
	case ClientPause:
		f.Length = d.within(0, 2*MaxTTL)
		f.Who = uint8(d.n(p.Clients))
	}
	return f
}
