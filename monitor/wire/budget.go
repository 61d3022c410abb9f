package wire

import "redlockctl/server/resp"

// Limits, in bytes, of a node's replies, see [resp.Budget]. The feed does not store
// what it reads (readPush), so its budget covers only the greeting.
const (
	feedReply = 64 << 10
	// A page of SCAN: names are usually short, but may be long. All nodes share readAll
	// in equal parts.
	readAll   = 64 << 20
	readLeast = 1 << 20
	readMost  = 8 << 20
)

// ReadBudget returns the budget of one node, of this many, for a page or a batch.
func ReadBudget(nodes int) *resp.Budget {
	most := min(max(readAll/max(nodes, 1), readLeast), readMost)
	return resp.NewBudget(most, 2*most)
}
