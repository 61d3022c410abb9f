package restartguard

import (
	"testing"

	"redlockctl/server/minreplicas"
)

func (s *script) seesReplica(run string, p minreplicas.Params) *script {
	s.t.Helper()
	return s.step(Observation{About: Seen, RunID: run, Role: "slave", Params: p})
}

func (s *script) replicaCanary(c Canary, p minreplicas.Params) *script {
	s.t.Helper()
	return s.step(Observation{About: Proving, RunID: s.state.Basis.RunID, Canary: c, Params: p})
}

func TestReplica(t *testing.T) {
	t.Run("is fenced at first contact, and made read-only", func(t *testing.T) {
		newScript(t).seesReplica("a", servingParams).phase(PhaseExposed).does(raiseReplica("a"))
	})
	t.Run("does not rejoin after D, and waits for D once it is a master", func(t *testing.T) {
		s := newScript(t).seesReplica("a", fenced).replicaCanary(CanaryRefused, fenced)
		s.after(testDelay+tick).seesReplica("a", fenced).phase(PhaseFenced).does(proveIt("a"))
		s.after(tick).sees("a", fenced).killed(Observation{Others: true, Swept: true}, fenced).phase(PhaseFenced)
		s.after(testDelay-tick).sees("a", fenced).phase(PhaseFenced).canary(CanaryFenced, fenced)
		s.after(tick).sees("a", fenced).does(removeIt("a"))
	})
	t.Run("is fenced again when somebody else lets it rejoin", func(t *testing.T) {
		s := newScript(t).seesReplica("a", fenced).replicaCanary(CanaryRefused, fenced)
		s.after(tick).seesReplica("a", servingParams).phase(PhaseExposed).does(raiseReplica("a"))
	})
	t.Run("that could not be fenced for D is not given up", func(t *testing.T) {
		s := newScript(t).seesReplica("a", servingParams)
		s.after(testDelay+tick).seesReplica("a", servingParams).phase(PhaseExposed).does(raiseReplica("a"))
	})
	t.Run("that accepts writes behind its fence is made read-only, also after D", func(t *testing.T) {
		s := newScript(t).seesReplica("a", fenced)
		s.after(testDelay+tick).seesReplica("a", fenced).replicaCanary(CanaryAccepted, fenced).
			phase(PhaseExposed).told("exposed", "a replica that accepts writes")
		s.after(tick).seesReplica("a", fenced).does(raiseReplica("a"))
	})
	t.Run("that was a master at the last look is made read-only once its canary gets through", func(t *testing.T) {
		newScript(t).sees("a", servingParams).after(tick).sees("b", servingParams).does(raiseIt("b")).closed(fenced, fenced).does(proveIt("b")).
			replicaCanary(CanaryAccepted, fenced).does(raiseReplica("b")).closed(fenced, fenced).does(proveIt("b")).replicaCanary(CanaryAccepted, fenced).does()
	})
	t.Run("is nothing that a guard without a fence can change", func(t *testing.T) {
		s := newScript(t)
		s.policy.Advice = true
		s.seesReplica("a", servingParams).phase(PhaseServing).does()
	})
	t.Run("in another mode it is left as it is, and does not rejoin", func(t *testing.T) {
		s := newScript(t)
		s.step(Observation{About: Seen, RunID: "a", Role: "cluster", Params: servingParams}).phase(PhaseServing).does()
		s.after(tick).step(Observation{About: Seen, RunID: "a", Role: "cluster", Params: fenced})
		s.after(testDelay + tick).step(Observation{About: Seen, RunID: "a", Role: "cluster", Params: fenced}).phase(PhaseFenced).does(proveIt("a"))
	})
}
