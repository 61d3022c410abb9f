package world

import (
	"time"

	"redlockctl/proof/sim/trace"
	"redlockctl/restartguard"
)

// keepClock saves the reading of the clock as late as the product does; that of a new
// incarnation at once.
func (w *World) keepClock(g *guard, x *watch) {
	if s := &x.state; x.kept.runID != s.Basis.RunID || w.now-x.keptAt >= restartguard.RecordEvery(w.delayOf(g)) {
		x.kept, x.keptAt = clockMemory{s.Basis.RunID, s.Basis.ClockBase}, w.now
	}
}

// startGuard starts a guard, which knows nothing.
func (w *World) startGuard(g *guard, at time.Duration) {
	g.up, g.since, g.used, g.amnesic = true, w.now, false, false
	g.clock = clock{ppm: w.plan.Guard[g.index].PPM, offset: time.Hour}
	g.memory = false
	g.survey = w.survey()
	g.peers, g.heardAt = restartguard.Peers{}, 0
	for i := range w.plan.N {
		x := &g.watches[i]
		turn, gen := x.turn+1, x.gen+1
		*x = watch{turn: turn, gen: gen, first: true, graceUntil: trace.Never}
		// They do not all probe at the same moment.
		w.push(event{at: at + time.Duration(i)*ms/4, kind: evLook, who: uint8(g.index), node: uint8(i), run: turn})
	}
}

// restartGuard starts a guard again, with its memory or without.
func (w *World) restartGuard(g *guard) {
	if !g.memory {
		w.say("g", g.index, "starts again, without memory")
		w.startGuard(g, w.now)
		return
	}
	w.say("g", g.index, "starts again, with its memory")
	before, used, peers, heardAt := g.watches, g.used, g.peers, g.heardAt
	w.startGuard(g, w.now)
	if g.heardAt = heardAt; !w.rules.Breaks("delays-unread") {
		g.peers = peers
	}
	g.used, g.amnesic = used, w.rules.Breaks("use-forgotten")
	for i := range w.plan.N {
		x, old := &g.watches[i], &before[i]
		old.state.Basis.ClockBase = old.kept.clock
		x.state = w.remembered(g, old.state)
		x.kept, x.keptAt = old.kept, old.keptAt
		if old.replaced {
			w.joins(g, i)
		}
		if w.rules.Breaks("memory-unread") && x.state.Basis.Deadline.IsZero() {
			x.state.Basis.RunID = ""
		}
		// It keeps what it knew, and so must see what was lost meanwhile.
		x.knows, x.losses, x.telling, x.warned = old.knows, old.losses, old.telling, old.warned
		x.fencedBefore = old.fencedBefore
		x.offset, x.offsetAt, x.offsetIncarnation, x.gained = old.offset, old.offsetAt, old.offsetIncarnation, old.gained
	}
}

// remembered returns what the product's guard finds in its memory on disk: a state is
// written before any action that follows from it.
func (w *World) remembered(g *guard, s restartguard.State) restartguard.State {
	s = s.Remembered(g.clock.time(w.now), g.clock.at(w.now), w.delayOf(g))
	if w.rules.Breaks("clock-unread") {
		s.Basis.Clock = restartguard.Reading{}
	}
	if w.rules.Breaks("in-flight-forgotten") {
		s.Basis.Pending, s.Basis.Swept = restartguard.InFlightCommand{}, true
	}
	return s
}

// crashGuard ends a guard; it starts again after a while.
func (w *World) crashGuard(g *guard, length time.Duration, memory bool) {
	if !g.up {
		return
	}
	w.Stats.GuardCrashes++
	w.say("g", g.index, "crashes")
	for i := range w.plan.N {
		x := &g.watches[i]
		if w.rules.Breaks("rejoins-on-exit") && x.state.Basis.Phase == restartguard.PhaseFenced {
			w.guardSend(g, i, restartguard.Action{Kind: restartguard.Remove})
		}
		x.gen++
		x.turn++
		x.graceUntil = trace.Never
		w.masters[i].leaves(g.index)
	}
	g.up, g.memory = false, memory
	w.push(event{at: w.now + length, kind: evGuardUp, who: uint8(g.index)})
}

func (w *World) guardEvent(g *guard, e *event) {
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

func (w *World) look(g *guard, node int) {
	w.exchange(g, node, askLook, 0, 0)
}

func (w *World) guardSend(g *guard, node int, a restartguard.Action) {
	op := askProve
	switch a.Kind {
	case restartguard.Raise:
		op = askRaise
	case restartguard.Remove:
		op = askRemove
	case restartguard.Kill:
		if a.Others {
			op = askKillOthers
			break
		}
		code := uint8(0)
		if a.All {
			code = 1
		}
		w.exchange(g, node, askKill, a.Conn, code)
		return
	case restartguard.Count:
		op = askCount
	}
	code := uint8(0)
	if a.SetLag {
		code |= codeLag
	}
	if a.ReadOnly {
		code |= codeReadOnly
	}
	w.exchange(g, node, op, a.Value, code)
}

// exchange sends a command to a master and schedules the outcome: an answer, or nothing
// within the timeout.
func (w *World) exchange(g *guard, node int, op uint8, value int64, code uint8) {
	x := &g.watches[node]
	x.turn++
	x.asking, x.asked = op+1, w.now
	t := g.nextTrip(w)
	if op == askRemove {
		t.Out += w.plan.Guard[g.index].RemovalLate
	}
	if op == askRaise {
		// Its answer, the order to end the connections of others, and one to fence again.
		kill := g.laterTrip(w, 0)
		x.ending = t.Back + kill.Out + kill.Back + g.laterTrip(w, 1).Out
	}
	if g.cut[node] > w.now {
		t.Out = trace.Never // it never gets there
	} else {
		e := event{at: w.now + t.Out, kind: evAsk, who: uint8(g.index), node: uint8(node), op: op, run: x.turn, gen: x.gen,
			incarnation: x.incarnation, x: time.Duration(value), y: x.looked, z: t.Back, code: code}
		if op == askRemove && w.unaware(g, x) {
			e.tok = 1
		}
		w.push(e)
	}
	if patience := g.clock.lasts(guardTimeout); t.Out > patience || t.Out+t.Back > patience {
		w.push(event{at: w.now + patience, kind: evGuardAlone, who: uint8(g.index), node: uint8(node), run: x.turn})
		x.asking |= 0x80 // no answer is waited for
	}
}

// silence: no answer within the timeout. The connection is closed; what was sent on it
// may still arrive.
func (w *World) silence(g *guard, node int) {
	x := &g.watches[node]
	op, first := x.asking&^0x80-1, x.first
	w.hangUp(g, node, op)
	if op != askLook {
		w.say("g", g.index, "has no answer from %s to what it asked for (%s), and gives the connection up", nodeNames[node], askNames[op])
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

func (w *World) shortly(g *guard) time.Duration {
	return g.clock.lasts(reconnect)
}

// hangUp gives the connection up.
func (w *World) hangUp(g *guard, node int, op uint8) {
	x := &g.watches[node]
	x.gen++
	x.incarnation, x.first, x.n, x.do, x.before = 0, true, 0, 0, restartguard.Raise
	w.masters[node].leaves(g.index)
	x.graceUntil = trace.Never
	x.removeAgain = x.removeAgain || op == askRemove && w.rules.Breaks("rejoin-retried")
}

// told: an answer, or a failure, reaches the guard.
func (w *World) told(g *guard, node int, code uint8) {
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
	if op == askScan {
		w.answerSurvey(g, node)
		w.look(g, node)
		return
	}
	if op == askLook {
		x.n, x.do = 0, 0
		w.hearGuards(g, node)
		w.reckon(g, x)
	}
	if x.inbox.Counted {
		x.counter = x.inbox.Counter
	}
	x.inbox.Sent = g.clock.time(x.asked)
	x.inbox.Clock.Sent, x.inbox.Clock.Got = g.clock.at(x.asked), g.clock.at(w.now)
	w.step(g, node, x.inbox)
	telling := x.telling && x.inServing && x.inIncarnation == w.masters[node].incarnation // of this loss, not of one before it
	if x.do < min(x.n, maxActions) {
		a := x.todo[x.do]
		x.do++
		if telling && g.cut[node] <= w.now {
			// First it may end connections, or find out by a canary that a fence which is up does not
			// hold: once each.
			if a.Kind == x.before || a.Kind != restartguard.Kill && a.Kind != restartguard.Prove {
				x.graceUntil = w.now + g.laterTrip(w, 0).Out
			}
			x.before = a.Kind
		}
		w.guardSend(g, node, a)
		return
	}
	if telling {
		x.graceUntil = w.now // it does nothing about it
	}
	x.n, x.do = 0, 0
	if w.countCopies(g, node) || w.rules.EarlyRejoin && w.inquire(g, node) {
		return
	}
	w.pauseWatch(g, node, w.until(g, x))
}

// until is the pause before the next probe, see restartguard's watch.
func (w *World) until(g *guard, x *watch) time.Duration {
	poll := w.plan.Guard[g.index].Poll
	if d := w.delayOf(g); d < w.delay {
		poll = min(poll, d/3) // no guard probes less often
	}
	poll = max(poll, reconnect)
	if x.state.Basis.Phase == restartguard.PhaseFenced && !x.state.Basis.Deadline.IsZero() {
		now := g.clock.time(w.now)
		if w.rules.Breaks("wall-clock") {
			now = now.Add(g.wallStep)
		}
		if d := x.state.Basis.Deadline.Sub(now); d > 0 {
			poll = min(d, poll)
		}
	}
	return g.clock.lasts(poll) + 1
}

// step is the only place that calls the product's step machine.
func (w *World) step(g *guard, node int, o restartguard.Observation) {
	x := &g.watches[node]
	oldRun, oldEarly, oldDelay, oldEmpty, waited := x.state.Basis.RunID, x.state.Basis.Early, x.state.Basis.Delay, x.state.Basis.Empty, !x.state.Basis.Deadline.IsZero()
	var old restartguard.State // of mutants; a copy costs time
	if w.rules.GuardBroken {
		old = x.state
	}
	policy := &w.policy // nothing is allocated for a step
	*policy = restartguard.Policy{Delay: w.delayOf(g), Sweep: true}
	if w.plan.Counter {
		policy.CountEvery = time.Second
	}
	now := g.clock.time(w.now)
	if o.About == restartguard.Seen && w.differ() {
		o.Heard, o.Least = g.peers.Greatest(), g.peers.Least()
	}
	if o.About == restartguard.Seen && w.announcing {
		w.hearDrained(g, node, &o, now)
	}
	if w.rules.GuardBroken {
		if w.rules.Breaks("wall-clock") {
			now = now.Add(g.wallStep)
		}
		if w.rules.Breaks("latest-delay") && o.Heard > 0 {
			policy.Delay, o.Heard = o.Heard, 0
		}
		o = w.twistObservation(g, node, o, &x.state)
	}
	if w.rules.EarlyRejoin {
		policy.EarlyAfter = w.earlyAfter()
		if o.About == restartguard.Seen {
			o.Evidence = w.evidence(g, node, now)
		}
	}
	next := &x.state
	w.seen = o
	actions, _ := next.Step(policy, &w.seen, now)
	g.used = g.used || next.Report.Served || next.Report.Incarnations > 1
	if next.Basis.Empty != oldEmpty {
		w.announceDrained(g, node)
	}
	if o.About == restartguard.Seen {
		w.keepClock(g, x)
	}
	if w.rules.EarlyRejoin && oldRun == "" && x.inWhole && o.About == restartguard.Seen {
		next.Basis.Trusted = now // as if the guard had known it for long
	}
	if w.rules.Breaks("kill-unanswered") && len(actions) > 0 && actions[0].Kind == restartguard.Kill {
		x.state.Basis.Pending, x.state.Basis.Swept = restartguard.InFlightCommand{}, true
	}
	for _, a := range actions {
		if x.n < maxActions {
			x.todo[x.n] = a
			x.n++
		}
	}
	if w.rules.GuardBroken {
		w.twistState(g, node, o, &old, now)
	}
	if w.rules.EarlyRejoin {
		if oldEarly == "" && next.Basis.Early != "" {
			w.Stats.Early++
			w.say("g", g.index, "need not wait for D before %s rejoins: every lock elsewhere has a quorum", nodeNames[node])
		}
		w.looked(g, node, &o, now)
	}
	if w.Trace != nil && oldRun != next.Basis.RunID && next.Basis.RunID != "" && o.About == restartguard.Seen {
		if next.Basis.Deadline.IsZero() {
			w.say("g", g.index, "sees %s for the first time, serving, and takes it as it is", nodeNames[node])
		} else {
			w.say("g", g.index, "sees %s run %d, and may let it rejoin at %s", nodeNames[node], w.masters[node].incarnation, trace.At(g.clock.whenTime(x.state.Basis.Deadline)))
		}
	}
	if w.Trace != nil && oldRun == next.Basis.RunID && waited && oldDelay < next.Basis.Delay && !next.Basis.Deadline.IsZero() {
		w.say("g", g.index, "hears that D is %s, and may let %s rejoin at %s", trace.Span(next.Basis.Delay), nodeNames[node], trace.At(g.clock.whenTime(next.Basis.Deadline)))
	}
}

// inquire asks a master for its copies if a guard wants to know them now.
func (w *World) inquire(g *guard, node int) bool {
	q, ok := g.survey.Question(nodeNames[node], g.clock.time(w.now))
	if !ok || w.plan.N == 1 {
		return false
	}
	g.watches[node].question = q
	w.exchange(g, node, askScan, 0, 0)
	return true
}
