package sim

import (
	"time"

	"redlockctl/redlock"
)

// Bounds of a plan. They are small, since what goes wrong with locks goes wrong
// with two clients and a few faults; and they let a plan be one flat value.
const (
	maxNodes    = 7
	maxClients  = 4
	maxAttempts = 6
	maxExtends  = 5 // two of them are drawn, all of a lock that is kept
	maxGuards   = 2
	maxFaults   = 6
	guardTrips  = 16
)

// MaxTTL is the longest TTL in use in every schedule.
const MaxTTL = 30 * time.Second

// horizon is how long a schedule may take in true time.
const horizon = 150 * time.Second

// trigger is what something in a plan waits for. Most faults and most attempts
// do not come at any old moment but just after something: that is where the
// dangerous moments are.
type trigger uint8

const (
	onTime    trigger = iota // a time since the beginning; of an attempt: since the one before it
	onGrant                  // a client was granted a lock
	onRemoval                // a guard opened a master
	onCrash                  // a master crashed
	onUp                     // a master came back
	onFree                   // so many masters would accept a SET that it would win
	onRepair                 // a client is about to put a copy back
	triggers
)

// trip is how long a message takes there, and its answer back.
type trip struct{ out, back time.Duration }

// trips are those of one request to each node.
type trips [maxNodes]trip

// attemptPlan is one attempt of a client, and what it does with the lock.
type attemptPlan struct {
	on    trigger
	pause time.Duration
	ttl   time.Duration
	wait  time.Duration // for any node, see redlock.Terms
	set   trips
	rel   trips
	deaf  uint8 // nodes that the client cannot reach
	lost  uint8 // nodes on whose connection the SET is lost
	mute  uint8 // nodes on whose connection its answer is lost
	hold  time.Duration
	// keep: never released, it runs out.
	keep    bool
	extends int
	ext     [maxExtends]extendPlan
}

// extendPlan is an extension, begun after a further time of holding.
type extendPlan struct {
	hold, ttl, wait time.Duration
	trips           trips
	mute            uint8
}

// clientPlan is one client.
type clientPlan struct {
	ppm      int64
	skew     time.Duration // of its wall clock, on which nothing may depend
	attempts int
	attempt  [maxAttempts]attemptPlan
}

// guardPlan is one guard.
type guardPlan struct {
	ppm   int64
	start time.Duration
	poll  time.Duration
	// eager: it happens to look just after a master came back.
	eager bool
	trips [guardTrips]trip // used in turn
	// liftLate is how much longer its orders to open a master are under way.
	removalLate time.Duration
}

// faultKind is what goes wrong.
type faultKind uint8

const (
	faultCrash       faultKind = iota // masters crash, and come back after length
	faultFlush                        // FLUSHALL
	faultEvict                        // a lock is evicted for want of memory
	faultStep                         // a master's wall clock steps by length
	faultCordon                       // an operator holds masters closed for length
	faultGuardCrash                   // a guard crashes, and starts again after length
	faultGuardPause                   // a guard is suspended for length
	faultGuardStep                    // the wall clock of a guard's host steps by length
	faultCut                          // a guard cannot reach masters for length
	faultClientPause                  // a client is suspended for length
	faultCreep                        // a master's wall clock is set ahead by length, in many small steps
	faultRole                         // a master is made a replica of another server for length
	faultRestore                      // a master's memory is put back to an earlier state
	faultReset                        // the counters of a master are reset (CONFIG RESETSTAT), and it is flushed
	faultTake                         // an operator takes the lock granted last away, node by node
)

// choice is which nodes a fault strikes.
type choice uint8

const (
	theMask    choice = iota // those of the mask
	theHolders               // count nodes that hold the lock granted last
	theSame                  // the node that triggered it
)

// faultPlan is one fault.
type faultPlan struct {
	kind    faultKind
	on      trigger
	nth     uint8 // it waits for the nth time, from 1
	after   time.Duration
	choice  choice
	mask    uint8
	count   uint8
	who     uint8 // guard or client
	length  time.Duration
	stagger time.Duration // between the nodes as they come back
	silent  bool          // the host is gone: nothing answers that nobody listens
	memory  bool          // the guard has its memory when it starts again
}

// plan is a schedule: every choice that is not the code's own, drawn in
// advance. The same plan gives the same run. It is a flat list of plain
// values, so that shrinking is dropping and lowering them.
type plan struct {
	n        int
	fenced   bool  // masters start fenced
	lagZero  bool  // they come up with min-replicas-max-lag 0
	replicas bool  // each has a replica attached
	acl      bool  // masters are closed by an ACL user, and administrators still may do all
	counter  bool  // guards raise the counter key
	blind    uint8 // nodes whose fence the guards may neither read nor set
	nodePPM  [maxNodes]int64
	clients  int
	client   [maxClients]clientPlan
	guards   int
	shorter  bool // the second guard has a D of its own, see shorterBy
	guard    [maxGuards]guardPlan
	faults   int
	fault    [maxFaults]faultPlan
	patience time.Duration // how long a client waits for a trigger
}

const ms = time.Millisecond

// rates draws a clock error: often one of the extremes, which is where safety
// ends.
func (d *dice) ppm() int64 {
	switch d.n(4) {
	case 0:
		return -maxPPM
	case 1:
		return maxPPM
	case 2:
		return 0
	default:
		return int64(d.n(2*maxPPM+1)) - maxPPM
	}
}

// maxPPM is how wrong the rate of any clock may be: 0.4 %. Two clocks then
// differ by less than the drift allowance of 1 %.
const maxPPM = 4000

// calm is a trip on a good network.
func (d *dice) calm() trip {
	r := d.next()
	return trip{time.Duration(r&0xfffff) + 50_000, time.Duration(r>>20&0xfffff) + 50_000} // up to 1.1 ms
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

func (d *dice) trips(t *trips, n int, bad bool) {
	for i := range n {
		t[i] = d.calm()
		if bad {
			if d.oneIn(2) {
				t[i].out = d.rough()
			}
			if d.oneIn(3) {
				t[i].back = d.rough()
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

// draw makes the plan of a seed.
func (p *plan) draw(seed uint64, faults Faults) {
	// What is forced upon a plan may use what was not drawn: it must not be what the
	// plan before has left.
	*p = plan{}
	d := &dice{seed}
	d.next()
	sizes := [...]int{3, 3, 3, 3, 2, 4, 4, 5, 5, 1, 6, 7}
	p.n = sizes[d.n(len(sizes))]
	p.fenced = !d.oneIn(6) || !faults.Has(FaultBoot)
	p.lagZero = d.oneIn(16) && faults.Has(FaultBoot)
	p.replicas = d.oneIn(12)
	for i := range p.n {
		p.nodePPM[i] = d.ppm()
	}
	p.patience = MaxTTL + MaxTTL/5
	if d.oneIn(4) {
		p.patience = d.within(MaxTTL/20, 2*MaxTTL)
	}
	p.clients = [...]int{2, 2, 2, 3, 3, 4}[d.n(6)]
	bad := faults.Has(FaultNetwork)
	for i := range p.clients {
		p.client[i].draw(d, p.n, i, bad && !d.oneIn(3))
	}
	p.guards = 1
	if d.oneIn(4) {
		p.guards = 2
	}
	for i := range p.guard { // both: a mutant may need the second
		p.guard[i].draw(d, i, bad && d.oneIn(3))
	}
	p.drawFaults(d, faults)
	p.acl = d.oneIn(8)
	p.counter = d.oneIn(3)
	p.blind = 0
	if faults.Has(FaultBoot) && d.oneIn(16) {
		p.blind = 1 << d.n(p.n)
	}
	if d.oneIn(6) {
		p.drawKept(d, faults)
	}
	if p.shorter = d.oneIn(2); p.shorter && p.guards > 1 && d.oneIn(4) {
		p.guard[0].start, p.guard[1].start = p.guard[1].start, p.guard[0].start // it is there first
	}
}

// drawKept lets the first client keep its lock for long, while masters restart one
// after the other, and perhaps an operator take it away when copies are put back.
func (p *plan) drawKept(d *dice, faults Faults) {
	a := &p.client[0].attempt[0]
	a.on, a.pause, a.ttl, a.hold, a.keep, a.extends = onTime, d.within(0, 100*ms), MaxTTL, d.within(MaxTTL/4, MaxTTL/2), d.oneIn(2), maxExtends
	for i := range a.extends {
		e := &a.ext[i]
		e.hold, e.ttl, e.wait, e.mute = d.within(MaxTTL/4, MaxTTL*4/5), MaxTTL, d.wait(MaxTTL), d.mask(p.n, 8)
		d.trips(&e.trips, p.n, d.oneIn(6))
	}
	if !faults.Has(FaultCrash) {
		return
	}
	p.faults = 0
	for i := range 1 + d.n(3) {
		f := faultPlan{kind: faultCrash, choice: theMask, mask: 1 << d.n(p.n), after: d.within(0, MaxTTL) + time.Duration(i)*MaxTTL*6/5, length: d.within(ms, 100*ms)}
		p.add(f)
	}
	if faults.Has(FaultOperator) {
		p.add(faultPlan{kind: faultTake, on: onRepair, nth: uint8(1 + d.n(2)), after: d.within(0, 2*MaxTTL),
			choice: theMask, mask: 1<<p.n - 1, stagger: d.within(0, 300*ms), length: d.within(0, time.Second)})
		if d.oneIn(2) {
			p.fault[p.faults-1].after = 0 // while it happens
		}
	}
}

func (c *clientPlan) draw(d *dice, n, index int, bad bool) {
	c.ppm = d.ppm()
	c.skew = d.within(-5*time.Second, 5*time.Second)
	if index == 0 && d.oneIn(2) {
		c.ppm = -maxPPM // who believes for longest
	}
	c.attempts = 1 + d.n(maxAttempts)
	if index > 0 {
		c.attempts = max(c.attempts, 2)
	}
	for k := range c.attempts {
		c.attempt[k].draw(d, n, index == 0 && k == 0, bad)
	}
}

func (a *attemptPlan) draw(d *dice, n int, first, bad bool) {
	bad = bad && d.oneIn(2)
	a.on = onTime
	if !first {
		a.on = [...]trigger{onTime, onTime, onFree, onFree, onFree, onRemoval, onUp, onGrant}[d.n(8)]
	}
	switch d.n(4) {
	case 0:
		a.pause = d.within(0, MaxTTL/5)
	case 1:
		a.pause = d.within(0, 200*ms)
	default:
		a.pause = d.within(0, 3*ms)
	}
	a.ttl = MaxTTL
	if d.oneIn(4) {
		a.ttl = d.within(MaxTTL/100, MaxTTL).Truncate(ms)
	}
	a.wait = d.wait(a.ttl)
	d.trips(&a.set, n, bad)
	d.trips(&a.rel, n, bad)
	a.deaf, a.lost, a.mute = 0, 0, 0
	if bad {
		a.deaf, a.lost, a.mute = d.mask(n, 6), d.mask(n, 6), d.mask(n, 6)
	}
	a.keep = d.oneIn(2)
	a.hold = d.within(0, a.ttl)
	if d.oneIn(3) {
		a.hold = d.within(0, 200*ms)
	}
	a.extends = 0
	if d.oneIn(3) {
		a.extends = 1 + d.n(2)
	}
	for i := range a.extends {
		e := &a.ext[i]
		e.hold = d.within(0, a.ttl)
		e.ttl = MaxTTL
		if d.oneIn(2) {
			e.ttl = d.within(MaxTTL/100, MaxTTL).Truncate(ms)
		}
		e.wait = d.wait(e.ttl)
		d.trips(&e.trips, n, bad)
		e.mute = 0
		if bad {
			e.mute = d.mask(n, 6)
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

func (g *guardPlan) draw(d *dice, index int, bad bool) {
	g.ppm = d.ppm()
	if d.oneIn(3) {
		g.ppm = maxPPM // the one whose D is shortest
	}
	g.start = 0
	if index > 0 {
		g.start = d.within(0, 2*MaxTTL)
	}
	g.poll = [...]time.Duration{MaxTTL / 30, MaxTTL / 10, MaxTTL / 5, MaxTTL / 3}[d.n(4)]
	g.eager = !d.oneIn(4)
	for i := range g.trips {
		g.trips[i] = d.calm()
		if bad && d.oneIn(3) {
			g.trips[i] = trip{d.rough(), d.rough()}
		}
	}
}

// drawFaults draws the faults, with a bias to what is dangerous: masters that
// hold votes, at the moment when these were given, back at once.
func (p *plan) drawFaults(d *dice, faults Faults) {
	p.faults = 0
	var kinds [24]faultKind
	m := 0
	add := func(f Faults, times int, k ...faultKind) {
		if !faults.Has(f) {
			return
		}
		for range times {
			m += copy(kinds[m:], k)
		}
	}
	add(FaultCrash, 3, faultCrash)
	add(FaultFlush, 1, faultFlush, faultEvict, faultRestore, faultReset)
	add(FaultStep, 1, faultStep, faultCreep)
	add(FaultGuard, 1, faultGuardCrash, faultGuardPause, faultGuardStep, faultCut)
	add(FaultOperator, 1, faultCordon, faultRole)
	add(FaultPause, 1, faultClientPause)
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
		f.on, f.nth, f.choice = onUp, 1, theSame
		f.after = d.within(0, MaxTTL)
		p.add(f)
	}
}

func (p *plan) add(f faultPlan) {
	if p.faults < maxFaults {
		p.fault[p.faults] = f
		p.faults++
	}
}

// dangerous draws a crash of so many holders that another client could win, at
// the moment of a grant, and a quick restart.
func (p *plan) dangerous(d *dice) faultPlan {
	f := faultPlan{kind: faultCrash, on: onGrant, nth: uint8(1 + d.n(2)), choice: theHolders}
	f.after = d.within(0, 2*ms)
	if d.oneIn(3) {
		f.after = d.within(0, MaxTTL)
	}
	f.count = uint8(redlock.Quorum(p.n))
	if d.oneIn(3) {
		f.count = uint8(1 + d.n(p.n))
	}
	f.mask = uint8(1 + d.n(1<<p.n-1))
	f.length = d.within(ms, 5*ms)
	if d.oneIn(3) {
		f.length = d.within(ms, 2*time.Second)
	}
	if d.oneIn(4) {
		f.stagger = d.within(0, MaxTTL/3)
	}
	f.silent = d.oneIn(6)
	return f
}

// any draws a fault of a kind at any moment.
func (p *plan) any(d *dice, kind faultKind) faultPlan {
	f := p.dangerous(d)
	f.kind = kind
	if d.oneIn(2) {
		f.on = trigger(d.n(int(onFree))) // none of the later ones
		f.nth = uint8(1 + d.n(4))
	}
	if f.on == onTime {
		f.after = d.within(0, 3*MaxTTL)
	}
	f.choice = choice(d.n(3))
	switch kind {
	case faultStep:
		// Large enough for any reading to show it.
		f.length = d.within(time.Second, 2*MaxTTL)
		if d.oneIn(4) {
			f.length = -f.length
		}
	case faultGuardStep:
		f.length = d.within(-MaxTTL, 2*MaxTTL)
		f.who = uint8(d.n(p.guards))
	case faultCreep:
		f.length = d.within(time.Second, MaxTTL/5)
		f.stagger = d.within(200*ms, 2*time.Second)
		f.count = uint8(10 + d.n(20)) // steps
	case faultRole:
		f.length = d.within(ms, 2*MaxTTL)
		if d.oneIn(2) {
			f.length = d.within(ms, 100*ms) // over before a guard looks
		}
	case faultCordon:
		f.length = d.within(0, 2*MaxTTL)
	case faultCut:
		f.length = d.within(0, 2*MaxTTL)
		f.who = uint8(d.n(p.guards))
		if d.oneIn(2) {
			// Cut off from all before the first locks are granted.
			f.on, f.choice, f.mask = onTime, theMask, 1<<p.n-1
			f.after, f.length = d.within(0, MaxTTL/5), d.within(0, MaxTTL)
		}
	case faultGuardCrash, faultGuardPause:
		f.length = d.within(0, 50*ms)
		if d.oneIn(2) {
			f.length = d.within(0, 2*MaxTTL)
		}
		f.who, f.memory = uint8(d.n(p.guards)), d.oneIn(2)
	case faultClientPause:
		f.length = d.within(0, 2*MaxTTL)
		f.who = uint8(d.n(p.clients))
	}
	return f
}
