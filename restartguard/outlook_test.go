package restartguard

import (
	"testing"
	"time"
)

func TestOutlook(t *testing.T) {
	at := func(s time.Duration) time.Time { return epoch.Add(s * time.Second) }
	clockAt := func(s time.Duration) string { return at(s).Format("15:04:05") }
	active := NodeStatus{Phase: PhaseServing}
	closed := func(name string, out, until time.Duration) NodeStatus {
		return NodeStatus{Node: name, Phase: PhaseFenced, Out: at(out), Until: at(until)}
	}
	down := NodeStatus{Node: "d", Phase: PhaseUnreachable, Out: at(-9)}
	cordoned := NodeStatus{Node: "h", Phase: PhaseCordoned, Out: at(-8)}
	for name, c := range map[string]struct {
		nodes    []NodeStatus
		n        int
		possible bool
		text     string
	}{
		"all vote":                        {[]NodeStatus{active, active, active}, 3, true, "3 of 3 nodes serve, a quorum is 2"},
		"one may be missing":              {[]NodeStatus{active, active, down}, 3, true, "2 of 3 nodes serve, a quorum is 2"},
		"an exposed node votes":           {[]NodeStatus{active, {Phase: PhaseExposed}, down}, 3, true, "2 of 3 nodes serve, a quorum is 2"},
		"nodes that are not watched vote": {[]NodeStatus{down, cordoned}, 5, true, "3 of 5 nodes serve, a quorum is 3"},
		"who comes back first, and when there is a quorum": {
			[]NodeStatus{closed("a", -1, 30), closed("b", -5, 10), closed("c", -3, 20), closed("e", -2, 40), active}, 5, false,
			"NOTHING CAN BE LOCKED: 1 of 5 nodes serve, a quorum is 3; since " + clockAt(-2) + "; b comes back first, at " + clockAt(10) + "; a quorum is back at " + clockAt(20),
		},
		"nodes that refuse the guard may vote": {
			[]NodeStatus{{Node: "a", Phase: PhaseUnreachable, Denied: true}, {Node: "b", Phase: PhaseUnreachable, Denied: true}, active}, 3, false,
			"not known if locks can be taken: 1 of 3 nodes are seen to vote, a quorum is 2; a, b refused the guard: its password or its rights are wrong",
		},
		"not so many that it would be enough": {
			[]NodeStatus{{Node: "a", Phase: PhaseUnreachable, Denied: true}, down, down}, 3, false,
			"NOTHING CAN BE LOCKED: 0 of 3 nodes serve, a quorum is 2; since " + clockAt(-9) + "; a quorum does not come back by itself: down d, d: refusing the guard a",
		},
		"none is heard of": {
			[]NodeStatus{{Node: "a", Phase: PhaseUnreachable}, {Node: "b", Phase: PhaseUnreachable}, {Node: "c", Phase: PhaseUnreachable}}, 3, false,
			"not known if locks can be taken: 0 of 3 nodes are seen to vote, a quorum is 2; no node answers: all are down, or this host's network is",
		},
		"nobody listens": {
			[]NodeStatus{{Node: "a", Phase: PhaseUnreachable, Nobody: true}, {Node: "b", Phase: PhaseUnreachable}, {Node: "c", Phase: PhaseUnreachable}}, 3, false,
			"NOTHING CAN BE LOCKED: 0 of 3 nodes serve, a quorum is 2; a quorum does not come back by itself: down a, b, c",
		},
		"a quorum that needs somebody": {
			[]NodeStatus{closed("a", -1, 30), down, cordoned}, 3, false,
			"NOTHING CAN BE LOCKED: 0 of 3 nodes serve, a quorum is 2; since " + clockAt(-8) + "; a comes back first, at " + clockAt(30) + "; " +
				"a quorum does not come back by itself: down d: cordoned by an operator h",
		},
		"a node that is slow is not down": {
			[]NodeStatus{{Node: "x", Phase: PhaseUnreachable, Absent: AbsentSlow}, {Node: "y", Phase: PhaseUnreachable, Nobody: true}, active}, 3, false,
			"NOTHING CAN BE LOCKED: 1 of 3 nodes serve, a quorum is 2; a quorum does not come back by itself: down y: slow x",
		},
		"a guard opens it, when is not known": {
			[]NodeStatus{{Node: "x", Phase: PhaseFenced, Waits: true}, closed("y", -1, 30), down, cordoned, active}, 5, false,
			"NOTHING CAN BE LOCKED: 1 of 5 nodes serve, a quorum is 3; since " + clockAt(-8) + "; y comes back first, at " + clockAt(30) + "; " +
				"it is not known when a quorum is back: fenced until a guard lets them rejoin x: down d: cordoned by an operator h",
		},
		"a node that nobody is known to open is not down": {
			[]NodeStatus{{Node: "x", Phase: PhaseFenced}, {Node: "y", Phase: PhaseFenced}, active}, 3, false,
			"NOTHING CAN BE LOCKED: 1 of 3 nodes serve, a quorum is 2; a quorum does not come back by itself: " +
				"fenced, and no guard is known to let them rejoin, x, y",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := OutlookOf(c.nodes, c.n, c.n/2+1)
			if o.Possible() != c.possible || o.Text() != c.text {
				t.Fatalf("%v, %q", o.Possible(), o.Text())
			}
		})
	}
}

func TestSinceWhenANodeHasNoVote(t *testing.T) {
	s := newScript(t).sees("a", servingParams)
	out := func(want time.Duration) {
		t.Helper()
		if got := s.state.Report.Out.Sub(epoch); got != want {
			t.Fatalf("out since %s, want %s", got, want)
		}
	}
	if !s.state.Report.Out.IsZero() {
		t.Fatal("an active node is out")
	}
	s.after(tick).lost("refused")
	out(tick)
	s.after(tick).sees("b", fenced)
	out(tick)
	s.after(tick).sees("b", cordoned)
	out(tick)
	if s.after(tick).sees("b", servingParams); !s.state.Report.Out.IsZero() {
		t.Fatal("an opened node is out")
	}
}
