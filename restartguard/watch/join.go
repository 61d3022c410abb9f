package watch

import (
	"time"

	"redlockctl/restartguard"
	"redlockctl/restartguard/memory"
)

// recognized returns the state in which a node continues. A node that was not met under this
// configuration continues as the same incarnation under its former name or address.
func (w *watcher) recognized(s restartguard.State, runID string) restartguard.State {
	if s.Basis.RunID != "" {
		return s
	}
	if known, ok := w.guard.past.Take(func(n memory.Node) bool { return n.State.Basis.RunID == runID }, w.method.ID()); ok {
		s = known
		s.Basis.Trusted = time.Time{} // D may differ
	}
	return s
}

// pastOf returns the nodes of a guard that has ended, for its successor.
func (g *Guard) pastOf() *memory.Past {
	nodes := g.nodes()
	for i := range nodes {
		nodes[i].State.Basis.Trusted = time.Time{} // D may differ
	}
	return memory.NewPast(nodes)
}

// nodes returns the nodes as the memory keeps them.
func (g *Guard) nodes() []memory.Node {
	nodes := make([]memory.Node, len(g.members))
	for i, w := range g.members {
		nodes[i] = w.remembered()
	}
	return nodes
}
