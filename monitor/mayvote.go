package monitor

import "time"

// MayVote is from when the node may vote, as the guards that watch it announce: by the one that counts
// from the earliest sight of its last loss. False: none of them knows of a loss.
func (n *Node) MayVote() (from time.Time, known bool) {
	for _, g := range n.Guards {
		if at := g.MayVote.Add(-n.Offset.Offset); !g.MayVote.IsZero() && (!known || at.Before(from)) {
			from, known = at, true
		}
	}
	return from, known && n.Offset.Valid
}

// Drained reports whether a guard takes the node for one that a restart makes forget nothing.
func (n *Node) Drained() bool {
	for _, g := range n.Guards {
		if g.Drained && n.State == NodeCordoned {
			return true
		}
	}
	return false
}
