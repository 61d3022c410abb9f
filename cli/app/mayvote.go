package app

import (
	"context"
	"fmt"
	"time"

	"redlockctl/base/sleep"
	"redlockctl/internal/config"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/server/safetext"
)

// WhenServes returns when a node that was handed back to the guards serves, or what it waits for.
func WhenServes(ctx context.Context, cfg *config.Config, name string) string {
	_ = sleep.For(ctx, 2*cfg.Guard.Poll+100*time.Millisecond) // a guard has seen it by then, and announces it
	s, err := Look(ctx, cfg, Aim{Nodes: true})
	if err != nil {
		return "it is not known when it serves: " + safetext.Printable(err.Error())
	}
	n := s.Node(name)
	if n == nil {
		return ""
	}
	g := GuardsOf(cfg, s)
	return whenServes(n, g.Missing(name), g.here != nil && *g.here && g.memory[name].Addr == n.Addr, cfg.Guard.Delay, s.At)
}

// whenServes says it of a node by what is seen of it: missing says that no guard is known to run,
// remembered that the one on this machine watches the node, d is D.
func whenServes(n *monitor.Node, missing string, remembered bool, d time.Duration, now time.Time) string {
	may := view.MayServe(n, now)
	longest := "the longest TTL"
	if d > 0 {
		longest = "D (" + d.String() + ")"
	}
	byHand := fmt.Sprintf("redlockctl node rejoin --now %s (which is safe only after %s since its last start)", n.Name, longest)
	switch {
	case n.State == monitor.NodeServing:
		return "it serves"
	case may != "":
		return may
	case n.State != monitor.NodeFenced:
		return "it is not known when it serves: it is " + n.State.String()
	case remembered:
		return "the guard on this machine lets it rejoin when it may vote"
	case n.GuardsKnown:
		return safetext.Printable(fmt.Sprintf("no guard is seen, so %s stays fenced: start a guard, or %s", n.Name, byHand))
	case missing != "":
		return safetext.Printable(missing + "; by hand: " + byHand)
	}
	return safetext.Printable(fmt.Sprintf("no guard is seen on %s; if none watches it, it stays fenced: start a guard, or %s", n.Name, byHand))
}

// UntilTwoHolders says until when two clients may hold one lock because a node serves before it may vote,
// as announced by a guard; empty: none does.
func UntilTwoHolders(ctx context.Context, cfg *config.Config, name string) string {
	s, err := Look(ctx, cfg, Aim{Nodes: true})
	if err != nil {
		return ""
	}
	n := s.Node(name)
	if n == nil || !n.Early {
		return ""
	}
	at := n.EarlyUntil
	return "two holders of one lock are possible until " + view.Clock(at) + " (" + view.Remaining(at.Sub(s.At)) + "): before that it may not vote, by its guard"
}
