package restartguard

import (
	"fmt"
	"testing"
	"time"

	"redlockctl/internal/announce"
)

func (s *script) hears(run string, p Params, d time.Duration) *script {
	s.t.Helper()
	return s.step(Observation{About: Seen, RunID: run, Role: "master", Params: p, Heard: d})
}

func TestTheGreatestDelayCounts(t *testing.T) {
	s := newScript(t)
	s.hears("a", openParams, 0).phase(PhaseActive)
	s.after(time.Second).hears("b", shut, 30*time.Second).phase(PhaseClosed).until(31 * time.Second)
	s.canary(CanaryFenced, shut)
	s.after(testDelay).hears("b", shut, 30*time.Second).phase(PhaseClosed).does()
	s.after(20*time.Second).hears("b", shut, 30*time.Second).does(Action{Kind: Lift, RunID: "b"})
}

func TestALongerDelayThatIsHeardLaterLengthens(t *testing.T) {
	s := newScript(t)
	s.sees("a", openParams).after(time.Second).sees("b", shut).until(1*time.Second+testDelay).canary(CanaryFenced, shut)
	s.after(time.Second).hears("b", shut, 30*time.Second).until(31 * time.Second)
}

func TestARunningFenceIsNeverShortened(t *testing.T) {
	s := newScript(t)
	s.hears("a", openParams, 30*time.Second).after(time.Second).hears("b", shut, 30*time.Second).canary(CanaryFenced, shut)
	// The other guard has gone, or has a shorter D by now.
	s.after(time.Second).hears("b", shut, 0).until(31 * time.Second)
	s.after(time.Second).hears("b", shut, 12*time.Second).until(31 * time.Second)
	// A restart inside the fence starts it again, for as long.
	s.after(time.Second).hears("c", shut, 0).until(4*time.Second+30*time.Second).canary(CanaryFenced, shut)
	s.after(30*time.Second).hears("c", shut, 0).does(Action{Kind: Lift, RunID: "c"}).lifted(shut, openParams).phase(PhaseActive)
	// The next fence is its own.
	s.after(time.Second).hears("d", shut, 0)
	if d := s.state.Deadline.Sub(s.now); d != testDelay {
		t.Errorf("the next fence lasts %s", d)
	}
}

// A D that has counted in a fence counts also when an operator has cordoned the node in
// between; one of an earlier fence does not.
func TestALongerDelayOutlivesACordon(t *testing.T) {
	s := newScript(t)
	s.sees("a", openParams).hears("b", shut, 30*time.Second).canary(CanaryFenced, shut)
	s.after(time.Second).hears("b", held, 0).canary(CanaryFenced, held).phase(PhaseHeld)
	s.after(time.Second).hears("b", shut, 0).until(32 * time.Second)
	s.canary(CanaryFenced, shut).after(30*time.Second).sees("b", shut).does(liftIt("b")).lifted(shut, openParams)
	s.sees("b", held).canary(CanaryFenced, held).sees("b", shut).until(32*time.Second + testDelay)
	// Heard while it is cordoned.
	s.sees("b", held).hears("b", held, 40*time.Second).sees("b", shut).until(72 * time.Second)
}

// The word of a node that serves counts for others when the greatest D is over since
// its last loss, also where that is heard of late.
func TestALongerDelayIsWaitedForBeforeANodesWordCounts(t *testing.T) {
	s := newScript(t)
	s.sees("a", openParams).after(testDelay).hears("a", openParams, 30*time.Second)
	if got := s.state.Trusted.Sub(epoch); got != 30*time.Second {
		t.Errorf("trusted after %s", got)
	}
	s.sees("a", openParams)
	if got := s.state.Trusted.Sub(epoch); got != 30*time.Second {
		t.Errorf("trusted after %s", got)
	}
}

// A guard that was restarted inside the fence waits for as long, and so does one
// whose node restarts once more.
func TestTheGreatestDelayIsRemembered(t *testing.T) {
	s := newScript(t)
	s.sees("a", openParams).after(time.Second).hears("b", shut, 30*time.Second).until(31 * time.Second)
	s.state = s.state.Remembered(s.now, time.Hour, testDelay)
	s.after(time.Second).hears("b", shut, 0).until(31 * time.Second)
	s.after(time.Second).hears("c", shut, 0).until(33 * time.Second)
}

func TestNoTalkOfATimeThatIsOver(t *testing.T) {
	s := newScript(t)
	s.sees("a", openParams).after(time.Second).sees("b", shut)
	s.state = s.state.Remembered(s.now, time.Hour, testDelay)
	s.events = nil
	s.after(testDelay+4*time.Second).sees("b", shut)
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
	s.sees("a", openParams).after(100*time.Millisecond).sees("b", openParams).phase(PhaseExposed)
	s.after(20*time.Millisecond).closed(openParams, shut).canary(CanaryFenced, shut).phase(PhaseClosed)
	if s.state.BootExposed != 120*time.Millisecond || !s.state.Known || s.state.Verified {
		t.Fatalf("%+v", s.state)
	}
	s.after(testDelay).sees("b", shut).lifted(shut, openParams).phase(PhaseActive)
	s.after(time.Second).step(Observation{About: Seen, RunID: "b", Role: "master", Params: openParams, Wipes: 1}).phase(PhaseExposed)
	s.after(time.Second).closed(openParams, shut).canary(CanaryFenced, shut).phase(PhaseClosed)
	if s.state.BootExposed != 120*time.Millisecond || s.state.Exposed <= s.state.BootExposed {
		t.Errorf("the start was open for %s, the last loss for %s", s.state.BootExposed, s.state.Exposed)
	}
}

func TestPeersCountForAWhileAfterTheyAreGone(t *testing.T) {
	var p Peers
	at := func(d time.Duration) time.Time { return epoch.Add(d) }
	p.Hear(at(0), "own", []announce.Guard{{ID: "own", Delay: time.Hour}, {ID: "b", Delay: time.Minute}})
	p.Hear(at(time.Second), "own", []announce.Guard{{ID: "b", Delay: time.Second}}) // its D was shortened
	for d, want := range map[time.Duration]time.Duration{
		time.Second: time.Minute, PeerKept: time.Minute, PeerKept + time.Second: time.Second, PeerKept + 2*time.Second: 0,
	} {
		if got := p.Greatest(at(d)); got != want {
			t.Errorf("after %s: %s, want %s", d, got, want)
		}
	}
}

func TestPeersAreBounded(t *testing.T) {
	var p Peers
	p.Hear(epoch, "own", []announce.Guard{{ID: "long", Delay: time.Hour}})
	for i := range 1000 {
		p.Hear(epoch, "own", []announce.Guard{{ID: fmt.Sprint("g", i), Delay: time.Second}})
	}
	if len(p.seen) > mostPeers || p.Greatest(epoch) != time.Hour {
		t.Errorf("%d kept, the greatest %s", len(p.seen), p.Greatest(epoch))
	}
}
