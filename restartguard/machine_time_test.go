package restartguard

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"redlockctl/server/minreplicas"
)

func TestBlind(t *testing.T) {
	see := func(s *script, run string) *script {
		return s.step(Observation{About: Seen, RunID: run, Role: "master", Blind: true, Err: "NOPERM"})
	}
	denied := func(s *script) *script {
		return s.step(Observation{About: Raising, RunID: s.state.Basis.RunID, Blind: true, Err: "NOPERM"})
	}
	canary := func(s *script, c Canary) *script {
		return s.step(Observation{About: Proving, RunID: s.state.Basis.RunID, Blind: true, Err: "NOPERM", Canary: c})
	}
	t.Run("an open node is active and says that it is not guarded", func(t *testing.T) {
		s := canary(see(newScript(t), "a").does(proveIt("a")), CanaryAccepted).phase(PhaseServing)
		see(s.after(tick), "a").phase(PhaseServing).does()
		if s.state.Report.Err != "NOPERM" || !strings.Contains(s.state.Report.Reason, "not guarded") {
			t.Fatalf("%+v", s.state)
		}
	})
	t.Run("a restart that starts unfenced is exposed", func(t *testing.T) {
		s := canary(see(newScript(t), "a"), CanaryAccepted)
		canary(denied(see(s.after(tick), "b").does(raiseIt("b"))).does(proveIt("b")), CanaryAccepted).
			phase(PhaseExposed).told("exposed", "NOPERM")
		see(s.after(testDelay), "b").phase(PhaseServing)
	})
	t.Run("a restart that refuses writes is closed and never opened, since it may be held", func(t *testing.T) {
		s := canary(see(newScript(t), "a"), CanaryAccepted)
		canary(denied(see(s.after(tick), "b")), CanaryFenced).phase(PhaseFenced)
		for range 3 {
			see(s.after(testDelay), "b").phase(PhaseFenced).does(proveIt("b"))
			canary(s, CanaryFenced).phase(PhaseFenced).does()
		}
		canary(s, CanaryAccepted).phase(PhaseServing).told("rejoined", "by another")
	})
	t.Run("a held node stays held", func(t *testing.T) {
		s := newScript(t).sees("a", cordoned).canary(CanaryFenced, cordoned)
		see(s.after(testDelay), "a").phase(PhaseCordoned).does()
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
		params := func() minreplicas.Params {
			return minreplicas.Params{
				MinReplicas: rapid.SampledFrom([]int64{0, 0, 1, minreplicas.FenceUp, minreplicas.FenceUp, minreplicas.FenceUp, minreplicas.FenceCordon}).Draw(t, "min replicas"),
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
				o.Params = minreplicas.Params{}
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
				if a.Kind != Remove {
					continue
				}
				switch {
				case o.About != Seen:
					t.Fatalf("a lift after an outcome: %+v", o)
				case o.Blind || o.Params != fenced:
					t.Fatalf("a lift of a node that reads %+v", o.Params)
				case now.Sub(lastLoss) < policy.Delay:
					t.Fatalf("a lift %s after the loss, D is %s", now.Sub(lastLoss), policy.Delay)
				}
			}
			if len(actions) > 2 {
				t.Fatalf("%d actions at once: %+v", len(actions), actions)
			}
			_ = state.Basis.Phase.String()
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
			p := minreplicas.Params{MinReplicas: rapid.SampledFrom([]int64{0, 1, minreplicas.FenceUp, minreplicas.FenceCordon}).Draw(t, "value"), MaxLag: rapid.SampledFrom([]int64{0, 10}).Draw(t, "lag")}
			deaf := rapid.Bool().Draw(t, "deaf")
			blind := rapid.IntRange(0, 5).Draw(t, "blind") == 0
			run := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "run")
			var todo []Action
			state, todo, _ = Step(Policy{Delay: 100}, state, Observation{About: Seen, RunID: run, Role: "master", Params: p, Blind: blind}, now)
			n := 0
			for ; len(todo) > 0; n++ {
				if n == MaxActions {
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
				case Raise:
					o.About = Raising
				case Remove:
					o.About = Removing
				case Prove:
					o.About = Proving
					if p.Fenced() || p.Cordoned() {
						o.Canary = Canary(rapid.IntRange(0, 2).Draw(t, "canary"))
					}
				}
				if blind {
					o.Params, o.Before = minreplicas.Params{}, minreplicas.Params{}
				}
				var more []Action
				state, more, _ = Step(Policy{Delay: 100}, state, o, now)
				todo = append(todo[1:], more...)
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 150).Draw(t, "pass")))
		}
	})
}
