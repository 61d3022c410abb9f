package world

import (
	"time"

	"redlockctl/internal/sim/schedule"
	"redlockctl/internal/sim/trace"
	"redlockctl/redlock"
	"redlockctl/restartguard"
)

// inquest is a guard's, as the rules have it.
func (w *World) inquest() restartguard.Inquest {
	n := w.plan.N
	q := restartguard.Inquest{N: n, Quorum: redlock.Quorum(n), After: w.earlyAfter(), Apart: schedule.AttemptBound / 2}
	if w.rules.Early.LostNodeCounts {
		q.Quorum--
	}
	return q
}

func (w *World) earlyAfter() time.Duration {
	if w.rules.Early.AtOnce {
		return 1
	}
	return restartguard.EarlyAfter(schedule.AttemptBound)
}

// evidence is what a guard has for a master that it looks at.
func (w *World) evidence(g *guard, node int, now time.Time) *restartguard.Evidence {
	x := &g.watches[node]
	if x.state.Phase != restartguard.PhaseFenced {
		return nil
	}
	r := &w.rules.Early
	others := w.others[:0]
	for i := range w.plan.N {
		if i == node {
			continue
		}
		s := g.watches[i].state
		switch {
		case r.UnreachableIsFine && s.Phase == restartguard.PhaseUnreachable:
			continue
		case r.LossesIgnored && s.RunID != "" && s.Phase != restartguard.PhaseUnreachable:
			s.Phase, s.Trusted, s.Holds = restartguard.PhaseServing, epoch, true
		}
		others = append(others, restartguard.Other{Name: nodeNames[i], State: s})
	}
	if r.UnreachableIsFine {
		g.inquest.N = len(others) + 1
	}
	return g.inquest.Evidence(nodeNames[node], x.state, others, now)
}

// inquire asks a master for its copies if a guard wants to know them now.
func (w *World) inquire(g *guard, node int) bool {
	q, ok := g.inquest.Question(nodeNames[node], g.clock.time(w.now))
	if !ok || w.plan.N == 1 {
		return false
	}
	g.watches[node].question = q
	w.exchange(g, node, askScan, 0, false)
	return true
}

// copyOn is the master's side of a scan.
func (w *World) copyOn(m *master) restartguard.Copy {
	if !m.live(w.now) {
		return restartguard.Copy{}
	}
	return restartguard.Copy{Key: "k", Token: tokenName(m.token), Left: (m.expires - m.clock.at(w.now)).Truncate(ms)}
}

// testify takes the answer to a scan to the inquest.
func (w *World) testify(g *guard, node int) {
	x := &g.watches[node]
	sent, got := g.clock.time(x.asked), g.clock.time(w.now)
	t := restartguard.Testimony{Round: x.question.Round, RunID: x.state.RunID, Began: sent, Ended: got}
	c := x.inCopy
	if w.rules.Early.OldScans {
		c = x.oldCopy
	}
	if c.Key != "" {
		c.Sent, c.Got = sent, got
		if w.rules.Early.EndsIgnored {
			c.Left = schedule.MaxTTL
		}
		if w.rules.Early.SameTokens {
			c.Token = "locked"
		}
		t.Copies = []restartguard.Copy{c}
	}
	w.say("g", g.index, "asks %s for its locks: %s", nodeName(node), copyText(c))
	g.inquest.Testify(nodeNames[node], t)
}

// seenBefore takes note of what is there while nothing may be asked yet.
func (w *World) seenBefore(g *guard, node int, m *master) {
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
func (w *World) looked(g *guard, node int, o *restartguard.Observation, now time.Time) {
	s := g.watches[node].state
	if s.Phase != restartguard.PhaseFenced {
		g.inquest.Drop(nodeNames[node])
	}
	if o.About != restartguard.Seen {
		return
	}
	if w.rules.Early.LossesIgnored {
		s.Phase, s.Trusted, s.Holds = restartguard.PhaseServing, epoch, true
	}
	g.inquest.Confirm(nodeNames[node], s, o.Asked, now)
}

var nodeNames = [schedule.MaxNodes]string{"n1", "n2", "n3", "n4", "n5", "n6", "n7"}
