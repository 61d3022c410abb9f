package monitor

import "time"

// MayVote returns from when the node may vote, as announced by the guard that counts from
// the earliest time of its last loss. known is false if no guard knows of a loss.
func (n *Node) MayVote() (from time.Time, known bool) {
	for _, g := range n.Guards {
		if at := g.MayVote.Add(-n.Offset.Offset); !g.MayVote.IsZero() && (!known || at.Before(from)) {
			from, known = at, true
		}
	}
	return from, known && n.Offset.Valid
}

// Drained reports whether a guard announces the node as drained: a restart forgets
// nothing.
func (n *Node) Drained() bool {
	for _, g := range n.Guards {
		if g.Drained && n.State == NodeCordoned {
			return true
		}
	}
	return false
}
