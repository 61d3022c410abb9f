package monitor

import (
	"slices"
	"testing"
	"time"
)

// The progress covers the readable nodes: all of them in the first view, later those that
// came back. There is none when all is read.
func TestReadingIsToldUntilAllIsRead(t *testing.T) {
	node := func(name string, state NodeState, read float64, keys int64) Node {
		return Node{Name: name, State: state, Read: read, Keys: keys}
	}
	failing := node("n3", NodeServing, 0.5, 1000)
	failing.WhyUnread = "locks unread: BUSY"
	for name, c := range map[string]struct {
		settled bool
		nodes   []Node
		want    Reading
		ok      bool
	}{
		"the first view": {false, []Node{node("n1", NodeServing, 1, 1000), node("n2", NodeFenced, 0.25, 1000), node("n3", NodeDown, 0, 1000)},
			Reading{[]string{"n1", "n2"}, 1250, 2000}, true},
		"a node is back":            {true, []Node{node("n1", NodeServing, 1, 1000), node("n2", NodeServing, 0.25, 1000)}, Reading{[]string{"n2"}, 250, 1000}, true},
		"no number of keys":         {false, []Node{node("n1", NodeServing, 0.5, 1000), node("n2", NodeServing, 0.25, -1)}, Reading{[]string{"n1", "n2"}, 0, 0}, true},
		"all is read, and counted":  {true, []Node{node("n1", NodeServing, 1, 1000)}, Reading{}, false},
		"it is still being counted": {false, []Node{node("n1", NodeServing, 1, 1000)}, Reading{[]string{"n1"}, 1000, 1000}, true},
		"a node that fails to be":   {true, []Node{node("n1", NodeServing, 1, 1000), failing}, Reading{}, false},
		"a node was not heard of":   {false, []Node{node("n1", NodeUnknown, 0, -1)}, Reading{}, false},
		"one of several is unknown": {true, []Node{node("n1", NodeServing, 0, 0), node("n2", NodeUnknown, 0, -1)}, Reading{[]string{"n1"}, 0, 0}, true},
	} {
		s := Snapshot{Nodes: c.nodes}
		if c.settled {
			s.Settled = time.Unix(1, 0)
		}
		got, ok := s.Reading()
		if ok != c.ok || !slices.Equal(got.Nodes, c.want.Nodes) || got.Read != c.want.Read || got.Of != c.want.Of {
			t.Errorf("%s: %+v, %t", name, got, ok)
		}
	}
	if part := (Reading{Read: 1, Of: 4}).Part(); part != 0.25 || (Reading{}).Part() != 0 {
		t.Error(part)
	}
}
