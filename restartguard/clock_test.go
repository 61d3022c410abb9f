package restartguard

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"redlockctl/server/minreplicas"
)

// wall lets a script see the node's clock: at is our boot clock, ahead how far
// the node's is ahead of it, rtt the round trip.
func (s *script) wall(at, ahead, rtt time.Duration) *script {
	s.t.Helper()
	s.now = epoch.Add(at)
	return s.step(Observation{
		About: Seen, RunID: "a", Role: "master", Params: servingParams,
		Clock: Reading{Sent: time.Hour + at - rtt, Got: time.Hour + at, Wall: 1000*time.Hour + at - rtt/2 + ahead},
	})
}

func TestClock(t *testing.T) {
	const rtt = time.Millisecond
	t.Run("what was open after a step was so since the last look without it, at most", func(t *testing.T) {
		s := newScript(t).wall(tick, 0, rtt).wall(2*tick, 0, rtt).
			// Nobody looked for two seconds; then it takes two looks to be sure.
			wall(2*tick+2*time.Second, time.Second, rtt).wall(3*tick+2*time.Second+123*time.Microsecond, time.Second, rtt)
		if !s.has("clock", "forward") {
			t.Fatalf("%+v", s.events)
		}
		s.step(Observation{About: Raising, RunID: "a", Params: fenced}).step(Observation{About: Proving, RunID: "a", Params: fenced})
		// From when the last reading without it was asked for, rounded up.
		want := AtMost(tick + 2*time.Second + rtt)
		if s.state.Report.Exposed < tick+2*time.Second+123*time.Microsecond || s.state.Report.Exposed > want+10*time.Millisecond {
			t.Fatalf("served for at most %s, %s is right", s.state.Report.Exposed, want)
		}
	})
	t.Run("a forward step is a loss at its second sight, and D counts from there", func(t *testing.T) {
		newScript(t).wall(tick, 0, rtt).wall(2*tick, 0, rtt).
			wall(3*tick, time.Second, rtt).phase(PhaseServing).does().
			wall(4*tick, time.Second, rtt).phase(PhaseExposed).does(raiseIt("a")).until(4*tick+testDelay).told("clock", "forward by 1s").
			wall(5*tick, time.Second, rtt).until(4*tick + testDelay)
	})
	t.Run("a node rejoins only by a reading that is no step", func(t *testing.T) {
		s := newScript(t).sees("a", fenced).canary(CanaryFenced, fenced)
		fencedWall := func(at, ahead time.Duration) *script {
			s.now = epoch.Add(at)
			return s.step(Observation{About: Seen, RunID: "a", Role: "master", Params: fenced,
				Clock: Reading{Sent: time.Hour + at, Got: time.Hour + at, Wall: 1000*time.Hour + at + ahead}})
		}
		fencedWall(tick, 0)
		// Another guard may have opened it, and have closed it again for that step.
		fencedWall(testDelay, time.Second).does().phase(PhaseFenced)
		fencedWall(testDelay+tick, time.Second).until(2*testDelay+tick).told("clock", "forward by 1s")
		s = newScript(t).sees("a", fenced).canary(CanaryFenced, fenced)
		fencedWall(tick, 0)
		fencedWall(testDelay, time.Second).does()
		fencedWall(testDelay+tick, 0).does(removeIt("a"))
	})
	t.Run("a single odd reading is none", func(t *testing.T) {
		newScript(t).wall(tick, 0, rtt).wall(2*tick, time.Second, rtt).wall(3*tick, 0, rtt).wall(4*tick, time.Second, rtt).wall(5*tick, 0, rtt).
			phase(PhaseServing).does()
	})
	t.Run("a backward step is told and no loss", func(t *testing.T) {
		s := newScript(t).wall(tick, 0, rtt).wall(2*tick, -time.Second, rtt).wall(3*tick, -time.Second, rtt).phase(PhaseServing).does().
			told("clock back", "back by 1s").wall(4*tick, -time.Second, rtt)
		if s.count("clock back") != 1 {
			t.Fatalf("%+v", s.events)
		}
	})
	t.Run("what the round trip leaves uncertain is no step", func(t *testing.T) {
		newScript(t).wall(tick, 0, rtt).wall(2*tick, 100*time.Millisecond, 200*time.Millisecond).wall(3*tick, 100*time.Millisecond, 200*time.Millisecond).
			phase(PhaseServing).does()
	})
	t.Run("a slow reading does not hide a step that came in its time", func(t *testing.T) {
		newScript(t).wall(tick, 0, rtt).wall(2*tick, 50*time.Millisecond, 200*time.Millisecond).
			wall(3*tick, 50*time.Millisecond, rtt).wall(4*tick, 50*time.Millisecond, rtt).phase(PhaseExposed)
	})
	t.Run("a long time of slow readings does not make a step of a drift", func(t *testing.T) {
		s := newScript(t)
		drift := func(at, rtt time.Duration) { s.wall(at, at/125, rtt) } // 0.8 %
		drift(tick, 0)
		for at := 2 * time.Second; at <= 2*testDelay; at += 2 * time.Second {
			drift(at, time.Second)
		}
		drift(2*testDelay+tick, 0)
		drift(2*testDelay+2*tick, 0)
		s.phase(PhaseServing).does()
	})
	t.Run("small steps add up", func(t *testing.T) {
		s := newScript(t).wall(tick, 0, rtt)
		at, ahead := tick, time.Duration(0)
		for range 20 {
			at, ahead = at+tick, ahead+4*time.Millisecond
			s.wall(at, ahead, rtt)
			if ahead > 20*time.Millisecond && s.state.Basis.Phase == PhaseServing {
				t.Fatalf("ahead by %s, and nothing was noticed", ahead)
			}
			if s.state.Basis.Phase != PhaseServing {
				return
			}
		}
	})
	t.Run("what is gained beyond the rate between any two moments is bounded", func(t *testing.T) {
		// 5 ms, and the error of two readings.
		const most = 5*time.Millisecond + 2*rtt
		rapid.Check(t, func(rt *rapid.T) {
			s := newScript(t).wall(tick, 0, rtt)
			at, ahead, least := tick, time.Duration(0), time.Duration(0) // what is ahead of the greatest rate
			for range 100 {
				pass := time.Duration(rapid.IntRange(1, 500).Draw(rt, "pass")) * time.Millisecond
				at += pass
				ahead += time.Duration(rapid.IntRange(-10, 20).Draw(rt, "gain")) * time.Millisecond
				gained := ahead - time.Duration(clockRate*float64(at-tick))
				s.wall(at, ahead, rtt)
				if s.state.Basis.Phase != PhaseServing {
					return
				}
				if s.state.Basis.Ahead == 0 && gained-least > most {
					rt.Fatalf("gained %s", gained-least)
				}
				least = min(least, gained)
			}
		})
	})
	t.Run("a step forward right after one back is noticed", func(t *testing.T) {
		newScript(t).wall(tick, 0, rtt).wall(2*tick, -10*time.Second, rtt).told("clock back", "by 10s").
			wall(3*tick, -5*time.Second, rtt).wall(4*tick, -5*time.Second, rtt).phase(PhaseExposed)
	})
	t.Run("a clock that is 1 % fast is fenced", func(t *testing.T) {
		s := newScript(t)
		for at := tick; at < 10*time.Second; at += tick {
			if s.wall(at, at/100, rtt); s.state.Basis.Phase == PhaseExposed {
				return
			}
		}
		t.Fatal("never noticed")
	})
	t.Run("one that goes on running fast is told twice, and waited for to its end", func(t *testing.T) {
		s := newScript(t)
		see := func(at, ahead time.Duration, p minreplicas.Params) {
			s.now = epoch.Add(at)
			s.step(Observation{About: Seen, RunID: "a", Role: "master", Params: p,
				Clock: Reading{Sent: time.Hour + at, Got: time.Hour + at, Wall: 1000*time.Hour + at + ahead}})
		}
		see(0, 0, servingParams)
		p, at, last := servingParams, time.Duration(0), time.Duration(0)
		for at = tick; at < 3*testDelay; at += tick {
			before := s.state.Basis.Deadline
			if see(at, at/100, p); s.state.Basis.Phase == PhaseExposed {
				p = fenced
				s.step(Observation{About: Raising, RunID: "a", Params: fenced})
				s.canary(CanaryFenced, fenced)
			}
			if !s.state.Basis.Deadline.Equal(before) {
				last = at
			}
		}
		if s.state.Basis.Phase != PhaseFenced || last < 2*testDelay {
			t.Fatalf("%s, D last began at %s", s.state.Basis.Phase, last)
		}
		s.told("clock", "stepped forward").told("clock", "keeps getting ahead")
		if n := s.count("clock"); n != 2 {
			t.Errorf("told %d times: %+v", n, s.events)
		}
		if n := s.count("waiting"); n > 2 {
			t.Errorf("the deadline is told %d times", n)
		}
		// A large step is told all the same, and after D so is a small one.
		see(at, at/100+time.Minute, p)
		see(at+tick, at/100+time.Minute, p)
		if n := s.count("clock"); n != 3 {
			t.Errorf("told %d times: %+v", n, s.events)
		}
	})
	t.Run("one that is set back again and again is told twice", func(t *testing.T) {
		s := newScript(t)
		at := tick
		for i := range 20 {
			s.wall(at, -time.Duration(i)*20*time.Millisecond, rtt)
			at += tick
		}
		if n := s.count("clock back"); n != 2 {
			t.Errorf("told %d times: %+v", n, s.events)
		}
		s.told("clock back", "stepped back").told("clock back", "keeps falling behind").phase(PhaseServing).does()
		s.wall(at+2*testDelay, -time.Second, rtt)
		if n := s.count("clock back"); n != 3 {
			t.Errorf("told %d times: %+v", n, s.events)
		}
	})
	t.Run("a step below the threshold is none", func(t *testing.T) {
		s := newScript(t)
		s.policy.ClockStep = 100 * time.Millisecond
		s.wall(tick, 0, rtt).wall(2*tick, 90*time.Millisecond, rtt).wall(3*tick, 90*time.Millisecond, rtt).phase(PhaseServing).
			wall(4*tick, 200*time.Millisecond, rtt).wall(5*tick, 200*time.Millisecond, rtt).phase(PhaseExposed)
	})
	t.Run("where steps are no loss they are told", func(t *testing.T) {
		s := newScript(t)
		s.policy.ClockStep = -1
		s.wall(tick, 0, rtt).wall(2*tick, time.Second, rtt).wall(3*tick, time.Second, rtt).phase(PhaseServing).told("clock", "not a loss")
	})
	t.Run("a step while the node is out of reach is seen at its return", func(t *testing.T) {
		newScript(t).wall(tick, 0, rtt).wall(100*time.Second, time.Second, rtt).wall(100*time.Second+tick, time.Second, rtt).phase(PhaseExposed)
	})
	t.Run("the clock of another life is not compared", func(t *testing.T) {
		s := newScript(t).wall(tick, 0, rtt)
		s.state.Basis.RunID = "before"
		s.wall(2*tick, time.Second, rtt).wall(3*tick, time.Second, rtt)
		if s.has("clock", "") {
			t.Fatalf("%+v", s.events)
		}
	})
	t.Run("while closed it starts D again", func(t *testing.T) {
		s := newScript(t).sees("a", fenced).canary(CanaryFenced, fenced)
		see := func(at, ahead time.Duration) {
			s.now = epoch.Add(at)
			s.step(Observation{About: Seen, RunID: "a", Role: "master", Params: fenced,
				Clock: Reading{Sent: time.Hour + at, Got: time.Hour + at, Wall: 1000*time.Hour + at + ahead}})
		}
		see(tick, 0)
		see(2*tick, time.Second)
		see(3*tick, time.Second)
		s.phase(PhaseFenced).until(3*tick + testDelay)
	})
}

// TestDriftIsNoStep lets two clocks run at up to 0.4 % off, each its own way, with
// any round trips and gaps in between.
func TestDriftIsNoStep(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		node := 1 + float64(rapid.IntRange(-4000, 4000).Draw(rt, "node ppm"))/1e6
		rate := node/(1+float64(rapid.IntRange(-4000, 4000).Draw(rt, "guard ppm"))/1e6) - 1
		s := newScript(t)
		at := time.Duration(0)
		for range rapid.IntRange(2, 50).Draw(rt, "readings") {
			rtt := time.Duration(rapid.IntRange(0, 1000).Draw(rt, "rtt")) * time.Millisecond
			at += rtt + time.Duration(rapid.IntRange(1, 5000).Draw(rt, "pass"))*time.Millisecond
			// The server reads its clock at any moment of the round trip.
			read := at - time.Duration(rapid.Float64Range(0, 1).Draw(rt, "read")*float64(rtt))
			s.now = epoch.Add(at)
			s.step(Observation{About: Seen, RunID: "a", Role: "master", Params: servingParams,
				Clock: Reading{Sent: time.Hour + at - rtt, Got: time.Hour + at, Wall: 1000*time.Hour + read + time.Duration(rate*float64(read))}})
		}
		if s.state.Basis.Phase != PhaseServing || s.has("clock", "") || s.has("clock back", "") {
			rt.Fatalf("%s: %+v", s.state.Basis.Phase, s.events)
		}
	})
}
