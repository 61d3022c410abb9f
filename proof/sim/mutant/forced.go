package mutant

import (
	"time"

	"redlockctl/proof/sim/schedule"
	"redlockctl/redlock"
	"redlockctl/restartguard"
)

const ms = time.Millisecond

// inFlight makes plans of the rare kind in which a removal comes late: some of the guard's
// commands are held up for long, and what has rejoined is flushed.
func inFlight(p *schedule.Plan) {
	g := &p.Guard[0]
	for k := 3; k < schedule.GuardTrips; k += 5 {
		g.Trips[k].Out = schedule.MaxTTL/2 + g.Trips[k].Back*10_000
	}
	crash := schedule.Fault{Kind: schedule.Crash, On: schedule.OnGrant, Nth: 1, Choice: schedule.OfHolders, Count: uint8(p.N), Length: ms}
	flush := schedule.Fault{Kind: schedule.Flush, On: schedule.OnGrant, Nth: 2, Choice: schedule.OfHolders, Count: uint8(p.N), After: ms}
	p.Fault[0], p.Fault[1], p.Faults = crash, flush, 2
}

// lostAnswers makes plans in which the answer to many an order of the guard comes too
// late, and what was granted after the first rejoin is lost.
func lostAnswers(p *schedule.Plan) {
	p.Fenced, p.LagZero, p.Guards = true, false, 1
	g := &p.Guard[0]
	for k := 2; k < schedule.GuardTrips; k += 4 {
		g.Trips[k].Back = 2*restartguard.DefaultTimeout + g.Trips[k].Back
	}
	crash := schedule.Fault{Kind: schedule.Crash, On: schedule.OnGrant, Nth: 1, Choice: schedule.OfHolders, Count: uint8(p.N), Length: ms}
	p.Fault[0], p.Fault[1], p.Faults = crash, crash, 2
	p.Fault[1].Nth = 2
}

// lostKills makes plans in which the order to end a connection is held up, too.
func lostKills(p *schedule.Plan) {
	inFlight(p)
	g := &p.Guard[0]
	for k := 4; k < schedule.GuardTrips; k += 5 {
		g.Trips[k].Out = g.Trips[k-1].Out * 2
	}
}

// forgottenInFlight makes plans in which the guard crashes when its first removal may
// be under way, and starts again with its memory.
func forgottenInFlight(p *schedule.Plan) {
	inFlight(p)
	p.Guard[0].Poll, p.Guards = schedule.MaxTTL/30, 1
	p.Fault[2] = schedule.Fault{Kind: schedule.GuardCrash, On: schedule.OnCrash, Nth: 1, After: restartguard.DefaultDelay(schedule.MaxTTL) + p.Guard[0].Trips[0].Back*250, Length: ms, Memory: true}
	p.Faults = 3
}

// crossed makes plans in which a rejoin ordered by the first guard is held up,
// while the second guard lets that master rejoin and fences it again for an eviction.
func crossed(p *schedule.Plan) {
	p.N, p.Fenced, p.LagZero, p.ACL, p.Blind, p.Guards, p.Shorter, p.Clients = 1, true, false, false, 0, 2, false, 2
	for i := range p.Guards {
		g := &p.Guard[i]
		g.PPM, g.Start, g.Poll, g.Eager = 0, 0, 100*ms, true
		for k := range g.Trips {
			g.Trips[k] = schedule.Trip{Out: g.Trips[k].Out/2 + time.Duration(i)*ms, Back: ms}
		}
	}
	p.Guard[0].RemovalLate = 300*ms + p.Client[0].Attempt[0].Release[0].Back*100
	first, second, rival := &p.Client[0].Attempt[0], &p.Client[0].Attempt[1], &p.Client[1].Attempt[0]
	for _, a := range []*schedule.Attempt{first, second, rival} {
		*a = schedule.Attempt{On: schedule.OnTime, Pause: 10 * ms, TTL: schedule.MaxTTL, Wait: 50 * ms, Set: schedule.Quiet(), Release: schedule.Quiet(), Hold: schedule.MaxTTL, Keep: true}
	}
	first.Hold, first.Keep = time.Second, false
	second.On, rival.On = schedule.OnRemoval, schedule.OnRemoval
	rival.Pause = p.Guard[0].RemovalLate + 20*ms
	p.Client[0].Attempts, p.Client[1].Attempts = 2, 1
	crash := schedule.Fault{Kind: schedule.Crash, On: schedule.OnGrant, Nth: 1, Choice: schedule.OfHolders, Count: 1, Length: ms}
	evict := schedule.Fault{Kind: schedule.Evict, On: schedule.OnGrant, Nth: 2, Choice: schedule.OfHolders, Count: 1, After: ms}
	p.Fault[0], p.Fault[1], p.Faults = crash, evict, 2
}

// steppedBehind makes plans in which the second guard lets a master rejoin and fences it again
// for a step of its clock, when the first guard, which is about to do so too, has read that
// clock only once since.
func steppedBehind(p *schedule.Plan) {
	crossed(p)
	late := &p.Guard[0]
	late.Poll, late.Eager, late.RemovalLate = schedule.MaxTTL/3, false, 0
	for i := range p.Guards {
		for k := range p.Guard[i].Trips {
			p.Guard[i].Trips[k] = schedule.Prompt()
		}
	}
	first, rival := &p.Client[0].Attempt[0], &p.Client[1].Attempt[0]
	first.Pause = late.Poll - 310*ms + first.Release[0].Back*50
	rival.Pause = 400 * ms
	p.Fault[1].Kind, p.Fault[1].Length = schedule.Step, time.Hour
}

// awayAtCrash makes plans in which a guard that keeps its memory is down when masters
// crash that start unfenced.
func awayAtCrash(p *schedule.Plan) {
	p.Fenced, p.Guards = false, 1
	p.Guard[0].Poll = schedule.MaxTTL / 30
	p.Fault[0] = schedule.Fault{Kind: schedule.GuardCrash, On: schedule.OnGrant, Nth: 1, After: 1, Length: 20 * ms, Memory: true}
	p.Fault[1] = schedule.Fault{Kind: schedule.Crash, On: schedule.OnGrant, Nth: 1, Choice: schedule.OfHolders, Count: uint8(p.N), After: 5 * ms, Length: ms}
	p.Faults = 2
}

// awayAtStep makes plans in which the clocks of the masters that voted are set ahead
// while the only guard is away for a moment, with its memory.
func awayAtStep(p *schedule.Plan) {
	p.Fenced, p.Guards = true, 1
	p.Guard[0].Poll = schedule.MaxTTL / 30
	p.Fault[0] = schedule.Fault{Kind: schedule.GuardCrash, On: schedule.OnGrant, Nth: 1, After: 1, Length: 20 * ms, Memory: true}
	p.Fault[1] = schedule.Fault{Kind: schedule.Step, On: schedule.OnGrant, Nth: 1, Choice: schedule.OfHolders, Count: uint8(p.N), After: 5 * ms, Length: 2 * schedule.MaxTTL}
	p.Faults = 2
}

// creeps makes plans in which readings of clocks are slow, and clocks are set ahead
// by small steps while locks are held.
func creeps(p *schedule.Plan) {
	p.Guards, p.Fenced = 1, true
	g := &p.Guard[0]
	g.Poll = schedule.MaxTTL / 30
	for k := range g.Trips {
		g.Trips[k] = schedule.Trip{Out: 20 * ms, Back: 20 * ms}
	}
	p.Fault[0] = schedule.Fault{Kind: schedule.Creep, On: schedule.OnGrant, Nth: 1, Choice: schedule.OfHolders, Count: 60, After: ms, Length: 60 * 35 * ms, Stagger: time.Second}
	p.Faults = 1
}

// restores makes plans in which masters' memory is put back while locks are held.
func restores(p *schedule.Plan) {
	p.Guards, p.Counter = 1, true
	p.Guard[0].Poll = schedule.MaxTTL / 30
	p.Fault[0] = schedule.Fault{Kind: schedule.Restore, On: schedule.OnGrant, Nth: 1, Choice: schedule.OfHolders, Count: uint8(p.N), After: schedule.MaxTTL / 3}
	p.Faults = 1
}

// resets makes plans in which a master is flushed, and flushed again behind a
// reset of its counters.
func resets(p *schedule.Plan) {
	p.Counter = false
	first := schedule.Fault{Kind: schedule.Flush, On: schedule.OnGrant, Nth: 1, Choice: schedule.OfHolders, Count: uint8(p.N), After: ms}
	again := schedule.Fault{Kind: schedule.Reset, On: schedule.OnGrant, Nth: 2, Choice: schedule.OfHolders, Count: uint8(p.N), After: ms}
	p.Fault[0], p.Fault[1], p.Faults = first, again, 2
}

// differing makes plans with a second guard that has a shorter D.
func differing(p *schedule.Plan) {
	p.Fenced, p.LagZero, p.Guards, p.Shorter = true, false, 2, true
	p.Guard[0].Start, p.Guard[1].Start = 0, 0
}

// leaving makes plans in which the guard with the longer D ends for good, and masters
// lose votes when the other has not forgotten it quite yet.
func leaving(p *schedule.Plan) {
	differing(p)
	p.Blind = 0
	g := &p.Guard[1]
	g.Poll, g.Eager = schedule.MaxTTL/30, true
	for k := range g.Trips {
		g.Trips[k] = schedule.Prompt()
	}
	for i := range p.Clients {
		p.Client[i].Attempt[0].On = schedule.OnTime
		p.Client[i].Attempt[0].Pause = restartguard.PeerKept - schedule.MaxTTL/15 + p.Client[i].Attempt[0].Set[0].Back*1000
	}
	p.Fault[0] = schedule.Fault{Kind: schedule.GuardCrash, Who: 0, After: time.Second, Length: 2 * schedule.Horizon}
	p.Fault[1] = schedule.Fault{Kind: schedule.Crash, On: schedule.OnGrant, Nth: 1, Choice: schedule.OfHolders, Count: uint8(p.N), After: ms, Length: ms}
	p.Faults = 2
}

// restartedApart makes plans in which the guard with the shorter D starts again, with its memory, when the other has ended.
func restartedApart(p *schedule.Plan) {
	leaving(p)
	p.Fault[2] = p.Fault[1]
	p.Fault[1] = schedule.Fault{Kind: schedule.GuardCrash, Who: 1, After: 2 * time.Second, Length: 20 * ms, Memory: true}
	p.Faults = 3
}

// cordonedInFence makes plans in which masters that have restarted are cordoned for a moment.
func cordonedInFence(p *schedule.Plan) {
	p.Fenced, p.LagZero, p.Guards, p.Blind = true, false, 1, 0
	g := &p.Guard[0]
	g.Poll, g.Eager = schedule.MaxTTL/30, true
	for k := range g.Trips {
		g.Trips[k] = schedule.Prompt()
	}
	p.Fault[0] = schedule.Fault{Kind: schedule.Crash, On: schedule.OnGrant, Nth: 1, Choice: schedule.OfHolders, Count: uint8(p.N), After: ms, Length: ms}
	p.Fault[1] = schedule.Fault{Kind: schedule.Cordon, On: schedule.OnUp, Nth: 1, Choice: schedule.OfMask, Mask: 1<<p.N - 1, After: 2 * time.Second, Length: 3 * time.Second}
	p.Faults = 2
}

// known is when what a guard has seen of masters from the beginning on counts.
const known = 35 * time.Second

// begins has a client take the lock once, from a moment on.
func begins(c *schedule.Client, at time.Duration) {
	c.Attempts = 1
	a := &c.Attempt[0]
	*a = schedule.Attempt{On: schedule.OnTime, Pause: at + a.Set[0].Back*500, TTL: schedule.MaxTTL, Wait: 50 * ms, Set: schedule.Quiet(), Release: schedule.Quiet(), Hold: schedule.MaxTTL, Keep: true}
}

// emptied makes plans in which masters are cordoned and restarted while they have copies.
func emptied(p *schedule.Plan) {
	cordonedInFence(p)
	begins(&p.Client[0], known)
	begins(&p.Client[1], known+12*time.Second)
	p.Clients = 2
	p.Fault[0] = schedule.Fault{Kind: schedule.Cordon, On: schedule.OnGrant, Nth: 1, Choice: schedule.OfMask, Mask: 1<<p.N - 1, After: time.Second, Length: 8 * time.Second, Memory: true}
	p.Fault[1] = schedule.Fault{Kind: schedule.Crash, On: schedule.OnGrant, Nth: 1, Choice: schedule.OfMask, Mask: 1<<p.N - 1, After: 5 * time.Second, Length: ms}
}

// emptiedByStep is that, and their clocks are set ahead just before the restart.
func emptiedByStep(p *schedule.Plan) {
	emptied(p)
	g, before := &p.Guard[0], 3*time.Second+p.Client[2].Attempt[0].Set[0].Back*4000 // up to 7.4 s
	g.Poll = schedule.MaxTTL / 10
	for k := range g.Trips {
		g.Trips[k].Out = restartguard.DefaultTimeout / 2
	}
	p.Client[1].Attempt[0].Pause += 8 * time.Second
	p.Fault[0].Length, p.Fault[1].After = 15*time.Second, 12*time.Second
	p.Fault[2] = schedule.Fault{Kind: schedule.Step, On: schedule.OnGrant, Nth: 1, Choice: schedule.OfMask, Mask: 1<<p.N - 1, After: p.Fault[1].After - before, Length: time.Hour}
	p.Faults = 3
}

// drainedApart makes plans in which two guards take all masters for drained, and the first is cut off when they
// restart, until they have restarted once more with what was granted since.
func drainedApart(p *schedule.Plan) {
	p.Fenced, p.LagZero, p.ACL, p.Guards, p.Shorter, p.Blind, p.Leaks, p.Clients = true, false, false, 2, false, 0, 0, 2
	for i := range p.Guards {
		g := &p.Guard[i]
		g.Start, g.Poll, g.Eager, g.RemovalLate = 0, schedule.MaxTTL/30, true, 0
		for k := range g.Trips {
			g.Trips[k] = schedule.Prompt()
		}
	}
	begins(&p.Client[0], known+7*time.Second)
	begins(&p.Client[1], known+16*time.Second)
	all := uint8(1<<p.N - 1)
	p.Fault[0] = schedule.Fault{Kind: schedule.Cordon, Choice: schedule.OfMask, Mask: all, After: known, Length: 6 * time.Second, Memory: true}
	p.Fault[1] = schedule.Fault{Kind: schedule.Cut, Who: 0, Choice: schedule.OfMask, Mask: all, After: known + 4*time.Second, Length: 6 * time.Second}
	p.Fault[2] = schedule.Fault{Kind: schedule.Crash, Choice: schedule.OfMask, Mask: all, After: known + 5*time.Second, Length: ms}
	p.Fault[3] = schedule.Fault{Kind: schedule.Crash, On: schedule.OnGrant, Nth: 1, Choice: schedule.OfMask, Mask: all, After: ms, Length: ms}
	p.Faults = 4
}

// drainedShorter makes plans in which a guard is cut off from masters that it takes for drained. They
// restart, and another guard with a shorter D, which has just started, lets them rejoin. They restart
// again before the first one sees them.
func drainedShorter(p *schedule.Plan) {
	drainedApart(p)
	p.Shorter, p.Guard[1].Start = true, known+5100*ms
	p.Fault[0].Length = 20 * time.Second
	p.Fault[1].Length = 12 * time.Second
	begins(&p.Client[0], known+11*time.Second)
	begins(&p.Client[1], known+21*time.Second)
}

// rolling makes plans in which a lock is kept while masters restart, and perhaps is
// revoked or force-released as soon as copies are put back.
func rolling(p *schedule.Plan) {
	p.N, p.Fenced, p.LagZero, p.ACL, p.Blind, p.Guards = max(p.N, 3), true, false, false, 0, 1
	g := &p.Guard[0]
	g.Poll = schedule.MaxTTL / 30
	for k := range g.Trips {
		g.Trips[k] = schedule.Prompt()
	}
	a := &p.Client[0].Attempt[0]
	spread := a.Set[0].Back * 1000 // up to 1.1 s
	a.On, a.Pause, a.TTL, a.Hold, a.Keep, a.Extends = schedule.OnTime, ms, schedule.MaxTTL, 20*time.Second, true, schedule.MaxExtends
	a.Set, a.Deaf, a.Lost, a.Mute = schedule.Quiet(), 0, 0, 0
	for k := range a.Ext {
		a.Ext[k] = schedule.Extension{Hold: 12*time.Second + spread, TTL: schedule.MaxTTL, Wait: 50 * ms, Trips: schedule.Quiet()}
	}
	p.Client[0].Attempts = 1
	p.Fault[0] = schedule.Fault{Kind: schedule.Crash, After: time.Second, Choice: schedule.OfMask, Mask: 1, Length: ms}
	p.Faults = 1
}

// suspendedBehind makes plans in which a client is suspended between its grant of an
// extension and the answer by which it knows that a copy is missing, for longer than
// the lock is valid.
func suspendedBehind(p *schedule.Plan) {
	rolling(p)
	a := &p.Client[0].Attempt[0]
	// The first extension meets a connection that has ended, the second no copy.
	a.Ext[1].Trips[0].Back = 30 * ms
	p.Fault[1] = schedule.Fault{Kind: schedule.ClientPause, After: a.Pause + 2*ms + a.Hold + 2*ms + a.Ext[0].Hold + 10*ms, Length: 2 * schedule.MaxTTL}
	p.Faults = 2
}

// rollingTaken is that, with an operator.
func rollingTaken(p *schedule.Plan) {
	rolling(p)
	quorum := redlock.Quorum(p.N)
	a, stagger := &p.Client[0].Attempt[0], 20*ms+p.Client[0].Attempt[0].Set[1].Back%(80*ms)
	p.Fault[0].Mask = 1<<(p.N-quorum) - 1
	// The first extension meets connections that have ended, the second no copies. The
	// third comes while the operator is under way.
	p.Fault[1] = schedule.Fault{Kind: schedule.Take, On: schedule.OnRepair, Nth: 1, Choice: schedule.OfMask, Mask: 1<<p.N - 1, Stagger: stagger}
	a.Ext[1].Hold = stagger*time.Duration(quorum-1) + stagger/2
	p.Faults = 2
}

// slowlyTaken is rolling, with an operator who deletes the copies by hand, each
// when what he has deleted before would have settled again.
func slowlyTaken(p *schedule.Plan) {
	rolling(p)
	p.Fault[0] = schedule.Fault{Kind: schedule.Take, On: schedule.OnGrant, Nth: 1, After: 16 * time.Second, Choice: schedule.OfMask, Mask: 1<<p.N - 1, Stagger: 27 * time.Second}
	p.N = 3
}

// fencedTaken is that, where the first copy is deleted just after a cordon during which an extension
// was refused, and before it would have expired.
func fencedTaken(p *schedule.Plan) {
	slowlyTaken(p)
	g, a := &p.Guard[0], &p.Client[0].Attempt[0]
	g.Start, g.Eager, g.RemovalLate = 0, true, 0
	a.Pause, a.Hold = known, 5*time.Second
	for k := range a.Ext {
		a.Ext[k].Hold = 6 * time.Second
	}
	p.Fault[0].After, p.Fault[0].Stagger = 15*time.Second, 10*time.Second
	p.Fault[1] = schedule.Fault{Kind: schedule.Cordon, On: schedule.OnGrant, Nth: 1, After: 8 * time.Second, Choice: schedule.OfMask, Mask: 1, Length: 4 * time.Second}
	p.Faults = 2
}

// takenBefore makes plans in which the SET of a grant reaches a master behind the
// operator who found no copy there.
func takenBefore(p *schedule.Plan) {
	rolling(p)
	p.N = 3
	first := &p.Client[0].Attempt[0]
	second := *first
	first.Keep, first.Hold = false, ms // connects
	second.Wait, second.Set[2].Out, second.Hold = 50*ms, 900*ms, time.Second
	p.Client[0].Attempt[1], p.Client[0].Attempts = second, 2
	p.Fault[0] = schedule.Fault{Kind: schedule.Take, On: schedule.OnGrant, Nth: 2, After: 100 * ms, Choice: schedule.OfMask, Mask: 1<<p.N - 1, Length: 2, Stagger: 600 * ms}
}

// lateVotes makes plans in which a vote is cast long after another of the same
// attempt was lost.
func lateVotes(p *schedule.Plan) {
	p.N, p.Fenced, p.LagZero = 3, true, false
	a := &p.Client[0].Attempt[0]
	a.On, a.Pause, a.TTL, a.Wait, a.Hold, a.Keep, a.Extends = schedule.OnTime, ms, schedule.MaxTTL, schedule.MaxTTL, schedule.MaxTTL, true, 0
	slow := a.Set[1].Back*1000 + schedule.AttemptBound/10 // up to 40 % of the bound, or beyond it
	if a.Set[0].Back&1 != 0 {
		slow = min(slow*8, schedule.MaxTTL/2)
	}
	a.Set[0], a.Set[1], a.Deaf, a.Lost, a.Mute = schedule.Prompt(), schedule.Trip{Out: slow, Back: ms}, 1<<2, 0, 0
	p.Client[0].Attempts = 1
	b := &p.Client[1].Attempt[0]
	b.On, b.Pause, b.Deaf, b.Lost, b.Mute, b.Keep, b.Hold, b.TTL = schedule.OnRemoval, ms, 1<<1, 0, 0, true, schedule.MaxTTL, schedule.MaxTTL
	b.Set[0], b.Set[2] = schedule.Prompt(), schedule.Prompt()
	p.Patience = 2 * schedule.MaxTTL
	p.Fault[0] = schedule.Fault{Kind: schedule.Crash, After: 5 * ms, Mask: 1, Length: ms}
	p.Faults = 1
}

// failedBeside makes plans in which an attempt has failed on the node that a holder has
// not, and its release is under way for long.
func failedBeside(p *schedule.Plan) {
	p.N, p.Fenced, p.LagZero, p.ACL = 3, true, false, false
	a := &p.Client[0].Attempt[0]
	a.On, a.Pause, a.TTL, a.Hold, a.Keep, a.Extends = schedule.OnTime, ms, schedule.MaxTTL, schedule.MaxTTL, true, 0
	a.Set, a.Deaf, a.Lost, a.Mute = schedule.Quiet(), 1<<2, 0, 0
	p.Client[0].Attempts = 1
	b := &p.Client[1].Attempt[0]
	b.On, b.Pause, b.TTL, b.Deaf, b.Lost, b.Mute = schedule.OnTime, 20*ms, schedule.MaxTTL, 0, 0, 0
	b.Set, b.Release = schedule.Quiet(), schedule.Quiet()
	b.Release[2].Out = schedule.MaxTTL / 3
	c := &p.Client[1].Attempt[1]
	c.On, c.Pause, c.TTL, c.Deaf, c.Lost, c.Mute, c.Keep, c.Hold = schedule.OnTime, schedule.MaxTTL/2, schedule.MaxTTL, 0, 0, 0, true, schedule.MaxTTL
	c.Set, c.Extends = schedule.Quiet(), 0
	p.Client[1].Attempts = 2
	p.Fault[0] = schedule.Fault{Kind: schedule.Crash, After: 10 * ms, Mask: 1, Length: ms}
	p.Faults = 1
}

// unevenEnds makes plans in which a lock was extended on a quorum only, and one of
// those nodes has lost it.
func unevenEnds(p *schedule.Plan) {
	p.N, p.Fenced, p.LagZero = 3, true, false
	a := &p.Client[0].Attempt[0]
	short := schedule.MaxTTL/4 + a.Set[1].Back*1000
	a.On, a.Pause, a.TTL, a.Hold, a.Keep, a.Extends = schedule.OnTime, ms, short, 100*ms, true, 1
	a.Deaf, a.Lost, a.Mute = 0, 0, 0
	a.Set = schedule.Quiet()
	a.Ext[0] = schedule.Extension{Hold: schedule.MaxTTL, TTL: schedule.MaxTTL, Wait: 50 * ms, Trips: schedule.Quiet()}
	a.Ext[0].Trips[2].Out = schedule.MaxTTL // for all that matters, never
	p.Client[0].Attempts = 1
	b := &p.Client[1].Attempt[0]
	b.On, b.Pause, b.Deaf, b.Lost, b.Mute, b.Keep, b.Hold, b.TTL = schedule.OnTime, short+schedule.MaxTTL/10, 0, 0, 0, true, schedule.MaxTTL, schedule.MaxTTL
	b.Set = schedule.Quiet()
	p.Fault[0] = schedule.Fault{Kind: schedule.Crash, After: 200 * ms, Mask: 1, Length: ms}
	p.Faults = 1
}

// watched makes plans with a monitor, and an operator who acts on what it shows.
func watched(p *schedule.Plan) {
	p.View.On, p.View.Acts = true, true
	if p.View.Every == 0 {
		p.View.Every, p.View.Eager = schedule.MaxTTL/30, true
		for i := range p.View.Trips {
			p.View.Trips[i] = schedule.Prompt()
		}
	}
}

// leaky makes plans in which scripts pass every fence, and all clients take locks by them.
func leaky(p *schedule.Plan) {
	p.Fenced, p.LagZero, p.ACL, p.Blind = true, false, false, 0
	p.Leaks, p.Scripts = 1<<p.N-1, 1<<p.Clients-1
}

// demoted makes plans in which those that hold the first lock are made replicas for longer than D, and
// accept writes.
func demoted(p *schedule.Plan) {
	p.Fenced, p.LagZero, p.ACL, p.Blind, p.Writable = true, false, false, 0, 1<<p.N-1
	p.Fault[0] = schedule.Fault{Kind: schedule.Role, On: schedule.OnGrant, Nth: 1, Choice: schedule.OfHolders, Count: uint8(p.N), After: ms, Length: 2 * schedule.MaxTTL}
	p.Faults = 1
}

// byUser makes plans in which the fences are those of a user.
func byUser(p *schedule.Plan) {
	p.Fenced, p.LagZero, p.ACL, p.Blind, p.Leaks = true, false, true, 0, 0
}
