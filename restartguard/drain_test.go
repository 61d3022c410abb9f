package restartguard

import (
	"testing"
	"time"

	"redlockctl/server/minreplicas"
)

// drained is a node that serves, is cordoned, emptied, and announced so.
func drained(t *testing.T) *script {
	s := newScript(t).sees("a", servingParams).watchedForLong().after(tick).sees("a", cordoned).canary(CanaryFenced, cordoned).after(tick)
	s.step(Observation{About: Scanned, RunID: "a", Sent: s.now.Add(-tick / 2)})
	return s.after(tick).said("a", cordoned, Observation{SaidDrained: true})
}

// watchedForLong makes the guard have watched the node for D.
func (s *script) watchedForLong() *script {
	s.state.Basis.Met = s.now.Add(-testDelay)
	return s
}

func (s *script) said(run string, p minreplicas.Params, o Observation) *script {
	s.t.Helper()
	o.About, o.RunID, o.Role, o.Params = Seen, run, "master", p
	return s.step(o)
}

func (s *script) cordonedAgain(run string) *script {
	return s.sees(run, fenced).closed(fenced, cordoned).canary(CanaryFenced, cordoned).phase(PhaseCordoned)
}

func TestADrainedNodeThatRestartsHasLostNothing(t *testing.T) {
	s := drained(t).after(testDelay/2).said("a", cordoned, Observation{SaidDrained: true}).after(testDelay / 2)
	s.cordonedAgain("b").told("restart", "lost nothing").after(tick).sees("b", fenced).does(removeIt("b"))

	// What a node lost before it was met, nobody knows.
	s = drained(t).after(tick).cordonedAgain("b").told("restart", "lost nothing").until(testDelay)
	s.after(tick).sees("b", fenced).does(proveIt("b"))
}

// A guard that has not heard of any other lets a node rejoin after its own D: for longer than the least
// one no statement counts.
func TestDrainedForTheLeastD(t *testing.T) {
	short := Observation{SaidDrained: true, Least: testDelay / 4}
	drained(t).after(testDelay/2).said("a", cordoned, short).after(testDelay/8).said("b", fenced, short).told("restart", "lost nothing")
	s := drained(t).after(testDelay/2).said("a", cordoned, short).after(testDelay/2).said("b", fenced, short)
	if got := s.state.Basis.Deadline; !got.Equal(s.now.Add(testDelay)) {
		t.Errorf("it may rejoin %s after its restart", got.Sub(s.now))
	}
}

// What was decided before a guard with a shorter D was heard of is decided again, also by a guard that
// was restarted meanwhile.
func TestAShorterDIsHeardOfAfterTheRestart(t *testing.T) {
	short := Observation{Least: testDelay / 4}
	for _, forgets := range []bool{false, true} {
		s := drained(t).after(testDelay/2).said("b", fenced, Observation{}).told("restart", "lost nothing")
		if forgets {
			s.state = s.state.Remembered(s.now, time.Hour, testDelay)
		}
		lost := s.now
		s.after(tick).said("b", fenced, short)
		if got := s.state.Basis.Deadline; !got.Equal(lost.Add(testDelay)) {
			t.Errorf("restarted %t: it may rejoin %s after its loss", forgets, got.Sub(lost))
		}
		s.after(tick).said("b", fenced, short)
		if got := s.state.Basis.Deadline; !got.Equal(lost.Add(testDelay)) {
			t.Errorf("restarted %t: and then %s after it", forgets, got.Sub(lost))
		}
	}
	s := drained(t).after(testDelay/8).said("b", fenced, Observation{})
	before := s.state.Basis.Deadline
	if s.after(tick).said("b", fenced, short); !s.state.Basis.Deadline.Equal(before) {
		t.Errorf("a statement that was young enough: it may rejoin %s later", s.state.Basis.Deadline.Sub(before))
	}
}

// A guard that watched the node meanwhile, and counts D, may have seen it serve.
func TestADrainedNodeForWhichAnotherGuardCountsD(t *testing.T) {
	s := drained(t).after(testDelay/2).said("a", cordoned, Observation{SaidDrained: true}).after(testDelay / 2)
	s.cordonedAgain("b").told("restart", "lost nothing").after(tick).said("b", fenced, Observation{Later: true}).phase(PhaseFenced)
	s.after(tick).said("b", fenced, Observation{Later: true}).does().after(tick).sees("b", fenced).does(removeIt("b"))
}

func TestWhatIsNotDrained(t *testing.T) {
	waits := func(what string, s *script) {
		t.Run(what, func(t *testing.T) {
			before := s.now
			s.after(tick).cordonedAgain("b").until(before.Add(tick+testDelay).Sub(epoch)).after(tick).sees("b", fenced)
			for _, a := range s.actions {
				if a.Kind == Remove {
					t.Error("it rejoins")
				}
			}
		})
	}
	begin := func() *script {
		return newScript(t).sees("a", servingParams).watchedForLong().after(tick).sees("a", cordoned).canary(CanaryFenced, cordoned).after(tick)
	}
	s := begin()
	waits("a node whose copies nobody has counted", s.said("a", cordoned, Observation{SaidDrained: true}))
	s = begin()
	s.step(Observation{About: Scanned, RunID: "a", Sent: s.now, Copies: 1})
	waits("one that has a copy", s.said("a", cordoned, Observation{SaidDrained: true}))
	s = begin()
	s.step(Observation{About: Scanned, RunID: "a", Sent: s.now.Add(-time.Hour)})
	waits("one that was counted before it was cordoned", s.said("a", cordoned, Observation{SaidDrained: true}))
	s = begin()
	s.step(Observation{About: Scanned, RunID: "a", Sent: s.now})
	waits("one that is not announced so", s.sees("a", cordoned))
	waits("one that was not seen for D", drained(t).after(testDelay))
	s = begin()
	clock := func(ahead time.Duration) Observation {
		at := s.now.Sub(epoch)
		return Observation{SaidDrained: true, Clock: Reading{Sent: time.Hour + at, Got: time.Hour + at, Wall: 1000*time.Hour + at + ahead}}
	}
	s.said("a", cordoned, clock(0)).after(tick).step(Observation{About: Scanned, RunID: "a", Sent: s.now.Add(-tick / 2)})
	waits("one whose copies may have ended by a step of its clock", s.said("a", cordoned, clock(time.Minute)))
	s = drained(t).sees("a", fenced).sees("a", cordoned)
	waits("one that was uncordoned meanwhile", s.said("a", cordoned, Observation{SaidDrained: true}))
	s = begin()
	s.state.Basis.Met = s.now.Add(tick - testDelay)
	s.step(Observation{About: Scanned, RunID: "a", Sent: s.now})
	waits("one that the guard has not watched for D", s.said("a", cordoned, Observation{SaidDrained: true}))
}

func TestADrainedNodeThatStartsUnfencedWaitsD(t *testing.T) {
	drained(t).after(tick).sees("b", servingParams).closed(servingParams, cordoned).canary(CanaryFenced, cordoned).until(4*tick + testDelay)
	drained(t).after(tick).step(Observation{About: Seen, RunID: "b", Role: "master", Params: fenced, Configured: true}).
		closed(fenced, cordoned).canary(CanaryFenced, cordoned).until(4*tick + testDelay)
}

// A node that is uncordoned serves no sooner than D later, while another guard may take it for
// drained.
func TestAnotherGuardMayTakeItForDrained(t *testing.T) {
	s := newScript(t).sees("a", servingParams).after(tick).sees("a", cordoned).canary(CanaryFenced, cordoned)
	other := Observation{Believed: true}
	s.after(tick).said("a", fenced, other).does(proveIt("a")).canary(CanaryFenced, fenced)
	s.after(testDelay-1).said("a", fenced, other).does()
	s.after(1).said("a", fenced, other).does(removeIt("a"))

	begin := func() *script {
		return newScript(t).sees("a", servingParams).after(testDelay/2).sees("a", servingParams).after(testDelay/2).sees("a", cordoned).canary(CanaryFenced, cordoned)
	}
	s = begin().after(tick).said("a", fenced, other).does(proveIt("a")).canary(CanaryFenced, fenced)
	s.after(tick).said("a", fenced, Observation{}).does(removeIt("a"))

	// It was not seen for long: another guard may have come and gone.
	s = begin().after(testDelay-1).said("a", fenced, Observation{}).does(proveIt("a")).canary(CanaryFenced, fenced)
	s.after(testDelay/2).said("a", fenced, Observation{}).does().after(testDelay/2-1).said("a", fenced, Observation{}).does()
	s.after(1).said("a", fenced, Observation{}).does(removeIt("a"))
}
