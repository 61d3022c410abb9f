package world

import (
	"math/bits"

	"redlockctl/proof/sim/schedule"
	"redlockctl/redlock"
	"redlockctl/redlock/attempt"
)

// take force-releases the lock that was granted last: compare and delete on each node,
// as fast as the fault says. The operator's messages take no time.
func (w *World) take(f *schedule.Fault) {
	if w.lastGrant == 0 || w.grants[w.lastGrant].taking {
		return
	}
	g := &w.grants[w.lastGrant]
	g.taking, g.takeBegan, g.clean, g.deleted = true, w.now, 0, 0
	w.say("o", 0, "takes the lock %s away", tokenName(w.lastGrant))
	at := w.now
	for k := range w.plan.N {
		i := (k + int(f.Length)) % w.plan.N
		w.push(event{at: at, kind: evTake, node: uint8(i), tok: w.lastGrant})
		at += f.Stagger
	}
}

// takeFrom is its part on one node.
func (w *World) takeFrom(e *event) {
	m, g := &w.masters[e.node], &w.grants[e.tok]
	if !m.up {
		return
	}
	if m.token == e.tok && m.live(w.now) {
		if m.refuses() {
			return
		}
		m.token = 0
		g.deleted |= 1 << e.node
		w.say("n", int(e.node), "loses its copy of %s to the operator", tokenName(e.tok))
		w.free()
	}
	if w.now-g.takeBegan <= attempt.SettleTime/2 {
		g.clean |= 1 << e.node
	}
	quorum := redlock.Quorum(w.plan.N)
	if g.takenAt == 0 && (bits.OnesCount8(g.clean) >= quorum && g.deleted != 0 || bits.OnesCount8(g.deleted) >= quorum) {
		g.takenAt = w.now
		w.say("o", 0, "is told that %s is gone", tokenName(e.tok))
	}
}
