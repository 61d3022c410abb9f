package memory

import (
	"slices"
	"sync"

	"redlockctl/restartguard"
)

// Past is what was known about the nodes before the present configuration.
type Past struct {
	mu    sync.Mutex
	nodes []Node
	InUse bool // a node was met
}

type Node struct {
	Name, Addr, Fence string
	State             restartguard.State
}

func NewPast(nodes []Node) *Past {
	p := &Past{nodes: nodes}
	p.InUse = slices.ContainsFunc(nodes, func(n Node) bool { return n.State.Basis.RunID != "" })
	return p
}

// Take removes a node from the past and returns its state.
func (p *Past) Take(is func(Node) bool, fence string) (restartguard.State, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.nodes, is)
	if i < 0 {
		return restartguard.State{}, false
	}
	n := p.nodes[i]
	p.nodes = slices.Delete(p.nodes, i, i+1)
	if n.Fence != fence {
		return n.State.Moved(), true
	}
	return n.State, true
}

// At returns the state of the node that was at an address.
func (p *Past) At(name, addr, fence string) (restartguard.State, bool) {
	if s, ok := p.Take(func(n Node) bool { return n.Name == name && n.Addr == addr }, fence); ok {
		return s, true
	}
	return p.Take(func(n Node) bool { return n.Addr == addr }, fence)
}
