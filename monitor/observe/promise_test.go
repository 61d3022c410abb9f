package observe

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockctl/monitor/wire"
	"redlockctl/server/announce"
	"redlockctl/server/safetext"
)

// The event of a restart says when the node rejoins. If it does not, another event says so: the history
// goes on showing the first one.
func TestAPromiseToRejoinIsCorrected(t *testing.T) {
	const d = 20 * time.Second
	for name, c := range map[string]struct {
		then func(s *promiseStory) // five seconds after the restart
		want []string
	}{
		"it rejoins":          {func(s *promiseStory) { s.pass(d - 5*time.Second); s.fences[1] = "0" }, nil},
		"its guard hangs":     {func(*promiseStory) {}, []string{"n2 does not rejoin "}},
		"its guard has ended": {func(s *promiseStory) { s.guard = nil }, []string{"no guard is seen there any more"}},
		"its guard starts again": {func(s *promiseStory) {
			g := s.guard
			s.guard = nil
			s.pass(3 * time.Second)
			s.guard = g
			s.pass(d - 8*time.Second)
			s.fences[1] = "0"
		}, nil},
		"its guard has seen another loss": {func(s *promiseStory) {
			s.guard.MayVote = s.guard.MayVote.Add(10 * time.Second)
			s.pass(d)
			s.pass(4 * time.Second)
			s.fences[1] = "0"
		}, []string{"a guard has seen a later loss, began to watch it later, or has a longer D"}},
		"it is down":     {func(s *promiseStory) { s.fails[1] = wire.DialError{Err: errors.New("refused")} }, []string{"it is down"}},
		"it is cordoned": {func(s *promiseStory) { s.fences[1] = "2147483646" }, nil},
		"this process is stopped, and it rejoins": {func(s *promiseStory) {
			s.at = s.at.Add(2 * d)
			s.pass(time.Second)
			s.fences[1] = "0"
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := &promiseStory{story: newStory(t, 3), guard: &announce.Guard{ID: "g", Host: safetext.New("ops"), Delay: d, Boot: announce.BootFenced}}
			s.pass(3 * time.Second)
			s.lives[1], s.fences[1] = "another", "2147483647"
			s.guard.MayVote = s.at.Add(d).Round(0)
			s.pass(5 * time.Second)
			c.then(s)
			s.pass(2 * d)
			var promised bool
			var told []string
			for _, e := range s.shown.Events {
				switch e.Kind {
				case "restart":
					promised = !e.Cost.Rejoins.IsZero()
				case "rejoin late":
					told = append(told, e.Text.Raw())
				}
			}
			if !promised || len(told) != len(c.want) || !slices.EqualFunc(told, c.want, strings.Contains) {
				t.Errorf("promised %t, then told %q", promised, told)
			}
		})
	}
}

// promiseStory is a story of a node that a guard elsewhere watches.
type promiseStory struct {
	*story
	guard *announce.Guard // on n2; nil: none is seen
}

func (s *promiseStory) pass(d time.Duration) {
	for end := s.at.Add(d); s.at.Before(end); {
		if at := s.at.Add(s.step); s.fails[1] == nil {
			seen := &guardsSight{known: true}
			if s.guard != nil {
				seen.all = []announce.Guard{*s.guard}
			}
			s.answered(1, sight{sent: at, received: at, guards: seen}, at)
		}
		s.story.pass(s.step)
	}
}
