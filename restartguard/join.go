package restartguard

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// mustWait is why a serving node that is seen for the first time waits for D; "": it
// may go on serving.
func (m *machine) mustWait(o *Observation) string {
	switch {
	case m.FirstContact == Fence:
		return "to be fenced"
	case m.Joins:
		return "the cluster was in use before this node came to it, and the votes of the node whose place it takes are not known here"
	case m.FirstContact == AdoptYoung || m.Verified:
		return ""
	case MayVoteFrom(Loss{Seen: m.now.Add(-o.Up)}, m.delay()).After(m.now):
		return fmt.Sprintf("up for less than D, %s, so that it may have lost votes with its start", m.delay())
	}
	return ""
}

// past is what was known of the nodes before the present configuration.
type past struct {
	mu    sync.Mutex
	nodes []pastNode
	inUse bool // a node was met
}

type pastNode struct {
	name, addr, fence string
	state             State
}

func newPast(nodes []pastNode) *past {
	p := &past{nodes: nodes}
	p.inUse = slices.ContainsFunc(nodes, func(n pastNode) bool { return n.state.RunID != "" })
	return p
}

// take takes the state of a node out of the past.
func (p *past) take(is func(pastNode) bool, fence string) (State, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.nodes, is)
	if i < 0 {
		return State{}, false
	}
	n := p.nodes[i]
	p.nodes = slices.Delete(p.nodes, i, i+1)
	if n.fence != fence {
		return n.state.moved(), true
	}
	return n.state, true
}

// at is the state of the node that was at an address.
func (p *past) at(name, addr, fence string) (State, bool) {
	if s, ok := p.take(func(n pastNode) bool { return n.name == name && n.addr == addr }, fence); ok {
		return s, true
	}
	return p.take(func(n pastNode) bool { return n.addr == addr }, fence)
}

// recognized is s, or the state with which a node goes on that was not met under the present
// configuration: that of before, where the same incarnation had another name or address.
func (w *watcher) recognized(s State, runID string) State {
	if s.RunID != "" {
		return s
	}
	if known, ok := w.guard.past.take(func(n pastNode) bool { return n.state.RunID == runID }, w.method.id()); ok {
		s = known
		s.Trusted = time.Time{} // D may be another
	}
	return s
}

// pastOf are the nodes of a guard that has ended.
func (g *Guard) pastOf() *past {
	nodes := make([]pastNode, len(g.members))
	for i, w := range g.members {
		s := w.state
		s.Trusted = time.Time{} // D may be another
		nodes[i] = pastNode{w.node.Name(), w.node.Addr(), w.method.id(), s}
	}
	return newPast(nodes)
}
