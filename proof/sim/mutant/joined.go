package mutant

import (
	"time"

	"redlockctl/proof/sim/schedule"
)

// prompt gives all guards a good network, and two guards the same D.
func prompt(p *schedule.Plan) {
	p.Fenced, p.LagZero, p.Replicas, p.ACL, p.Blind, p.Shorter = true, false, false, false, 0, false
	for i := range p.Guards {
		g := &p.Guard[i]
		g.Start, g.Poll, g.RemovalLate = 0, schedule.MaxTTL/30, 0
		for k := range g.Trips {
			g.Trips[k] = schedule.Prompt()
		}
	}
}

// replaced makes plans in which other servers, which start unfenced, come to the place of
// those that voted.
func replaced(p *schedule.Plan) {
	prompt(p)
	p.Fault[0] = schedule.Fault{Kind: schedule.Replace, On: schedule.OnGrant, Nth: 1, Choice: schedule.OfHolders, Count: uint8(p.N), After: ms, Length: 5 * ms, Stagger: ms}
	p.Faults = 1
}

// metYoung makes plans in which the only guard is away, and loses its memory, when masters
// crash that start unfenced.
func metYoung(p *schedule.Plan) {
	awayAtCrash(p)
	prompt(p)
	p.Fenced, p.Fault[0].Memory = false, false
}

// awayAtFlush makes plans in which a guard that keeps its memory is down when masters are
// flushed, of which their uptime does not tell.
func awayAtFlush(p *schedule.Plan) {
	awayAtCrash(p)
	p.Fault[1].Kind = schedule.Flush
}

// powerCut makes plans in which all masters crash, and are taken for a new cluster.
func powerCut(p *schedule.Plan) {
	prompt(p)
	p.Fault[0] = schedule.Fault{Kind: schedule.Crash, On: schedule.OnGrant, Nth: 1, Choice: schedule.OfMask, Mask: 1<<p.N - 1, After: ms, Length: 5 * ms}
	p.Fault[1] = schedule.Fault{Kind: schedule.NewCluster, On: schedule.OnUp, Nth: uint8(p.N), After: 200 * ms}
	p.Faults = 2
}

// powerCutUnwatched makes plans in which the guards lose their power too.
func powerCutUnwatched(p *schedule.Plan) {
	powerCut(p)
	p.Guards = 1
	p.Fault[2] = schedule.Fault{Kind: schedule.GuardCrash, On: schedule.OnGrant, Nth: 1, Length: 10 * time.Second, Memory: true}
	p.Faults = 3
}

// powerCutRestarted makes plans in which the guards lose their power too, and are back first.
func powerCutRestarted(p *schedule.Plan) {
	powerCutUnwatched(p)
	p.Fault[2].Length = 2 * ms
}
