package sim

import (
	"math"
	"time"

	"redlockctl/restartguard"
)

// never is a moment after every schedule.
const never = time.Duration(math.MaxInt64)

// What the product's guard does between looks, see restartguard.Guard.
const (
	reconnect    = 25 * ms
	guardTimeout = restartguard.DefaultTimeout
	maxActions   = 8
)

// exchanges of a guard with a master.
const (
	askLook uint8 = iota
	askClose
	askProve
	askLift
)

var askNames = [...]string{"a look", "to close", "a canary write", "to open"}

// codes of what came of an exchange.
const (
	toldAnswer  uint8 = iota
	toldRefused       // nobody listens
	toldBroken        // the connection has ended
)

// guard is one guard: it drives restartguard.Step as the product's guard does.
type guard struct {
	index    int
	clock    clock
	up       bool
	memory   bool // it is on disk for the next start
	paused   time.Duration
	wallStep time.Duration // of its host's wall clock, on which nothing may depend
	cut      [maxNodes]time.Duration
	trip     int // index of the next trip
	watches  [maxNodes]watch
}

// watch is a guard's watch over one master: one connection at a time.
type watch struct {
	state restartguard.State

	gen    uint16 // of the connection
	life   uint16 // that it goes to; 0: not there yet
	first  bool   // nothing has been answered on it
	turn   uint16 // of exchanges and pauses; makes an earlier one's events void
	asked  time.Duration
	asking uint8
	inbox  restartguard.Observation
	looked time.Duration // when the look was answered by the master
	todo   [maxActions]restartguard.Action
	do, n  int // next of todo, and how many there are

	// Of the witness: which losses the guard knows of, and until when it has time
	// to close the master after it was told of one.
	knows      bool
	losses     uint16
	inLosses   uint16
	inOpen     bool
	inOffset   time.Duration // of the master's wall clock
	inLife     uint16
	offset     time.Duration // of inLife offsetLife, at the last good reading
	offsetLife uint16
	ahead      int
	telling    bool
	graceUntil time.Duration

	// Of mutants:
	failed    time.Duration // first failed ping of this outage; 0: none
	liftAgain bool
	closedRun string
	refused   bool
}

func (g *guard) reset(i int) {
	*g = guard{index: i}
	for k := range g.watches {
		g.watches[k].graceUntil = never
	}
}

// startGuard starts a guard, which knows nothing.
func (w *world) startGuard(g *guard, at time.Duration) {
	g.up = true
	g.clock = clock{ppm: w.plan.guard[g.index].ppm, offset: time.Hour}
	g.memory = false
	for i := range w.plan.n {
		x := &g.watches[i]
		turn, gen := x.turn+1, x.gen+1
		*x = watch{turn: turn, gen: gen, first: true, graceUntil: never}
		// They do not all look at the same moment.
		w.push(event{at: at + time.Duration(i)*ms/4, kind: evLook, who: uint8(g.index), node: uint8(i), run: turn})
	}
}

// restartGuard starts a guard again, with its memory or without.
func (w *world) restartGuard(g *guard) {
	if !g.memory {
		w.say("g", g.index, "starts again, without memory")
		w.startGuard(g, w.now)
		return
	}
	w.say("g", g.index, "starts again, with its memory")
	var states [maxNodes]restartguard.State
	for i := range w.plan.n {
		states[i] = remembered(g.watches[i].state, g.clock.time(w.now))
	}
	w.startGuard(g, w.now)
	for i := range w.plan.n {
		g.watches[i].state = states[i]
	}
}

// remembered is what the product's guard finds in its memory on disk: a state is
// written before anything is done that follows from it.
func remembered(s restartguard.State, now time.Time) restartguard.State {
	r := restartguard.State{
		RunID: s.RunID, Role: s.Role, Wipes: s.Wipes, Evicted: s.Evicted, Cause: s.Cause, Hold: s.Hold, Owed: s.Owed,
		Revert: s.Revert, Known: s.Known, Verified: s.Verified, Lives: s.Lives, Opened: s.Opened, Leaked: s.Leaked,
		Open: s.Open, Exposed: s.Exposed, Deadline: s.Deadline, Delay: s.Delay, OpenSince: s.OpenSince, LastSeen: s.LastSeen,
		Clock: s.Clock, Counter: s.Counter, CounterUntil: s.CounterUntil, Since: now, Out: now,
	}
	if !s.LastSeen.IsZero() && now.Sub(s.LastSeen) > s.Delay {
		r.Clock = restartguard.Reading{}
	}
	return r
}

// crashGuard ends a guard; it starts again after a while.
func (w *world) crashGuard(g *guard, length time.Duration, memory bool) {
	if !g.up {
		return
	}
	w.stats.GuardCrashes++
	w.say("g", g.index, "crashes")
	for i := range w.plan.n {
		x := &g.watches[i]
		if w.rules.opensOnExit && x.state.Phase == restartguard.PhaseClosed {
			w.guardSend(g, i, restartguard.Action{Kind: restartguard.Lift})
		}
		x.gen++
		x.turn++
		x.graceUntil = never
	}
	g.up, g.memory = false, memory
	w.push(event{at: w.now + length, kind: evGuardUp, who: uint8(g.index)})
}

// wakeGuards lets a guard that happens to look just now do so.
func (w *world) wakeGuards(node int) {
	for i := range w.plan.guards {
		g := &w.guards[i]
		if x := &g.watches[node]; g.up && w.plan.guard[i].eager && x.asking == 0 {
			w.pauseWatch(g, node, g.next(w).out)
		}
	}
}

// next is the next trip of a guard's exchange.
func (g *guard) next(w *world) trip {
	t := w.plan.guard[g.index].trips[g.trip%guardTrips]
	g.trip++
	return t
}

func (w *world) pauseWatch(g *guard, node int, d time.Duration) {
	x := &g.watches[node]
	x.turn++
	x.asking = 0
	w.push(event{at: w.now + max(d, 1), kind: evLook, who: uint8(g.index), node: uint8(node), run: x.turn})
}

func (w *world) guardEvent(g *guard, e *event) {
	x := &g.watches[e.node]
	if !g.up || e.run != x.turn {
		return
	}
	switch e.kind {
	case evLook:
		w.look(g, int(e.node))
	case evGuardAlone:
		w.silence(g, int(e.node))
	case evTold:
		w.told(g, int(e.node), e.code)
	}
}

func (w *world) look(g *guard, node int) {
	w.exchange(g, node, askLook, 0, false)
}

func (w *world) guardSend(g *guard, node int, a restartguard.Action) {
	op := askProve
	switch a.Kind {
	case restartguard.Close:
		op = askClose
	case restartguard.Lift:
		op = askLift
	}
	w.exchange(g, node, op, a.Value, a.SetLag)
}

// exchange sends a command to a master and arranges for what comes of it: an
// answer, or nothing within the timeout.
func (w *world) exchange(g *guard, node int, op uint8, value int64, lag bool) {
	x := &g.watches[node]
	x.turn++
	x.asking, x.asked = op+1, w.now
	t := g.next(w)
	if g.cut[node] > w.now {
		t.out = never // it never gets there
	} else {
		e := event{at: w.now + t.out, kind: evAsk, who: uint8(g.index), node: uint8(node), op: op, run: x.turn, gen: x.gen,
			life: x.life, x: time.Duration(value), y: x.looked, z: t.back}
		if lag {
			e.code = 1
		}
		w.push(e)
	}
	if patience := g.clock.lasts(guardTimeout); t.out > patience || t.out+t.back > patience {
		w.push(event{at: w.now + patience, kind: evGuardAlone, who: uint8(g.index), node: uint8(node), run: x.turn})
		x.asking |= 0x80 // no answer is waited for
	}
}

// asked: a guard's command reaches a master.
func (w *world) asked(e *event) {
	g, m := &w.guards[e.who], &w.masters[e.node]
	x := &g.watches[e.node]
	current := g.up && x.gen == e.gen && x.turn == e.run
	life := e.life
	if life == 0 && x.gen == e.gen {
		if x.life == 0 && m.up {
			x.life = m.life
		}
		life = x.life
	}
	answers := current && x.asking&0x80 == 0
	if !m.up || life != m.life {
		if answers {
			code := toldBroken
			switch {
			case !m.up && m.silent:
				w.push(event{at: max(w.now, x.asked+g.clock.lasts(guardTimeout)), kind: evGuardAlone, who: e.who, node: e.node, run: e.run})
				return
			case !m.up && life == 0:
				code = toldRefused
			}
			w.push(event{at: w.now + e.z, kind: evTold, who: e.who, node: e.node, run: e.run, code: code})
		}
		return
	}
	if e.gen < m.answered[e.who] && !w.rules.strayLifts {
		return // its connection was killed by a later one
	}
	m.answered[e.who] = max(m.answered[e.who], e.gen)
	o := w.obey(g, m, e)
	if answers {
		x.inbox, x.inLosses, x.inOpen, x.inOffset, x.inLife = o, m.losses, !m.refuses(), m.clock.offset, m.life
		if e.op == askLook {
			x.looked = w.now
		}
		w.push(event{at: w.now + e.z, kind: evTold, who: e.who, node: e.node, run: e.run, code: toldAnswer})
	}
}

// obey is the server's side of a guard's command.
func (w *world) obey(g *guard, m *master, e *event) restartguard.Observation {
	node := int(e.node)
	o := restartguard.Observation{RunID: w.runIDs[node][m.life%lives]}
	before := restartguard.Params{MinReplicas: m.minReplicas, MaxLag: m.maxLag}
	switch e.op {
	case askLook:
		o.About, o.Role, o.Wipes, o.Evicted, o.Configured = restartguard.Seen, "master", m.wipes, m.evicted, m.configured
		o.Clock.Wall = m.clock.at(w.now)
	case askProve:
		o.About = restartguard.Proving
		o.Canary = restartguard.CanaryAccepted
		if m.refuses() {
			o.Canary = restartguard.CanaryFenced
		}
	case askClose:
		o.About, o.Before = restartguard.Closing, before
		if e.code != 0 {
			m.maxLag = 10
		}
		w.setFence(m, int64(e.x))
		m.excused = m.excused && !m.refuses()
		w.say("n", node, "is closed by g%d", e.who+1)
	case askLift:
		o.About, o.Before = restartguard.Lifting, before
		w.stats.Lifts++
		if w.trace != nil {
			stray := ""
			if x := &g.watches[node]; x.gen != e.gen {
				stray = ", by a command that was under way on a connection given up since"
			}
			w.say("n", node, "is opened by g%d%s", e.who+1, stray)
		}
		w.mayLift(g, m, node, e)
		w.setFence(m, int64(e.x))
		w.emit(onLift, node)
		w.free()
	}
	o.Params = restartguard.Params{MinReplicas: m.minReplicas, MaxLag: m.maxLag}
	return o
}

func (w *world) setFence(m *master, value int64) {
	if value == restartguard.FenceHold && !m.held() {
		m.heldSince = w.now
	}
	if w.rules.fenceOfOne && value == restartguard.FenceClosed {
		value = 1
	}
	m.minReplicas, m.configured = value, true
}

// mayLift is the witness of a lift.
func (w *world) mayLift(g *guard, m *master, node int, e *event) {
	if m.held() && e.y >= m.heldSince {
		w.breach(HoldLifted, "g%d opens %s, which it has seen held by an operator", g.index+1, nodeName(node))
		return
	}
	since, least := w.now-m.lostAt, g.clock.lasts(w.right)
	if m.lostAt > 0 && m.refuses() && since < least {
		w.breach(EarlyLift, "g%d opens %s %s after its last crash, and D is %s", g.index+1, nodeName(node), span(since), span(w.right))
	}
}

// silence: no answer within the timeout. The connection is given up; what was
// sent by it may still arrive.
func (w *world) silence(g *guard, node int) {
	x := &g.watches[node]
	op, first := x.asking&^0x80-1, x.first
	w.hangUp(g, node, op)
	if op != askLook {
		w.say("g", g.index, "has no answer from %s to what it asked for (%s), and gives the connection up", nodeName(node), askNames[op])
		w.pauseWatch(g, node, w.shortly(g))
		return
	}
	w.step(g, node, restartguard.Observation{About: restartguard.Unreached, Err: "no answer"})
	if first {
		w.pauseWatch(g, node, w.shortly(g))
	} else {
		w.pauseWatch(g, node, 0)
	}
}

func (w *world) shortly(g *guard) time.Duration {
	return g.clock.lasts(reconnect)
}

// hangUp gives the connection up.
func (w *world) hangUp(g *guard, node int, op uint8) {
	x := &g.watches[node]
	x.gen++
	x.life, x.first, x.n, x.do = 0, true, 0, 0
	x.graceUntil = never
	x.liftAgain = x.liftAgain || op == askLift && w.rules.liftRetried
}

// told: an answer, or a failure, reaches the guard.
func (w *world) told(g *guard, node int, code uint8) {
	x := &g.watches[node]
	op, first := x.asking-1, x.first
	x.asking = 0
	if code != toldAnswer {
		w.hangUp(g, node, op)
		switch {
		case op != askLook:
			w.pauseWatch(g, node, w.shortly(g))
		case first:
			w.step(g, node, restartguard.Observation{About: restartguard.Unreached, Refused: code == toldRefused, Err: "refused"})
			w.pauseWatch(g, node, w.shortly(g))
		default:
			w.pauseWatch(g, node, 0) // the next connection tells
		}
		return
	}
	x.first = false
	if op == askLook {
		x.n, x.do = 0, 0
		w.reckon(g, x)
	}
	x.inbox.Asked = g.clock.time(x.asked)
	x.inbox.Clock.Sent, x.inbox.Clock.Got = g.clock.at(x.asked), g.clock.at(w.now)
	w.step(g, node, x.inbox)
	if x.do < min(x.n, maxActions) {
		a := x.todo[x.do]
		x.do++
		w.guardSend(g, node, a)
		return
	}
	x.n, x.do = 0, 0
	w.pauseWatch(g, node, w.until(g, x))
}

// reckon is the witness of what a guard was told: from when on a master that
// is open after a loss has no excuse any more.
func (w *world) reckon(g *guard, x *watch) {
	if x.knows && x.inLosses != x.losses {
		x.telling = true
	}
	x.knows, x.losses = true, x.inLosses
	w.reckonClock(x)
	switch {
	case !x.inOpen:
		x.telling = false
	case x.telling:
		next := w.plan.guard[g.index].trips[g.trip%guardTrips].out
		x.graceUntil = w.now + next
	}
}

// reckonClock: a step of a second or more shows in any two readings in a row
// that were answered quickly, if the one before the step was too.
func (w *world) reckonClock(x *watch) {
	const quick, large = 50 * ms, time.Second
	switch {
	case w.now-x.asked > quick:
	case x.inLife != x.offsetLife:
		x.offset, x.offsetLife, x.ahead = x.inOffset, x.inLife, 0
	case x.inOffset-x.offset < large:
		x.offset, x.ahead = x.inOffset, 0
	default:
		if x.ahead++; x.ahead == 2 {
			x.offset, x.ahead, x.telling = x.inOffset, 0, true
		}
	}
}

// inTime tells if no guard could have closed a node yet.
func (w *world) inTime(node int) bool {
	for i := range w.plan.guards {
		if w.now > w.guards[i].watches[node].graceUntil {
			return false
		}
	}
	return true
}

// until is the pause to the next look, see restartguard's watch.
func (w *world) until(g *guard, x *watch) time.Duration {
	poll := max(w.plan.guard[g.index].poll, reconnect)
	if x.state.Phase == restartguard.PhaseClosed && !x.state.Deadline.IsZero() {
		now := g.clock.time(w.now)
		if w.rules.from == fromWallClock {
			now = now.Add(g.wallStep)
		}
		if d := x.state.Deadline.Sub(now); d > 0 {
			poll = min(d, poll)
		}
	}
	return g.clock.lasts(poll) + 1
}

// step is the one place that calls the product's step machine.
func (w *world) step(g *guard, node int, o restartguard.Observation) {
	x := &g.watches[node]
	old := x.state
	policy := restartguard.Policy{Delay: w.delay}
	now := g.clock.time(w.now)
	if w.rules.guardBroken {
		if w.rules.from == fromWallClock {
			now = now.Add(g.wallStep)
		}
		o = w.twistObservation(g, node, o, &x.state)
	}
	next, actions, _ := restartguard.Step(policy, x.state, o, now)
	x.state = next
	for _, a := range actions {
		if x.n < maxActions {
			x.todo[x.n] = a
			x.n++
		}
	}
	if w.rules.guardBroken {
		w.twistState(g, node, o, &old, now)
	}
	if w.trace != nil && old.RunID != next.RunID && next.RunID != "" && o.About == restartguard.Seen {
		if next.Deadline.IsZero() {
			w.say("g", g.index, "sees %s for the first time, open, and takes it as it is", nodeName(node))
		} else {
			w.say("g", g.index, "sees %s run %d, and may open it at %s", nodeName(node), w.masters[node].life, at(g.clock.whenTime(x.state.Deadline)))
		}
	}
}
