package restartguard

import (
	"testing"
	"time"

	"redlockctl/server/minreplicas"
)

func TestEvictionIsALoss(t *testing.T) {
	s := newScript(t)
	see := func(evicted int64) *script {
		return s.step(Observation{About: Seen, RunID: "a", Role: "master", Params: servingParams, Evicted: evicted})
	}
	see(5).phase(PhaseServing)
	s.after(tick)
	see(5).phase(PhaseServing).does()
	see(6).phase(PhaseExposed).does(raiseIt("a")).until(tick+testDelay).told("evicted", "noeviction")
}

func TestCounter(t *testing.T) {
	count := Action{Kind: Count, RunID: "a"}
	start := func(t *testing.T) *script {
		s := newScript(t)
		s.policy.CountEvery = time.Second
		return s
	}
	see := func(s *script, counter int64, p minreplicas.Params) *script {
		s.t.Helper()
		return s.step(Observation{About: Seen, RunID: "a", Role: "master", Params: p, Counter: counter, Counted: true})
	}
	counted := func(s *script, counter int64) *script {
		s.t.Helper()
		return s.step(Observation{About: Counting, RunID: "a", Sent: s.now, Counter: counter, Counted: true})
	}
	t.Run("is raised on an open node, once in a while", func(t *testing.T) {
		s := see(start(t), 0, servingParams).does(count)
		counted(s, 1).does()
		see(s.after(tick), 1, servingParams).does()
		see(s.after(time.Second), 1, servingParams).does(count)
	})
	t.Run("is never raised on a closed or a held node, or on one that must be closed", func(t *testing.T) {
		see(start(t), 0, fenced).does(proveIt("a"))
		see(start(t), 0, cordoned).does(proveIt("a"))
		s := see(start(t), 3, servingParams)
		see(s.after(2*time.Second), 2, servingParams).does(raiseIt("a"))
	})
	t.Run("that goes back is a loss", func(t *testing.T) {
		s := see(start(t), 7, servingParams)
		see(s.after(tick), 6, servingParams).phase(PhaseExposed).does(raiseIt("a")).until(tick+testDelay).told("restored", "from 7 to 6")
	})
	t.Run("that goes missing is a loss", func(t *testing.T) {
		s := see(start(t), 7, servingParams)
		see(s.after(tick), 0, servingParams).phase(PhaseExposed).told("restored", "gone")
	})
	t.Run("that went back between look and count is a loss", func(t *testing.T) {
		s := see(start(t), 7, servingParams).does(count)
		counted(s, 3)
		see(s.after(tick), 3, servingParams).phase(PhaseExposed).does(raiseIt("a")).told("restored", "from 7 to 3")
	})
	t.Run("that others raise is none", func(t *testing.T) {
		s := see(start(t), 7, servingParams).does(count)
		counted(s, 12)
		see(s.after(tick), 19, servingParams).phase(PhaseServing).does()
	})
	t.Run("that ran out, since the node was closed for so long, is none", func(t *testing.T) {
		s := see(start(t), 7, servingParams)
		counted(s, 8)
		see(s.after(tick), 8, cordoned).canary(CanaryFenced, cordoned)
		see(s.after(CounterTTL+time.Second), 0, cordoned).phase(PhaseCordoned)
		if s.has("restored", "") {
			t.Fatalf("%+v", s.events)
		}
	})
	t.Run("that cannot be read says nothing", func(t *testing.T) {
		s := see(start(t), 7, servingParams)
		s.after(tick).sees("a", servingParams).phase(PhaseServing)
		see(s.after(tick), 7, servingParams).phase(PhaseServing)
		see(s.after(tick), 6, servingParams).phase(PhaseExposed)
	})
}

func TestAdviceSendsNothing(t *testing.T) {
	s := newScript(t)
	s.policy.Advice = true
	s.sees("a", servingParams).phase(PhaseServing).does().
		after(tick).sees("b", servingParams).phase(PhaseExposed).does().told("exposed", "should be fenced for 10s").
		after(testDelay).sees("b", servingParams).phase(PhaseServing).does().told("rejoined", "nothing may fence it").
		after(tick).sees("c", fenced).phase(PhaseFenced).does().
		after(testDelay).sees("c", fenced).phase(PhaseFenced).does()
	if s.state.Report.Reason != "may rejoin: its delay has passed, and no guard lets it rejoin" {
		t.Fatalf("reason %q", s.state.Report.Reason)
	}
}

func TestDIsNeverShortened(t *testing.T) {
	t.Run("a longer one holds for who waits", func(t *testing.T) {
		s := newScript(t).sees("a", fenced).canary(CanaryFenced, fenced)
		s.policy.Delay = 2 * testDelay
		s.after(testDelay).sees("a", fenced).phase(PhaseFenced).does().until(2*testDelay).
			after(testDelay).sees("a", fenced).does(removeIt("a"))
	})
	t.Run("a shorter one does not", func(t *testing.T) {
		s := newScript(t).sees("a", fenced).canary(CanaryFenced, fenced)
		s.policy.Delay = testDelay / 10
		s.after(testDelay-1).sees("a", fenced).does().until(testDelay).after(1).sees("a", fenced).does(removeIt("a")).
			lifted(fenced, servingParams).after(tick).sees("b", fenced).until(testDelay + tick + testDelay/10)
	})
}
