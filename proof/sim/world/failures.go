package world

import (
	"time"

	"redlockctl/proof/sim/mutant"
	"redlockctl/proof/sim/schedule"
	"redlockctl/proof/sim/trace"
	"redlockctl/server/minreplicas"
)

// forget loses a copy before it expires.
func (w *World) forget(m *master) {
	if m.live(w.now) {
		m.ghosts |= 1 << m.token
		m.fresh |= 1 << m.token
		m.forgotAt = w.now
		w.Stats.LostVotes++
	}
}

// crash ends a master's process; it restarts at the given time.
func (w *World) crash(i int, back time.Duration, silent bool) {
	m := &w.masters[i]
	if !m.up {
		return
	}
	w.Stats.Crashes++
	for k := range w.plan.Clients { // deletions in this incarnation say nothing about the next
		w.grants[w.clients[k].token].deleted &^= 1 << i
	}
	if w.Trace != nil {
		what := "crashes"
		if m.live(w.now) {
			what += " and forgets the vote for " + tokenName(m.token)
		}
		if silent {
			what += "; its host is gone too"
		}
		w.say("n", i, "%s", what)
	}
	w.view.crashed = w.now
	w.forget(m)
	if m.empty(w.now) || m.slave && m.demotedEmpty && m.token == 0 {
		w.Stats.Drained++ // it loses nothing
	} else {
		m.lostAt = w.now
	}
	m.up, m.silent, m.token, m.harmed, m.announced, m.drainers = false, silent, 0, true, 0, 0
	m.losses++
	w.push(event{at: max(back, w.now+1), kind: evUp, node: uint8(i), incarnation: m.incarnation})
	w.emit(schedule.OnCrash, i)
}

// boot starts a master again.
func (w *World) boot(i int, incarnation uint16) {
	m := &w.masters[i]
	if m.up || m.incarnation != incarnation {
		return
	}
	m.up, m.silent = true, false
	m.incarnation++
	m.booted = m.clock.at(w.now)
	m.minReplicas, m.maxLag, m.wipes, m.evicted, m.configured = minreplicas.FenceUp, 10, 0, 0, false
	m.slave, m.promotions, m.commands, m.counter, m.crossUntil = false, 0, 0, 0, 0
	m.killed, m.swept, m.named = [schedule.MaxGuards][killedMost]uint16{}, [schedule.MaxGuards]uint16{}, [schedule.MaxGuards]uint16{}
	if !w.plan.Fenced {
		m.minReplicas = minreplicas.FenceNone
	}
	if w.plan.LagZero {
		m.maxLag = 0
	}
	m.upAt = w.now
	w.bootReplacement(m)
	m.excused = !m.refusesScript()
	for g := range w.plan.Guards {
		w.guards[g].watches[i].graceUntil = trace.Never
	}
	w.announceAgain(i)
	if m.refuses() {
		w.say("n", i, "is back, empty and fenced (run %d)", m.incarnation)
	} else {
		w.say("n", i, "is back, empty and UNFENCED (run %d)", m.incarnation)
	}
	w.wakeGuards(i)
	w.emit(schedule.OnUp, i)
	if !m.refuses() {
		w.free()
	}
}

// flush runs FLUSHALL. A fenced server refuses it.
func (w *World) flush(i int) {
	m := &w.masters[i]
	if !m.up || m.slave || m.fenced() && !m.acl {
		return
	}
	w.say("n", i, "is flushed (FLUSHALL)")
	w.forget(m)
	m.wiped++
	w.view.lost = w.now
	m.token, m.counter = 0, 0
	m.wipes++
	w.lose(m, i, true)
	w.emit(schedule.OnCrash, i)
	w.free()
}

// evict drops the copy when memory is full, as maxmemory-policy volatile-lru does with
// live locks.
func (w *World) evict(i int) {
	m := &w.masters[i]
	if !m.up || m.slave || !m.live(w.now) {
		return
	}
	w.say("n", i, "evicts the vote for %s", tokenName(m.token))
	w.vanish(m, i)
	w.forget(m)
	m.token = 0
	m.evicted++
	w.lose(m, i, true)
	w.emit(schedule.OnCrash, i)
	w.free()
}

// stepClock moves a master's wall clock.
func (w *World) stepClock(i int, by time.Duration) {
	m := &w.masters[i]
	if by > 0 {
		w.vanish(m, i)
		w.forget(m)
	}
	m.clock.offset += by
	w.view.stepped = true
	w.say("n", i, "has its wall clock set by %+.3f s", by.Seconds())
	if by > 0 {
		w.lose(m, i, false) // what the guard sees of it is derived from its probes
		w.free()
	}
}

// lose records a loss other than by a crash.
func (w *World) lose(m *master, i int, seen bool) {
	if seen {
		m.losses++
	}
	if !m.excused {
		for g := range w.plan.Guards {
			w.guards[g].watches[i].graceUntil = trace.Never
		}
	}
	m.brokenAt = w.now
	// A guard that is about to fence it for an earlier loss gets no extra time.
	m.excused, m.harmed = !m.refusesScript(), true
}

// creep moves a master's wall clock by one of many small steps.
func (w *World) creep(i int, e *event) {
	m := &w.masters[i]
	w.vanish(m, i)
	w.forget(m)
	m.clock.offset += e.x
	w.view.stepped = true
	m.harmed = true
	if e.kind != evCreep {
		w.say("n", i, "has its wall clock set ahead by %s every %s, %d times", trace.Span(e.x), trace.Span(e.y), e.tok)
		w.lose(m, i, false)
	} else {
		// The guards' time counts from the first one.
		m.excused = m.excused || !m.refusesScript()
	}
	if e.tok > 1 {
		w.push(event{at: w.now + e.y, kind: evCreep, node: uint8(i), tok: e.tok - 1, x: e.x, y: e.y})
	}
	w.free()
}

// demote makes a master a replica of another server, which replaces its data.
func (w *World) demote(i int, length time.Duration) {
	m := &w.masters[i]
	if !m.up || m.slave {
		return
	}
	w.say("n", i, "is made a replica of another server, and forgets all for it")
	m.demotedEmpty = m.empty(w.now)
	w.forget(m)
	m.wiped++
	w.view.lost = w.now
	m.slave, m.demoted, m.token, m.counter = true, w.now, 0, 0
	w.lose(m, i, true)
	w.emit(schedule.OnCrash, i)
	w.push(event{at: w.now + max(length, 1), kind: evPromoted, node: uint8(i), incarnation: m.incarnation})
}

// promote makes a replica a master again.
func (w *World) promote(i int, incarnation uint16) {
	m := &w.masters[i]
	if !m.up || m.incarnation != incarnation || !m.slave {
		return
	}
	w.say("n", i, "is a master again")
	m.slave = false
	m.promotions++
	w.lose(m, i, true)
	if !m.refuses() {
		w.free()
	}
}

// restore returns a master's memory to an earlier state, as the snapshot of a virtual
// machine does. A guard can see it: the snapshot is older than a few counts.
func (w *World) restore(i int) {
	m := &w.masters[i]
	if w.plan.Guards != 1 || !w.plan.Counter || m.slave || !m.up {
		return
	}
	c := w.guards[0].watches[i].counter
	if c < 3 || m.counter < c {
		return
	}
	w.say("n", i, "has its memory put back to an earlier state")
	w.vanish(m, i)
	w.forget(m)
	m.token, m.counter = 0, max(0, c-6)
	w.lose(m, i, true)
	w.emit(schedule.OnCrash, i)
	w.free()
}

// resetStats resets the counters of a master.
func (w *World) resetStats(i int) {
	if m := &w.masters[i]; m.up {
		w.say("n", i, "has its counters reset (CONFIG RESETSTAT)")
		m.wipes, m.evicted, m.commands = 0, 0, 0
	}
}

// cordon fences a master by an operator's hand, for a while. He who restarts it in between ends
// that also in a later incarnation.
func (w *World) cordon(i int, length time.Duration, restarts bool) {
	m := &w.masters[i]
	if !m.up || m.cordoned() || m.blind {
		return
	}
	w.say("n", i, "is cordoned by an operator")
	m.minReplicas, m.maxLag, m.configured, m.heldSince, m.writable = minreplicas.FenceCordon, max(m.maxLag, 10), true, w.now, false
	over := event{at: w.now + length, kind: evCordonOver, node: uint8(i), incarnation: m.incarnation}
	if restarts {
		over.incarnation = 0
	}
	w.push(over)
}

// againAfter is when an operator uncordons a master again that a guard, which was cut off, has cordoned again.
const againAfter = 2 * time.Second

// handBack ends a cordon: the guards may let the node rejoin when it is safe.
func (w *World) handBack(i int, incarnation uint16) {
	m := &w.masters[i]
	if incarnation == 0 {
		w.push(event{at: w.now + againAfter, kind: evCordonOver, node: uint8(i)})
	} else if m.incarnation != incarnation {
		return
	}
	if !m.up || !m.cordoned() {
		return
	}
	w.say("n", i, "is uncordoned, still fenced")
	w.view.lost = w.now
	m.minReplicas = minreplicas.FenceUp
}

// expired checks a copy when it may have expired.
func (w *World) expired(e *event) {
	m := &w.masters[e.node]
	if m.token != e.tok || m.token == 0 || m.incarnation != e.incarnation || m.clock.at(w.now) < m.expires {
		return
	}
	if g := &w.grants[m.token]; g.abandoned && g.release[e.node] == 0 {
		w.breach(mutant.LeftBehind, "%s on %s was given up at %s, was never released there, and blocked others for its whole TTL",
			tokenName(m.token), nodeNames[e.node], trace.At(g.abandonedAt))
	}
	m.token = 0
	w.free()
}
