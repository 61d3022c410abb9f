package app

import (
	"context"
	"time"

	"redlockctl/base/sleep"
	"redlockctl/internal/config"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/server/safetext"
)

// WhenServes returns when a node that was handed back to the guards serves, or what it waits for;
// empty: that is not known.
func WhenServes(ctx context.Context, cfg *config.Config, name string) string {
	_ = sleep.For(ctx, 2*cfg.Guard.Poll+100*time.Millisecond) // a guard has seen it by then, and announces it
	s, err := Look(ctx, cfg, Aim{Nodes: true})
	if err != nil {
		return ""
	}
	n := s.Node(name)
	switch why := GuardsOf(cfg, s).Missing(name); {
	case n == nil:
		return ""
	case n.State == monitor.NodeServing:
		return "it serves"
	case why != "":
		return safetext.Printable(why + "; \"redlockctl node rejoin --now\" removes the fence by hand")
	}
	return view.MayServe(n, s.At)
}
