package world

import (
	"math/bits"

	"redlockctl/internal/sim/mutant"
	"redlockctl/internal/sim/schedule"
	"redlockctl/internal/sim/trace"
	"redlockctl/redlock"
)

// heard is what an answer tells of the copy on a node.
func (w *World) heard(c *client, e *event, s redlock.Status, cn *conn) {
	if e.tok != c.token || c.state != clientAsking && c.state != clientHolding {
		return
	}
	incarnation := ""
	sent := s != redlock.StatusDown
	if !sent {
		sent = e.incarnation != 0 // it may have arrived
	}
	if e.incarnation != 0 {
		incarnation = w.runIDs[e.node][e.incarnation%incarnations]
	}
	now := c.clock.time(w.now)
	switch e.op {
	case opSet:
		switch {
		case s == redlock.StatusOK && w.now <= w.grants[c.token].until:
			c.copies.Voted(int(e.node), incarnation)
		case s == redlock.StatusOK, s == redlock.StatusDown && sent:
			w.unanswered(c, int(e.node), incarnation)
		default: // there is none, and never was
			c.copies.Set(int(e.node), redlock.Known{})
		}
	case opExtend:
		c.copies.Extended(int(e.node), s, incarnation, now)
	case opRepair:
		c.repairing &^= 1 << e.node
		c.copies.Repaired(int(e.node), s, sent, incarnation, now)
	}
}

// unanswered takes note that a SET is under way, or may be.
func (w *World) unanswered(c *client, node int, incarnation string) {
	if w.rules.Repair.Unanswered {
		c.copies.May(node, incarnation)
	} else {
		c.copies.Unanswered(node, incarnation)
	}
}

// putBack puts back the copies that are missing, behind an extension that was
// granted.
func (w *World) putBack(c *client) {
	r := &w.rules.Repair
	if r.Unconfirmed && c.extend && c.state == clientHolding {
		c.repair = c.run
	}
	if c.repair == 0 || c.repair != c.run || c.state != clientHolding {
		return
	}
	now := c.clock.time(w.now)
	if !now.Before(c.until) && !r.Late {
		return
	}
	c.copies.Confirmed(c.terms.Start)
	e := &c.plan(w).Ext[c.extends-1]
	for i := range w.plan.N {
		if c.repairing>>i&1 != 0 || !c.copies.Missing(i) && !(r.Anywhere && c.copies.Absent(i)) {
			continue
		}
		if c.believes <= w.now {
			w.breach(mutant.Resurrected, "c%d puts back a copy of a lock that it does not hold any more, on %s", c.index+1, nodeName(i))
		}
		ttl := c.terms.TTL
		if r.Long {
			ttl += ttl / 3
		}
		if w.Trace != nil {
			w.say("c", c.index, "puts the copy on %s back", nodeName(i))
		}
		w.emit(schedule.OnRepair, i)
		c.repairing |= 1 << i
		w.send(c, i, opRepair, ttl, e.Trips[i], 0)
	}
}

// unheard is for nodes that have not told what became of a copy: it may be there.
func (w *World) unheard(c *client) {
	for i := range w.plan.N {
		if c.repairing>>i&1 != 0 {
			c.copies.Repaired(i, redlock.StatusSlow, true, "", c.clock.time(w.now))
		}
	}
	c.repairing = 0
}

// take takes the lock that was granted last away: compare and delete on each node,
// as fast as a fault says, by an operator whose messages take no time.
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
	if w.now-g.takeBegan <= redlock.SettleTime/2 {
		g.clean |= 1 << e.node
	}
	quorum := redlock.Quorum(w.plan.N)
	if g.takenAt == 0 && (bits.OnesCount8(g.clean) >= quorum && g.deleted != 0 || bits.OnesCount8(g.deleted) >= quorum) {
		g.takenAt = w.now
		w.say("o", 0, "is told that %s is gone", tokenName(e.tok))
	}
}

// resurrected is the witness of an extension: none that began after the lock was
// taken away may be granted, unless its acquisition was under way when that began.
func (w *World) resurrected(c *client) {
	g := &w.grants[c.token]
	if g.takenAt == 0 || c.asked <= g.takenAt || g.takeBegan <= g.until {
		return
	}
	w.breach(mutant.Resurrected, "c%d has extended its lock, begun at %s, which was taken away at %s", c.index+1, trace.At(c.asked), trace.At(g.takenAt))
}

// intrudes is the witness of the place of a copy that is put back: a master that
// serves, and that has no other's copy.
func (w *World) intrudes(m *master, e *event) {
	switch {
	case m.refuses():
		w.breach(mutant.Resurrected, "%s, which is fenced, accepts a copy of %s that is put back", nodeName(int(e.node)), tokenName(e.tok))
	case m.token != 0 && m.token != e.tok:
		w.breach(mutant.Resurrected, "the copy of %s on %s is replaced by one of %s that is put back", tokenName(m.token), nodeName(int(e.node)), tokenName(e.tok))
	}
}

// outlives is the witness of a copy that was put back: it ends as those do that the
// extension before it has made.
func (w *World) outlives(c *client, e *event) {
	if e.x > c.terms.TTL && e.run == c.run {
		w.breach(mutant.LeftBehind, "the copy that was put back on %s outlives the lock by %s", nodeName(int(e.node)), trace.Span(e.x-c.terms.TTL))
	}
}
