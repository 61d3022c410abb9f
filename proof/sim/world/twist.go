package world

import (
	"time"

	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/server/minreplicas"
)

// twistObservation returns the observation of a broken guard.
func (w *World) twistObservation(g *guard, node int, o restartguard.Observation, s *restartguard.State) restartguard.Observation {
	r, x := &w.rules, &g.watches[node]
	twist := func(p *minreplicas.Params) {
		switch {
		case r.Breaks("cordon-is-fence") && p.MinReplicas == minreplicas.FenceCordon:
			p.MinReplicas = minreplicas.FenceUp
		case r.Breaks("lag-ignored") && p.MaxLag == 0:
			p.MaxLag = 10
		case r.Breaks("fence-of-one") && p.MinReplicas == 1:
			p.MinReplicas = minreplicas.FenceUp
		}
	}
	twist(&o.Params)
	twist(&o.Before)
	if o.About == restartguard.Proving && (r.Breaks("lag-ignored") || r.Breaks("fence-of-one")) && o.Params.MinReplicas == minreplicas.FenceUp {
		o.Canary = restartguard.CanaryFenced
	}
	if r.Breaks("wipes-ignored") {
		o.Wipes = 0
	}
	switch {
	case r.Breaks("peers-ignored"):
		o.Heard = 0
	case (r.Breaks("peers-forgotten") || r.Breaks("fence-shortened")) && w.differ() && x.inGuards&^(1<<g.index) == 0:
		o.Heard = 0
	}
	switch {
	case r.Breaks("drain-uncounted") && o.About == restartguard.Scanned:
		o.Copies = 0
	case r.Breaks("drain-own-lease"):
		o.Least, o.Later = 0, false
	case r.Breaks("drain-unheard"):
		o.Believed, o.Later = false, false
	case r.Breaks("unsettled-rejoin"):
		o.Later = false
	}
	if r.Breaks("evictions-ignored") {
		o.Evicted = 0
	}
	if r.Breaks("steps-ignored") {
		o.Clock = restartguard.Reading{}
	}
	if o.About == restartguard.Seen {
		if r.Breaks("small-steps-ignored") && s.Basis.Ahead == 0 && s.Basis.RunID == o.RunID {
			s.Basis.Clock, s.Basis.ClockAt, s.Basis.ClockDrift = x.reading, x.reading.Sent+(x.reading.Got-x.reading.Sent)/2, 0
		}
		x.reading = o.Clock
		if r.Breaks("tight-rate") {
			o.Clock.Wall += time.Duration(0.0031 * float64(o.Clock.Sent))
		}
		if r.Breaks("young-adopted") {
			o.Up = time.Hour
		}
		if r.Breaks("role-ignored") {
			o.Role, o.Former = "master", ""
		}
		if r.Breaks("replica-rejoins") && o.Role == "slave" && s.Basis.Role == "slave" && !s.Basis.Deadline.IsZero() && !g.clock.time(w.now).Before(s.Basis.Deadline) {
			o.Role, s.Basis.Role = "master", "master"
		}
		if r.Breaks("brief-role-ignored") {
			o.Former = ""
		}
		if r.Breaks("reset-ignored") {
			o.Commands = s.Basis.Commands
		}
	}
	if r.Breaks("counter-ignored") {
		o.Counter, o.Counted = 0, false
	}
	switch o.About {
	case restartguard.Unreached:
		if x.failed == 0 {
			x.failed = w.now
		}
		x.refused = x.refused || o.Refused
	case restartguard.Seen:
		if r.Breaks("restart-by-refusal") && s.Basis.RunID != "" && s.Basis.RunID != o.RunID && !x.refused {
			s.Basis.RunID, s.Basis.Wipes, s.Basis.Evicted = o.RunID, o.Wipes, o.Evicted
		}
	}
	return o
}

// twistState returns the state that a broken guard keeps after a step.
func (w *World) twistState(g *guard, node int, o restartguard.Observation, old *restartguard.State, now time.Time) {
	r, x := &w.rules, &g.watches[node]
	s := &x.state
	if o.About == restartguard.Unreached {
		if r.Breaks("forgets-unreachable") {
			*s = restartguard.State{}
		}
		return
	}
	if r.Breaks("kills-forever") && o.About == restartguard.Killing {
		s.Basis.Swept, x.n = false, 0
		return
	}
	if r.Breaks("fence-late") && x.n > x.do && x.todo[x.do].Kind == restartguard.Raise && !s.Basis.Deadline.Equal(x.lateFor) {
		x.lateFor, x.n = s.Basis.Deadline, 0
	}
	if o.About != restartguard.Seen {
		return
	}
	if r.Breaks("unsettled-rejoin") && s.Basis.Ahead > 0 && x.n == 0 && s.Basis.Phase == restartguard.PhaseFenced && !now.Before(s.Basis.Deadline) {
		x.todo[0], x.n = restartguard.Action{Kind: restartguard.Remove, RunID: s.Basis.RunID}, 1
	}
	if r.Breaks("drain-stepped") && s.Basis.Duty.Kind == restartguard.DutyCordon && s.Basis.Empty && o.SaidDrained {
		s.Basis.Drained = o.Sent
	}
	if r.Breaks("uncordon-cancels") && old.Basis.Duty.Kind == restartguard.DutyCordon && s.Basis.Duty.Kind == restartguard.DutyWait {
		s.Basis.Deadline = now
	}
	if d := w.delayOf(g); r.Breaks("fence-shortened") && x.inGuards&^(1<<g.index) == 0 && !s.Basis.Deadline.IsZero() && s.Basis.Delay > d && !s.Basis.Deadline.Before(now) {
		s.Basis.Deadline, s.Basis.Delay = s.Basis.Deadline.Add(d-s.Basis.Delay), d
	}
	restarted := old.Basis.RunID != "" && old.Basis.RunID != s.Basis.RunID
	if !s.Basis.Deadline.IsZero() && !s.Basis.Deadline.Equal(old.Basis.Deadline) {
		switch {
		case r.Breaks("from-last-seen") && !old.Basis.LastSeen.IsZero():
			s.Basis.Deadline = old.Basis.LastSeen.Add(w.delay)
		case r.Breaks("from-failed-ping") && x.failed > 0:
			s.Basis.Deadline = g.clock.time(x.failed).Add(w.delay)
		case r.Breaks("from-uptime") && restarted:
			m := &w.masters[node]
			up := m.clock.at(w.now).Truncate(time.Second) - m.booted.Truncate(time.Second)
			s.Basis.Deadline = now.Add(w.delay - up)
		case r.Breaks("amnesia") && old.Basis.RunID == "":
			s.Basis.Deadline = now
		case r.Breaks("half-for-second") && g.index == 1:
			s.Basis.Deadline = now.Add(w.delay / 2)
		case r.Breaks("fence-not-restarted") && restarted && !old.Basis.Deadline.IsZero():
			s.Basis.Deadline = old.Basis.Deadline
		case r.Breaks("cluster-deadline"):
			for k := range w.plan.N {
				if d := g.watches[k].state.Basis.Deadline; !d.IsZero() && d.Before(s.Basis.Deadline) {
					s.Basis.Deadline = d
				}
			}
		case r.Breaks("avoids-outage"):
			voting := 0
			for k := range w.plan.N {
				if g.watches[k].state.Basis.Phase == restartguard.PhaseServing {
					voting++
				}
			}
			if voting < redlock.Quorum(w.plan.N) {
				s.Basis.Deadline = now
			}
		}
	}
	x.failed, x.refused = 0, false
	if r.Breaks("fence-once") && x.n > 0 && x.todo[0].Kind == restartguard.Raise {
		if x.fencedRun == s.Basis.RunID {
			x.n = 0
			s.Basis.Duty = restartguard.Duty{}
		}
		x.fencedRun = s.Basis.RunID
	}
	if x.removeAgain {
		x.removeAgain = false
		x.todo[0] = restartguard.Action{Kind: restartguard.Remove, RunID: s.Basis.RunID}
		x.n = 1
	}
}
