package restartguard

import (
	"testing"
	"time"
)

func TestEvictionIsALoss(t *testing.T) {
	s := newScript(t)
	see := func(evicted int64) *script {
		return s.step(Observation{About: Seen, RunID: "a", Role: "master", Params: openParams, Evicted: evicted})
	}
	see(5).phase(PhaseActive)
	s.after(tick)
	see(5).phase(PhaseActive).does()
	see(6).phase(PhaseExposed).does(closeIt("a")).until(tick+testDelay).told("evicted", "noeviction")
}

func TestCounter(t *testing.T) {
	count := Action{Kind: Count, RunID: "a"}
	start := func(t *testing.T) *script {
		s := newScript(t)
		s.policy.CountEvery = time.Second
		return s
	}
	see := func(s *script, counter int64, p Params) *script {
		s.t.Helper()
		return s.step(Observation{About: Seen, RunID: "a", Role: "master", Params: p, Counter: counter, Counted: true})
	}
	counted := func(s *script, counter int64) *script {
		s.t.Helper()
		return s.step(Observation{About: Counting, RunID: "a", Asked: s.now, Counter: counter, Counted: true})
	}
	t.Run("is raised on an open node, once in a while", func(t *testing.T) {
		s := see(start(t), 0, openParams).does(count)
		counted(s, 1).does()
		see(s.after(tick), 1, openParams).does()
		see(s.after(time.Second), 1, openParams).does(count)
	})
	t.Run("is never raised on a closed or a held node, or on one that must be closed", func(t *testing.T) {
		see(start(t), 0, shut).does(proveIt("a"))
		see(start(t), 0, held).does(proveIt("a"))
		s := see(start(t), 3, openParams)
		see(s.after(2*time.Second), 2, openParams).does(closeIt("a"))
	})
	t.Run("that goes back is a loss", func(t *testing.T) {
		s := see(start(t), 7, openParams)
		see(s.after(tick), 6, openParams).phase(PhaseExposed).does(closeIt("a")).until(tick+testDelay).told("restored", "from 7 to 6")
	})
	t.Run("that goes missing is a loss", func(t *testing.T) {
		s := see(start(t), 7, openParams)
		see(s.after(tick), 0, openParams).phase(PhaseExposed).told("restored", "gone")
	})
	t.Run("that went back between look and count is a loss", func(t *testing.T) {
		s := see(start(t), 7, openParams).does(count)
		counted(s, 3)
		see(s.after(tick), 3, openParams).phase(PhaseExposed).does(closeIt("a")).told("restored", "from 7 to 3")
	})
	t.Run("that others raise is none", func(t *testing.T) {
		s := see(start(t), 7, openParams).does(count)
		counted(s, 12)
		see(s.after(tick), 19, openParams).phase(PhaseActive).does()
	})
	t.Run("that ran out, since the node was closed for so long, is none", func(t *testing.T) {
		s := see(start(t), 7, openParams)
		counted(s, 8)
		see(s.after(tick), 8, held).canary(CanaryFenced, held)
		see(s.after(CounterTTL+time.Second), 0, held).phase(PhaseHeld)
		if s.has("restored", "") {
			t.Fatalf("%+v", s.events)
		}
	})
	t.Run("that cannot be read says nothing", func(t *testing.T) {
		s := see(start(t), 7, openParams)
		s.after(tick).sees("a", openParams).phase(PhaseActive)
		see(s.after(tick), 7, openParams).phase(PhaseActive)
		see(s.after(tick), 6, openParams).phase(PhaseExposed)
	})
}

func TestAdviceSendsNothing(t *testing.T) {
	s := newScript(t)
	s.policy.Advice = true
	s.sees("a", openParams).phase(PhaseActive).does().
		after(tick).sees("b", openParams).phase(PhaseExposed).does().told("exposed", "should be closed for 10s").
		after(testDelay).sees("b", openParams).phase(PhaseActive).does().told("opened", "nothing may close it").
		after(tick).sees("c", shut).phase(PhaseClosed).does().
		after(testDelay).sees("c", shut).phase(PhaseClosed).does()
	if s.state.Reason != "may be opened: its time is over, and no guard opens it" {
		t.Fatalf("reason %q", s.state.Reason)
	}
}

func TestDIsNeverShortened(t *testing.T) {
	t.Run("a longer one holds for who waits", func(t *testing.T) {
		s := newScript(t).sees("a", shut).canary(CanaryFenced, shut)
		s.policy.Delay = 2 * testDelay
		s.after(testDelay).sees("a", shut).phase(PhaseClosed).does().until(2*testDelay).
			after(testDelay).sees("a", shut).does(liftIt("a"))
	})
	t.Run("a shorter one does not", func(t *testing.T) {
		s := newScript(t).sees("a", shut).canary(CanaryFenced, shut)
		s.policy.Delay = testDelay / 10
		s.after(testDelay-1).sees("a", shut).does().until(testDelay).after(1).sees("a", shut).does(liftIt("a")).
			lifted(shut, openParams).after(tick).sees("b", shut).until(testDelay + tick + testDelay/10)
	})
}
