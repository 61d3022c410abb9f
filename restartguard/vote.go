package restartguard

import (
	"time"
)

// Loss is what is known about the last loss of a node.
type Loss struct {
	// Seen is a moment provably after the loss: when the guard first saw it. Zero: no loss is
	// known.
	Seen time.Time
	// Nothing: it is proven that nobody relies on a lost vote, see [Drain] and [Evidence].
	Nothing bool
	// Before is from when the node might vote without this loss; zero: at once.
	Before time.Time
}

// MayVoteFrom decides when a node may vote, and is the only place that does: from its last loss +
// D, by the greatest D that counts. Everything that ends a fence follows it. Zero: from the
// beginning.
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

// lastLoss returns the loss for which the node waits.
func (b *Basis) lastLoss() Loss {
	if b.Deadline.IsZero() {
		return Loss{}
	}
	return Loss{Seen: b.Deadline.Add(-b.Delay)}
}

// mayVote reports whether a node that waits may vote by now. A node that is not an independent
// master may not, and its promotion is a loss.
func (b *Basis) mayVote(now time.Time) bool {
	return Foreign(b.Role) == "" && !b.Deadline.IsZero() && !now.Before(b.Deadline)
}

// countingDelay decides which D counts, and is the only place that does: the greatest of the guard's
// own, of those that other guards announce, and, while the node has to be fenced, of the one that
// counted before. What was lost may have been granted under a longer TTL, so D never gets shorter
// within a fence.
func (b *Basis) countingDelay(own time.Duration) time.Duration {
	d := max(own, b.Heard)
	if b.Duty.Kind != DutyServe {
		d = max(d, b.Delay)
	}
	return d
}
