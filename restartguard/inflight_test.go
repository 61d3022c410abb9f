package restartguard

import (
	"testing"
	"time"

	"redlockctl/server/minreplicas"
)

// redials lets the connection be given up and another one be made.
func (s *script) redials() *script { s.conn++; return s }

func (s *script) killed(o Observation, p minreplicas.Params) *script {
	s.t.Helper()
	o.About, o.RunID, o.Params = Killing, s.state.Basis.RunID, p
	return s.step(o)
}

func killIt(run string, conn int64) Action { return Action{Kind: Kill, RunID: run, Conn: conn} }

var (
	gone   = Observation{Gone: true}
	denied = Observation{Err: "NOPERM"}
)

// lifting is a node that is due, with a lift that was sent and has no answer.
func lifting(t *testing.T) *script {
	return newScript(t).sees("a", fenced).canary(CanaryFenced, fenced).after(testDelay).sees("a", fenced).does(removeIt("a"))
}

func TestInFlightCommand(t *testing.T) {
	t.Run("after a lift without answer its connection is ended before anything else", func(t *testing.T) {
		s := lifting(t).redials().sees("a", fenced).does(killIt("a", 1))
		s.killed(gone, fenced).does(removeIt("a")).lifted(fenced, servingParams).phase(PhaseServing)
		s.redials().sees("a", servingParams).does()
	})
	t.Run("a loss is noticed, and D counts, before the connection is ended", func(t *testing.T) {
		s := lifting(t).redials().step(Observation{About: Seen, RunID: "a", Role: "master", Wipes: 1, Params: servingParams}).
			does(killIt("a", 1)).told("wiped", "").until(2 * testDelay)
		s.killed(gone, servingParams).phase(PhaseExposed).does(raiseIt("a"))
	})
	t.Run("one that is lost on its way is sent again, for the same connection", func(t *testing.T) {
		lifting(t).redials().sees("a", fenced).does(killIt("a", 1)).lost("timeout").redials().sees("a", fenced).does(killIt("a", 1)).
			killed(gone, fenced).does(removeIt("a"))
	})
	t.Run("a closing without answer is ended, too", func(t *testing.T) {
		newScript(t).sees("a", servingParams).sees("b", servingParams).does(raiseIt("b")).redials().sees("b", servingParams).does(killIt("b", 1)).
			killed(denied, servingParams).does(raiseIt("b"))
	})
	t.Run("an order that was answered is not astray", func(t *testing.T) {
		lifting(t).lifted(fenced, servingParams).redials().sees("a", servingParams).does()
	})
	t.Run("an order to another life is not astray", func(t *testing.T) {
		lifting(t).redials().sees("b", fenced).does(proveIt("b"))
	})
	t.Run("where the server does not let us, no other lift is sent for D", func(t *testing.T) {
		s := lifting(t).redials().sees("a", fenced).killed(denied, fenced).told("in-flight command", "cannot be ruled out: ").phase(PhaseFenced).until(2 * testDelay)
		s.after(testDelay-1).sees("a", fenced).does(killIt("a", 1)).killed(denied, fenced).does()
		if s.count("in-flight command") != 1 {
			t.Fatalf("%+v", s.events)
		}
		s.after(1).sees("a", fenced).does(removeIt("a")).lifted(fenced, servingParams).phase(PhaseServing)
	})
	t.Run("and what it opens after a loss is closed again", func(t *testing.T) {
		s := lifting(t).redials().sees("a", servingParams).killed(denied, servingParams).phase(PhaseServing)
		s.after(tick).step(Observation{About: Seen, RunID: "a", Role: "master", Wipes: 1, Params: servingParams}).killed(denied, servingParams).does(raiseIt("a")).
			closed(servingParams, fenced).canary(CanaryFenced, fenced).until(2*testDelay + tick)
		s.after(tick).step(Observation{About: Seen, RunID: "a", Role: "master", Wipes: 1, Params: servingParams}).killed(denied, servingParams).
			phase(PhaseExposed).does(raiseIt("a")).told("in-flight command", "serves early").until(2*testDelay + tick)
	})
	t.Run("rights that come later are made use of", func(t *testing.T) {
		s := lifting(t).redials().sees("a", fenced).killed(denied, fenced).sees("a", fenced).does(killIt("a", 1)).killed(gone, fenced)
		if s.state.Basis.Pending != (InFlightCommand{}) {
			t.Fatalf("%+v", s.state.Basis.Pending)
		}
	})
	t.Run("it survives the guard", func(t *testing.T) {
		old := lifting(t)
		s := &script{t: t, policy: Policy{Delay: testDelay}, now: old.now, conn: 8, state: old.state.Remembered(old.now, bootNow, testDelay)}
		s.sees("a", fenced).does(killIt("a", 1)).killed(denied, fenced).does(proveIt("a")).until(2*testDelay).told("in-flight command", "cannot be ruled out")
		for _, until := range []time.Duration{0, testDelay} {
			if old.state.Basis.Pending.Until = (time.Time{}); until != 0 {
				old.state.Basis.Pending.Until = old.now.Add(until)
			}
			s := &script{t: t, policy: Policy{Delay: testDelay, Sweep: true}, now: old.now, conn: 8,
				state: old.state.Remembered(old.now, bootNow, testDelay)}
			s.sees("a", fenced).does(Action{Kind: Kill, RunID: "a", Conn: 1, All: true}).killed(Observation{Gone: true, Swept: true}, fenced).does(removeIt("a"))
		}
	})
	t.Run("a guard with a state directory ends what it has left before, once", func(t *testing.T) {
		sweep := Action{Kind: Kill, RunID: "a", All: true}
		s := newScript(t)
		s.policy.Sweep = true
		s.sees("a", fenced).does(sweep).lost("timeout").redials().sees("a", fenced).does(sweep).killed(Observation{Swept: true}, fenced).does(proveIt("a")).
			until(testDelay)
		s.redials().sees("a", fenced).does(proveIt("a")).sees("b", fenced).does(proveIt("b"))
		if s.has("stray", "") {
			t.Fatalf("%+v", s.events)
		}
	})
	t.Run("one that only advises ends nothing", func(t *testing.T) {
		s := newScript(t)
		s.policy.Sweep, s.policy.Advice = true, true
		s.sees("a", servingParams).does().sees("b", servingParams).does().redials().sees("b", servingParams).does()
	})
}

// TestRivals: a loss without a restart ends the connections of all other guards behind the
// closing, and what one of them has opened in between is closed again.
func TestRivals(t *testing.T) {
	endAll := Action{Kind: Kill, RunID: "a", Others: true}
	ended := Observation{Others: true, Swept: true}
	wiped := func(p minreplicas.Params) Observation {
		return Observation{About: Seen, RunID: "a", Role: "master", Wipes: 1, Params: p}
	}
	t.Run("behind the closing", func(t *testing.T) {
		newScript(t).sees("a", servingParams).step(wiped(servingParams)).does(raiseIt("a")).closed(servingParams, fenced).does(endAll).
			killed(ended, fenced).does(proveIt("a")).canary(CanaryFenced, fenced).phase(PhaseFenced).step(wiped(fenced)).does()
	})
	t.Run("what was opened meanwhile is closed again", func(t *testing.T) {
		s := newScript(t).sees("a", servingParams).step(wiped(servingParams)).closed(servingParams, fenced)
		s.killed(ended, servingParams).does(raiseIt("a")).closed(servingParams, fenced).does(proveIt("a")).phase(PhaseExposed)
	})
	t.Run("also where another has closed it first", func(t *testing.T) {
		newScript(t).sees("a", servingParams).step(wiped(fenced)).does(endAll).killed(ended, servingParams).does(raiseIt("a"))
	})
	t.Run("again where the answer is lost", func(t *testing.T) {
		newScript(t).sees("a", servingParams).step(wiped(servingParams)).closed(servingParams, fenced).does(endAll).redials().step(wiped(fenced)).does(endAll).
			killed(ended, fenced).does(proveIt("a"))
	})
	t.Run("not after a restart: its connections have ended", func(t *testing.T) {
		newScript(t).sees("a", servingParams).sees("b", servingParams).does(raiseIt("b")).closed(servingParams, fenced).does(proveIt("b"))
	})
	t.Run("where that is denied and another guard is known, it is told", func(t *testing.T) {
		s := newScript(t).sees("a", servingParams).step(wiped(servingParams)).closed(servingParams, fenced)
		if s.killed(Observation{Others: true, Err: "NOPERM"}, fenced).does(proveIt("a")).has("stray", "") {
			t.Fatalf("%+v", s.events)
		}
		o := wiped(servingParams)
		o.Heard = testDelay
		newScript(t).sees("a", servingParams).step(o).closed(servingParams, fenced).
			killed(Observation{Others: true, Err: "NOPERM"}, fenced).told("in-flight command", "another guard is about to remove its fence").does(proveIt("a"))
	})
	t.Run("it survives the guard", func(t *testing.T) {
		old := newScript(t).sees("a", servingParams).step(wiped(servingParams)).closed(servingParams, fenced)
		s := &script{t: t, policy: old.policy, now: old.now, conn: 8, state: old.state.Remembered(old.now, bootNow, testDelay)}
		s.step(wiped(fenced)).does(endAll)
	})
}
