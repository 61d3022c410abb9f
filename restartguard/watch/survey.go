package watch

import (
	"context"
	"errors"
	"time"

	"redlockctl/base/sleep"
	"redlockctl/restartguard"
	"redlockctl/restartguard/wire"
	"redlockctl/server/resp"
)

// evidence returns what the survey has found so far for a fenced node.
func (g *Guard) evidence(of *member) *restartguard.Evidence {
	if g.survey == nil || of.state.Basis.Phase != restartguard.PhaseFenced {
		return nil
	}
	others := make([]restartguard.Other, 0, len(g.members))
	for _, w := range g.members {
		if w != of {
			w.mu.Lock()
			others = append(others, restartguard.Other{Name: w.node.Name(), Basis: w.state.Basis})
			w.mu.Unlock()
		}
	}
	g.surveyMu.Lock()
	defer g.surveyMu.Unlock()
	return g.survey.EvidenceFor(of.node.Name(), of.state.Basis, others, time.Now())
}

// updateSurvey tells the survey the state of a node after a decision.
func (g *Guard) updateSurvey(w *member, state restartguard.State, o restartguard.Observation) {
	if g.survey == nil {
		return
	}
	g.surveyMu.Lock()
	defer g.surveyMu.Unlock()
	if state.Basis.Phase != restartguard.PhaseFenced {
		g.survey.Drop(w.node.Name())
	}
	if o.About == restartguard.Seen {
		g.survey.Confirm(w.node.Name(), state.Basis, o.Sent, time.Now())
	}
}

func (g *Guard) question(node string) (restartguard.Question, bool) {
	if g.survey == nil {
		return restartguard.Question{}, false
	}
	g.surveyMu.Lock()
	defer g.surveyMu.Unlock()
	return g.survey.Question(node, time.Now())
}

func (g *Guard) answer(node string, t restartguard.Answer) {
	g.surveyMu.Lock()
	defer g.surveyMu.Unlock()
	g.survey.Answer(node, t)
}

// answerSurvey reads the copies that another node needs to know, until the next observation. It
// reports whether the connection still works. An answer counts only after the next observation,
// which therefore follows at once.
func (w *watcher) answerSurvey(ctx context.Context, l *wire.Conn, s *wire.Scan, until time.Time) bool {
	for ctx.Err() == nil {
		q, ok := w.guard.question(w.node.Name())
		if !ok {
			_ = sleep.For(ctx, time.Until(until))
			return true
		}
		if !s.Begun || s.Round != q.Round {
			s.Begin(q, w.state.Basis.RunID)
		}
		began := time.Now()
		if err := s.Step(ctx, l, w.guard.cfg.Early.Patterns); err != nil {
			if errors.Is(err, resp.ErrLong) { // and would be again
				s.Doubt, s.Ended = "has names too long to be read", time.Now()
				w.guard.answer(w.node.Name(), s.Answer)
			}
			return false
		}
		if s.Done {
			w.guard.answer(w.node.Name(), s.Answer)
			s.Begun = false
			return true
		}
		_ = sleep.For(ctx, (wire.ScanShares-1)*time.Since(began))
		if !time.Now().Before(until) {
			return true
		}
	}
	return true
}
