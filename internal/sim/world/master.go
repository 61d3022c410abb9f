package world

import (
	"time"

	"redlockctl/internal/sim/mutant"
	"redlockctl/internal/sim/schedule"
	"redlockctl/internal/sim/trace"
	"redlockctl/restartguard"
)

// master is one Redis server, as far as locks on one key and the guard's
// commands see of it. Resources do not know of each other in Redlock, so one
// key is all that is needed.
type master struct {
	clock clock // its wall clock, which decides expiry
	up    bool
	// silent: it is down and so is its host.
	silent      bool
	incarnation uint16        // counts its processes from 1: the run_id
	booted      time.Duration // what its wall clock showed then

	token   uint8         // whose copy is there; 0: nobody's
	expires time.Duration // by its wall clock
	made    uint8         // the operation that made the copy

	minReplicas, maxLag, replicas int64
	heldSince                     time.Duration

	acl        bool // closed by an ACL user
	blind      bool // nobody may read or set its fence
	slave      bool // it is a replica of another server
	promotions int  // in this life
	wipes      int64
	evicted    int64
	commands   int64 // carried out since the counters were reset
	counter    int64 // the guard's counter key
	configured bool

	// killed are the connections of each guard that were ended on the server's side
	// (the last few), and swept is the first of which that is not so of all before
	// it: nothing more is read from them.
	killed [schedule.MaxGuards][killedMost]uint16
	kills  [schedule.MaxGuards]int
	swept  [schedule.MaxGuards]uint16
	// named is one more than the last connection of each guard of which it has read
	// something: those whose names it knows.
	named [schedule.MaxGuards]uint16

	announced uint8 // the guards that can be seen there

	// Of the witness:
	ghosts uint64 // tokens whose copies it has forgotten
	fresh  uint64 // those of them that it has forgotten since a guard opened it
	// unguarded are those of which it was opened too early, by a guard that could not
	// have heard of the longer D.
	unguarded uint64
	forgotAt  time.Duration
	lostAt    time.Duration // the last crash
	harmed    bool          // it has lost something, ever
	losses    uint16        // that a guard can see
	// excused: it is open after a loss, and no guard has had the time to close it
	// yet. What it votes now may be a second vote that nobody can prevent.
	excused bool
	// crossUntil: a guard has closed it after a loss, and a lift of another guard that was
	// under way may cross that closing until then.
	crossUntil time.Duration
	released   uint64 // tokens of which a release was carried out here
}

func (m *master) reset(i int, p *schedule.Plan) {
	*m = master{clock: clock{ppm: p.NodePPM[i], offset: time.Hour}, up: true, incarnation: 1, maxLag: 10, configured: true,
		acl: p.ACL, blind: p.Blind>>i&1 != 0}
	if p.Replicas {
		m.replicas = 1
	}
}

// refuses reports whether it answers writes with NOREPLICAS.
func (m *master) refuses() bool { return m.slave || m.fenced() }

// fenced reports whether it does so because of a fence.
func (m *master) fenced() bool {
	if m.acl {
		return m.minReplicas >= restartguard.FenceCordon
	}
	return m.maxLag > 0 && m.minReplicas > m.replicas
}

// killedMost is how many killed connections a master remembers; more are never
// under way at a time.
const killedMost = 16

// kill ends a guard's connection. Its number is one less than its id.
func (m *master) kill(guard uint8, gen uint16) {
	m.killed[guard][m.kills[guard]%killedMost] = gen + 1
	m.kills[guard]++
}

// hears reports whether it still reads from a guard's connection.
func (m *master) hears(guard uint8, gen uint16) bool {
	if gen < m.swept[guard] {
		return false
	}
	for _, k := range m.killed[guard] {
		if k == gen+1 {
			return false
		}
	}
	return true
}

func (m *master) held() bool { return m.minReplicas == restartguard.FenceCordon && m.maxLag > 0 }

// live reports whether a copy is there.
func (m *master) live(now time.Duration) bool { return m.token != 0 && m.clock.at(now) < m.expires }

// forget loses the copy that is there before it expires.
func (w *World) forget(m *master) {
	if m.live(w.now) {
		m.ghosts |= 1 << m.token
		m.fresh |= 1 << m.token
		m.forgotAt = w.now
		w.Stats.LostVotes++
	}
}

// crash ends a master's process; it is back at the time given.
func (w *World) crash(i int, back time.Duration, silent bool) {
	m := &w.masters[i]
	if !m.up {
		return
	}
	w.Stats.Crashes++
	for k := range w.plan.Clients { // what was deleted in this incarnation tells nothing of the next
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
	w.forget(m)
	m.up, m.silent, m.token, m.lostAt, m.harmed, m.announced = false, silent, 0, w.now, true, 0
	m.losses++
	w.push(event{at: max(back, w.now+1), kind: evUp, node: uint8(i), incarnation: m.incarnation})
	w.emit(schedule.OnCrash, i)
}

// boot starts a master anew.
func (w *World) boot(i int, incarnation uint16) {
	m := &w.masters[i]
	if m.up || m.incarnation != incarnation {
		return
	}
	m.up, m.silent = true, false
	m.incarnation++
	m.booted = m.clock.at(w.now)
	m.minReplicas, m.maxLag, m.wipes, m.evicted, m.configured = restartguard.FenceUp, 10, 0, 0, false
	m.slave, m.promotions, m.commands, m.counter, m.crossUntil = false, 0, 0, 0, 0
	m.killed, m.swept, m.named = [schedule.MaxGuards][killedMost]uint16{}, [schedule.MaxGuards]uint16{}, [schedule.MaxGuards]uint16{}
	if !w.plan.Fenced {
		m.minReplicas = restartguard.FenceNone
	}
	if w.plan.LagZero {
		m.maxLag = 0
	}
	m.excused = !m.refuses()
	for g := range w.plan.Guards {
		w.guards[g].watches[i].graceUntil = trace.Never
	}
	w.announceAgain(i)
	if m.refuses() {
		w.say("n", i, "is back, empty and closed (run %d)", m.incarnation)
	} else {
		w.say("n", i, "is back, empty and OPEN (run %d)", m.incarnation)
	}
	w.wakeGuards(i)
	w.emit(schedule.OnUp, i)
	if !m.refuses() {
		w.free()
	}
}

// flush is FLUSHALL by somebody. A closed server refuses it.
func (w *World) flush(i int) {
	m := &w.masters[i]
	if !m.up || m.slave || m.fenced() && !m.acl {
		return
	}
	w.say("n", i, "is flushed (FLUSHALL)")
	w.forget(m)
	m.token, m.counter = 0, 0
	m.wipes++
	w.lose(m, i, true)
	w.emit(schedule.OnCrash, i)
	w.free()
}

// evict drops the copy for want of memory, as maxmemory-policy volatile-lru does
// with live locks.
func (w *World) evict(i int) {
	m := &w.masters[i]
	if !m.up || m.slave || !m.live(w.now) {
		return
	}
	w.say("n", i, "evicts the vote for %s", tokenName(m.token))
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
		w.forget(m)
	}
	m.clock.offset += by
	w.say("n", i, "has its wall clock set by %+.3f s", by.Seconds())
	if by > 0 {
		w.lose(m, i, false) // what the guard sees of it is reckoned from its looks
		w.free()
	}
}

// lose takes note of a loss other than by a crash.
func (w *World) lose(m *master, i int, seen bool) {
	if seen {
		m.losses++
	}
	if !m.excused {
		for g := range w.plan.Guards {
			w.guards[g].watches[i].graceUntil = trace.Never
		}
	}
	// A guard that is about to close it for an earlier loss has no more time for this.
	m.excused, m.harmed = !m.refuses(), true
}

// creep moves a master's wall clock by one of many small steps.
func (w *World) creep(i int, e *event) {
	m := &w.masters[i]
	w.forget(m)
	m.clock.offset += e.x
	m.harmed = true
	if e.kind != evCreep {
		w.say("n", i, "has its wall clock set ahead by %s every %s, %d times", trace.Span(e.x), trace.Span(e.y), e.tok)
		w.lose(m, i, false)
	} else {
		// From the first on the guards have their time.
		m.excused = m.excused || !m.refuses()
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
	w.forget(m)
	m.slave, m.token, m.counter = true, 0, 0
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

// restore puts a master's memory back to an earlier state, as the snapshot of a
// virtual machine does. It is done where a guard can see it: the snapshot is
// older than a few counts.
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

// hold closes a master by an operator's hand.
func (w *World) cordon(i int, length time.Duration) {
	m := &w.masters[i]
	if !m.up || m.held() || m.blind {
		return
	}
	w.say("n", i, "is held closed by an operator")
	m.minReplicas, m.maxLag, m.configured, m.heldSince = restartguard.FenceCordon, max(m.maxLag, 10), true, w.now
	w.push(event{at: w.now + length, kind: evCordonOver, node: uint8(i), incarnation: m.incarnation})
}

// handBack ends a hold: the guards may open the node when it is safe.
func (w *World) handBack(i int, incarnation uint16) {
	m := &w.masters[i]
	if !m.up || m.incarnation != incarnation || !m.held() {
		return
	}
	w.say("n", i, "is handed back to the guards, still closed")
	m.minReplicas = restartguard.FenceUp
}

// expired looks at a copy when it may have run out.
func (w *World) expired(e *event) {
	m := &w.masters[e.node]
	if m.token != e.tok || m.token == 0 || m.incarnation != e.incarnation || m.clock.at(w.now) < m.expires {
		return
	}
	if g := &w.grants[m.token]; g.abandoned && g.release[e.node] == 0 {
		w.breach(mutant.LeftBehind, "%s on %s was given up at %s, was never released there, and blocked others for its whole TTL",
			tokenName(m.token), nodeName(int(e.node)), trace.At(g.abandonedAt))
	}
	m.token = 0
	w.free()
}
