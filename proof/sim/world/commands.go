package world

import (
	"redlockctl/proof/sim/mutant"
	"redlockctl/proof/sim/schedule"
	"redlockctl/restartguard"
	"redlockctl/server/minreplicas"
)

// asked: a guard's command reaches a master.
func (w *World) asked(e *event) {
	g, m := &w.guards[e.who], &w.masters[e.node]
	x := &g.watches[e.node]
	current := g.up && x.gen == e.gen && x.turn == e.run
	incarnation := e.incarnation
	if incarnation == 0 && x.gen == e.gen {
		if x.incarnation == 0 && m.up {
			x.incarnation = m.incarnation
		}
		incarnation = x.incarnation
	}
	answers := current && x.asking&0x80 == 0
	if !m.up || incarnation != m.incarnation {
		if answers {
			code := toldBroken
			switch {
			case !m.up && m.silent:
				w.push(event{at: max(w.now, x.asked+g.clock.lasts(guardTimeout)), kind: evGuardAlone, who: e.who, node: e.node, run: e.run})
				return
			case !m.up && incarnation == 0:
				code = toldRefused
			}
			w.push(event{at: w.now + e.z, kind: evTold, who: e.who, node: e.node, run: e.run, code: code})
		}
		return
	}
	if !m.hears(e.who, e.gen) { // its connection was ended
		if answers {
			w.push(event{at: w.now + e.z, kind: evTold, who: e.who, node: e.node, run: e.run, code: toldBroken})
		}
		return
	}
	m.commands++
	m.named[e.who] = max(m.named[e.who], e.gen+1)
	o := w.obey(g, m, e)
	if answers {
		x.inbox, x.inLosses, x.inServing, x.inOffset, x.inIncarnation, x.inBlind, x.inGuards, x.inDrainers =
			o, m.losses, !m.refuses(), m.clock.offset, m.incarnation, m.blind, m.announced, m.drainers
		if e.op == askLook {
			x.looked = w.now
		}
		w.push(event{at: w.now + e.z, kind: evTold, who: e.who, node: e.node, run: e.run, code: toldAnswer})
	}
}

// obey runs a guard's command on the server.
func (w *World) obey(g *guard, m *master, e *event) restartguard.Observation {
	node := int(e.node)
	o := restartguard.Observation{RunID: w.runIDs[node][m.incarnation%incarnations], Conn: int64(e.gen) + 1}
	before := minreplicas.Params{MinReplicas: m.minReplicas, MaxLag: m.maxLag}
	switch e.op {
	case askLook:
		w.showTo(g, m, node, &o)
	case askCount:
		o.About = restartguard.Counting
		if m.refuses() {
			o.Err = "refused"
			break
		}
		m.counter++
		o.Counter, o.Counted = m.counter, true
	case askKill:
		o.About, o.Gone, o.Swept = restartguard.Killing, e.x != 0, e.code != 0
		if w.rules.Breaks("late-rejoin") {
			break
		}
		if o.Gone {
			m.kill(e.who, uint16(e.x-1))
		}
		if o.Swept {
			m.swept[e.who] = max(m.swept[e.who], e.gen)
		}
	case askKillOthers:
		o.About, o.Others, o.Swept = restartguard.Killing, true, true
		for i := range w.plan.Guards {
			if i != g.index && !w.rules.Breaks("rivals-ignored") {
				m.swept[i] = max(m.swept[i], m.named[i])
			}
		}
	case askCopies:
		o.About = restartguard.Scanned
		if m.live(w.now) {
			o.Copies = 1
		}
	case askScan:
		g.watches[node].inCopy = w.copyOn(m)
	case askProve:
		o.About = restartguard.Proving
		o.Canary = restartguard.CanaryAccepted
		switch {
		case m.slave && !m.writable:
			o.Canary = restartguard.CanaryRefused // READONLY
		case !m.refusesScript() && !w.rules.Breaks("script-unproved"):
		case m.slave && m.refuses():
			o.Canary = restartguard.CanaryFenced
		case m.slave:
		case m.fenced():
			o.Canary = restartguard.CanaryFenced
		}
	case askRaise, askRemove:
		o.About, o.Before = restartguard.Raising, before
		if e.op == askRemove {
			o.About = restartguard.Removing
		}
		switch {
		case m.blind:
			o.Err = "denied"
		case e.op == askRemove:
			w.removeFence(g, m, node, e)
		default:
			w.raiseFence(g, m, node, e)
		}
	}
	o.Params = minreplicas.Params{MinReplicas: m.minReplicas, MaxLag: m.maxLag}
	if m.acl {
		o.Params.MaxLag = 1
	}
	if m.blind {
		o.Params, o.Before, o.Blind = minreplicas.Params{}, minreplicas.Params{}, true
	}
	return o
}

// showTo returns what a probe reads.
func (w *World) showTo(g *guard, m *master, node int, o *restartguard.Observation) {
	if w.rules.Breaks("early-old-scan") {
		w.seenBefore(g, node, m)
	}
	g.watches[node].inWhole = m.ghosts == 0 && m.incarnation == 1
	o.About, o.Role, o.Wipes, o.Evicted, o.Configured = restartguard.Seen, "master", m.wipes, m.evicted, m.configured
	if m.slave {
		o.Role = "slave"
	}
	o.Former, o.Commands = "0", m.commands
	if m.promotions > 0 {
		o.Former = w.runIDs[node][m.promotions%incarnations]
	}
	o.Clock.Wall = m.clock.at(w.now)
	o.Up = w.uptime(m)
	o.Counter, o.Counted = m.counter, w.plan.Counter
}

func (w *World) raiseFence(g *guard, m *master, node int, e *event) {
	if w.plan.Calm() && !m.harmed && !g.watches[node].away && int64(e.x) == minreplicas.FenceUp {
		w.breach(mutant.NeedlessFence, "g%d fences %s, which has lost nothing", g.index+1, nodeNames[node])
	}
	if e.code&codeLag != 0 {
		m.maxLag = 10
	}
	if e.code&codeReadOnly != 0 && !w.rules.Breaks("replica-writable") {
		m.writable = false
	}
	w.setFence(m, int64(e.x))
	m.excused = m.excused && !m.refusesScript()
	if x := &g.watches[node]; x.telling {
		m.crossUntil = w.now + x.ending
	}
	w.say("n", node, "is fenced by g%d", e.who+1)
}

func (w *World) removeFence(g *guard, m *master, node int, e *event) {
	w.Stats.Rejoins++
	if w.Trace != nil {
		late := ""
		if x := &g.watches[node]; x.gen != e.gen {
			late = ", by a command that was under way on a connection given up since"
		}
		w.say("n", node, "rejoins by g%d%s", e.who+1, late)
	}
	w.mayRejoin(g, m, node, e)
	switch {
	case !m.fenced() || m.leaks: // it served: once a guard could have fenced it, second votes are no longer excused
		if !w.inTime(node) {
			m.excused, m.fresh = false, 0
		}
	case w.now <= m.crossUntil && w.now-max(m.lostAt, m.brokenAt) < w.guards[e.who].clock.lasts(w.right): // nobody could have stopped it yet
		m.excused = true
		for i := range w.plan.Guards {
			x := &w.guards[i].watches[node]
			x.graceUntil = max(x.graceUntil, m.crossUntil)
		}
	case m.brokenAt > e.y && m.brokenAt > w.guards[e.who].watches[node].readAt: // behind the look by which it rejoins, and no other since: as if it had served already
		m.excused = true
	default:
		m.excused, m.fresh = false, 0
	}
	w.setFence(m, int64(e.x))
	w.emit(schedule.OnRemoval, node)
	w.free()
}

func (w *World) setFence(m *master, value int64) {
	if value == minreplicas.FenceCordon && !m.cordoned() {
		m.heldSince = w.now
	}
	if w.rules.Breaks("fence-of-one") && value == minreplicas.FenceUp {
		value = 1
	}
	m.minReplicas, m.configured = value, true
}

// copyOn runs a scan on the master.
func (w *World) copyOn(m *master) restartguard.Copy {
	if !m.live(w.now) {
		return restartguard.Copy{}
	}
	return restartguard.Copy{Key: "k", Token: tokenName(m.token), Left: (m.expires - m.clock.at(w.now)).Truncate(ms)}
}

// seenBefore records what is there before anything may be asked.
func (w *World) seenBefore(g *guard, node int, m *master) {
	if _, ok := g.survey.Question(nodeNames[node], g.clock.time(w.now)); !ok {
		g.watches[node].oldCopy = w.copyOn(m)
	}
}
