package restartguard

import (
	"slices"
	"strings"
	"testing"
	"time"

	"redlockctl/server/minreplicas"
)

const testDelay = 10 * time.Second

var (
	epoch         = time.Now()
	servingParams = minreplicas.Params{MinReplicas: 0, MaxLag: 10}
	fenced        = minreplicas.Params{MinReplicas: minreplicas.FenceUp, MaxLag: 10}
	cordoned      = minreplicas.Params{MinReplicas: minreplicas.FenceCordon, MaxLag: 10}
)

// script drives the machine: each call is one observation.
type script struct {
	t       *testing.T
	policy  Policy
	state   State
	now     time.Time
	conn    int64 // of the connections since the first
	actions []Action
	events  []Event // all so far
}

func newScript(t *testing.T) *script {
	return &script{t: t, policy: Policy{Delay: testDelay, FirstContact: AdoptYoung}, now: epoch}
}

func (s *script) step(o Observation) *script {
	s.t.Helper()
	if o.About != Unreached {
		o.Conn = 1 + s.conn
	}
	var events []Event
	bare, todo, _ := Step(s.policy, State{Basis: s.state.Basis}, o, s.now)
	s.state, s.actions, events = Step(s.policy, s.state, o, s.now)
	if bare.Basis != s.state.Basis || !slices.Equal(todo, s.actions) {
		s.t.Fatalf("what is only reported has decided: %+v, %+v\nwithout it %+v, %+v", s.state.Basis, s.actions, bare.Basis, todo)
	}
	s.events = append(s.events, events...)
	return s
}

func (s *script) after(d time.Duration) *script { s.now = s.now.Add(d); return s }

func (s *script) sees(run string, p minreplicas.Params) *script {
	s.t.Helper()
	return s.step(Observation{About: Seen, RunID: run, Role: "master", Params: p})
}

func (s *script) closed(before, after minreplicas.Params) *script {
	s.t.Helper()
	return s.step(Observation{About: Raising, RunID: s.state.Basis.RunID, Before: before, Params: after})
}

func (s *script) canary(c Canary, p minreplicas.Params) *script {
	s.t.Helper()
	return s.step(Observation{About: Proving, RunID: s.state.Basis.RunID, Canary: c, Params: p})
}

func (s *script) lifted(before, after minreplicas.Params) *script {
	s.t.Helper()
	return s.step(Observation{About: Removing, RunID: s.state.Basis.RunID, Before: before, Params: after})
}

func (s *script) lost(err string) *script {
	s.t.Helper()
	return s.step(Observation{About: Unreached, Err: err})
}

func (s *script) phase(want Phase) *script {
	s.t.Helper()
	if s.state.Basis.Phase != want {
		s.t.Fatalf("phase %s, want %s (reason %q, err %q, failing %q)", s.state.Basis.Phase, want, s.state.Report.Reason, s.state.Report.Err, s.state.Report.Failing)
	}
	return s
}

func (s *script) does(want ...Action) *script {
	s.t.Helper()
	if !slices.Equal(s.actions, want) {
		s.t.Fatalf("actions %+v, want %+v", s.actions, want)
	}
	return s
}

func (s *script) until(after time.Duration) *script {
	s.t.Helper()
	if got := s.state.Basis.Deadline.Sub(epoch); got != after {
		s.t.Fatalf("deadline %s after the beginning, want %s", got, after)
	}
	return s
}

func (s *script) told(kind, part string) *script {
	s.t.Helper()
	if !s.has(kind, part) {
		s.t.Fatalf("no event %q with %q in %+v", kind, part, s.events)
	}
	return s
}

func (s *script) has(kind, part string) bool {
	return slices.ContainsFunc(s.events, func(e Event) bool { return e.Kind == kind && strings.Contains(e.Text, part) })
}

func (s *script) count(kind string) (n int) {
	for _, e := range s.events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

func raiseIt(run string) Action { return Action{Kind: Raise, RunID: run, Value: minreplicas.FenceUp} }

func raiseReplica(run string) Action {
	return Action{Kind: Raise, RunID: run, Value: minreplicas.FenceUp, ReadOnly: true}
}

func cordonIt(run string) Action {
	return Action{Kind: Raise, RunID: run, Value: minreplicas.FenceCordon, ReadOnly: true}
}

func proveIt(run string) Action { return Action{Kind: Prove, RunID: run} }

func removeIt(run string) Action { return Action{Kind: Remove, RunID: run} }

const tick = 200 * time.Millisecond

func TestFirstContact(t *testing.T) {
	t.Run("an open node is adopted and not verified", func(t *testing.T) {
		s := newScript(t).sees("a1b2c3", servingParams).phase(PhaseServing).does()
		if s.state.Report.Known || s.state.Report.Reason != "adopted, start not seen yet" {
			t.Fatalf("%+v", s.state)
		}
		s.after(tick).sees("a1b2c3", servingParams).phase(PhaseServing).does()
		if s.state.Report.Reason != "adopted, start not seen yet" {
			t.Fatalf("reason %q", s.state.Report.Reason)
		}
	})
	adopts := func(t *testing.T) *script {
		s := newScript(t)
		s.policy.FirstContact = Adopt
		return s
	}
	serving := func(up time.Duration) Observation {
		return Observation{About: Seen, RunID: "a", Role: "master", Params: servingParams, Up: up}
	}
	t.Run("one that is up for less than D waits, for the greatest D that is known", func(t *testing.T) {
		adopts(t).step(serving(testDelay)).phase(PhaseServing)
		adopts(t).step(serving(testDelay - time.Second)).phase(PhaseExposed).does(raiseIt("a")).until(testDelay)
		adopts(t).step(serving(-time.Hour)).phase(PhaseExposed).does(raiseIt("a"))
		o := serving(testDelay)
		o.Heard = 2 * testDelay
		adopts(t).step(o).phase(PhaseExposed).does(raiseIt("a")).until(2 * testDelay)
	})
	t.Run("one that joins a cluster in use waits, however long it is up, once", func(t *testing.T) {
		s := adopts(t)
		s.state.Basis.Joins = true
		s.step(serving(time.Hour)).phase(PhaseExposed).does(raiseIt("a")).until(testDelay)
		if s.state.Basis.Joins || !s.state.Report.UnfencedSince.IsZero() {
			t.Errorf("%+v", s.state)
		}
	})
	t.Run("one whose start is known is not told as unverified", func(t *testing.T) {
		s := newScript(t)
		s.state.Report.Known, s.state.Report.Verified = true, true // as [Config] StartedFenced has it
		s.sees("a1b2c3", servingParams).phase(PhaseServing).does().told("first contact", "started fenced")
		if s.state.Report.Reason != "started fenced" {
			t.Errorf("reason %q", s.state.Report.Reason)
		}
	})
	t.Run("a closed node waits D from now", func(t *testing.T) {
		newScript(t).after(time.Second).sees("a", fenced).phase(PhaseFenced).does(proveIt("a")).until(time.Second+testDelay).
			canary(CanaryFenced, fenced).phase(PhaseFenced).
			after(testDelay-1).sees("a", fenced).does().
			after(1).sees("a", fenced).does(removeIt("a")).
			lifted(fenced, servingParams).phase(PhaseServing).told("rejoined", "rejoined")
	})
	t.Run("of a closed node that nobody configured since its start it is known that it started so", func(t *testing.T) {
		for _, configured := range []bool{false, true} {
			s := newScript(t).step(Observation{About: Seen, RunID: "a", Role: "master", Params: fenced, Configured: configured})
			if r := &s.state.Report; r.Known == configured || r.Verified == configured {
				t.Errorf("configured %v: %+v", configured, r)
			}
		}
	})
	t.Run("a held node stays held", func(t *testing.T) {
		newScript(t).sees("a", cordoned).phase(PhaseCordoned).does(proveIt("a")).
			canary(CanaryFenced, cordoned).
			after(100*testDelay).sees("a", cordoned).phase(PhaseCordoned).does()
	})
	t.Run("an open node is closed and waits D where the policy says so", func(t *testing.T) {
		s := newScript(t)
		s.policy.FirstContact = Fence
		s.sees("a", servingParams).phase(PhaseExposed).does(raiseIt("a")).until(testDelay).
			closed(servingParams, fenced).does(proveIt("a")).
			canary(CanaryFenced, fenced).phase(PhaseFenced).
			after(testDelay).sees("a", fenced).does(removeIt("a"))
	})
	t.Run("a node that was not reachable at first is met like any other", func(t *testing.T) {
		newScript(t).lost("refused").phase(PhaseUnreachable).after(tick).
			sees("a", fenced).phase(PhaseFenced).until(tick + testDelay)
	})
}

func TestRestart(t *testing.T) {
	t.Run("a node that starts fenced is verified and waits D from first sight", func(t *testing.T) {
		s := newScript(t).sees("aaaa1", servingParams).
			after(time.Second).lost("refused").phase(PhaseUnreachable).
			after(time.Second).sees("bbbb2", fenced).phase(PhaseFenced).does(proveIt("bbbb2")).until(2*time.Second+testDelay).
			told("restart", "run aaaa → bbbb").told("restart", "started fenced").told("waiting", "10s")
		if !s.state.Report.Known || !s.state.Report.Verified || s.state.Report.Exposed != 0 {
			t.Fatalf("%+v", s.state)
		}
		s.canary(CanaryFenced, fenced).after(testDelay).sees("bbbb2", fenced).does(removeIt("bbbb2"))
	})
	t.Run("a node that starts unfenced is closed at once and waits D from first sight, not from its closing", func(t *testing.T) {
		s := newScript(t).sees("a", servingParams).
			after(time.Second).sees("b", servingParams).phase(PhaseExposed).does(raiseIt("b")).until(time.Second+testDelay).
			told("restart", "UNFENCED").
			after(time.Second).closed(servingParams, fenced).does(proveIt("b")).phase(PhaseExposed).
			canary(CanaryFenced, fenced).phase(PhaseFenced).until(time.Second+testDelay).
			told("fenced", "served for at most 2s")
		if !s.state.Report.Known || s.state.Report.Verified || s.state.Report.Exposed != 2*time.Second {
			t.Fatalf("%+v", s.state)
		}
	})
	t.Run("an open life is at most as old as the last refused connection", func(t *testing.T) {
		s := newScript(t).sees("a", servingParams).after(time.Hour).
			step(Observation{About: Unreached, Refused: true, Err: "refused"}).
			after(30*time.Millisecond).sees("b", servingParams).
			closed(servingParams, fenced).canary(CanaryFenced, fenced).phase(PhaseFenced)
		if s.state.Report.Exposed != 30*time.Millisecond {
			t.Fatalf("exposed %s", s.state.Report.Exposed)
		}
	})
	t.Run("inside the fence it starts D again", func(t *testing.T) {
		newScript(t).sees("a", servingParams).
			after(time.Second).sees("b", fenced).canary(CanaryFenced, fenced).
			after(testDelay-tick).sees("c", fenced).phase(PhaseFenced).until(testDelay-tick+time.Second+testDelay).
			canary(CanaryFenced, fenced).
			after(testDelay-1).sees("c", fenced).does().
			after(1).sees("c", fenced).does(removeIt("c"))
	})
	t.Run("as its deadline comes, it starts D again", func(t *testing.T) {
		newScript(t).sees("a", fenced).canary(CanaryFenced, fenced).
			after(testDelay).sees("b", fenced).phase(PhaseFenced).does(proveIt("b")).until(2 * testDelay)
	})
	t.Run("servers that take turns behind one address start D again and again", func(t *testing.T) {
		s := newScript(t).sees("a", servingParams)
		for i := range 200 {
			run := []string{"b", "a"}[i%2]
			s.after(testDelay-1).sees(run, fenced).phase(PhaseFenced)
			for _, a := range s.actions {
				if a.Kind == Remove {
					t.Fatalf("lifted at turn %d", i)
				}
			}
		}
	})
	t.Run("of a node whose parameters were changed before it was seen says nothing of its boot", func(t *testing.T) {
		s := newScript(t).sees("a", servingParams).after(tick).
			step(Observation{About: Seen, RunID: "b", Role: "master", Params: fenced, Configured: true}).
			phase(PhaseFenced).told("restart", "not known")
		if s.state.Report.Known || s.state.Report.Verified {
			t.Fatalf("%+v", s.state)
		}
	})
	t.Run("of a held node does not end its hold", func(t *testing.T) {
		newScript(t).sees("a", cordoned).canary(CanaryFenced, cordoned).
			after(tick).sees("b", fenced).phase(PhaseFenced).does(cordonIt("b")).
			closed(fenced, cordoned).does(proveIt("b")).
			canary(CanaryFenced, cordoned).phase(PhaseCordoned).told("cordoned", "again").
			after(2*testDelay).sees("b", cordoned).phase(PhaseCordoned).does()
	})
	t.Run("of a held node that starts unfenced and cannot be held never ends in active", func(t *testing.T) {
		s := newScript(t).sees("a", cordoned).canary(CanaryFenced, cordoned).after(tick).sees("b", servingParams)
		for range 3 {
			s.phase(PhaseExposed).does(cordonIt("b")).closed(servingParams, servingParams).after(testDelay).sees("b", servingParams)
		}
		s.closed(servingParams, cordoned).canary(CanaryFenced, cordoned).phase(PhaseCordoned)
	})
	t.Run("of a held node that cannot be held again leaves it closed", func(t *testing.T) {
		newScript(t).sees("a", cordoned).canary(CanaryFenced, cordoned).after(tick).sees("b", fenced).does(cordonIt("b")).
			step(Observation{About: Raising, RunID: "b", Before: fenced, Params: fenced, Err: "NOPERM"}).phase(PhaseFenced).
			after(2*testDelay).sees("b", fenced).phase(PhaseFenced).does(cordonIt("b"))
	})
}

func TestWipe(t *testing.T) {
	see := func(s *script, wipes int64, p minreplicas.Params) *script {
		return s.step(Observation{About: Seen, RunID: "a", Role: "master", Wipes: wipes, Params: p})
	}
	t.Run("a rising counter is a loss", func(t *testing.T) {
		s := see(newScript(t), 3, servingParams).phase(PhaseServing)
		see(s.after(tick), 4, servingParams).phase(PhaseExposed).does(raiseIt("a")).until(tick+testDelay).told("wiped", "FLUSHALL")
	})
	t.Run("while closed it starts D again", func(t *testing.T) {
		s := see(newScript(t), 0, fenced)
		see(s.after(tick), 1, fenced).phase(PhaseFenced).until(tick + testDelay)
	})
	t.Run("a counter that was reset is a new base line", func(t *testing.T) {
		s := see(newScript(t), 3, servingParams)
		see(s.after(tick), 0, servingParams).phase(PhaseServing).does()
		see(s.after(tick), 1, servingParams).phase(PhaseExposed).does(raiseIt("a"))
	})
	t.Run("a counter that went back and has counted since is a loss", func(t *testing.T) {
		s := see(newScript(t), 3, servingParams)
		see(s.after(tick), 1, servingParams).phase(PhaseExposed).does(raiseIt("a"))
	})
	t.Run("a wipe while the node was out of reach is seen at its return", func(t *testing.T) {
		s := see(newScript(t), 3, servingParams).after(tick).lost("timeout")
		see(s.after(tick), 4, servingParams).phase(PhaseExposed).does(raiseIt("a"))
	})
}

func TestRoleChangeIsALoss(t *testing.T) {
	newScript(t).sees("a", servingParams).after(tick).
		step(Observation{About: Seen, RunID: "a", Role: "slave", Params: servingParams}).
		phase(PhaseExposed).does(raiseReplica("a")).told("role", "master to slave")
}

func TestFence(t *testing.T) {
	t.Run("a lag of 0 is no fence, and is set when closing", func(t *testing.T) {
		off := minreplicas.Params{MinReplicas: minreplicas.FenceUp, MaxLag: 0}
		newScript(t).sees("a", servingParams).after(tick).sees("b", off).phase(PhaseExposed).
			does(Action{Kind: Raise, RunID: "b", Value: minreplicas.FenceUp, SetLag: true}).
			told("restart", "UNFENCED").
			closed(off, off).phase(PhaseExposed).does().told("exposed", "min-replicas-max-lag 0")
	})
	t.Run("a hold with a lag of 0 is no hold", func(t *testing.T) {
		newScript(t).sees("a", minreplicas.Params{MinReplicas: minreplicas.FenceCordon, MaxLag: 0}).phase(PhaseServing)
	})
	t.Run("another value is the operator's own, counts as open and comes back with the lift", func(t *testing.T) {
		own := minreplicas.Params{MinReplicas: 1, MaxLag: 10}
		s := newScript(t).sees("a", own).phase(PhaseServing).does()
		if !strings.Contains(s.state.Report.Reason, "min-replicas-to-write is 1") {
			t.Fatalf("reason %q", s.state.Report.Reason)
		}
		s.after(tick).sees("b", own).does(raiseIt("b")).closed(own, fenced).canary(CanaryFenced, fenced).phase(PhaseFenced).
			after(testDelay).sees("b", fenced).does(Action{Kind: Remove, RunID: "b", Value: 1}).
			lifted(fenced, own).phase(PhaseServing).told("rejoined", "rejoined")
	})
	t.Run("what was to be given back to one life is not given to the next", func(t *testing.T) {
		own := minreplicas.Params{MinReplicas: 1, MaxLag: 10}
		newScript(t).sees("a", own).after(tick).sees("b", own).closed(own, fenced).canary(CanaryFenced, fenced).
			after(tick).sees("c", fenced).canary(CanaryFenced, fenced).after(testDelay).sees("c", fenced).does(removeIt("c"))
	})
}

func TestOthers(t *testing.T) {
	t.Run("a closed node seen open before its deadline was unfenced by somebody, which is an alarm, and stays open", func(t *testing.T) {
		s := newScript(t).sees("a", servingParams).after(tick).sees("b", fenced).canary(CanaryFenced, fenced).
			after(tick).sees("b", servingParams).phase(PhaseServing).does().told("rejoined", "by somebody")
		if !s.events[len(s.events)-1].Alarm || !s.state.Report.From.Equal(epoch.Add(tick+testDelay)) {
			t.Errorf("%+v, may vote from %s", s.events, s.state.Report.From)
		}
		s.after(tick).sees("b", servingParams).phase(PhaseServing).does()
	})
	t.Run("unless another guard knows that it may vote", func(t *testing.T) {
		s := newScript(t).sees("a", servingParams).after(tick).sees("b", fenced).canary(CanaryFenced, fenced).after(tick).
			step(Observation{About: Seen, RunID: "b", Role: "master", Params: servingParams, Allowed: true}).phase(PhaseServing).told("rejoined", "by another")
		if s.events[len(s.events)-1].Alarm || s.state.Report.From.After(s.now) {
			t.Errorf("%+v, may vote from %s", s.events, s.state.Report.From)
		}
	})
	t.Run("but not if it was never seen closed since the loss", func(t *testing.T) {
		newScript(t).sees("a", servingParams).after(tick).sees("b", servingParams).does(raiseIt("b")).
			after(tick).sees("b", servingParams).phase(PhaseExposed).does(raiseIt("b"))
	})
	t.Run("nor if it was opened by its restart", func(t *testing.T) {
		newScript(t).sees("a", servingParams).after(tick).sees("b", fenced).canary(CanaryFenced, fenced).
			after(tick).sees("c", servingParams).phase(PhaseExposed).does(raiseIt("c"))
	})
	t.Run("a node that turns closed without our doing waits D from then", func(t *testing.T) {
		newScript(t).sees("a", servingParams).after(time.Second).sees("a", fenced).phase(PhaseFenced).until(time.Second + testDelay)
	})
	t.Run("a cordon that is handed back has the deadline from before", func(t *testing.T) {
		newScript(t).sees("a", servingParams).after(tick).sees("b", fenced).canary(CanaryFenced, fenced).
			after(tick).sees("b", cordoned).canary(CanaryFenced, cordoned).after(tick).
			sees("b", fenced).phase(PhaseFenced).until(tick + testDelay)
	})
	t.Run("a restart while cordoned earns its D", func(t *testing.T) {
		newScript(t).sees("a", cordoned).canary(CanaryFenced, cordoned).after(5*testDelay).
			sees("b", fenced).closed(fenced, cordoned).canary(CanaryFenced, cordoned).phase(PhaseCordoned).until(6*testDelay).
			after(tick).sees("b", fenced).phase(PhaseFenced).does(proveIt("b")).until(6 * testDelay)
	})
	t.Run("a cordon of a node that has lost nothing is handed back at once", func(t *testing.T) {
		newScript(t).sees("a", servingParams).after(testDelay/2).sees("a", servingParams).after(testDelay/2).sees("a", cordoned).canary(CanaryFenced, cordoned).after(tick).
			sees("a", fenced).does(removeIt("a"))
	})
	t.Run("a hold over a waiting node ends its waiting for a lift", func(t *testing.T) {
		newScript(t).sees("a", fenced).canary(CanaryFenced, fenced).
			after(testDelay).sees("a", cordoned).phase(PhaseCordoned).does().told("cordoned", "operator").
			after(testDelay).sees("a", cordoned).phase(PhaseCordoned).does()
	})
	t.Run("a hold that is rejoined by hand is active", func(t *testing.T) {
		newScript(t).sees("a", cordoned).canary(CanaryFenced, cordoned).after(testDelay).sees("a", servingParams).phase(PhaseServing).told("rejoined", "by hand")
	})
	t.Run("a hold that comes in between look and lift is put back", func(t *testing.T) {
		newScript(t).sees("a", fenced).canary(CanaryFenced, fenced).after(testDelay).sees("a", fenced).does(removeIt("a")).
			lifted(cordoned, servingParams).does(cordonIt("a")).
			closed(servingParams, cordoned).does(proveIt("a")).canary(CanaryFenced, cordoned).phase(PhaseCordoned)
	})
	t.Run("a hold that comes in between look and closing is put back", func(t *testing.T) {
		newScript(t).sees("a", servingParams).after(tick).sees("b", servingParams).does(raiseIt("b")).
			closed(cordoned, fenced).does(cordonIt("b")).
			closed(fenced, cordoned).does(proveIt("b")).canary(CanaryFenced, cordoned).phase(PhaseCordoned)
	})
	t.Run("a node that another opened between look and canary is not closed again", func(t *testing.T) {
		newScript(t).sees("a", fenced).does(proveIt("a")).canary(CanaryAccepted, servingParams).phase(PhaseServing).does()
	})
	t.Run("the cause tells an unfenced start from a fenced one", func(t *testing.T) {
		for params, want := range map[minreplicas.Params]string{servingParams: "started unfenced", fenced: "restarted"} {
			if s := newScript(t).sees("a", servingParams).after(tick).sees("b", params); s.state.Report.Reason != want || s.state.Report.Cause != want {
				t.Errorf("reason %q, cause %q; want %q", s.state.Report.Reason, s.state.Report.Cause, want)
			}
		}
	})
	t.Run("an outcome of an earlier life says nothing of this one", func(t *testing.T) {
		s := newScript(t).sees("a", servingParams).after(tick).sees("b", servingParams).does(raiseIt("b"))
		s.step(Observation{About: Raising, RunID: "a", Params: fenced}).does().phase(PhaseExposed)
		s.step(Observation{About: Proving, RunID: "a", Params: fenced}).does().phase(PhaseExposed)
		s.step(Observation{About: Removing, RunID: "a", Params: servingParams}).does().phase(PhaseExposed)
	})
}

func TestUnreachable(t *testing.T) {
	t.Run("a node that comes back in the same life keeps its deadline", func(t *testing.T) {
		s := newScript(t).sees("a", servingParams).after(time.Second).sees("b", fenced).canary(CanaryFenced, fenced).
			after(tick).lost("timeout").phase(PhaseUnreachable).after(tick).lost("timeout").
			after(tick).sees("b", fenced).phase(PhaseFenced).until(time.Second+testDelay).told("reachable", "")
		if s.count("unreachable") != 1 || s.count("waiting") != 1 {
			t.Fatalf("%+v", s.events)
		}
		if s.state.Report.Reason != "restarted" {
			t.Fatalf("reason %q", s.state.Report.Reason)
		}
	})
	t.Run("a failed ping starts nothing", func(t *testing.T) {
		newScript(t).sees("a", servingParams).after(tick).lost("timeout").
			after(testDelay).sees("a", servingParams).phase(PhaseServing).does()
	})
	t.Run("time out of reach does not count before the restart is seen", func(t *testing.T) {
		newScript(t).sees("a", servingParams).lost("refused").after(3*testDelay).lost("refused").
			sees("b", fenced).until(4 * testDelay)
	})
	t.Run("a closing whose outcome is not known is looked at again", func(t *testing.T) {
		newScript(t).sees("a", servingParams).after(tick).sees("b", servingParams).does(raiseIt("b")).
			lost("timeout").after(tick).sees("b", fenced).phase(PhaseFenced).does(proveIt("b")).until(tick + testDelay)
	})
	t.Run("a lift whose outcome is not known is looked at again", func(t *testing.T) {
		newScript(t).sees("a", fenced).canary(CanaryFenced, fenced).after(testDelay).sees("a", fenced).does(removeIt("a")).
			lost("timeout").after(tick).sees("a", servingParams).phase(PhaseServing).told("rejoined", "rejoined")
	})
	t.Run("a lift that did not arrive is sent again", func(t *testing.T) {
		newScript(t).sees("a", fenced).canary(CanaryFenced, fenced).after(testDelay).sees("a", fenced).does(removeIt("a")).
			lost("timeout").after(tick).sees("a", fenced).does(removeIt("a"))
	})
}

func TestExposed(t *testing.T) {
	denied := func(run string) Observation {
		return Observation{About: Raising, RunID: run, Err: "NOPERM", Params: servingParams}
	}
	t.Run("a closing that fails is tried again at each look and told once", func(t *testing.T) {
		s := newScript(t).sees("a", servingParams).after(tick).sees("b", servingParams)
		for range 4 {
			s.phase(PhaseExposed).does(raiseIt("b")).step(denied("b")).does().phase(PhaseExposed).after(tick).sees("b", servingParams)
		}
		s.told("exposed", "NOPERM")
		if s.count("exposed") != 1 || !strings.Contains(s.state.Report.Failing, "NOPERM") {
			t.Fatalf("%+v", s.events)
		}
	})
	t.Run("ends with D, when nothing is left to protect", func(t *testing.T) {
		s := newScript(t).sees("a", servingParams).after(tick).sees("b", servingParams).step(denied("b")).
			after(testDelay-1).sees("b", servingParams).phase(PhaseExposed).step(denied("b")).
			after(1).sees("b", servingParams).phase(PhaseServing).does().told("rejoined", "whole of D")
		if s.state.Report.Exposed != testDelay+tick {
			t.Fatalf("exposed %s", s.state.Report.Exposed)
		}
	})
	t.Run("a canary that gets through a fence that reads closed is exposed, and closed again at each look", func(t *testing.T) {
		s := newScript(t).sees("a", servingParams).after(tick).sees("b", fenced).does(proveIt("b"))
		for range 3 {
			s.canary(CanaryAccepted, fenced).phase(PhaseExposed).after(tick).
				sees("b", fenced).phase(PhaseExposed).does(raiseReplica("b")).
				closed(fenced, fenced).does(proveIt("b"))
		}
		if s.count("exposed") != 1 || s.state.Report.Verified {
			t.Fatalf("%+v", s.events)
		}
		s.canary(CanaryFenced, fenced).phase(PhaseFenced).until(tick+testDelay).told("fenced", "served for at most")
		s.after(testDelay).sees("b", fenced).does(removeIt("b"))
	})
	t.Run("a leaking fence is lifted when its time has come", func(t *testing.T) {
		newScript(t).sees("a", fenced).canary(CanaryAccepted, fenced).phase(PhaseExposed).
			after(testDelay).sees("a", fenced).does(removeIt("a"))
	})
	t.Run("another refusal of the canary proves nothing and is tried again", func(t *testing.T) {
		s := newScript(t).sees("a", servingParams).after(tick).sees("b", fenced)
		for range 3 {
			s.does(proveIt("b")).step(Observation{About: Proving, RunID: "b", Params: fenced, Canary: CanaryRefused, Err: "OOM"}).
				phase(PhaseFenced)
			if s.state.Basis.Proven || s.state.Report.Err != "OOM" {
				t.Fatalf("%+v", s.state)
			}
			s.after(tick).sees("b", fenced)
		}
		s.canary(CanaryFenced, fenced)
		if !s.state.Basis.Proven {
			t.Fatalf("%+v", s.state)
		}
	})
}

// The event of a node that served while it must not is always an alarm.
func TestExposureIsAnAlarm(t *testing.T) {
	alarm := func(s *script, kind, part string, want bool) {
		t.Helper()
		for _, e := range s.told(kind, part).events {
			if e.Kind == kind && strings.Contains(e.Text, part) && e.Alarm != want {
				t.Errorf("alarm is %v: %q", e.Alarm, e.Text)
			}
		}
	}
	s := newScript(t).sees("a", servingParams)
	s.after(tick).sees("b", servingParams)
	alarm(s, "restart", "started UNFENCED", true)
	s.after(tick).sees("b", fenced)
	alarm(s, "fenced", "it served for at most", true)
	alarm(s, "waiting", "may rejoin in", false)
	s.after(tick).sees("c", fenced)
	alarm(s, "restart", "started fenced", false)
}

// TestCordonBetweenLookAndFence: an operator cordons the node after the look that found a
// loss and before the guard's own fence. It is cordoned again, also after another crash
// that comes before that was done.
func TestCordonBetweenLookAndFence(t *testing.T) {
	s := newScript(t).sees("a", servingParams).sees("b", servingParams)
	s.closed(cordoned, fenced).does(cordonIt("b"))
	s.sees("c", servingParams).does(cordonIt("c"))
}
