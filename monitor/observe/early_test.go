package observe

import (
	"errors"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/wire"
	"redlockctl/server/announce"
)

// A node that serves before it may vote is exposed, and the verdict a danger, in the same snapshots:
// both begin and end together. A guard that follows the rule announces the new time a moment after it
// has removed the fence: that is no exposure.
func TestTheVerdictFollowsAnEarlyNode(t *testing.T) {
	const probe = 200 * time.Millisecond
	for name, c := range map[string]struct {
		ruled bool                // the guard announces from now on that it may vote
		ends  func(s *earlyStory) // after two seconds
		step  time.Duration       // its clock was set back with that
		early bool
	}{
		"let in early, until it may vote": {ends: func(s *earlyStory) { s.mayVote = s.at }, early: true},
		"let in early, then cordoned":     {ends: func(s *earlyStory) { s.fences[1] = "2147483646" }, early: true},
		"let in early, then down":         {ends: func(s *earlyStory) { s.fails[1] = wire.DialError{Err: errors.New("refused")} }, early: true},
		"by the rule":                     {ruled: true, ends: func(*earlyStory) {}},
		"its clock was set back":          {step: -time.Hour, ends: func(s *earlyStory) { s.mayVote = s.at }},
	} {
		t.Run(name, func(t *testing.T) {
			s := &earlyStory{story: newStory(t, 3), mayVote: time.Now().Add(time.Hour)}
			s.step = 50 * time.Millisecond // snapshots are more frequent than probes
			s.fences[1] = "2147483647"
			s.pass(t, 20*probe)
			s.fences[1] = "0"
			s.clocks[1] += c.step
			if s.pass(t, probe); c.ruled {
				s.mayVote = s.at
			}
			s.pass(t, 2*time.Second)
			if s.seen != c.early {
				t.Fatalf("seen as exposed: %t", s.seen)
			}
			c.ends(s)
			s.pass(t, 3*probe)
			if s.shown.Nodes[1].Early {
				t.Error("still exposed")
			}
		})
	}
}

// earlyStory is a story of a node for which a guard announces from when it may vote.
type earlyStory struct {
	*story
	mayVote time.Time
	seen    bool // exposed, in some snapshot
}

// pass lets time pass, and compares in each snapshot the node with the verdict.
func (s *earlyStory) pass(t *testing.T, d time.Duration) {
	t.Helper()
	for end := s.at.Add(d); s.at.Before(end); {
		for i, fails := range s.fails {
			if at := s.at.Add(s.step); fails == nil {
				s.answered(i, sight{sent: at, received: at, guards: &guardsSight{known: true, all: []announce.Guard{
					{ID: "g", Delay: time.Minute, Boot: announce.BootFenced, MayVote: map[bool]time.Time{true: s.mayVote.Round(0).Add(s.clocks[i])}[i == 1]},
				}}}, at)
			}
		}
		s.story.pass(s.step)
		early, danger := s.shown.Nodes[1].Early, s.shown.Cluster.Verdict == monitor.VerdictDanger
		dangers := 0
		for _, f := range s.shown.Findings {
			if f.ID == monitor.ServesEarlyID {
				dangers++
			}
		}
		if early != (dangers > 0) || early && !danger {
			t.Errorf("exposed %t, %d findings, the verdict is %s: %s", early, dangers, s.shown.Cluster.Verdict, s.shown.Cluster.Reason)
		}
		s.seen = s.seen || early
	}
}
