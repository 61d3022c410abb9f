package world

import (
	"math/bits"
	"time"

	"redlockctl/proof/sim/mutant"
	"redlockctl/proof/sim/schedule"
	"redlockctl/proof/sim/trace"
	"redlockctl/redlock"
	"redlockctl/redlock/attempt"
)

// nextAttempt waits for the next attempt.
func (w *World) nextAttempt(c *client) {
	c.attempt++
	c.turn++
	c.pending = false
	if c.attempt >= w.plan.Client[c.index].Attempts {
		c.state = clientDone
		return
	}
	c.state = clientWaiting
	a := c.plan(w)
	c.waits = a.On
	if a.On == schedule.OnTime {
		w.beginSoon(c)
		return
	}
	w.push(event{at: w.now + w.plan.Patience, kind: evBegin, who: uint8(c.index), run: c.turn})
	if a.On == schedule.OnFree {
		w.free()
	}
}

func (w *World) clientEvent(c *client, e *event) {
	switch e.kind {
	case evBegin:
		if e.run == c.turn && c.state == clientWaiting {
			w.begin(c)
		}
	case evAnswer:
		w.answer(c, e)
	case evTick:
		w.tick(c, e.run)
	case evHoldEnd:
		if e.run == c.run && c.state == clientHolding {
			w.holdEnd(c)
		}
	}
}

// begin begins an attempt: a fresh token, the clock, the SETs.
func (w *World) begin(c *client) {
	a := c.plan(w)
	c.token = tokenOf(c.index, c.attempt)
	if w.rules.Breaks("token-reused") {
		c.token = tokenOf(c.index, 0)
	}
	c.state, c.extends, c.repair, c.repairing = clientAsking, 0, 0, 0
	c.copies.Reset(w.plan.N)
	ttl := time.Duration(float64(a.TTL) * w.rules.TTL).Truncate(ms)
	w.ask(c, attempt.Terms{TTL: ttl, Wait: a.Wait})
	w.grants[c.token] = grant{began: w.now, until: w.now + c.terms.Wait}
	if !c.pending {
		w.abandon(c)
		w.nextAttempt(c)
		return
	}
	if w.Trace != nil {
		w.say("c", c.index, "begins attempt %d: SET with token %s, TTL %s, on %s", c.attempt+1, tokenName(c.token), trace.Span(ttl), nodesOf(1<<w.plan.N-1))
	}
	for i := range w.plan.N {
		t := a.Set[i]
		if a.Deaf>>i&1 != 0 {
			w.push(event{at: w.now + t.Out, kind: evAnswer, who: uint8(c.index), node: uint8(i), op: opSet, run: c.run,
				gen: c.conns[i].gen, code: uint8(redlock.StatusDown)})
			c.conns[i].asked = c.run
			continue
		}
		var code uint8
		switch {
		case a.Lost>>i&1 != 0:
			code = lostOnTheWay
		case a.Mute>>i&1 != 0:
			code = lostOnReturn
		}
		c.setGen[i] = c.conns[i].gen
		w.unanswered(c, i, "")
		w.send(c, i, opSet, ttl, t, code)
	}
}

// ask begins a run of the machine.
func (w *World) ask(c *client, t attempt.Terms) {
	t.N = w.plan.N
	if w.rules.EarlyRejoin && !w.rules.Breaks("early-long-attempts") {
		t.Wait = min(t.Wait, schedule.AttemptBound)
	}
	t.Start = c.clock.time(w.now)
	t.Drift = w.opt.Drift(t.TTL)
	if w.rules.Breaks("no-drift-allowance") {
		t.Drift = 0
	}
	c.run++
	c.terms, c.extend, c.asked = t, t.Extend, w.now
	c.yes, c.dead = 0, 0
	var send attempt.Send
	c.machine, send = attempt.Begin(t)
	c.pending = send != attempt.SendNothing
	if c.pending {
		w.push(event{at: c.clock.whenTime(c.machine.Deadline()) + 1, kind: evTick, who: uint8(c.index), run: c.run})
	}
}

// answer reaches the client.
func (w *World) answer(c *client, e *event) {
	cn := &c.conns[e.node]
	if e.gen != cn.gen {
		return
	}
	status := redlock.Status(e.code)
	if status == redlock.StatusDown {
		w.drop(cn)
	} else if e.op != opRelease && e.run >= cn.asked {
		cn.asked = 0
	}
	if e.op == opRelease {
		return
	}
	w.heard(c, e, status, cn)
	if e.op == opRepair || e.run != c.run {
		return
	}
	switch {
	case status == redlock.StatusDown:
		c.dead |= 1 << e.node
	case status == redlock.StatusOK && (!c.extend || c.terms.Copies.Counts(int(e.node))),
		status == redlock.StatusHeld && w.rules.Breaks("held-is-yes"),
		status == redlock.StatusFenced && w.rules.Breaks("fenced-is-yes"):
		c.yes |= 1 << e.node
		status = redlock.StatusOK
	}
	defer w.putBack(c)
	if !c.pending && !w.rules.Breaks("late-answers") {
		return
	}
	now := c.clock.time(w.now)
	if w.rules.EarlyRejoin && !w.rules.Breaks("early-long-attempts") && c.pending {
		// The bound of an attempt also applies to a client that was suspended.
		if send, verdict := c.machine.Tick(now); verdict != attempt.VerdictPending {
			w.decide(c, send, verdict)
			return
		}
	}
	send, verdict := c.machine.Answer(int(e.node), status, now)
	if w.miscounts(c) && now.Before(c.machine.Until()) {
		send, verdict = attempt.SendNothing, attempt.VerdictGranted
		if !c.pending && c.state != clientHolding { // a late answer brings it back
			c.pending = true
			c.attempt--
			c.turn++
		}
	}
	w.decide(c, send, verdict)
}

// tick is the deadline of a run: connections to nodes that have not answered are
// closed, as after a timeout.
func (w *World) tick(c *client, run uint16) {
	for i := range w.plan.N {
		if cn := &c.conns[i]; cn.asked != 0 && cn.asked <= run {
			w.drop(cn)
			if c.extend && c.state == clientHolding {
				c.copies.Extended(i, redlock.StatusSlow, "", time.Time{})
				c.copies.Ends(i, time.Time{})
			}
		}
	}
	if run != c.run || !c.pending {
		return
	}
	send, verdict := c.machine.Tick(c.clock.time(w.now))
	w.decide(c, send, verdict)
}

// decide acts on a verdict.
func (w *World) decide(c *client, send attempt.Send, verdict attempt.Verdict) {
	if !c.pending || verdict == attempt.VerdictPending {
		return
	}
	c.pending = false
	if verdict == attempt.VerdictGranted {
		w.granted(c)
		return
	}
	if c.extend {
		w.notExtended(c, verdict)
		return
	}
	w.say("c", c.index, "gives up attempt %d: %s", c.attempt+1, verdict)
	if send == attempt.SendRelease {
		w.release(c)
	}
	w.nextAttempt(c)
}

// granted: the client has acquired or extended the lock.
func (w *World) granted(c *client) {
	a := c.plan(w)
	until := c.machine.Until()
	if w.rules.Breaks("validity-from-end") {
		until = c.clock.time(w.now).Add(c.terms.TTL - c.terms.Drift)
	}
	if c.extend {
		w.Stats.Extensions++
		if until.Before(c.until) {
			until = c.until
		}
	} else {
		w.Stats.Grants++
		c.state = clientHolding
		w.lastGrant = c.token
	}
	c.until = until
	ends := c.clock.whenTime(until)
	if w.rules.Breaks("validity-ignored") {
		ends += c.terms.TTL / 2
	}
	if w.Trace != nil {
		verb := "is granted the lock"
		if c.extend {
			verb = "has extended the lock"
		}
		w.say("c", c.index, "%s, valid until %s (token %s, votes of %s)", verb, trace.At(ends), tokenName(c.token), nodesOf(w.grants[c.token].votes))
	}
	w.grants[c.token].relied = c.yes
	if c.extend {
		w.resurrected(c)
		c.repair = c.run
	}
	w.believe(c, ends)
	if !c.extend {
		w.entersAgainst(c)
	}
	hold := a.Hold
	if c.extends > 0 {
		hold = a.Ext[c.extends-1].Hold
	}
	if c.extends >= a.Extends && a.Keep {
		hold = ends - w.now
	}
	w.push(event{at: min(w.now+hold, max(ends, w.now)), kind: evHoldEnd, who: uint8(c.index), run: c.run})
	if !c.extend {
		w.emit(schedule.OnGrant, bits.TrailingZeros8(w.grants[c.token].votes|1<<7)%w.plan.N)
	}
}

// notExtended: an extension failed. The validity is what it was, unless the
// lock is known to be lost.
func (w *World) notExtended(c *client, v attempt.Verdict) {
	w.say("c", c.index, "cannot extend the lock: %s", v)
	ends := c.clock.whenTime(c.until)
	if v == attempt.VerdictNotHeld {
		c.believes = w.now
		ends = w.now
	}
	if w.rules.Breaks("extension-optimistic") {
		return // it has counted it already, and its hold ends in its own time
	}
	w.push(event{at: max(ends, w.now), kind: evHoldEnd, who: uint8(c.index), run: c.run})
}

// holdEnd: the client extends or releases the lock, or lets it expire.
func (w *World) holdEnd(c *client) {
	a := c.plan(w)
	now := c.clock.time(w.now)
	late := w.rules.Breaks("extension-of-anyone") // and so it does not look how late it is
	if c.extends < a.Extends && (late || now.Before(c.until)) {
		e := &a.Ext[c.extends]
		c.extends++
		w.unheard(c)
		ttl := time.Duration(float64(e.TTL) * w.rules.TTL).Truncate(ms)
		terms := attempt.Terms{Extend: true, TTL: ttl, Wait: e.Wait, NotAfter: c.until, Copies: &c.copies}
		if w.rules.Breaks("repair-counts-at-once") {
			terms.Copies = nil
		}
		if late {
			terms.NotAfter = time.Time{}
		}
		w.ask(c, terms)
		c.extendedAt = w.now
		if c.pending {
			w.say("c", c.index, "asks for an extension by %s", trace.Span(ttl))
			for i := range w.plan.N {
				var code uint8
				if e.Mute>>i&1 != 0 {
					code = lostOnReturn
				}
				w.send(c, i, opExtend, ttl, e.Trips[i], code)
			}
			if w.rules.Breaks("extension-optimistic") {
				c.until = c.machine.Until()
				ends := c.clock.whenTime(c.until)
				w.say("c", c.index, "relies on the lock until %s, without waiting for answers", trace.At(ends))
				w.believe(c, ends)
				w.push(event{at: ends, kind: evHoldEnd, who: uint8(c.index), run: c.run})
			}
			return
		}
	}
	if a.Keep {
		if w.rules.Breaks("validity-ignored") && c.believes > w.now {
			w.push(event{at: c.believes, kind: evHoldEnd, who: uint8(c.index), run: c.run})
			return
		}
		c.believes = min(c.believes, w.now)
		w.nextAttempt(c)
		return
	}
	c.believes = min(c.believes, w.now)
	w.say("c", c.index, "releases the lock")
	w.release(c)
	w.nextAttempt(c)
}

// abandon records that a token is abandoned.
func (w *World) abandon(c *client) {
	g := &w.grants[c.token]
	if !g.abandoned {
		g.abandoned, g.abandonedAt = true, w.now
	}
}

// release sends a release to all nodes, after the SET if its connection still works.
func (w *World) release(c *client) {
	a := c.plan(w)
	w.abandon(c)
	c.repair = 0
	g := &w.grants[c.token]
	for i := range w.plan.N {
		if w.rules.Breaks("release-yes-only") && c.yes>>i&1 == 0 {
			continue
		}
		g.release[i] |= relSent
		if a.Deaf>>i&1 != 0 {
			g.release[i] |= relLost
			continue
		}
		if c.setGen[i] != c.conns[i].gen {
			g.release[i] |= relInFlight
		}
		w.send(c, i, opRelease, 0, a.Release[i], 0)
	}
}

// miscounts reports whether a mutant that counts votes wrongly would grant.
func (w *World) miscounts(c *client) bool {
	r, n := &w.rules, w.plan.N
	yes := bits.OnesCount8(c.yes)
	switch {
	case yes == 0:
		return false
	case r.Breaks("quorum-of-half"):
		return yes >= (n+1)/2
	case r.Breaks("quorum-of-connected"):
		return yes >= redlock.Quorum(n-bits.OnesCount8(c.dead))
	case r.Breaks("extension-of-minority"):
		return c.extend
	case r.Breaks("late-answers"):
		return yes >= redlock.Quorum(n)
	}
	return false
}

// heard records what an answer says about the copy on a node.
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
			w.ends(c, e, true)
		case s == redlock.StatusOK, s == redlock.StatusDown && sent:
			w.unanswered(c, int(e.node), incarnation)
		default: // there is none, and never was
			c.copies.Set(int(e.node), attempt.Known{})
		}
	case opExtend:
		if s == redlock.StatusFenced { // the scripts look for the copy first
			c.copies.Refused(int(e.node), incarnation)
			if w.rules.Breaks("repair-of-fenced") {
				c.copies.Ends(int(e.node), time.Time{})
				c.copies.Ends(int(e.node), c.terms.Start)
			}
		} else {
			c.copies.Extended(int(e.node), s, incarnation, now)
		}
		if s == redlock.StatusOK || s == redlock.StatusDown && sent {
			w.ends(c, e, s == redlock.StatusOK)
		}
	case opRepair:
		c.repairing &^= 1 << e.node
		c.copies.Repaired(int(e.node), s, sent, incarnation, now)
		if s == redlock.StatusOK {
			c.copies.Ends(int(e.node), now.Add(c.terms.TTL-c.terms.Drift))
		}
	}
}

// ends records when the copy that a run has made or extended ends by itself.
func (w *World) ends(c *client, e *event, known bool) {
	at := time.Time{}
	if known && e.run == c.run {
		at = c.machine.Until()
	}
	c.copies.Ends(int(e.node), at)
}

// unanswered records that a SET is, or may be, under way.
func (w *World) unanswered(c *client, node int, incarnation string) {
	if w.rules.Breaks("unanswered-counts") {
		c.copies.May(node, incarnation)
	} else {
		c.copies.Unanswered(node, incarnation)
	}
}

// putBack puts missing copies back after a granted extension.
func (w *World) putBack(c *client) {
	r := &w.rules
	if r.Breaks("repair-unconfirmed") && c.extend && c.state == clientHolding {
		c.repair = c.run
	}
	if c.repair == 0 || c.repair != c.run || c.state != clientHolding {
		return
	}
	now := c.clock.time(w.now)
	if !now.Before(c.until) && !r.Breaks("repair-late") {
		return
	}
	c.copies.Confirmed(c.terms.Start)
	e := &c.plan(w).Ext[c.extends-1]
	for i := range w.plan.N {
		if c.repairing>>i&1 != 0 || !c.copies.Missing(i) && !(r.Breaks("repair-of-deleted") && c.copies.Absent(i)) {
			continue
		}
		if c.believes <= w.now {
			w.breach(mutant.Resurrected, "c%d puts back a copy of a lock that it does not hold any more, on %s", c.index+1, nodeNames[i])
		}
		ttl := c.terms.TTL
		if r.Breaks("repair-outlives") {
			ttl += ttl / 3
		}
		if w.Trace != nil {
			w.say("c", c.index, "puts the copy on %s back", nodeNames[i])
		}
		w.emit(schedule.OnRepair, i)
		c.repairing |= 1 << i
		w.send(c, i, opRepair, ttl, e.Trips[i], 0)
	}
}

// unheard handles nodes that have not answered about a copy: it may be there.
func (w *World) unheard(c *client) {
	for i := range w.plan.N {
		if c.repairing>>i&1 != 0 {
			c.copies.Repaired(i, redlock.StatusSlow, true, "", c.clock.time(w.now))
		}
	}
	c.repairing = 0
}
