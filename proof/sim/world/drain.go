package world

import (
	"time"

	"redlockctl/restartguard"
	"redlockctl/server/announce"
)

// countEvery is the pause between two counts of the copies of a cordoned master.
const countEvery = 500 * ms

// countCopies has a guard count the copies of a cordoned master, as the product's does.
func (w *World) countCopies(g *guard, node int) bool {
	x := &g.watches[node]
	s := &x.state.Basis
	if !w.announcing || s.Duty.Kind != restartguard.DutyCordon || !s.Proven || s.Empty || w.now < x.countAt {
		return false
	}
	x.countAt = w.now + g.clock.lasts(countEvery)
	w.exchange(g, node, askCopies, 0, 0)
	return true
}

// announceDrained has a guard announce that it takes a master for drained, or not any more. The announcement
// travels by a connection of its own.
func (w *World) announceDrained(g *guard, node int) {
	if w.masters[node].drainers &^= 1 << g.index; !w.announcing || !g.watches[node].state.Basis.Empty {
		return
	}
	w.say("g", g.index, "finds no copy on %s", nodeNames[node])
	x := &g.watches[node]
	w.push(event{at: w.now + g.laterTrip(w, 0).Out, kind: evAnnounce, who: uint8(g.index), node: uint8(node), incarnation: x.inIncarnation})
}

// hearDrained adds to a look which guards take the master for drained, and which let it vote later.
func (w *World) hearDrained(g *guard, node int, o *restartguard.Observation, now time.Time) {
	x, here := &g.watches[node], w.voices[:0]
	for i := range w.plan.Guards {
		if x.inGuards>>i&1 != 0 {
			here = append(here, announce.Guard{ID: guardNames[i], Delay: w.delayOf(&w.guards[i]), Drained: x.inDrainers>>i&1 != 0})
		}
	}
	for i := range w.plan.Guards {
		if s := &w.guards[i].watches[node].state; i != g.index && x.inGuards>>i&1 != 0 && s.Basis.RunID == o.RunID && s.Report.From.After(w.guards[i].clock.time(w.now)) {
			o.Later = true
		}
	}
	o.SaidDrained = x.inDrainers>>g.index&1 != 0
	o.Believed = g.peers.Might(now, guardNames[g.index], max(o.Heard, w.delayOf(g)), here)
}

// mayVoteFrom is what the guards that are seen on a master announce of when it may vote.
func (w *World) mayVoteFrom(node int) (from time.Duration) {
	run := w.runIDs[node][w.masters[node].incarnation%incarnations]
	for i := range w.plan.Guards {
		g := &w.guards[i]
		s := &g.watches[node].state
		if !g.up || g.cut[node] > w.now || s.Basis.RunID != run || s.Report.From.IsZero() {
			continue
		}
		if at := max(g.clock.whenTime(s.Report.From), 1); from == 0 || at < from {
			from = at
		}
	}
	return from
}
