package monitor

import (
	"time"

	"redlockctl/server/announce"
)

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

// MayRejoin returns from when the guards let the node rejoin, as they announce it: each waits while
// another one that is there counts a later time. known is false if none knows of a loss.
func (n *Node) MayRejoin(now time.Time) (from time.Time, known bool) {
	for _, g := range n.Guards {
		at := g.MayVote.Add(-n.Offset.Offset)
		if !g.MayVote.IsZero() && at.Sub(now) <= announce.MostDelay && (!known || at.After(from)) { // no guard waits for a longer one
			from, known = at, true
		}
	}
	return from, known && n.Offset.Valid
}

// stepAnnounced is how long after the step of a node's clock the times on that clock, which guards
// announce, may be those from before it.
const stepAnnounced = 5 * time.Second

// ServesBeforeAnnounced reports whether the node serves before the time that guards announce for it.
// [Node.Early] is decided by that; nothing else asks it.
func (n *Node) ServesBeforeAnnounced(now time.Time) (from time.Time, early bool) {
	at, known := n.MayVote()
	if n.State != NodeServing || n.Persistent || !known || !at.After(now) || now.Sub(n.Facts.StepAt) < stepAnnounced {
		return time.Time{}, false
	}
	return at, true
}

// ServesEarlyID is the ID of the finding about a node that serves before it may vote.
const ServesEarlyID = "serves-early"

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
