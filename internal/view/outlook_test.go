package view

import (
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/server/announce"
)

// A fenced node waits for all guards that are there, so that the one that counts a later time decides when there is
// a quorum again; a guard that has not said when is known to let the node rejoin nevertheless.
func TestTheLastGuardDecidesWhenANodeRejoins(t *testing.T) {
	now := time.Now()
	n := monitor.Node{Name: "n1", State: monitor.NodeFenced, GuardsKnown: true, Guards: []announce.Guard{
		{ID: "first", MayVote: now.Add(10 * time.Second)}, {ID: "second", MayVote: now.Add(30 * time.Second)}}}
	n.Offset.Valid = true
	s := &monitor.Snapshot{At: now, Cluster: monitor.Cluster{N: 1, Quorum: 1}, Nodes: []monitor.Node{n}}
	var g Guard
	g.See(s)
	if o := g.Outlook(s); o.Possible() || !o.ByItself || !o.Until.Equal(now.Add(30*time.Second)) {
		t.Errorf("%+v", o)
	}
	s.Nodes[0].Guards = []announce.Guard{{ID: "first"}}
	g.See(s)
	if o := g.Outlook(s); !o.ByItself || !o.Until.IsZero() || len(o.Waiting) != 1 {
		t.Errorf("without a time: %+v", o)
	}
	s.Nodes[0].Guards = nil
	g.See(s)
	if o := g.Outlook(s); o.ByItself || len(o.Fenced) != 1 {
		t.Errorf("without a guard: %+v", o)
	}
}
