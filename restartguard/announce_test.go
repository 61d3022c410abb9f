package restartguard

import (
	"fmt"
	"testing"
	"time"

	"redlockctl/server/announce"
	"redlockctl/server/minreplicas"
)

func (s *script) hears(run string, p minreplicas.Params, d time.Duration) *script {
	s.t.Helper()
	return s.step(Observation{About: Seen, RunID: run, Role: "master", Params: p, Heard: d})
}

func TestTheGreatestDelayCounts(t *testing.T) {
	s := newScript(t)
	s.hears("a", servingParams, 0).phase(PhaseServing)
	s.after(time.Second).hears("b", fenced, 30*time.Second).phase(PhaseFenced).until(31 * time.Second)
	s.canary(CanaryFenced, fenced)
	s.after(testDelay).hears("b", fenced, 30*time.Second).phase(PhaseFenced).does()
	s.after(20*time.Second).hears("b", fenced, 30*time.Second).does(Action{Kind: Remove, RunID: "b"})
}

func TestALongerDelayThatIsHeardLaterLengthens(t *testing.T) {
	s := newScript(t)
	s.sees("a", servingParams).after(time.Second).sees("b", fenced).until(1*time.Second+testDelay).canary(CanaryFenced, fenced)
	s.after(time.Second).hears("b", fenced, 30*time.Second).until(31 * time.Second)
}

func TestARunningFenceIsNeverShortened(t *testing.T) {
	s := newScript(t)
	s.hears("a", servingParams, 30*time.Second).after(time.Second).hears("b", fenced, 30*time.Second).canary(CanaryFenced, fenced)
	// The other guard has gone, or has a shorter D by now.
	s.after(time.Second).hears("b", fenced, 0).until(31 * time.Second)
	s.after(time.Second).hears("b", fenced, 12*time.Second).until(31 * time.Second)
	// A restart inside the fence starts it again, for as long.
	s.after(time.Second).hears("c", fenced, 0).until(4*time.Second+30*time.Second).canary(CanaryFenced, fenced)
	s.after(30*time.Second).hears("c", fenced, 0).does(Action{Kind: Remove, RunID: "c"}).lifted(fenced, servingParams).phase(PhaseServing)
	// The next fence is its own.
	s.after(time.Second).hears("d", fenced, 0)
	if d := s.state.Basis.Deadline.Sub(s.now); d != testDelay {
		t.Errorf("the next fence lasts %s", d)
	}
}

// A D that has counted in a fence counts also when an operator has cordoned the node in
// between; one of an earlier fence does not.
func TestALongerDelayOutlivesACordon(t *testing.T) {
	s := newScript(t)
	s.sees("a", servingParams).hears("b", fenced, 30*time.Second).canary(CanaryFenced, fenced)
	s.after(time.Second).hears("b", cordoned, 0).canary(CanaryFenced, cordoned).phase(PhaseCordoned)
	s.after(time.Second).hears("b", fenced, 0).until(30 * time.Second)
	s.canary(CanaryFenced, fenced).after(14*time.Second).sees("b", fenced).after(14*time.Second).sees("b", fenced).does(removeIt("b")).lifted(fenced, servingParams)
	// Heard while it is cordoned.
	s.sees("b", cordoned).sees("c", cordoned).hears("c", cordoned, 40*time.Second).sees("c", fenced).until(70 * time.Second)
}

// A serving node's copies count as evidence for others when the greatest D has passed since its
// last loss, also if that D was announced later.
func TestALongerDelayIsWaitedForBeforeANodesWordCounts(t *testing.T) {
	s := newScript(t)
	s.sees("a", servingParams).after(testDelay).hears("a", servingParams, 30*time.Second)
	if got := s.state.Basis.Trusted.Sub(epoch); got != 30*time.Second {
		t.Errorf("trusted after %s", got)
	}
	s.sees("a", servingParams)
	if got := s.state.Basis.Trusted.Sub(epoch); got != 30*time.Second {
		t.Errorf("trusted after %s", got)
	}
}

// A guard that was restarted inside the fence waits for as long, and so does one
// whose node restarts once more.
func TestTheGreatestDelayIsRemembered(t *testing.T) {
	s := newScript(t)
	s.sees("a", servingParams).after(time.Second).hears("b", fenced, 30*time.Second).until(31 * time.Second)
	s.state = s.state.Remembered(s.now, time.Hour, testDelay)
	s.after(time.Second).hears("b", fenced, 0).until(31 * time.Second)
	s.after(time.Second).hears("c", fenced, 0).until(33 * time.Second)
}

func TestNoTalkOfATimeThatIsOver(t *testing.T) {
	s := newScript(t)
	s.sees("a", servingParams).after(time.Second).sees("b", fenced)
	s.state = s.state.Remembered(s.now, time.Hour, testDelay)
	s.events = nil
	s.after(testDelay+4*time.Second).sees("b", fenced)
	if s.has("waiting", "may rejoin") {
		t.Errorf("%+v", s.events)
	}
}

func TestExposureIsRoundedUp(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1: "1ms", 200 * time.Microsecond: "1ms", time.Millisecond: "1ms", 1500 * time.Microsecond: "2ms",
		2*time.Second + 1: "2.01s", 0: "0s",
	} {
		if got := AtMost(d).String(); got != want {
			t.Errorf("%d ns is shown as %s, want %s", d, got, want)
		}
	}
}

// What was open after a step of its clock says nothing of its last start.
func TestExposureOfAStartIsKeptApart(t *testing.T) {
	s := newScript(t)
	s.sees("a", servingParams).after(100*time.Millisecond).sees("b", servingParams).phase(PhaseExposed)
	s.after(20*time.Millisecond).closed(servingParams, fenced).canary(CanaryFenced, fenced).phase(PhaseFenced)
	if s.state.Report.BootExposed != 120*time.Millisecond || !s.state.Report.Known || s.state.Report.Verified {
		t.Fatalf("%+v", s.state)
	}
	s.after(testDelay).sees("b", fenced).lifted(fenced, servingParams).phase(PhaseServing)
	s.after(time.Second).step(Observation{About: Seen, RunID: "b", Role: "master", Params: servingParams, Wipes: 1}).phase(PhaseExposed)
	s.after(time.Second).closed(servingParams, fenced).canary(CanaryFenced, fenced).phase(PhaseFenced)
	if s.state.Report.AtStart {
		t.Error("a wipe is no start")
	}
	if s.state.Report.BootExposed != 120*time.Millisecond || s.state.Report.Exposed <= s.state.Report.BootExposed {
		t.Errorf("the start was open for %s, the last loss for %s", s.state.Report.BootExposed, s.state.Report.Exposed)
	}
}

// A guard lets no node rejoin before another one that is there does: it may have seen a loss that this one missed.
func TestAGuardThatCountsALaterDeadlineIsWaitedFor(t *testing.T) {
	s := newScript(t).sees("a", servingParams).after(tick).sees("b", fenced).canary(CanaryFenced, fenced).phase(PhaseFenced)
	s.after(2*testDelay).said("b", fenced, Observation{Later: true}).does().phase(PhaseFenced)
	s.after(tick).sees("b", fenced).does(removeIt("b"))
}

// A D holds until its guard is seen with a smaller one, on all nodes, or a person has it forgotten.
func TestADelayThatWasAnnouncedHolds(t *testing.T) {
	var p Peers
	hear := func(at, d time.Duration) {
		p.Hear(epoch.Add(at), "own", []announce.Guard{{ID: "own", Delay: time.Hour}, {ID: "b", Delay: d}})
	}
	hear(0, time.Minute)
	hear(time.Second, time.Second)
	if got := p.Greatest(); got != time.Minute {
		t.Errorf("a node that has not heard of the change yet counts: %s", got)
	}
	hear(time.Hour, time.Minute)
	if got := p.Greatest(); got != time.Minute {
		t.Errorf("%s", got)
	}
	hear(time.Hour+peerSettles+time.Second, time.Second)
	if got := p.Greatest(); got != time.Second {
		t.Errorf("the guard was seen with a smaller one: %s", got)
	}
	if !p.Forget("b") || p.Forget("b") || p.Greatest() != 0 {
		t.Errorf("%s after it was forgotten", p.Greatest())
	}
}

func TestMayVoteFrom(t *testing.T) {
	lost := epoch.Add(time.Hour)
	for name, c := range map[string]struct {
		loss Loss
		want time.Time
	}{
		"no loss":                 {Loss{}, time.Time{}},
		"the greatest D":          {Loss{Seen: lost}, lost.Add(3 * time.Second)},
		"nothing lost":            {Loss{Seen: lost, Nothing: true}, lost},
		"nothing but what was":    {Loss{Seen: lost, Nothing: true, Before: lost.Add(time.Second)}, lost.Add(time.Second)},
		"no sooner than before":   {Loss{Seen: lost, Before: lost.Add(time.Minute)}, lost.Add(time.Minute)},
		"what was before is over": {Loss{Seen: lost, Before: lost.Add(-time.Minute)}, lost.Add(3 * time.Second)},
	} {
		if got := MayVoteFrom(c.loss, time.Second, 3*time.Second, 2*time.Second); !got.Equal(c.want) {
			t.Errorf("%s: %s, want %s", name, got.Sub(lost), c.want.Sub(lost))
		}
	}
}

func TestPeersAreBounded(t *testing.T) {
	var p Peers
	p.Hear(epoch, "own", []announce.Guard{{ID: "long", Delay: time.Hour}})
	for i := range 1000 {
		p.Hear(epoch, "own", []announce.Guard{{ID: fmt.Sprint("g", i), Delay: time.Second}})
	}
	if len(p.seen) > mostPeers || p.Greatest() != time.Hour {
		t.Errorf("%d kept, the greatest %s", len(p.seen), p.Greatest())
	}
}
