package sim

import (
	"time"

	"redlockctl/internal/sim/trace"
	"redlockctl/redlock"
	"redlockctl/restartguard"
)

// attemptBound is the longest that an attempt takes, where masters may rejoin
// early: every client gives up by then.
const attemptBound = MaxTTL / 10

// earlyRules are how early rejoin is broken by mutants.
type earlyRules struct {
	on bool
	// Guards.
	atOnce            bool // the bound of an attempt is not waited for
	oldScans          bool // what was seen before counts for a scan
	unreachableIsFine bool
	lostNodeCounts    bool
	endsIgnored       bool
	lossesIgnored     bool
	// Clients.
	longAttempts bool
	sameTokens   bool
}

// inquest is a guard's, as the rules have it.
func (w *world) inquest() restartguard.Inquest {
	n := w.plan.n
	q := restartguard.Inquest{N: n, Quorum: redlock.Quorum(n), After: w.earlyAfter(), Apart: attemptBound / 2}
	if w.rules.early.lostNodeCounts {
		q.Quorum--
	}
	return q
}

func (w *world) earlyAfter() time.Duration {
	if w.rules.early.atOnce {
		return 1
	}
	return restartguard.EarlyAfter(attemptBound)
}

// evidence is what a guard has for a master that it looks at.
func (w *world) evidence(g *guard, node int, now time.Time) *restartguard.Evidence {
	x := &g.watches[node]
	if x.state.Phase != restartguard.PhaseFenced {
		return nil
	}
	r := &w.rules.early
	others := w.others[:0]
	for i := range w.plan.n {
		if i == node {
			continue
		}
		s := g.watches[i].state
		switch {
		case r.unreachableIsFine && s.Phase == restartguard.PhaseUnreachable:
			continue
		case r.lossesIgnored && s.RunID != "" && s.Phase != restartguard.PhaseUnreachable:
			s.Phase, s.Trusted, s.Holds = restartguard.PhaseServing, epoch, true
		}
		others = append(others, restartguard.Other{Name: nodeNames[i], State: s})
	}
	if r.unreachableIsFine {
		g.inquest.N = len(others) + 1
	}
	return g.inquest.Evidence(nodeNames[node], x.state, others, now)
}

// inquire asks a master for its copies if a guard wants to know them now.
func (w *world) inquire(g *guard, node int) bool {
	q, ok := g.inquest.Question(nodeNames[node], g.clock.time(w.now))
	if !ok || w.plan.n == 1 {
		return false
	}
	g.watches[node].question = q
	w.exchange(g, node, askScan, 0, false)
	return true
}

// copyOn is the master's side of a scan.
func (w *world) copyOn(m *master) restartguard.Copy {
	if !m.live(w.now) {
		return restartguard.Copy{}
	}
	return restartguard.Copy{Key: "k", Token: tokenName(m.token), Left: (m.expires - m.clock.at(w.now)).Truncate(ms)}
}

// testify takes the answer to a scan to the inquest.
func (w *world) testify(g *guard, node int) {
	x := &g.watches[node]
	sent, got := g.clock.time(x.asked), g.clock.time(w.now)
	t := restartguard.Testimony{Round: x.question.Round, RunID: x.state.RunID, Began: sent, Ended: got}
	c := x.inCopy
	if w.rules.early.oldScans {
		c = x.oldCopy
	}
	if c.Key != "" {
		c.Sent, c.Got = sent, got
		if w.rules.early.endsIgnored {
			c.Left = MaxTTL
		}
		if w.rules.early.sameTokens {
			c.Token = "locked"
		}
		t.Copies = []restartguard.Copy{c}
	}
	w.say("g", g.index, "asks %s for its locks: %s", nodeName(node), copyText(c))
	g.inquest.Testify(nodeNames[node], t)
}

// seenBefore takes note of what is there while nothing may be asked yet.
func (w *world) seenBefore(g *guard, node int, m *master) {
	if _, ok := g.inquest.Question(nodeNames[node], g.clock.time(w.now)); !ok {
		g.watches[node].oldCopy = w.copyOn(m)
	}
}

func copyText(c restartguard.Copy) string {
	if c.Key == "" {
		return "none"
	}
	return c.Token + " for another " + trace.Span(c.Left)
}

// looked is what a look means for the inquest.
func (w *world) looked(g *guard, node int, o *restartguard.Observation, now time.Time) {
	s := g.watches[node].state
	if s.Phase != restartguard.PhaseFenced {
		g.inquest.Drop(nodeNames[node])
	}
	if o.About != restartguard.Seen {
		return
	}
	if w.rules.early.lossesIgnored {
		s.Phase, s.Trusted, s.Holds = restartguard.PhaseServing, epoch, true
	}
	g.inquest.Confirm(nodeNames[node], s, o.Asked, now)
}

var nodeNames = [maxNodes]string{"n1", "n2", "n3", "n4", "n5", "n6", "n7"}

// lateVotes makes plans in which a vote is cast long after another of the same
// attempt was lost.
func lateVotes(p *plan) {
	p.n, p.fenced, p.lagZero = 3, true, false
	a := &p.client[0].attempt[0]
	a.on, a.pause, a.ttl, a.wait, a.hold, a.keep, a.extends = onTime, ms, MaxTTL, MaxTTL, MaxTTL, true, 0
	slow := a.set[1].back*1000 + attemptBound/10 // up to 40 % of the bound, or beyond it
	if a.set[0].back&1 != 0 {
		slow = min(slow*8, MaxTTL/2)
	}
	a.set[0], a.set[1], a.deaf, a.lost, a.mute = trip{ms, ms}, trip{slow, ms}, 1<<2, 0, 0
	p.client[0].attempts = 1
	b := &p.client[1].attempt[0]
	b.on, b.pause, b.deaf, b.lost, b.mute, b.keep, b.hold, b.ttl = onRemoval, ms, 1<<1, 0, 0, true, MaxTTL, MaxTTL
	b.set[0], b.set[2] = trip{ms, ms}, trip{ms, ms}
	p.patience = 2 * MaxTTL
	p.fault[0] = faultPlan{kind: faultCrash, after: 5 * ms, mask: 1, length: ms}
	p.faults = 1
}

// failedBeside makes plans in which an attempt has failed on the node that a holder has
// not, and its release is under way for long.
func failedBeside(p *plan) {
	p.n, p.fenced, p.lagZero, p.acl = 3, true, false, false
	a := &p.client[0].attempt[0]
	a.on, a.pause, a.ttl, a.hold, a.keep, a.extends = onTime, ms, MaxTTL, MaxTTL, true, 0
	a.set, a.deaf, a.lost, a.mute = quiet(), 1<<2, 0, 0
	p.client[0].attempts = 1
	b := &p.client[1].attempt[0]
	b.on, b.pause, b.ttl, b.deaf, b.lost, b.mute = onTime, 20*ms, MaxTTL, 0, 0, 0
	b.set, b.rel = quiet(), quiet()
	b.rel[2].out = MaxTTL / 3
	c := &p.client[1].attempt[1]
	c.on, c.pause, c.ttl, c.deaf, c.lost, c.mute, c.keep, c.hold = onTime, MaxTTL/2, MaxTTL, 0, 0, 0, true, MaxTTL
	c.set, c.extends = quiet(), 0
	p.client[1].attempts = 2
	p.fault[0] = faultPlan{kind: faultCrash, after: 10 * ms, mask: 1, length: ms}
	p.faults = 1
}

// unevenEnds makes plans in which a lock was extended on a quorum only, and one of
// those nodes has lost it.
func unevenEnds(p *plan) {
	p.n, p.fenced, p.lagZero = 3, true, false
	a := &p.client[0].attempt[0]
	short := MaxTTL/4 + a.set[1].back*1000
	a.on, a.pause, a.ttl, a.hold, a.keep, a.extends = onTime, ms, short, 100*ms, true, 1
	a.deaf, a.lost, a.mute = 0, 0, 0
	a.set = quiet()
	a.ext[0] = extendPlan{hold: MaxTTL, ttl: MaxTTL, wait: 50 * ms, trips: quiet()}
	a.ext[0].trips[2].out = MaxTTL // for all that matters, never
	p.client[0].attempts = 1
	b := &p.client[1].attempt[0]
	b.on, b.pause, b.deaf, b.lost, b.mute, b.keep, b.hold, b.ttl = onTime, short+MaxTTL/10, 0, 0, 0, true, MaxTTL, MaxTTL
	b.set = quiet()
	p.fault[0] = faultPlan{kind: faultCrash, after: 200 * ms, mask: 1, length: ms}
	p.faults = 1
}
