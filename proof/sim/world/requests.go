package world

import (
	"time"

	"redlockctl/proof/sim/mutant"
	"redlockctl/proof/sim/schedule"
	"redlockctl/redlock"
)

func (w *World) drop(cn *conn) {
	cn.gen++
	cn.incarnation, cn.asked = 0, 0
	cn.out, cn.back = w.now, w.now
}

// send sends a request to a node, after all earlier ones.
func (w *World) send(c *client, node int, op uint8, ttl time.Duration, t schedule.Trip, code uint8) {
	cn := &c.conns[node]
	cn.out = max(w.now+t.Out, cn.out+1)
	if op != opRelease {
		cn.asked = c.run
	}
	arrives := cn.out
	if op == opRepair && w.rules.Breaks("repair-unordered") {
		arrives += schedule.MaxTTL / 10
	}
	if op == opRelease && w.rules.Breaks("unordered-release") {
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

// carryOut runs a request on the server: SET NX PX, and the scripts of the product.
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
		case w.refusesVote(m, e):
			return redlock.StatusFenced
		case m.token != 0 && !w.rules.Breaks("set-overwrites") && !(repair && w.rules.Breaks("repair-overwrites")):
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
			w.breach(mutant.LeftBehind, "the SET of %s reaches %s after its own release, and blocks others for its whole TTL", tokenName(e.tok), nodeNames[node])
		}
		m.token = e.tok
		w.setExpiry(m, e, e.x)
		if w.rules.Breaks("absolute-expiry") {
			c := &w.clients[e.who]
			w.setExpiry(m, e, c.terms.Start.Sub(epoch)+w.plan.Client[c.index].Skew+time.Hour+e.x-m.clock.at(w.now))
		}
		g.votes |= 1 << node
		g.slow = g.slow || !repair && w.now > g.began+viewAttempt
		g.seconds[node] = m.unguarded
		if m.refuses() && m.leaks { // by a script, through a fence that cannot stop it
			w.leaked(m, node)
			g.seconds[node] |= m.fresh
		}
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

// refusesVote reports whether a master refuses a SET, or the client that has asked it for its fence.
func (w *World) refusesVote(m *master, e *event) bool {
	repair := e.op == opRepair
	switch {
	case !m.refuses():
		return false
	case m.slave:
		return true
	case repair:
		return !w.rules.Breaks("repair-through-fence")
	case m.acl && w.rules.Breaks("user-fence-unasked"):
		return false
	}
	return m.refusesScript() || w.plan.Scripts>>e.who&1 == 0
}

func (w *World) carryExtension(m *master, e *event) redlock.Status {
	switch {
	case m.token == 0 && w.rules.Breaks("extension-creates") && !m.refuses():
		m.token = e.tok
		w.setExpiry(m, e, e.x)
		if m.released>>e.tok&1 != 0 {
			w.breach(mutant.LeftBehind, "an extension makes the copy of %s on %s anew after its release", tokenName(e.tok), nodeNames[e.node])
		}
		return redlock.StatusOK
	case m.token == 0:
		return redlock.StatusAbsent
	case m.token != e.tok && !w.rules.Breaks("extension-of-anyone"):
		return redlock.StatusHeld
	case m.expires-m.clock.at(w.now) >= e.x && !w.rules.Breaks("extension-shortens"):
		return redlock.StatusOK
	case m.refusesScript():
		return redlock.StatusFenced
	}
	w.setExpiry(m, e, e.x)
	w.grants[e.tok].slow = w.grants[e.tok].slow || w.now > w.clients[e.who].extendedAt+viewAttempt
	return redlock.StatusOK
}

func (w *World) carryRelease(m *master, e *event) redlock.Status {
	node, g := int(e.node), &w.grants[e.tok]
	switch {
	case m.token != e.tok && !(w.rules.Breaks("release-of-anyone") && m.token != 0):
		g.release[node] |= relDone
		m.released |= 1 << e.tok
		if m.token == 0 {
			return redlock.StatusAbsent
		}
		return redlock.StatusHeld
	case m.refusesScript():
		g.release[node] |= relRefused
		return redlock.StatusFenced
	}
	g.release[node] |= relDone
	m.released |= 1 << e.tok
	w.say("n", node, "releases %s", tokenName(m.token))
	m.token = 0
	w.viewChange(node)
	w.free()
	return redlock.StatusOK
}

func (w *World) setExpiry(m *master, e *event, ttl time.Duration) {
	m.expires = m.clock.at(w.now) + ttl
	w.viewChange(int(e.node))
	w.push(event{at: w.now + m.clock.lasts(ttl) + 2, kind: evExpiry, node: e.node, tok: m.token, incarnation: m.incarnation})
}
