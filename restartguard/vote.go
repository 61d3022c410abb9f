package restartguard

import (
	"time"
)

// Loss is what is known of the last loss of a node.
type Loss struct {
	// Seen is a moment provably after the loss, as of its first sight: see [Step]. Zero: no
	// loss is known.
	Seen time.Time
	// Nothing: it is proven that nobody relies on a vote that was lost, so that there was nothing
	// to lose: see [Drained] and [Evidence].
	Nothing bool
	// Before is from when the node might vote if there had not been this loss; zero: at once.
	Before time.Time
}

// MayVoteFrom is the rule of who may vote, and the only place that decides it: from a node's last
// loss + D, by the greatest of all D that count ([Peers.Greatest] knows those of other guards).
// Every act that ends a fence asks it. Zero: from the beginning.
func MayVoteFrom(l Loss, delays ...time.Duration) time.Time {
	if l.Seen.IsZero() {
		return l.Before
	}
	from := l.Seen
	if !l.Nothing {
		longest := time.Duration(0)
		for _, d := range delays {
			longest = max(longest, d)
		}
		from = from.Add(longest)
	}
	if from.Before(l.Before) {
		return l.Before
	}
	return from
}

// lastLoss is the loss for which a state waits.
func (s *State) lastLoss() Loss {
	if s.Deadline.IsZero() {
		return Loss{}
	}
	return Loss{Seen: s.Deadline.Add(-s.Delay)}
}

// mayVote reports whether the node may vote by now. One that is no independent master may not, and its
// promotion is a loss.
func (m *machine) mayVote() bool {
	if Foreign(m.Role) != "" {
		return false
	}
	from := MayVoteFrom(m.lastLoss(), m.State.Delay)
	return !from.IsZero() && !m.now.Before(from)
}
