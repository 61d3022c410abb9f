package monitor

import "testing"

// An action of an operator explains a change of a node that it can have made, not each that
// follows: nobody let in a node that starts unfenced after it was let in before.
func TestWhatAnActionLeadsTo(t *testing.T) {
	for _, c := range []struct {
		act      string
		from, to NodeState
		want     bool
	}{
		{"node cordon", NodeServing, NodeCordoned, true},
		{"node uncordon", NodeCordoned, NodeFenced, true},
		{"node uncordon", NodeDown, NodeServing, false},
		{"node rejoin", NodeFenced, NodeServing, true},
		{"node rejoin", NodeDown, NodeServing, false},
		{"node rejoin", NodeServing, NodeFenced, false},
	} {
		if got := (Action{Act: c.act}).Leads(c.from, c.to); got != c.want {
			t.Errorf("%s, %s to %s: %t", c.act, c.from, c.to, got)
		}
	}
}
