package app

import (
	"testing"
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/restartguard"
)

// Why a node waits is in the memory of the guard on this machine, and so it is shown by
// programs that run none: in the headline, and in the cell, which drops it whole.
func TestWhyANodeWaitsIsTold(t *testing.T) {
	for _, cause := range []string{"restarted", "started unfenced", "clock stepped"} {
		s := &monitor.Snapshot{
			At:      time.Unix(1e9, 0),
			Nodes:   []monitor.Node{{Name: "n1", Addr: "h:1", RunID: "a", State: monitor.NodeFenced}, {Name: "n2", State: monitor.NodeServing}},
			Cluster: monitor.Cluster{N: 2, Quorum: 1, Serving: 1, Verdict: monitor.VerdictDegraded},
		}
		told := statusIn(map[string]restartguard.Fact{"n1": {Addr: "h:1", RunID: "a", Wait: 18 * time.Second, Cause: cause}}, s)
		ctx := &view.Context{Glyphs: &view.Unicode, Snap: s, Now: s.At, Short: true, Guard: view.NewGuard("", told)}
		ctx.Guard.Delay = 18 * time.Second
		if got, want := view.Headlines(ctx)[0].Parts[0], "n1 fenced, rejoins in 18s"; got.Text != want || got.Why != cause {
			t.Errorf("headline %+v; want %s (%s)", got, want, cause)
		}
		if got, want := view.Headlines(ctx)[0].Text(), "n1 fenced, rejoins in 18s ("+cause+"); losing one more node stops all locking"; got != want {
			t.Errorf("headline %q; want %q", got, want)
		}
		cell, bare := view.GuardCell(ctx, &s.Nodes[0]).Text, "████████████ 18s"
		if cell != bare+", "+cause || view.Clauses(cell, view.Width(cell)-1) != bare {
			t.Errorf("cell %q, narrow %q; want %q and the cause", cell, view.Clauses(cell, view.Width(cell)-1), bare)
		}
	}
}
