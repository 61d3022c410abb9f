package world

import (
	"math/bits"
	"time"

	"redlockctl/internal/sim/mutant"
	"redlockctl/internal/sim/schedule"
	"redlockctl/internal/sim/trace"
	"redlockctl/redlock"
)

// operations that a client asks of a master.
const (
	opSet uint8 = iota
	opExtend
	opRelease
	opRepair
)

// codes of an event, beside the numbers of redlock.Status.
const (
	lostOnTheWay uint8 = 1 // of a request: its connection breaks before it arrives
	lostOnReturn uint8 = 2 // its connection breaks before the answer is back
)

type clientState uint8

const (
	clientWaiting clientState = iota // for its next attempt
	clientAsking                     // an attempt to acquire is under way
	clientHolding                    // it has the lock, and maybe an extension under way
	clientDone
)

// client is one user of the lock: it drives redlock.Attempt as the product's
// client does, over one connection to each master.
type client struct {
	index  int
	clock  clock
	paused time.Duration
	state  clientState
	waits  schedule.Trigger
	turn   uint16 // of waiting; makes an event of an earlier waiting void

	attempt   int // index in the plan
	extends   int // extensions begun
	token     uint8
	run       uint16 // of the machine; tells its answers from those to earlier ones
	machine   *redlock.Attempt
	terms     redlock.Terms
	extend    bool
	pending   bool
	until     time.Time // end of validity, by its own clock
	conns     [schedule.MaxNodes]conn
	setGen    [schedule.MaxNodes]uint16 // of the connection that the last SET went by
	copies    redlock.Copies
	repairing uint8         // nodes that were asked to take a copy back, and have not answered
	asked     time.Duration // when the run began, in true time
	repair    uint16        // the run whose answers may bring it to put copies back; 0: none
	yes       uint8         // nodes that said yes in this run
	dead      uint8         // nodes that were down in this run

	believes time.Duration // true time until which it believes in the lock
}

// conn is one connection: first in, first out, in both directions, to one life of
// a master. What was sent by it may arrive after it was given up.
type conn struct {
	gen         uint16
	incarnation uint16 // 0: not there yet
	out, back   time.Duration
	asked       uint16 // the run whose request is not answered; 0: none
}

func (w *World) drop(cn *conn) {
	cn.gen++
	cn.incarnation, cn.asked = 0, 0
	cn.out, cn.back = w.now, w.now
}

func (c *client) reset(i int, p *schedule.Plan) {
	machine, copies := c.machine, c.copies
	*c = client{index: i, machine: machine, copies: copies, clock: clock{ppm: p.Client[i].PPM}, attempt: -1, state: clientHolding}
}

func (c *client) plan(w *World) *schedule.Attempt { return &w.plan.Client[c.index].Attempt[c.attempt] }

// next waits for the next attempt.
func (w *World) next(c *client) {
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

// beginSoon ends the waiting.
func (w *World) beginSoon(c *client) {
	c.turn++
	c.waits = schedule.OnTime
	w.push(event{at: w.now + c.plan(w).Pause, kind: evBegin, who: uint8(c.index), run: c.turn})
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
	if w.rules.SameToken {
		c.token = tokenOf(c.index, 0)
	}
	c.state, c.extends, c.repair, c.repairing = clientAsking, 0, 0, 0
	c.copies.Reset(w.plan.N)
	ttl := time.Duration(float64(a.TTL) * w.rules.TTL).Truncate(ms)
	w.ask(c, redlock.Terms{TTL: ttl, Wait: a.Wait})
	w.grants[c.token] = grant{until: w.now + c.terms.Wait}
	if !c.pending {
		w.abandon(c)
		w.next(c)
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
func (w *World) ask(c *client, t redlock.Terms) {
	t.N = w.plan.N
	if w.rules.Early.On && !w.rules.Early.LongAttempts {
		t.Wait = min(t.Wait, schedule.AttemptBound)
	}
	t.Start = c.clock.time(w.now)
	t.Drift = w.opt.Drift(t.TTL)
	if w.rules.NoDrift {
		t.Drift = 0
	}
	c.run++
	c.terms, c.extend, c.asked = t, t.Extend, w.now
	c.yes, c.dead = 0, 0
	var send redlock.Send
	c.machine, send = redlock.Begin(t)
	c.pending = send != redlock.SendNothing
	if c.pending {
		w.push(event{at: c.clock.whenTime(c.machine.Deadline()) + 1, kind: evTick, who: uint8(c.index), run: c.run})
	}
}

// send sends a request to a node, behind all that was sent there before.
func (w *World) send(c *client, node int, op uint8, ttl time.Duration, t schedule.Trip, code uint8) {
	cn := &c.conns[node]
	cn.out = max(w.now+t.Out, cn.out+1)
	if op != opRelease {
		cn.asked = c.run
	}
	arrives := cn.out
	if op == opRepair && w.rules.Repair.Unordered {
		arrives += schedule.MaxTTL / 10
	}
	if op == opRelease && w.rules.Unordered {
		arrives = w.now + t.Out/2
	}
	w.push(event{at: arrives, kind: evRequest, who: uint8(c.index), node: uint8(node), op: op, tok: c.token, code: code,
		run: c.run, gen: cn.gen, incarnation: cn.incarnation, x: ttl, y: t.Back})
}

// request reaches a master, or finds it gone.
func (w *World) request(e *event) {
	c, m := &w.clients[e.who], &w.masters[e.node]
	cn := &c.conns[e.node]
	current := cn.gen == e.gen
	incarnation := e.incarnation
	if incarnation == 0 && current {
		if cn.incarnation == 0 && m.up && e.code != lostOnTheWay {
			cn.incarnation = m.incarnation // a new connection
		}
		incarnation = cn.incarnation
	}
	e.incarnation = incarnation
	if !m.up || incarnation != m.incarnation || e.code == lostOnTheWay {
		if e.op == opRelease {
			w.grants[e.tok].release[e.node] |= relLost
		}
		if current && !(m.silent && !m.up) {
			w.reply(c, cn, e, redlock.StatusDown)
		}
		return
	}
	status := w.carryOut(m, e)
	switch {
	case !current:
	case e.code == lostOnReturn:
		w.reply(c, cn, e, redlock.StatusDown)
	default:
		w.reply(c, cn, e, status)
	}
}

func (w *World) reply(c *client, cn *conn, e *event, status redlock.Status) {
	cn.back = max(w.now+e.y, cn.back+1)
	w.push(event{at: cn.back, kind: evAnswer, who: e.who, node: e.node, op: e.op, tok: e.tok, run: e.run, gen: e.gen, incarnation: e.incarnation, code: uint8(status)})
}

// carryOut is the server's side: SET NX PX, and the scripts of the product.
func (w *World) carryOut(m *master, e *event) redlock.Status {
	node := int(e.node)
	if m.token != 0 && !m.live(w.now) {
		m.token = 0
	}
	g := &w.grants[e.tok]
	switch e.op {
	case opSet, opRepair:
		repair := e.op == opRepair
		switch {
		case m.refuses() && !(repair && w.rules.Repair.ThroughFence && !m.slave):
			return redlock.StatusFenced
		case m.token != 0 && !w.rules.Overwrite && !(repair && w.rules.Repair.Overwrites):
			return redlock.StatusHeld
		}
		if repair {
			w.intrudes(m, e)
			g.repaired |= 1 << node
			w.Stats.Repairs++
			w.outlives(&w.clients[e.who], e)
			w.say("n", node, "gets a copy of %s back", tokenName(e.tok))
		}
		if m.released>>e.tok&1 != 0 && g.release[node]&relInFlight == 0 {
			w.breach(mutant.LeftBehind, "the SET of %s reaches %s after its own release, and blocks others for its whole TTL", tokenName(e.tok), nodeName(node))
		}
		m.token, m.made = e.tok, e.op
		w.setExpiry(m, e, e.x)
		if w.rules.AbsoluteExpiry {
			c := &w.clients[e.who]
			w.setExpiry(m, e, c.terms.Start.Sub(epoch)+w.plan.Client[c.index].Skew+time.Hour+e.x-m.clock.at(w.now))
		}
		g.votes |= 1 << node
		g.seconds[node] = m.unguarded
		if m.excused {
			if w.inTime(node) {
				g.seconds[node] |= m.fresh
			} else {
				m.excused = false
			}
		}
		if !repair {
			w.say("n", node, "votes for %s", tokenName(e.tok))
		}
		return redlock.StatusOK
	case opExtend:
		return w.carryExtension(m, e)
	default:
		return w.carryRelease(m, e)
	}
}

func (w *World) carryExtension(m *master, e *event) redlock.Status {
	switch {
	case m.token == 0 && w.rules.ExtendCreates && !m.refuses():
		m.token, m.made = e.tok, opExtend
		w.setExpiry(m, e, e.x)
		if m.released>>e.tok&1 != 0 {
			w.breach(mutant.LeftBehind, "an extension makes the copy of %s on %s anew after its release", tokenName(e.tok), nodeName(int(e.node)))
		}
		return redlock.StatusOK
	case m.token == 0:
		return redlock.StatusAbsent
	case m.token != e.tok && !w.rules.ExtendAnyones:
		return redlock.StatusHeld
	case m.expires-m.clock.at(w.now) >= e.x && !w.rules.ExtendShortens:
		return redlock.StatusOK
	case m.refuses():
		return redlock.StatusFenced
	}
	w.setExpiry(m, e, e.x)
	return redlock.StatusOK
}

func (w *World) carryRelease(m *master, e *event) redlock.Status {
	node, g := int(e.node), &w.grants[e.tok]
	switch {
	case m.token != e.tok && !(w.rules.ReleaseAnyones && m.token != 0):
		g.release[node] |= relDone
		m.released |= 1 << e.tok
		if m.token == 0 {
			return redlock.StatusAbsent
		}
		return redlock.StatusHeld
	case m.refuses():
		g.release[node] |= relRefused
		return redlock.StatusFenced
	}
	g.release[node] |= relDone
	m.released |= 1 << e.tok
	w.say("n", node, "releases %s", tokenName(m.token))
	m.token = 0
	w.free()
	return redlock.StatusOK
}

func (w *World) setExpiry(m *master, e *event, ttl time.Duration) {
	m.expires = m.clock.at(w.now) + ttl
	w.push(event{at: w.now + m.clock.lasts(ttl) + 2, kind: evExpiry, node: e.node, tok: m.token, incarnation: m.incarnation})
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
		status == redlock.StatusHeld && w.rules.HeldIsYes,
		status == redlock.StatusFenced && w.rules.FencedIsYes:
		c.yes |= 1 << e.node
		status = redlock.StatusOK
	}
	defer w.putBack(c)
	if !c.pending && !w.rules.LateAnswers {
		return
	}
	now := c.clock.time(w.now)
	if w.rules.Early.On && !w.rules.Early.LongAttempts && c.pending {
		// The bound of an attempt holds for a client that was suspended too.
		if send, verdict := c.machine.Tick(now); verdict != redlock.VerdictPending {
			w.decide(c, send, verdict)
			return
		}
	}
	send, verdict := c.machine.Answer(int(e.node), status, now)
	if w.miscounts(c) && now.Before(c.machine.Until()) {
		send, verdict = redlock.SendNothing, redlock.VerdictGranted
		if !c.pending && c.state != clientHolding { // a late answer brings it back
			c.pending = true
			c.attempt--
			c.turn++
		}
	}
	w.decide(c, send, verdict)
}

// tick is the deadline of a run: the connections of nodes that have not
// answered are given up, as after a timeout.
func (w *World) tick(c *client, run uint16) {
	for i := range w.plan.N {
		if cn := &c.conns[i]; cn.asked != 0 && cn.asked <= run {
			w.drop(cn)
		}
	}
	if run != c.run || !c.pending {
		return
	}
	send, verdict := c.machine.Tick(c.clock.time(w.now))
	w.decide(c, send, verdict)
}

// decide does what a verdict asks for.
func (w *World) decide(c *client, send redlock.Send, verdict redlock.Verdict) {
	if !c.pending || verdict == redlock.VerdictPending {
		return
	}
	c.pending = false
	if verdict == redlock.VerdictGranted {
		w.granted(c)
		return
	}
	if c.extend {
		w.notExtended(c, verdict)
		return
	}
	w.say("c", c.index, "gives up attempt %d: %s", c.attempt+1, verdict)
	if send == redlock.SendRelease {
		w.release(c)
	}
	w.next(c)
}

// granted: the client has the lock, or has it for longer.
func (w *World) granted(c *client) {
	a := c.plan(w)
	until := c.machine.Until()
	if w.rules.ValidityFromEnd {
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
	if w.rules.NeverEnds {
		ends += c.terms.TTL / 2
	}
	if w.Trace != nil {
		verb := "is granted the lock"
		if c.extend {
			verb = "has extended the lock"
		}
		w.say("c", c.index, "%s, and believes in it until %s (token %s, votes of %s)", verb, trace.At(ends), tokenName(c.token), nodesOf(w.grants[c.token].votes))
	}
	w.grants[c.token].relied = c.yes
	if c.extend {
		w.resurrected(c)
		c.repair = c.run
	}
	w.believe(c, ends)
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
func (w *World) notExtended(c *client, v redlock.Verdict) {
	w.say("c", c.index, "cannot extend the lock: %s", v)
	ends := c.clock.whenTime(c.until)
	if v == redlock.VerdictNotHeld {
		c.believes = w.now
		ends = w.now
	}
	if w.rules.Optimistic {
		return // it has counted it already, and its hold ends in its own time
	}
	w.push(event{at: max(ends, w.now), kind: evHoldEnd, who: uint8(c.index), run: c.run})
}

// holdEnd: the client extends, releases, or lets the lock run out.
func (w *World) holdEnd(c *client) {
	a := c.plan(w)
	now := c.clock.time(w.now)
	late := w.rules.ExtendAnyones // and so it does not look how late it is
	if c.extends < a.Extends && (late || now.Before(c.until)) {
		e := &a.Ext[c.extends]
		c.extends++
		w.unheard(c)
		ttl := time.Duration(float64(e.TTL) * w.rules.TTL).Truncate(ms)
		terms := redlock.Terms{Extend: true, TTL: ttl, Wait: e.Wait, NotAfter: c.until, Copies: &c.copies}
		if w.rules.Repair.CountsAtOnce {
			terms.Copies = nil
		}
		if late {
			terms.NotAfter = time.Time{}
		}
		w.ask(c, terms)
		if c.pending {
			w.say("c", c.index, "asks for an extension by %s", trace.Span(ttl))
			for i := range w.plan.N {
				var code uint8
				if e.Mute>>i&1 != 0 {
					code = lostOnReturn
				}
				w.send(c, i, opExtend, ttl, e.Trips[i], code)
			}
			if w.rules.Optimistic {
				c.until = c.machine.Until()
				ends := c.clock.whenTime(c.until)
				w.say("c", c.index, "believes in the lock until %s, without waiting for answers", trace.At(ends))
				w.believe(c, ends)
				w.push(event{at: ends, kind: evHoldEnd, who: uint8(c.index), run: c.run})
			}
			return
		}
	}
	if a.Keep {
		if w.rules.NeverEnds && c.believes > w.now {
			w.push(event{at: c.believes, kind: evHoldEnd, who: uint8(c.index), run: c.run})
			return
		}
		c.believes = min(c.believes, w.now)
		w.next(c)
		return
	}
	c.believes = min(c.believes, w.now)
	w.say("c", c.index, "releases the lock")
	w.release(c)
	w.next(c)
}

// abandon takes note that a token is given up.
func (w *World) abandon(c *client) {
	g := &w.grants[c.token]
	if !g.abandoned {
		g.abandoned, g.abandonedAt = true, w.now
	}
}

// release is sent to all nodes, behind the SET where its connection is still
// good.
func (w *World) release(c *client) {
	a := c.plan(w)
	w.abandon(c)
	c.repair = 0
	g := &w.grants[c.token]
	for i := range w.plan.N {
		if w.rules.ReleaseYesOnly && c.yes>>i&1 == 0 {
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

// miscounts reports whether a broken way to count votes would grant.
func (w *World) miscounts(c *client) bool {
	r, n := &w.rules, w.plan.N
	yes := bits.OnesCount8(c.yes)
	switch {
	case yes == 0:
		return false
	case r.QuorumOfHalf:
		return yes >= (n+1)/2
	case r.QuorumOfConnected:
		return yes >= redlock.Quorum(n-bits.OnesCount8(c.dead))
	case r.ExtendMinority:
		return c.extend
	case r.LateAnswers:
		return yes >= redlock.Quorum(n)
	}
	return false
}
