package wire

import "redlockctl/redlock"

// What a node may send for one question, in bytes, see [redlock.Budget]. The feed
// reads what it is told without keeping it (readPush), so its budget is for the
// greeting.
const (
	feedReply = 64 << 10
	// A page of SCAN: names are short mostly, and may be long. All nodes share
	// readAll, each has a part of its own.
	readAll   = 64 << 20
	readLeast = 1 << 20
	readMost  = 8 << 20
)

// ReadBudget is what one of so many nodes may send for a page or a batch.
func ReadBudget(nodes int) *redlock.Budget {
	most := min(max(readAll/max(nodes, 1), readLeast), readMost)
	return redlock.NewBudget(most, 2*most)
}
