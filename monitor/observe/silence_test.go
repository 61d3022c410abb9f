package observe

import (
	"errors"
	"slices"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/wire"
)

// The event says that the line from this console works again only if the line was the cause: all
// silent nodes answer again. If one answers and others do not, those are the cause.
func TestWhatItWasThatNothingWasSeen(t *testing.T) {
	const works = "the line from this console works again"
	refused := wire.DialError{Err: errors.New("refused")}
	for name, c := range map[string]struct {
		then func(s *story) // when all have been silent for a while
		want []string
	}{
		"the line": {func(s *story) { clear(s.fails) }, []string{works}},
		"the line, and one node is later": {func(s *story) {
			s.fails[0], s.fails[1] = nil, nil
			s.pass(4 * time.Second)
			s.fails[2] = nil
		}, []string{works}},
		"one node goes on": {func(s *story) { s.fails[0] = nil }, []string{"n2 slow, n3 slow: the line from this console to the others works"}},
		"one after the other": {func(s *story) {
			for i := range s.fails {
				s.fails[i] = nil
				s.pass(8 * time.Second)
			}
		}, []string{"n2 slow, n3 slow: the line from this console to the others works"}},
		"they were killed": {func(s *story) { s.fails[0], s.fails[1], s.fails[2] = refused, refused, refused }, []string{"n1 down, n2 down, n3 down: the line from this console to the others works"}},
		"cut again": {func(s *story) {
			s.fails[0], s.fails[1] = nil, nil
			s.pass(time.Second)
			s.fails[0], s.fails[1] = wire.ErrLate, wire.ErrLate
			s.pass(3 * time.Second)
			clear(s.fails)
		}, []string{works}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, 3)
			s.pass(3 * time.Second)
			for i := range s.fails {
				s.fails[i] = wire.ErrLate
			}
			s.pass(3 * time.Second)
			if !s.shown.Cluster.NotSeen {
				t.Fatal("something is seen")
			}
			c.then(s)
			s.pass(10 * time.Second)
			var cuts int
			var told []string
			for _, e := range s.shown.Events {
				switch e.Kind {
				case "not seen from here":
					cuts++
				case "seen again":
					told = append(told, e.Text.Raw())
					for i := range s.shown.Nodes {
						if n := &s.shown.Nodes[i]; e.Text.Raw() == works && n.State != monitor.NodeServing {
							t.Errorf("%s is %s", n.Name, n.State)
						}
					}
				}
			}
			if !slices.Equal(told, c.want) || cuts != 1 {
				t.Errorf("%d cuts, told %q", cuts, told)
			}
		})
	}
}
