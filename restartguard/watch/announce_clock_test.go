package watch_test

import (
	"fmt"
	"testing"
	"time"

	"redlockctl/internal/lab/labtest"
	"redlockctl/restartguard"
	"redlockctl/restartguard/watch"
	"redlockctl/server/announce"
)

// The time from which a node may vote is announced on the node's own clock: when that is set back
// after the rejoin, the guard announces the time again, and no monitor reports that it serves early.
func TestWhatIsAnnouncedFollowsTheClockOfTheNode(t *testing.T) {
	s := labtest.ClockServers(t, 1)[0]
	g := guard(t, watch.Config{Delay: 2 * time.Second}, s.Node())
	g.reaches(restartguard.PhaseServing)
	if err := s.SetClock(time.Hour, 1); err != nil {
		t.Fatal(err)
	}
	g.reaches(restartguard.PhaseFenced)
	g.reaches(restartguard.PhaseServing)
	if err := s.SetClock(0, 1); err != nil {
		t.Fatal(err)
	}
	g.tells("clock back")
	announced := func() (from time.Time) {
		all, _ := do(t, s, "PUBSUB", "CHANNELS", announce.Pattern).([]any)
		for _, channel := range all {
			if one, ok := announce.Decode(fmt.Sprint(channel)); ok && one.MayVote.After(from) {
				from = one.MayVote
			}
		}
		return from
	}
	if !wait(func() bool { from := announced(); return !from.IsZero() && !from.After(time.Now()) }) {
		t.Errorf("it serves, and may vote from %s", announced())
	}
}
