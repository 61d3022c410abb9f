package sim

import (
	"time"

	"redlockctl/restartguard"
)

// strays makes plans of the rare kind in which a lift strays: some of the guard's
// commands are held up for long, and what was opened is flushed.
func inFlight(p *plan) {
	g := &p.guard[0]
	for k := 3; k < guardTrips; k += 5 {
		g.trips[k].out = MaxTTL/2 + g.trips[k].back*10_000
	}
	crash := faultPlan{kind: faultCrash, on: onGrant, nth: 1, choice: theHolders, count: uint8(p.n), length: ms}
	flush := faultPlan{kind: faultFlush, on: onGrant, nth: 2, choice: theHolders, count: uint8(p.n), after: ms}
	p.fault[0], p.fault[1], p.faults = crash, flush, 2
}

// lostAnswers makes plans in which the answer to many an order of the guard comes too
// late, and what was granted after the first lift is lost.
func lostAnswers(p *plan) {
	p.fenced, p.lagZero, p.guards = true, false, 1
	g := &p.guard[0]
	for k := 2; k < guardTrips; k += 4 {
		g.trips[k].back = 2*guardTimeout + g.trips[k].back
	}
	crash := faultPlan{kind: faultCrash, on: onGrant, nth: 1, choice: theHolders, count: uint8(p.n), length: ms}
	p.fault[0], p.fault[1], p.faults = crash, crash, 2
	p.fault[1].nth = 2
}

// lostKills makes plans in which the order to end a connection is held up, too.
func lostKills(p *plan) {
	inFlight(p)
	g := &p.guard[0]
	for k := 4; k < guardTrips; k += 5 {
		g.trips[k].out = g.trips[k-1].out * 2
	}
}

// forgottenStrays makes plans in which the guard crashes when its first lift may
// be under way, and starts again with its memory.
func forgottenInFlight(p *plan) {
	inFlight(p)
	p.guard[0].poll, p.guards = MaxTTL/30, 1
	p.fault[2] = faultPlan{kind: faultGuardCrash, on: onCrash, nth: 1, after: restartguard.DefaultDelay(MaxTTL) + p.guard[0].trips[0].back*250, length: ms, memory: true}
	p.faults = 3
}

// crossed makes plans in which an order of the first guard to open a master is held
// up, while the second guard opens that master and closes it again for an eviction.
func crossed(p *plan) {
	p.n, p.fenced, p.lagZero, p.acl, p.blind, p.guards, p.shorter, p.clients = 1, true, false, false, 0, 2, false, 2
	for i := range p.guards {
		g := &p.guard[i]
		g.ppm, g.start, g.poll, g.eager = 0, 0, 100*ms, true
		for k := range g.trips {
			g.trips[k] = trip{g.trips[k].out/2 + time.Duration(i)*ms, ms}
		}
	}
	p.guard[0].removalLate = 300*ms + p.client[0].attempt[0].rel[0].back*100
	first, second, rival := &p.client[0].attempt[0], &p.client[0].attempt[1], &p.client[1].attempt[0]
	for _, a := range []*attemptPlan{first, second, rival} {
		*a = attemptPlan{on: onTime, pause: 10 * ms, ttl: MaxTTL, wait: 50 * ms, set: quiet(), rel: quiet(), hold: MaxTTL, keep: true}
	}
	first.hold, first.keep = time.Second, false
	second.on, rival.on = onRemoval, onRemoval
	rival.pause = p.guard[0].removalLate + 20*ms
	p.client[0].attempts, p.client[1].attempts = 2, 1
	crash := faultPlan{kind: faultCrash, on: onGrant, nth: 1, choice: theHolders, count: 1, length: ms}
	evict := faultPlan{kind: faultEvict, on: onGrant, nth: 2, choice: theHolders, count: 1, after: ms}
	p.fault[0], p.fault[1], p.faults = crash, evict, 2
}

// steppedBehind makes plans in which the second guard opens a master and closes it again
// for a step of its clock, when the first guard, which is about to open it, has read that
// clock only once since.
func steppedBehind(p *plan) {
	crossed(p)
	late := &p.guard[0]
	late.poll, late.eager, late.removalLate = MaxTTL/3, false, 0
	for i := range p.guards {
		for k := range p.guard[i].trips {
			p.guard[i].trips[k] = trip{ms, ms}
		}
	}
	first, rival := &p.client[0].attempt[0], &p.client[1].attempt[0]
	first.pause = late.poll - 310*ms + first.rel[0].back*50
	rival.pause = 400 * ms
	p.fault[1].kind, p.fault[1].length = faultStep, time.Hour
}
