package restartguard

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const testDelay = 10 * time.Second

var (
	epoch      = time.Now()
	openParams = Params{0, 10}
	shut       = Params{FenceClosed, 10}
	held       = Params{FenceCordon, 10}
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
	return &script{t: t, policy: Policy{Delay: testDelay}, now: epoch}
}

func (s *script) step(o Observation) *script {
	s.t.Helper()
	if o.About != Unreached {
		o.Conn = 1 + s.conn
	}
	var events []Event
	s.state, s.actions, events = Step(s.policy, s.state, o, s.now)
	s.events = append(s.events, events...)
	return s
}

func (s *script) after(d time.Duration) *script { s.now = s.now.Add(d); return s }

func (s *script) sees(run string, p Params) *script {
	s.t.Helper()
	return s.step(Observation{About: Seen, RunID: run, Role: "master", Params: p})
}

func (s *script) closed(before, after Params) *script {
	s.t.Helper()
	return s.step(Observation{About: Closing, RunID: s.state.RunID, Before: before, Params: after})
}

func (s *script) canary(c Canary, p Params) *script {
	s.t.Helper()
	return s.step(Observation{About: Proving, RunID: s.state.RunID, Canary: c, Params: p})
}

func (s *script) lifted(before, after Params) *script {
	s.t.Helper()
	return s.step(Observation{About: Lifting, RunID: s.state.RunID, Before: before, Params: after})
}

func (s *script) lost(err string) *script {
	s.t.Helper()
	return s.step(Observation{About: Unreached, Err: err})
}

func (s *script) phase(want Phase) *script {
	s.t.Helper()
	if s.state.Phase != want {
		s.t.Fatalf("phase %s, want %s (reason %q, err %q, failing %q)", s.state.Phase, want, s.state.Reason, s.state.Err, s.state.Failing)
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
	if got := s.state.Deadline.Sub(epoch); got != after {
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

func closeIt(run string) Action { return Action{Kind: Close, RunID: run, Value: FenceClosed} }
func holdIt(run string) Action  { return Action{Kind: Close, RunID: run, Value: FenceCordon} }
func proveIt(run string) Action { return Action{Kind: Prove, RunID: run} }
func liftIt(run string) Action  { return Action{Kind: Lift, RunID: run} }

const tick = 200 * time.Millisecond

func TestFirstContact(t *testing.T) {
	t.Run("an open node is adopted and not verified", func(t *testing.T) {
		s := newScript(t).sees("a1b2c3", openParams).phase(PhaseActive).does()
		if s.state.Known || s.state.Reason != "adopted, not verified" {
			t.Fatalf("%+v", s.state)
		}
		s.after(tick).sees("a1b2c3", openParams).phase(PhaseActive).does()
		if s.state.Reason != "adopted, not verified" {
			t.Fatalf("reason %q", s.state.Reason)
		}
	})
	t.Run("a closed node waits D from now", func(t *testing.T) {
		newScript(t).after(time.Second).sees("a", shut).phase(PhaseClosed).does(proveIt("a")).until(time.Second+testDelay).
			canary(CanaryFenced, shut).phase(PhaseClosed).
			after(testDelay-1).sees("a", shut).does().
			after(1).sees("a", shut).does(liftIt("a")).
			lifted(shut, openParams).phase(PhaseActive).told("opened", "rejoined")
	})
	t.Run("a held node stays held", func(t *testing.T) {
		newScript(t).sees("a", held).phase(PhaseHeld).does(proveIt("a")).
			canary(CanaryFenced, held).
			after(100*testDelay).sees("a", held).phase(PhaseHeld).does()
	})
	t.Run("an open node is closed and waits D where the policy says so", func(t *testing.T) {
		s := newScript(t)
		s.policy.FirstContact = Fence
		s.sees("a", openParams).phase(PhaseExposed).does(closeIt("a")).until(testDelay).
			closed(openParams, shut).does(proveIt("a")).
			canary(CanaryFenced, shut).phase(PhaseClosed).
			after(testDelay).sees("a", shut).does(liftIt("a"))
	})
	t.Run("a node that was not reachable at first is met like any other", func(t *testing.T) {
		newScript(t).lost("refused").phase(PhaseUnreachable).after(tick).
			sees("a", shut).phase(PhaseClosed).until(tick + testDelay)
	})
}

func TestRestart(t *testing.T) {
	t.Run("a node that comes up closed is verified and waits D from first sight", func(t *testing.T) {
		s := newScript(t).sees("aaaa1", openParams).
			after(time.Second).lost("refused").phase(PhaseUnreachable).
			after(time.Second).sees("bbbb2", shut).phase(PhaseClosed).does(proveIt("bbbb2")).until(2*time.Second+testDelay).
			told("restart", "run aaaa → bbbb").told("restart", "came up closed").told("waiting", "10s")
		if !s.state.Known || !s.state.Verified || s.state.Exposed != 0 {
			t.Fatalf("%+v", s.state)
		}
		s.canary(CanaryFenced, shut).after(testDelay).sees("bbbb2", shut).does(liftIt("bbbb2"))
	})
	t.Run("a node that comes up open is closed at once and waits D from first sight, not from its closing", func(t *testing.T) {
		s := newScript(t).sees("a", openParams).
			after(time.Second).sees("b", openParams).phase(PhaseExposed).does(closeIt("b")).until(time.Second+testDelay).
			told("restart", "OPEN").
			after(time.Second).closed(openParams, shut).does(proveIt("b")).phase(PhaseExposed).
			canary(CanaryFenced, shut).phase(PhaseClosed).until(time.Second+testDelay).
			told("closed", "open for at most 2s")
		if !s.state.Known || s.state.Verified || s.state.Exposed != 2*time.Second {
			t.Fatalf("%+v", s.state)
		}
	})
	t.Run("an open life is at most as old as the last refused connection", func(t *testing.T) {
		s := newScript(t).sees("a", openParams).after(time.Hour).
			step(Observation{About: Unreached, Refused: true, Err: "refused"}).
			after(30*time.Millisecond).sees("b", openParams).
			closed(openParams, shut).canary(CanaryFenced, shut).phase(PhaseClosed)
		if s.state.Exposed != 30*time.Millisecond {
			t.Fatalf("exposed %s", s.state.Exposed)
		}
	})
	t.Run("inside the fence it starts D again", func(t *testing.T) {
		newScript(t).sees("a", openParams).
			after(time.Second).sees("b", shut).canary(CanaryFenced, shut).
			after(testDelay-tick).sees("c", shut).phase(PhaseClosed).until(testDelay-tick+time.Second+testDelay).
			canary(CanaryFenced, shut).
			after(testDelay-1).sees("c", shut).does().
			after(1).sees("c", shut).does(liftIt("c"))
	})
	t.Run("as its deadline comes, it starts D again", func(t *testing.T) {
		newScript(t).sees("a", shut).canary(CanaryFenced, shut).
			after(testDelay).sees("b", shut).phase(PhaseClosed).does(proveIt("b")).until(2 * testDelay)
	})
	t.Run("servers that take turns behind one address start D again and again", func(t *testing.T) {
		s := newScript(t).sees("a", openParams)
		for i := range 200 {
			run := []string{"b", "a"}[i%2]
			s.after(testDelay-1).sees(run, shut).phase(PhaseClosed)
			for _, a := range s.actions {
				if a.Kind == Lift {
					t.Fatalf("lifted at turn %d", i)
				}
			}
		}
	})
	t.Run("of a node whose parameters were changed before it was seen says nothing of its boot", func(t *testing.T) {
		s := newScript(t).sees("a", openParams).after(tick).
			step(Observation{About: Seen, RunID: "b", Role: "master", Params: shut, Configured: true}).
			phase(PhaseClosed).told("restart", "not known")
		if s.state.Known || s.state.Verified {
			t.Fatalf("%+v", s.state)
		}
	})
	t.Run("of a held node does not end its hold", func(t *testing.T) {
		newScript(t).sees("a", held).canary(CanaryFenced, held).
			after(tick).sees("b", shut).phase(PhaseClosed).does(holdIt("b")).
			closed(shut, held).does(proveIt("b")).
			canary(CanaryFenced, held).phase(PhaseHeld).told("held", "again").
			after(2*testDelay).sees("b", held).phase(PhaseHeld).does()
	})
	t.Run("of a held node that comes up open and cannot be held never ends in active", func(t *testing.T) {
		s := newScript(t).sees("a", held).canary(CanaryFenced, held).after(tick).sees("b", openParams)
		for range 3 {
			s.phase(PhaseExposed).does(holdIt("b")).closed(openParams, openParams).after(testDelay).sees("b", openParams)
		}
		s.closed(openParams, held).canary(CanaryFenced, held).phase(PhaseHeld)
	})
	t.Run("of a held node that cannot be held again leaves it closed", func(t *testing.T) {
		newScript(t).sees("a", held).canary(CanaryFenced, held).after(tick).sees("b", shut).does(holdIt("b")).
			step(Observation{About: Closing, RunID: "b", Before: shut, Params: shut, Err: "NOPERM"}).phase(PhaseClosed).
			after(2*testDelay).sees("b", shut).phase(PhaseClosed).does(holdIt("b"))
	})
}

func TestWipe(t *testing.T) {
	see := func(s *script, wipes int64, p Params) *script {
		return s.step(Observation{About: Seen, RunID: "a", Role: "master", Wipes: wipes, Params: p})
	}
	t.Run("a rising counter is a loss", func(t *testing.T) {
		s := see(newScript(t), 3, openParams).phase(PhaseActive)
		see(s.after(tick), 4, openParams).phase(PhaseExposed).does(closeIt("a")).until(tick+testDelay).told("wiped", "FLUSHALL")
	})
	t.Run("while closed it starts D again", func(t *testing.T) {
		s := see(newScript(t), 0, shut)
		see(s.after(tick), 1, shut).phase(PhaseClosed).until(tick + testDelay)
	})
	t.Run("a counter that was reset is a new base line", func(t *testing.T) {
		s := see(newScript(t), 3, openParams)
		see(s.after(tick), 0, openParams).phase(PhaseActive).does()
		see(s.after(tick), 1, openParams).phase(PhaseExposed).does(closeIt("a"))
	})
	t.Run("a counter that went back and has counted since is a loss", func(t *testing.T) {
		s := see(newScript(t), 3, openParams)
		see(s.after(tick), 1, openParams).phase(PhaseExposed).does(closeIt("a"))
	})
	t.Run("a wipe while the node was out of reach is seen at its return", func(t *testing.T) {
		s := see(newScript(t), 3, openParams).after(tick).lost("timeout")
		see(s.after(tick), 4, openParams).phase(PhaseExposed).does(closeIt("a"))
	})
}

func TestRoleChangeIsALoss(t *testing.T) {
	newScript(t).sees("a", openParams).after(tick).
		step(Observation{About: Seen, RunID: "a", Role: "slave", Params: openParams}).
		phase(PhaseExposed).does(closeIt("a")).told("role", "master to slave")
}

func TestFence(t *testing.T) {
	t.Run("a lag of 0 is no fence, and is set when closing", func(t *testing.T) {
		off := Params{FenceClosed, 0}
		newScript(t).sees("a", openParams).after(tick).sees("b", off).phase(PhaseExposed).
			does(Action{Kind: Close, RunID: "b", Value: FenceClosed, SetLag: true}).
			told("restart", "OPEN").
			closed(off, off).phase(PhaseExposed).does().told("exposed", "min-replicas-max-lag 0")
	})
	t.Run("a hold with a lag of 0 is no hold", func(t *testing.T) {
		newScript(t).sees("a", Params{FenceCordon, 0}).phase(PhaseActive)
	})
	t.Run("another value is the operator's own, counts as open and comes back with the lift", func(t *testing.T) {
		own := Params{1, 10}
		s := newScript(t).sees("a", own).phase(PhaseActive).does()
		if !strings.Contains(s.state.Reason, "min-replicas-to-write is 1") {
			t.Fatalf("reason %q", s.state.Reason)
		}
		s.after(tick).sees("b", own).does(closeIt("b")).closed(own, shut).canary(CanaryFenced, shut).phase(PhaseClosed).
			after(testDelay).sees("b", shut).does(Action{Kind: Lift, RunID: "b", Value: 1}).
			lifted(shut, own).phase(PhaseActive).told("opened", "rejoined")
	})
	t.Run("what was to be given back to one life is not given to the next", func(t *testing.T) {
		own := Params{1, 10}
		newScript(t).sees("a", own).after(tick).sees("b", own).closed(own, shut).canary(CanaryFenced, shut).
			after(tick).sees("c", shut).canary(CanaryFenced, shut).after(testDelay).sees("c", shut).does(liftIt("c"))
	})
}

func TestOthers(t *testing.T) {
	t.Run("a closed node seen open before its deadline was opened by another and stays open", func(t *testing.T) {
		newScript(t).sees("a", openParams).after(tick).sees("b", shut).canary(CanaryFenced, shut).
			after(tick).sees("b", openParams).phase(PhaseActive).does().told("opened", "by another").
			after(tick).sees("b", openParams).phase(PhaseActive).does()
	})
	t.Run("but not if it was never seen closed since the loss", func(t *testing.T) {
		newScript(t).sees("a", openParams).after(tick).sees("b", openParams).does(closeIt("b")).
			after(tick).sees("b", openParams).phase(PhaseExposed).does(closeIt("b"))
	})
	t.Run("nor if it was opened by its restart", func(t *testing.T) {
		newScript(t).sees("a", openParams).after(tick).sees("b", shut).canary(CanaryFenced, shut).
			after(tick).sees("c", openParams).phase(PhaseExposed).does(closeIt("c"))
	})
	t.Run("a node that turns closed without our doing waits D from then", func(t *testing.T) {
		newScript(t).sees("a", openParams).after(time.Second).sees("a", shut).phase(PhaseClosed).until(time.Second + testDelay)
	})
	t.Run("a hold that is turned into a closing waits D from then", func(t *testing.T) {
		newScript(t).sees("a", held).canary(CanaryFenced, held).after(5*testDelay).
			sees("a", shut).phase(PhaseClosed).does(proveIt("a")).until(6 * testDelay)
	})
	t.Run("a hold over a waiting node ends its waiting for a lift", func(t *testing.T) {
		newScript(t).sees("a", shut).canary(CanaryFenced, shut).
			after(testDelay).sees("a", held).phase(PhaseHeld).does().told("held", "operator").
			after(testDelay).sees("a", held).phase(PhaseHeld).does()
	})
	t.Run("a hold that is opened by hand is active", func(t *testing.T) {
		newScript(t).sees("a", held).after(tick).sees("a", openParams).phase(PhaseActive).told("opened", "by hand")
	})
	t.Run("a hold that comes in between look and lift is put back", func(t *testing.T) {
		newScript(t).sees("a", shut).canary(CanaryFenced, shut).after(testDelay).sees("a", shut).does(liftIt("a")).
			lifted(held, openParams).does(holdIt("a")).
			closed(openParams, held).does(proveIt("a")).canary(CanaryFenced, held).phase(PhaseHeld)
	})
	t.Run("a hold that comes in between look and closing is put back", func(t *testing.T) {
		newScript(t).sees("a", openParams).after(tick).sees("b", openParams).does(closeIt("b")).
			closed(held, shut).does(holdIt("b")).
			closed(shut, held).does(proveIt("b")).canary(CanaryFenced, held).phase(PhaseHeld)
	})
	t.Run("a node that another opened between look and canary is not closed again", func(t *testing.T) {
		newScript(t).sees("a", shut).does(proveIt("a")).canary(CanaryAccepted, openParams).phase(PhaseActive).does()
	})
	t.Run("an outcome of an earlier life says nothing of this one", func(t *testing.T) {
		s := newScript(t).sees("a", openParams).after(tick).sees("b", openParams).does(closeIt("b"))
		s.step(Observation{About: Closing, RunID: "a", Params: shut}).does().phase(PhaseExposed)
		s.step(Observation{About: Proving, RunID: "a", Params: shut}).does().phase(PhaseExposed)
		s.step(Observation{About: Lifting, RunID: "a", Params: openParams}).does().phase(PhaseExposed)
	})
}

func TestUnreachable(t *testing.T) {
	t.Run("a node that comes back in the same life keeps its deadline", func(t *testing.T) {
		s := newScript(t).sees("a", openParams).after(time.Second).sees("b", shut).canary(CanaryFenced, shut).
			after(tick).lost("timeout").phase(PhaseUnreachable).after(tick).lost("timeout").
			after(tick).sees("b", shut).phase(PhaseClosed).until(time.Second+testDelay).told("reachable", "")
		if s.count("unreachable") != 1 || s.count("waiting") != 1 {
			t.Fatalf("%+v", s.events)
		}
		if s.state.Reason != "restarted" {
			t.Fatalf("reason %q", s.state.Reason)
		}
	})
	t.Run("a failed ping starts nothing", func(t *testing.T) {
		newScript(t).sees("a", openParams).after(tick).lost("timeout").
			after(testDelay).sees("a", openParams).phase(PhaseActive).does()
	})
	t.Run("time out of reach does not count before the restart is seen", func(t *testing.T) {
		newScript(t).sees("a", openParams).lost("refused").after(3*testDelay).lost("refused").
			sees("b", shut).until(4 * testDelay)
	})
	t.Run("a closing whose outcome is not known is looked at again", func(t *testing.T) {
		newScript(t).sees("a", openParams).after(tick).sees("b", openParams).does(closeIt("b")).
			lost("timeout").after(tick).sees("b", shut).phase(PhaseClosed).does(proveIt("b")).until(tick + testDelay)
	})
	t.Run("a lift whose outcome is not known is looked at again", func(t *testing.T) {
		newScript(t).sees("a", shut).canary(CanaryFenced, shut).after(testDelay).sees("a", shut).does(liftIt("a")).
			lost("timeout").after(tick).sees("a", openParams).phase(PhaseActive).told("opened", "rejoined")
	})
	t.Run("a lift that did not arrive is sent again", func(t *testing.T) {
		newScript(t).sees("a", shut).canary(CanaryFenced, shut).after(testDelay).sees("a", shut).does(liftIt("a")).
			lost("timeout").after(tick).sees("a", shut).does(liftIt("a"))
	})
}

func TestExposed(t *testing.T) {
	denied := func(run string) Observation {
		return Observation{About: Closing, RunID: run, Err: "NOPERM", Params: openParams}
	}
	t.Run("a closing that fails is tried again at each look and told once", func(t *testing.T) {
		s := newScript(t).sees("a", openParams).after(tick).sees("b", openParams)
		for range 4 {
			s.phase(PhaseExposed).does(closeIt("b")).step(denied("b")).does().phase(PhaseExposed).after(tick).sees("b", openParams)
		}
		s.told("exposed", "NOPERM")
		if s.count("exposed") != 1 || !strings.Contains(s.state.Failing, "NOPERM") {
			t.Fatalf("%+v", s.events)
		}
	})
	t.Run("ends with D, when nothing is left to protect", func(t *testing.T) {
		s := newScript(t).sees("a", openParams).after(tick).sees("b", openParams).step(denied("b")).
			after(testDelay-1).sees("b", openParams).phase(PhaseExposed).step(denied("b")).
			after(1).sees("b", openParams).phase(PhaseActive).does().told("opened", "whole of D")
		if s.state.Exposed != testDelay+tick {
			t.Fatalf("exposed %s", s.state.Exposed)
		}
	})
	t.Run("a canary that gets through a fence that reads closed is exposed, and closed again at each look", func(t *testing.T) {
		s := newScript(t).sees("a", openParams).after(tick).sees("b", shut).does(proveIt("b"))
		for range 3 {
			s.canary(CanaryAccepted, shut).phase(PhaseExposed).after(tick).
				sees("b", shut).phase(PhaseExposed).does(closeIt("b")).
				closed(shut, shut).does(proveIt("b"))
		}
		if s.count("exposed") != 1 || s.state.Verified {
			t.Fatalf("%+v", s.events)
		}
		s.canary(CanaryFenced, shut).phase(PhaseClosed).until(tick+testDelay).told("closed", "open for at most")
		s.after(testDelay).sees("b", shut).does(liftIt("b"))
	})
	t.Run("a leaking fence is lifted when its time has come", func(t *testing.T) {
		newScript(t).sees("a", shut).canary(CanaryAccepted, shut).phase(PhaseExposed).
			after(testDelay).sees("a", shut).does(liftIt("a"))
	})
	t.Run("another refusal of the canary proves nothing and is tried again", func(t *testing.T) {
		s := newScript(t).sees("a", openParams).after(tick).sees("b", shut)
		for range 3 {
			s.does(proveIt("b")).step(Observation{About: Proving, RunID: "b", Params: shut, Canary: CanaryRefused, Err: "OOM"}).
				phase(PhaseClosed)
			if s.state.Proven || s.state.Err != "OOM" {
				t.Fatalf("%+v", s.state)
			}
			s.after(tick).sees("b", shut)
		}
		s.canary(CanaryFenced, shut)
		if !s.state.Proven {
			t.Fatalf("%+v", s.state)
		}
	})
}

func TestBlind(t *testing.T) {
	see := func(s *script, run string) *script {
		return s.step(Observation{About: Seen, RunID: run, Role: "master", Blind: true, Err: "NOPERM"})
	}
	denied := func(s *script) *script {
		return s.step(Observation{About: Closing, RunID: s.state.RunID, Blind: true, Err: "NOPERM"})
	}
	canary := func(s *script, c Canary) *script {
		return s.step(Observation{About: Proving, RunID: s.state.RunID, Blind: true, Err: "NOPERM", Canary: c})
	}
	t.Run("an open node is active and says that it is not guarded", func(t *testing.T) {
		s := canary(see(newScript(t), "a").does(proveIt("a")), CanaryAccepted).phase(PhaseActive)
		see(s.after(tick), "a").phase(PhaseActive).does()
		if s.state.Err != "NOPERM" || !strings.Contains(s.state.Reason, "not guarded") {
			t.Fatalf("%+v", s.state)
		}
	})
	t.Run("a restart that comes up open is exposed", func(t *testing.T) {
		s := canary(see(newScript(t), "a"), CanaryAccepted)
		canary(denied(see(s.after(tick), "b").does(closeIt("b"))).does(proveIt("b")), CanaryAccepted).
			phase(PhaseExposed).told("exposed", "NOPERM")
		see(s.after(testDelay), "b").phase(PhaseActive)
	})
	t.Run("a restart that refuses writes is closed and never opened, since it may be held", func(t *testing.T) {
		s := canary(see(newScript(t), "a"), CanaryAccepted)
		canary(denied(see(s.after(tick), "b")), CanaryFenced).phase(PhaseClosed)
		for range 3 {
			see(s.after(testDelay), "b").phase(PhaseClosed).does(proveIt("b"))
			canary(s, CanaryFenced).phase(PhaseClosed).does()
		}
		canary(s, CanaryAccepted).phase(PhaseActive).told("opened", "by another")
	})
	t.Run("a held node stays held", func(t *testing.T) {
		s := newScript(t).sees("a", held).canary(CanaryFenced, held)
		see(s.after(testDelay), "a").phase(PhaseHeld).does()
	})
}

// TestNeverTooEarly lets anything happen to a node, in any order, and the
// outcomes of actions be lost or lie: whatever is seen, a lift is sent only to
// the life that was seen last, not before D has passed since the last loss was
// first seen, and never over a hold.
func TestNeverTooEarly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := Policy{
			Delay:        time.Duration(rapid.IntRange(1, 100).Draw(t, "delay")),
			FirstContact: FirstContact(rapid.IntRange(0, 1).Draw(t, "first contact")),
		}
		var state State
		now := epoch
		var run string
		var wipes int64
		var role string
		var lastLoss time.Time
		params := func() Params {
			return Params{
				MinReplicas: rapid.SampledFrom([]int64{0, 0, 1, FenceClosed, FenceClosed, FenceClosed, FenceCordon}).Draw(t, "min replicas"),
				MaxLag:      rapid.SampledFrom([]int64{10, 10, 10, 0}).Draw(t, "lag"),
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "pass")))
			o := Observation{
				About:  About(rapid.SampledFrom([]int{0, 0, 0, 0, 1, 2, 3, 4}).Draw(t, "about")),
				RunID:  rapid.SampledFrom([]string{"a", "a", "a", "b", "c"}).Draw(t, "run"),
				Params: params(), Before: params(),
				Role:    rapid.SampledFrom([]string{"master", "master", "master", "slave"}).Draw(t, "role"),
				Wipes:   int64(rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "wipes")),
				Blind:   rapid.IntRange(0, 9).Draw(t, "blind") == 0,
				Canary:  Canary(rapid.IntRange(0, 2).Draw(t, "canary")),
				Refused: rapid.Bool().Draw(t, "refused"),
				Err:     rapid.SampledFrom([]string{"", "", "ERR"}).Draw(t, "err"),
			}
			if o.Blind {
				o.Params = Params{}
			}
			if o.About == Seen {
				// What is a loss is said here once more, and as bluntly as can be.
				if o.RunID != run || o.Role != role || o.Wipes > wipes {
					lastLoss = now
				}
				run, role, wipes = o.RunID, o.Role, o.Wipes
			}
			var actions []Action
			state, actions, _ = Step(policy, state, o, now)
			for _, a := range actions {
				if a.RunID != run {
					t.Fatalf("%+v is for life %q, the node was last seen in life %q", a, a.RunID, run)
				}
				if a.Kind != Lift {
					continue
				}
				switch {
				case o.About != Seen:
					t.Fatalf("a lift after an outcome: %+v", o)
				case o.Blind || o.Params != shut:
					t.Fatalf("a lift of a node that reads %+v", o.Params)
				case now.Sub(lastLoss) < policy.Delay:
					t.Fatalf("a lift %s after the loss, D is %s", now.Sub(lastLoss), policy.Delay)
				}
			}
			if len(actions) > 2 {
				t.Fatalf("%d actions at once: %+v", len(actions), actions)
			}
			_ = state.Phase.String()
		}
	})
}

// TestChainEnds answers each action as a server would, with any fence that it
// may have, and expects the actions to come to an end.
func TestChainEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var state State
		now := epoch
		for range 20 {
			p := Params{rapid.SampledFrom([]int64{0, 1, FenceClosed, FenceCordon}).Draw(t, "value"), rapid.SampledFrom([]int64{0, 10}).Draw(t, "lag")}
			deaf := rapid.Bool().Draw(t, "deaf")
			blind := rapid.IntRange(0, 5).Draw(t, "blind") == 0
			run := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "run")
			var todo []Action
			state, todo, _ = Step(Policy{Delay: 100}, state, Observation{About: Seen, RunID: run, Role: "master", Params: p, Blind: blind}, now)
			n := 0
			for ; len(todo) > 0; n++ {
				if n == maxActions {
					t.Fatalf("no end: %+v", todo)
				}
				a := todo[0]
				o := Observation{RunID: run, Before: p, Blind: blind, Canary: CanaryAccepted}
				if a.Kind != Prove && !deaf && !blind {
					if a.SetLag {
						p.MaxLag = 10
					}
					p.MinReplicas = a.Value
				}
				o.Params = p
				switch a.Kind {
				case Close:
					o.About = Closing
				case Lift:
					o.About = Lifting
				case Prove:
					o.About = Proving
					if p.closed() || p.cordoned() {
						o.Canary = Canary(rapid.IntRange(0, 2).Draw(t, "canary"))
					}
				}
				if blind {
					o.Params, o.Before = Params{}, Params{}
				}
				var more []Action
				state, more, _ = Step(Policy{Delay: 100}, state, o, now)
				todo = append(todo[1:], more...)
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 150).Draw(t, "pass")))
		}
	})
}

// That a node was open which must not be is never told as a matter of course.
func TestExposureIsAnAlarm(t *testing.T) {
	alarm := func(s *script, kind, part string, want bool) {
		t.Helper()
		for _, e := range s.told(kind, part).events {
			if e.Kind == kind && strings.Contains(e.Text, part) && e.Alarm != want {
				t.Errorf("alarm is %v: %q", e.Alarm, e.Text)
			}
		}
	}
	s := newScript(t).sees("a", openParams)
	s.after(tick).sees("b", openParams)
	alarm(s, "restart", "is OPEN", true)
	s.after(tick).sees("b", shut)
	alarm(s, "closed", "it was open for at most", true)
	alarm(s, "waiting", "may rejoin in", false)
	s.after(tick).sees("c", shut)
	alarm(s, "restart", "came up closed", false)
}
