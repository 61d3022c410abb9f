package watch

import (
	"time"

	"redlockctl/restartguard"
	"redlockctl/restartguard/memory"
)

// recognized is s, or the state with which a node goes on that was not met under the present
// configuration: that of before, where the same incarnation had another name or address.
func (w *watcher) recognized(s restartguard.State, runID string) restartguard.State {
	if s.Basis.RunID != "" {
		return s
	}
	if known, ok := w.guard.past.Take(func(n memory.Node) bool { return n.State.Basis.RunID == runID }, w.method.ID()); ok {
		s = known
		s.Basis.Trusted = time.Time{} // D may be another
	}
	return s
}

// pastOf are the nodes of a guard that has ended.
func (g *Guard) pastOf() *memory.Past {
	nodes := g.nodes()
	for i := range nodes {
		nodes[i].State.Basis.Trusted = time.Time{} // D may be another
	}
	return memory.NewPast(nodes)
}

// nodes are the nodes as they have to be remembered.
func (g *Guard) nodes() []memory.Node {
	nodes := make([]memory.Node, len(g.members))
	for i, w := range g.members {
		nodes[i] = w.remembered()
	}
	return nodes
}

func (w *member) remembered() memory.Node {
	return memory.Node{Name: w.node.Name(), Addr: w.node.Addr(), Fence: w.method.ID(), State: w.state}
}
