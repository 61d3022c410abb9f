package world

import (
	"time"

	"redlockctl/proof/sim/schedule"
	"redlockctl/proof/sim/trace"
	"redlockctl/redlock"
	"redlockctl/restartguard"
)

// survey returns a guard's survey according to the rules.
func (w *World) survey() restartguard.Survey {
	n := w.plan.N
	q := restartguard.Survey{N: n, Quorum: redlock.Quorum(n), After: w.earlyAfter(), Apart: schedule.AttemptBound / 2}
	if w.rules.Breaks("early-counts-lost-node") {
		q.Quorum--
	}
	return q
}

// evidence returns what a guard knows for the master that it probes.
func (w *World) evidence(g *guard, node int, now time.Time) *restartguard.Evidence {
	x := &g.watches[node]
	if x.state.Basis.Phase != restartguard.PhaseFenced {
		return nil
	}
	r := &w.rules
	others := w.others[:0]
	for i := range w.plan.N {
		if i == node {
			continue
		}
		s := g.watches[i].state
		switch {
		case r.Breaks("early-ignores-unreachable") && s.Basis.Phase == restartguard.PhaseUnreachable:
			continue
		case r.Breaks("early-ignores-losses") && s.Basis.RunID != "" && s.Basis.Phase != restartguard.PhaseUnreachable:
			s.Basis.Phase, s.Basis.Trusted, s.Basis.Holds = restartguard.PhaseServing, epoch, true
		}
		others = append(others, restartguard.Other{Name: nodeNames[i], Basis: s.Basis})
	}
	if r.Breaks("early-ignores-unreachable") {
		g.survey.N = len(others) + 1
	}
	return g.survey.EvidenceFor(nodeNames[node], x.state.Basis, others, now)
}

// answerSurvey records the answer to a scan in the survey.
func (w *World) answerSurvey(g *guard, node int) {
	x := &g.watches[node]
	sent, got := g.clock.time(x.asked), g.clock.time(w.now)
	t := restartguard.Answer{Round: x.question.Round, RunID: x.state.Basis.RunID, Began: sent, Ended: got}
	c := x.inCopy
	if w.rules.Breaks("early-old-scan") {
		c = x.oldCopy
	}
	if c.Key != "" {
		c.Sent, c.Got = sent, got
		if w.rules.Breaks("early-ignores-ends") {
			c.Left = schedule.MaxTTL
		}
		if w.rules.Breaks("early-equal-tokens") {
			c.Token = "locked"
		}
		t.Copies = []restartguard.Copy{c}
	}
	w.say("g", g.index, "asks %s for its locks: %s", nodeNames[node], copyText(c))
	g.survey.Answer(nodeNames[node], t)
}

func copyText(c restartguard.Copy) string {
	if c.Key == "" {
		return "none"
	}
	return c.Token + " for another " + trace.Span(c.Left)
}

// looked records a probe in the survey.
func (w *World) looked(g *guard, node int, o *restartguard.Observation, now time.Time) {
	s := g.watches[node].state
	if s.Basis.Phase != restartguard.PhaseFenced {
		g.survey.Drop(nodeNames[node])
	}
	if o.About != restartguard.Seen {
		return
	}
	if w.rules.Breaks("early-ignores-losses") {
		s.Basis.Phase, s.Basis.Trusted, s.Basis.Holds = restartguard.PhaseServing, epoch, true
	}
	g.survey.Confirm(nodeNames[node], s.Basis, o.Sent, now)
}
