package world

import (
	"redlockctl/proof/sim/schedule"
	"redlockctl/server/announce"
)

var guardNames = [schedule.MaxGuards]string{"g1", "g2"}

// announce makes a guard be seen on an incarnation of a master.
func (w *World) announce(g *guard, node int, incarnation uint16) {
	if m := &w.masters[node]; g.up && g.cut[node] <= w.now && m.up && m.incarnation == incarnation {
		m.announced |= 1 << g.index
		if g.watches[node].state.Basis.Empty {
			m.drainers |= 1 << g.index
		}
	}
}

// hearGuards records what an answered probe showed of other guards, and announces the
// guard there. The rest is the witness, which computes in true time what the guard must
// know.
func (w *World) hearGuards(g *guard, node int) {
	if !w.announcing {
		return
	}
	x := &g.watches[node]
	w.announce(g, node, x.inIncarnation)
	others := w.voices[:0]
	for i := range w.plan.Guards {
		if o := &w.guards[i]; o != g && x.inGuards>>i&1 != 0 {
			d := w.delayOf(o)
			others = append(others, announce.Guard{ID: guardNames[i], Delay: d})
			if d > w.delayOf(g) {
				g.heardAt = w.now
			}
		}
	}
	g.peers.Hear(g.clock.time(w.now), guardNames[g.index], others)

	// What counted once in a fence counts to its end, also over another loss in it.
	lost := !x.knows || x.inLosses != x.losses
	x.warned = x.warned && !(x.inServing && !lost) && (!lost || x.fencedBefore)
	x.fencedBefore = !x.inServing
	x.warned = x.warned || g.heardAt > 0
}
