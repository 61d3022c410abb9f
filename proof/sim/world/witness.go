package world

import (
	"math/bits"
	"time"

	"redlockctl/proof/sim/mutant"
	"redlockctl/proof/sim/trace"
	"redlockctl/redlock"
	"redlockctl/restartguard"
)

// believe records that a client relies on its lock from now until a true time, and
// checks whether another does.
func (w *World) believe(c *client, until time.Duration) {
	c.believes, c.believed = until, w.now
	if until <= w.now {
		return
	}
	for i := range w.plan.Clients {
		o := &w.clients[i]
		if o == c || o.believes <= w.now {
			continue
		}
		if w.grants[o.token].taking || w.grants[c.token].taking {
			continue // a force-release from a holder that is alive allows two
		}
		if w.excusable(c.token, o.token) || w.excusable(o.token, c.token) {
			w.exposed = true
			return
		}
		w.breach(mutant.Exclusion, "c%d relies on the lock until %s, and c%d until %s", o.index+1, trace.At(o.believes), c.index+1, trace.At(until))
		return
	}
}

// excusable reports whether a grant needs second votes, after one for another token,
// that masters gave while they served after a loss and before any guard could fence
// them.
func (w *World) excusable(second, first uint8) bool {
	if w.rules.NoExcuse {
		return false
	}
	g := &w.grants[second]
	votes := g.votes
	if g.repaired != 0 {
		votes = g.relied // it has outlived others
	}
	relied := votes
	for i := range w.plan.N {
		if g.seconds[i]>>first&1 != 0 {
			votes &^= 1 << i
		}
	}
	return votes != relied && bits.OnesCount8(votes) < redlock.Quorum(w.plan.N)
}

// resurrected checks an extension: none that began after a revoke or force-release may be
// granted, unless the acquisition was under way when that began.
func (w *World) resurrected(c *client) {
	g := &w.grants[c.token]
	if g.takenAt == 0 || c.asked <= g.takenAt || g.takeBegan <= g.until {
		return
	}
	w.breach(mutant.Resurrected, "c%d has extended its lock, begun at %s, which was revoked or force-released at %s", c.index+1, trace.At(c.asked), trace.At(g.takenAt))
}

// intrudes checks where a copy is put back: on a serving master without another token's
// copy.
func (w *World) intrudes(m *master, e *event) {
	switch {
	case m.refuses():
		w.breach(mutant.Resurrected, "%s, which is fenced, accepts a copy of %s that is put back", nodeNames[e.node], tokenName(e.tok))
	case m.token != 0 && m.token != e.tok:
		w.breach(mutant.Resurrected, "the copy of %s on %s is replaced by one of %s that is put back", tokenName(m.token), nodeNames[e.node], tokenName(e.tok))
	}
}

// outlives checks a copy that was put back: it ends no later than the copies of the
// extension before it.
func (w *World) outlives(c *client, e *event) {
	if e.x > c.terms.TTL && e.run == c.run {
		w.breach(mutant.LeftBehind, "the copy that was put back on %s outlives the lock by %s", nodeNames[e.node], trace.Span(e.x-c.terms.TTL))
	}
}

// leaked checks a vote through a fence: no guard may count the fence as proven.
func (w *World) leaked(m *master, node int) {
	for i := range w.plan.Guards {
		g := &w.guards[i]
		s := &g.watches[node].state
		if g.up && s.Basis.Proven && s.Basis.Phase == restartguard.PhaseFenced && s.Basis.RunID == w.runIDs[node][m.incarnation%incarnations] {
			w.breach(mutant.Proof, "%s votes behind its fence, which g%d takes for proven", nodeNames[node], i+1)
		}
	}
}

// mayRejoin checks a rejoin.
func (w *World) mayRejoin(g *guard, m *master, node int, e *event) {
	if m.slave && e.y >= m.demoted {
		w.breach(mutant.EarlyRejoin, "g%d lets %s rejoin, which it has seen to be a replica", g.index+1, nodeNames[node])
		return
	}
	if m.cordoned() && e.y >= m.heldSince {
		w.breach(mutant.CordonRemoved, "g%d lets %s rejoin, which it has seen cordoned by an operator", g.index+1, nodeNames[node])
		return
	}
	right := w.right
	if w.rules.EarlyRejoin {
		right = w.earlyAfter()
	}
	since, least := w.now-m.lostAt, g.clock.lasts(right)
	long := g.clock.lasts(w.right)
	if e.tok != 0 && m.refuses() {
		m.unheardAt = w.now
	}
	if e.tok != 0 && m.refuses() && (m.fresh != 0 && w.now-m.forgotAt < long || m.lostAt > 0 && since < long) {
		w.Stats.Unheard++
		m.unguarded |= m.fresh
		w.say("g", g.index, "could not have heard of a longer D")
		return
	}
	if m.refuses() && since < least && w.missedUnheard(g, m, node) {
		w.Stats.Unheard++
		m.unguarded |= m.fresh
		w.say("g", g.index, "has never heard of whoever let it serve meanwhile")
		return
	}
	if e.tok == 0 && m.refuses() {
		m.unguarded = 0
	}
	if m.lostAt > 0 && m.refuses() && since < least {
		w.breach(mutant.EarlyRejoin, "g%d lets %s rejoin %s after its last crash, and D is %s", g.index+1, nodeNames[node], trace.Span(since), trace.Span(right))
	}
}

// missedUnheard reports whether a guard takes a master for drained that has served since, because
// another guard, with a shorter D and unable to hear of this one's, let it rejoin, and has never
// been on a node together with this one; or a person let it serve while this guard was cut off.
func (w *World) missedUnheard(g *guard, m *master, node int) bool {
	b := &g.watches[node].state.Basis
	return !b.Relied.IsZero() && m.unheardAt > g.clock.whenTime(b.Relied.Add(-b.Age)) &&
		(g.peers.Least() == 0 || g.peers.Least() >= w.delayOf(g))
}

// reckon checks what a guard has seen: from when a master that serves after a loss is
// no longer excused.
func (w *World) reckon(g *guard, x *watch) {
	counts := x.countsRead()
	if x.knows && x.inLosses != x.losses && !x.counts.hides(counts) {
		x.telling = true
	}
	if !x.knows && x.inbox.Up < w.delayOf(g) {
		x.telling = true // it may have lost votes with its start
	}
	if x.knows && w.now-x.readAt > w.delayOf(g)*99/100 {
		x.away = true
	}
	x.knows, x.losses, x.counts, x.readAt = true, x.inLosses, counts, x.looked
	w.reckonClock(x)
	if !x.inServing || x.inBlind { // a node that it may not fence it can only report
		x.telling = false
	}
}

// reckonClock: a guard sees a clock's steps in any two successive readings that were
// answered quickly, if one before the steps was quick too, and if the steps exceed the
// error of these readings and of the clock rates: a fast guard allows a slow master
// that much.
func (w *World) reckonClock(x *watch) {
	const quick, large, hidden = 50 * ms, 200 * ms, 1.65e-2
	switch {
	case w.now-x.asked > quick:
		x.ahead = 0
		return
	case x.inIncarnation != x.offsetIncarnation:
		x.offsetIncarnation, x.gained, x.ahead = x.inIncarnation, 0, 0
	default:
		x.gained += x.inOffset - x.offset - time.Duration(hidden*float64(w.now-x.offsetAt))
		if x.gained = max(x.gained, 0); x.gained < large {
			x.ahead = 0
		} else if x.ahead++; x.ahead == 2 {
			x.gained, x.ahead, x.telling = 0, 0, true
		}
	}
	x.offset, x.offsetAt = x.inOffset, w.now
}

// inTime reports whether no guard can have fenced a node yet.
func (w *World) inTime(node int) bool {
	for i := range w.plan.Guards {
		if w.now > w.guards[i].watches[node].graceUntil {
			return false
		}
	}
	return true
}

// unaware reports whether a guard with a shorter D that is about to let a master rejoin
// had no chance to learn of the longer D.
func (w *World) unaware(g *guard, x *watch) bool {
	return w.delayOf(g) < w.delay && !x.warned && x.state.Basis.Early == ""
}
