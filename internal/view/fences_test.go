package view

import (
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/restartguard"
	"redlockctl/server/announce"
)

// Two guards elsewhere, one of which began to watch later: a node rejoins when the later one lets it, and
// all views say that time. What only one of them has told, in its memory or at /status, is no earlier one.
func TestTheLaterGuardCounts(t *testing.T) {
	soon, later := epoch.Add(10*time.Second), epoch.Add(40*time.Second)
	fenced := func(name string) monitor.Node {
		return monitor.Node{Name: name, State: monitor.NodeFenced, GuardsKnown: true, RejoinsAfter: later, Offset: monitor.Estimate{Valid: true},
			Guards: []announce.Guard{{ID: "a", Delay: 30 * time.Second, MayVote: soon}, {ID: "b", Delay: 30 * time.Second, MayVote: later}}}
	}
	s := &monitor.Snapshot{At: epoch, Cluster: monitor.Cluster{N: 3, Quorum: 2, Serving: 1, CanLose: -1, Verdict: monitor.VerdictUnavailable},
		Nodes: []monitor.Node{fenced("n1"), fenced("n2"), {Name: "n3", State: monitor.NodeServing}}}
	one := restartguard.NodeStatus{Node: "n1", Phase: restartguard.PhaseFenced, Until: soon, Reason: "restarted"}
	for name, told := range map[string][]restartguard.NodeStatus{"nothing is told": nil, "one of them has told": {one}} {
		c := &Context{Glyphs: &Unicode, Snap: s, Now: epoch, Guard: NewGuard("", told)}
		c.Guard.See(s)
		if got := nodesHeadline(c).Parts; got[0].Text != "nothing can be locked until "+Clock(later) || got[1].Text != "n1 fenced, rejoins in 40s" {
			t.Errorf("%s: %+v", name, got)
		}
		if got := MayServe(&s.Nodes[0], epoch); !strings.Contains(got, Clock(later)) {
			t.Errorf("%s: %s", name, got)
		}
		if o := c.Guard.Outlook(s); !o.Until.Equal(later) || !o.FirstAt.Equal(later) || len(o.Fenced) > 0 {
			t.Errorf("%s: %s", name, o.Text())
		}
	}

	for i := range 2 { // the guards cannot read the clocks sharply: they announce no time
		s.Nodes[i].Guards[0].MayVote, s.Nodes[i].Guards[1].MayVote = time.Time{}, time.Time{}
	}
	g := NewGuard("", nil)
	g.See(s)
	if text := g.Outlook(s).Text(); !strings.HasSuffix(text, "; it is not known when a quorum is back: fenced until a guard lets them rejoin n1, n2") {
		t.Error(text)
	}
	s.Nodes[0].Guards, s.Nodes[1].Guards = nil, nil
	if text := g.Outlook(s).Text(); !strings.HasSuffix(text, "; a quorum does not come back by itself: fenced, and no guard is known to let them rejoin, n1, n2") {
		t.Error(text)
	}
}
