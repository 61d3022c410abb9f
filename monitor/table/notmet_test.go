package table

import (
	"testing"
	"time"
)

// A look that has heard of a lost majority, and has not met all nodes yet, does not keep the end that the lock would
// have if they had copies too.
func TestANodeThatWasNotMetYetMovesNoEnd(t *testing.T) {
	const ttl = 28 * time.Second
	guard := newRig(5, 30*time.Second).first()
	guard.pass(time.Hour)
	guard.set("k", "token-a", ttl, 0, 1, 2)
	end := guard.now.Add(ttl)
	guard.scanAll()
	guard.pass(2 * time.Second)
	guard.wipe(2)
	guard.scanAll()
	guard.pass(4 * time.Second)
	guard.scanAll()
	guard.set("k", "token-a", ttl, 0, 1)
	guard.scanAll()
	guard.pass(time.Second)
	guard.until(t, "the guard", end)

	for _, order := range [][]int{{0, 1, 2, 3, 4}, {0, 1, 3, 4, 2}, {2, 3, 0, 4, 1}, {1, 0, 4, 3, 2}} {
		other := newRig(5, 30*time.Second)
		other.now, other.servers = guard.now, guard.servers
		for i := range 5 {
			other.nodes[i].reachable = false // not met yet
		}
		for _, i := range order {
			other.Met(i, Incarnation{Started: other.now.Add(-time.Hour), Fenced: i == 2}, other.now)
			other.Reachable(i, i == 2)
			other.scan(i)
			other.Heard(guard.Vouches(other.now), other.now)
			other.pass(time.Millisecond)
		}
		other.Settle(other.now)
		other.until(t, "the first look", end)
		other.rounds()
		other.until(t, "later", end)
	}
}
