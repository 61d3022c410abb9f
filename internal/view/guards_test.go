package view

import (
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/restartguard"
	"redlockctl/server/announce"
)

// A fenced node rejoins when the last of its guards lets it, whatever one of them remembers here. All
// views of it take that from the same place.
func TestTheLastGuardCounts(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	at := func(s int) time.Time { return now.Add(time.Duration(s) * time.Second) }
	fenced := func(name string, votes ...int) monitor.Node {
		n := monitor.Node{Name: name, State: monitor.NodeFenced, GuardsKnown: true, Offset: monitor.Estimate{Valid: true}}
		for i, s := range votes {
			n.Guards = append(n.Guards, announce.Guard{ID: string(rune('a' + i)), Delay: 40 * time.Second, MayVote: at(s)})
		}
		return n
	}
	remembered := func(name string, s int) restartguard.NodeStatus {
		return restartguard.NodeStatus{Node: name, Phase: restartguard.PhaseFenced, Until: at(s), Reason: "restarted"}
	}
	serving := monitor.Node{Name: "n3", State: monitor.NodeServing}
	for name, c := range map[string]struct {
		told  []restartguard.NodeStatus
		nodes []monitor.Node
		want  string // of the headline
		text  string // of the outlook
	}{
		"the later one is announced":     {[]restartguard.NodeStatus{remembered("n1", 10), remembered("n2", 11)}, []monitor.Node{fenced("n1", 10, 24), fenced("n2", 11, 25), serving}, "nothing can be locked until " + Clock(at(24)) + "; n1 fenced, rejoins in 24s (restarted); n2 fenced, rejoins in 25s (restarted)", "a quorum is back at " + Clock(at(24))},
		"nothing is remembered here":     {nil, []monitor.Node{fenced("n1", 24, 10), fenced("n2", 11, 25), serving}, "nothing can be locked until " + Clock(at(24)) + "; n1 fenced, rejoins in 24s; n2 fenced, rejoins in 25s", "a quorum is back at " + Clock(at(24))},
		"the later one is remembered":    {[]restartguard.NodeStatus{remembered("n1", 30), remembered("n2", 31)}, []monitor.Node{fenced("n1", 24), fenced("n2"), serving}, "nothing can be locked until " + Clock(at(30)) + "; n1 fenced, rejoins in 30s (restarted); n2 fenced, rejoins in 31s (restarted)", "a quorum is back at " + Clock(at(30))},
		"the first has passed":           {[]restartguard.NodeStatus{remembered("n1", 30)}, []monitor.Node{fenced("n1", -2, 9), fenced("n2", -2), serving}, "nothing can be locked until " + Clock(at(30)), "a quorum is back at " + Clock(at(30))},
		"when is not known, but a guard": {nil, []monitor.Node{fenced("n1", -2), fenced("n2", -2), serving}, "nothing can be locked; n1 fenced; n2 fenced", "it is not known when a quorum is back: fenced until a guard lets them rejoin n1, n2"},
		"no guard":                       {nil, []monitor.Node{fenced("n1"), fenced("n2"), serving}, "nothing can be locked; n1 fenced; n2 fenced", "fenced, and no guard is known to let them rejoin, n1, n2"},
		"one that is down has no vote":   {nil, []monitor.Node{fenced("n1", 10), fenced("n2", 20), serving, {Name: "n4", State: monitor.NodeDown}, {Name: "n5", State: monitor.NodeCordoned}}, "nothing can be locked until " + Clock(at(20)), "a quorum is back at " + Clock(at(20))},
	} {
		s := &monitor.Snapshot{At: now, Nodes: c.nodes, Cluster: monitor.Cluster{N: len(c.nodes), Quorum: len(c.nodes)/2 + 1, Serving: 1, Verdict: monitor.VerdictUnavailable}}
		ctx := &Context{Glyphs: &Unicode, Snap: s, Now: now, Guard: NewGuard("", c.told)}
		ctx.Guard.See(s)
		ctx.Guard.See(s) // again and again
		if got := nodesHeadline(ctx).Text(); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s; want %s", name, got, c.want)
		}
		if got := ctx.Guard.Outlook(s).Text(); !strings.Contains(got, c.text) {
			t.Errorf("%s: %s; want %s", name, got, c.text)
		}
		if got := MayServe(&c.nodes[0], now); strings.HasPrefix(name, "the later one is announced") && got != "its guard lets it rejoin from "+Clock(at(24))+" (24s)" {
			t.Errorf("%s: %s", name, got)
		}
	}
}
