package sim

import (
	"math/bits"
	"time"

	"redlockctl/internal/sim/trace"
	"redlockctl/redlock"
)

// repairRules are how putting copies back is broken by mutants.
type repairRules struct {
	anywhere     bool // what was deleted is put back, too
	unconfirmed  bool // behind an extension that failed
	late         bool // when validity has ended
	countsAtOnce bool
	unanswered   bool // a copy counts that the acquisition was not told of
	overwrites   bool // without NX
	throughFence bool
	unordered    bool // by another connection than the release
	long         bool // with a TTL that is longer than that of the extension
}

// heard is what an answer tells of the copy on a node.
func (w *world) heard(c *client, e *event, s redlock.Status, cn *conn) {
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
func (w *world) unanswered(c *client, node int, incarnation string) {
	if w.rules.repair.unanswered {
		c.copies.May(node, incarnation)
	} else {
		c.copies.Unanswered(node, incarnation)
	}
}

// putBack puts back the copies that are missing, behind an extension that was
// granted.
func (w *world) putBack(c *client) {
	r := &w.rules.repair
	if r.unconfirmed && c.extend && c.state == clientHolding {
		c.repair = c.run
	}
	if c.repair == 0 || c.repair != c.run || c.state != clientHolding {
		return
	}
	now := c.clock.time(w.now)
	if !now.Before(c.until) && !r.late {
		return
	}
	c.copies.Confirmed(c.terms.Start)
	e := &c.plan(w).ext[c.extends-1]
	for i := range w.plan.n {
		if c.repairing>>i&1 != 0 || !c.copies.Missing(i) && !(r.anywhere && c.copies.Absent(i)) {
			continue
		}
		if c.believes <= w.now {
			w.breach(Resurrected, "c%d puts back a copy of a lock that it does not hold any more, on %s", c.index+1, nodeName(i))
		}
		ttl := c.terms.TTL
		if r.long {
			ttl += ttl / 3
		}
		if w.trace != nil {
			w.say("c", c.index, "puts the copy on %s back", nodeName(i))
		}
		w.emit(onRepair, i)
		c.repairing |= 1 << i
		w.send(c, i, opRepair, ttl, e.trips[i], 0)
	}
}

// unheard is for nodes that have not told what became of a copy: it may be there.
func (w *world) unheard(c *client) {
	for i := range w.plan.n {
		if c.repairing>>i&1 != 0 {
			c.copies.Repaired(i, redlock.StatusSlow, true, "", c.clock.time(w.now))
		}
	}
	c.repairing = 0
}

// take takes the lock that was granted last away: compare and delete on each node,
// as fast as a fault says, by an operator whose messages take no time.
func (w *world) take(f *faultPlan) {
	if w.lastGrant == 0 || w.grants[w.lastGrant].taking {
		return
	}
	g := &w.grants[w.lastGrant]
	g.taking, g.takeBegan, g.clean, g.deleted = true, w.now, 0, 0
	w.say("o", 0, "takes the lock %s away", tokenName(w.lastGrant))
	at := w.now
	for k := range w.plan.n {
		i := (k + int(f.length)) % w.plan.n
		w.push(event{at: at, kind: evTake, node: uint8(i), tok: w.lastGrant})
		at += f.stagger
	}
}

// takeFrom is its part on one node.
func (w *world) takeFrom(e *event) {
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
	quorum := redlock.Quorum(w.plan.n)
	if g.takenAt == 0 && (bits.OnesCount8(g.clean) >= quorum && g.deleted != 0 || bits.OnesCount8(g.deleted) >= quorum) {
		g.takenAt = w.now
		w.say("o", 0, "is told that %s is gone", tokenName(e.tok))
	}
}

// resurrected is the witness of an extension: none that began after the lock was
// taken away may be granted, unless its acquisition was under way when that began.
func (w *world) resurrected(c *client) {
	g := &w.grants[c.token]
	if g.takenAt == 0 || c.asked <= g.takenAt || g.takeBegan <= g.until {
		return
	}
	w.breach(Resurrected, "c%d has extended its lock, begun at %s, which was taken away at %s", c.index+1, trace.At(c.asked), trace.At(g.takenAt))
}

// intrudes is the witness of the place of a copy that is put back: a master that
// serves, and that has no other's copy.
func (w *world) intrudes(m *master, e *event) {
	switch {
	case m.refuses():
		w.breach(Resurrected, "%s, which is fenced, accepts a copy of %s that is put back", nodeName(int(e.node)), tokenName(e.tok))
	case m.token != 0 && m.token != e.tok:
		w.breach(Resurrected, "the copy of %s on %s is replaced by one of %s that is put back", tokenName(m.token), nodeName(int(e.node)), tokenName(e.tok))
	}
}

// outlives is the witness of a copy that was put back: it ends as those do that the
// extension before it has made.
func (w *world) outlives(c *client, e *event) {
	if e.x > c.terms.TTL && e.run == c.run {
		w.breach(LeftBehind, "the copy that was put back on %s outlives the lock by %s", nodeName(int(e.node)), trace.Span(e.x-c.terms.TTL))
	}
}

// rolling makes plans in which a lock is kept while masters restart, and perhaps is
// taken away as soon as copies are put back.
func rolling(p *plan) {
	p.n, p.fenced, p.lagZero, p.acl, p.blind, p.guards = max(p.n, 3), true, false, false, 0, 1
	g := &p.guard[0]
	g.poll = MaxTTL / 30
	for k := range g.trips {
		g.trips[k] = trip{ms, ms}
	}
	a := &p.client[0].attempt[0]
	spread := a.set[0].back * 1000 // up to 1.1 s
	a.on, a.pause, a.ttl, a.hold, a.keep, a.extends = onTime, ms, MaxTTL, 20*time.Second, true, maxExtends
	a.set, a.deaf, a.lost, a.mute = quiet(), 0, 0, 0
	for k := range a.ext {
		a.ext[k] = extendPlan{hold: 12*time.Second + spread, ttl: MaxTTL, wait: 50 * ms, trips: quiet()}
	}
	p.client[0].attempts = 1
	p.fault[0] = faultPlan{kind: faultCrash, after: time.Second, choice: theMask, mask: 1, length: ms}
	p.faults = 1
}

// suspendedBehind makes plans in which a client is suspended between its grant of an
// extension and the answer by which it knows that a copy is missing, for longer than
// the lock is valid.
func suspendedBehind(p *plan) {
	rolling(p)
	a := &p.client[0].attempt[0]
	// The first extension meets a connection that has ended, the second no copy.
	a.ext[1].trips[0].back = 30 * ms
	p.fault[1] = faultPlan{kind: faultClientPause, after: a.pause + 2*ms + a.hold + 2*ms + a.ext[0].hold + 10*ms, length: 2 * MaxTTL}
	p.faults = 2
}

// rollingTaken is that, with an operator.
func rollingTaken(p *plan) {
	rolling(p)
	quorum := redlock.Quorum(p.n)
	a, stagger := &p.client[0].attempt[0], 20*ms+p.client[0].attempt[0].set[1].back%(80*ms)
	p.fault[0].mask = 1<<(p.n-quorum) - 1
	// The first extension meets connections that have ended, the second no copies. The
	// third comes while the operator is under way.
	p.fault[1] = faultPlan{kind: faultTake, on: onRepair, nth: 1, choice: theMask, mask: 1<<p.n - 1, stagger: stagger}
	a.ext[1].hold = stagger*time.Duration(quorum-1) + stagger/2
	p.faults = 2
}

// slowlyTaken is rolling, with an operator who deletes the copies by hand, each
// when what he has deleted before would have settled again.
func slowlyTaken(p *plan) {
	rolling(p)
	p.fault[0] = faultPlan{kind: faultTake, on: onGrant, nth: 1, after: 16 * time.Second, choice: theMask, mask: 1<<p.n - 1, stagger: 27 * time.Second}
	p.n = 3
}

// takenBefore makes plans in which the SET of a grant reaches a master behind the
// operator who found no copy there.
func takenBefore(p *plan) {
	rolling(p)
	p.n = 3
	first := &p.client[0].attempt[0]
	second := *first
	first.keep, first.hold = false, ms // connects
	second.wait, second.set[2].out, second.hold = 50*ms, 900*ms, time.Second
	p.client[0].attempt[1], p.client[0].attempts = second, 2
	p.fault[0] = faultPlan{kind: faultTake, on: onGrant, nth: 2, after: 100 * ms, choice: theMask, mask: 1<<p.n - 1, length: 2, stagger: 600 * ms}
}
