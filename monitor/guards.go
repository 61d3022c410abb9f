package monitor

import (
	"slices"
	"strings"
	"time"

	"redlockctl/server/announce"
)

// Guards are the restart guards that announce themselves on the nodes, each once, the
// one with the greatest D first; known: they could be read on every node that can be
// read at all, so that nobody else is there.
func (s *Snapshot) Guards() (all []announce.Guard, known bool) {
	hidden := false
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.State.Readable() {
			known = known || n.GuardsKnown
			hidden = hidden || !n.GuardsKnown
		}
		for _, g := range n.Guards {
			if j := slices.IndexFunc(all, g.Same); j < 0 {
				all = append(all, g)
			} else if g.Delay > all[j].Delay {
				all[j] = g
			}
		}
	}
	slices.SortStableFunc(all, func(a, b announce.Guard) int {
		if a.Delay != b.Delay {
			return int(min(max(b.Delay-a.Delay, -1), 1))
		}
		return strings.Compare(a.ID, b.ID)
	})
	return all, known && !hidden
}

// GuardsRead reports whether the announcements of guards were read, or refused to this
// user, on every node that answers, and each node was asked; denied: on one of them
// they were refused. No node that answers is none that was read.
func (s *Snapshot) GuardsRead() (read, denied bool) {
	for i := range s.Nodes {
		switch n := &s.Nodes[i]; {
		case n.State == NodeUnknown:
			return false, false
		case !n.State.Readable():
		case n.GuardsKnown || n.GuardsDenied:
			read, denied = true, denied || n.GuardsDenied
		default:
			return false, false
		}
	}
	return read, denied
}

// GuardName is a guard for people.
func GuardName(g announce.Guard) string {
	name := g.ID[:min(6, len(g.ID))]
	if !g.Host.Empty() {
		name = g.Host.String() + " (" + name + ")"
	}
	return name
}

// GuardView is what findings know of a restart guard in this process.
type GuardView struct {
	// Nodes are those that the guard closes after a loss, by name.
	Nodes map[string]GuardedNode
	// Outlook says when a quorum is back, while there is none; empty: not known.
	Outlook string
	Delay   time.Duration // D
}

// GuardedNode is one node as its guard sees it.
type GuardedNode struct {
	Known    bool      // a start of it was seen, so that Verified means something
	Verified bool      // its last start started fenced
	Exposed  bool      // it accepts writes though it should be fenced
	AtStart  bool      // because it started unfenced, not because of a wipe or a step of its clock
	Since    time.Time // of Exposed
	// OpenFor is how long its last incarnation was open before it was closed.
	OpenFor time.Duration
	Err     string // why it could not be closed or opened, or talked to
	Invalid string // what it answered the guard that no Redis server does; empty: nothing
}
