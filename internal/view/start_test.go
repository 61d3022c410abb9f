package view

import (
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/restartguard"
	"redlockctl/server/announce"
)

// How a node started is one word in every view, whoever saw it: the guard in this console, one that
// announces itself, one that has ended and left its memory on this host, which other views cannot read. The
// verdict follows the word.
func TestOneWordForAStart(t *testing.T) {
	const fenced, unfenced = announce.BootFenced, announce.BootUnfenced
	for name, c := range map[string]struct {
		here       announce.Boot // what the guard in this console saw
		announced  announce.Boot // by another one
		remembered announce.Boot
		want       string
	}{
		"nobody saw it":                          {0, 0, 0, StartUnseen},
		"this console":                           {fenced, 0, 0, StartedFenced},
		"another guard":                          {0, fenced, 0, StartedFenced},
		"a guard that has ended":                 {0, 0, fenced, StartUnseen},
		"unfenced, this console":                 {unfenced, 0, 0, StartedUnfenced},
		"unfenced, another guard":                {fenced, unfenced, 0, StartedUnfenced},
		"unfenced, a guard that has ended":       {0, 0, unfenced, StartedUnfenced},
		"fenced and announced, not seen by this": {0, fenced, fenced, StartedFenced},
	} {
		n := monitor.Node{Name: "n1", State: monitor.NodeServing, RunID: "a", GuardsKnown: true, Remembered: c.remembered,
			Guards: []announce.Guard{{ID: "here", Boot: c.here}, {ID: "there", Boot: c.announced}}}
		status := restartguard.NodeStatus{Node: "n1", Phase: restartguard.PhaseServing, RunID: "a", Known: c.here != 0, Verified: c.here == fenced}
		ctx := &Context{Glyphs: &Unicode, Now: epoch, Guard: NewGuard("here", []restartguard.NodeStatus{status})}
		if cell := GuardCell(ctx, &n); cell.Text != c.want {
			t.Errorf("%s: GUARD: %+v", name, cell)
		}
		own := monitor.GuardedNode{RunID: "a", Known: status.Known, Verified: status.Verified}
		if doc := DocOfGuarded(&n, "min-replicas", own); doc.BootFence != c.want {
			t.Errorf("%s: guard status: %s", name, doc.BootFence)
		}
		s := monitor.Snapshot{At: epoch, Nodes: []monitor.Node{n}, Cluster: monitor.Cluster{N: 1, Quorum: 1}}
		s.Assess(true, true, &monitor.GuardView{Nodes: map[string]monitor.GuardedNode{"n1": own}})
		if safe := s.Cluster.Verdict == monitor.VerdictSafe; safe != (c.want == StartedFenced) {
			t.Errorf("%s: the verdict is %s: %s", name, s.Cluster.Verdict, s.Cluster.Reason)
		}
	}
}

// What was read of a guard's memory is older than the snapshot: a node that serves has no countdown.
func TestANodeThatServesHasNoCountdown(t *testing.T) {
	status := restartguard.NodeStatus{Node: "n1", Phase: restartguard.PhaseFenced, Until: epoch.Add(20 * time.Second)}
	ctx := &Context{Glyphs: &Unicode, Now: epoch, Guard: NewGuard("", []restartguard.NodeStatus{status})}
	for state, want := range map[monitor.NodeState]string{monitor.NodeFenced: "rejoins in 20.0s", monitor.NodeServing: StartUnseen} {
		n := monitor.Node{Name: "n1", State: state, GuardsKnown: true, Guards: []announce.Guard{{ID: "g"}}}
		if cell := GuardCell(ctx, &n); cell.Text != want {
			t.Errorf("%s: %+v", state, cell)
		}
	}
}
