package sim

import (
	"math/bits"

	"redlockctl/redlock"
)

// rules are how the drivers of clients, guards and servers behave, and what the
// witness checks. The right ones are those of the product; a mutant breaks one
// of them. The product's own code is never changed: what it is told, and what
// becomes of what it says, is.
type rules struct {
	delay float64 // factor on D
	ttl   float64 // factor on all TTLs
	// checks is a set of properties, by their bits.
	checks uint8
	// noExcuse counts a second vote that a master gives before any guard could
	// close it; it takes a boot fence to prevent those.
	noExcuse bool

	// Guards.
	guardBroken        bool // any of those below
	noGuard            bool
	from               from
	removalRetried     bool
	inFlightRemovals   bool
	rivalRemovals      bool
	unsettledRemovals  bool
	killUnanswered     bool
	inFlightForgotten  bool
	smallStepsIgnored  bool
	tightRate          bool
	roleIgnored        bool
	briefRoleIgnored   bool
	counterIgnored     bool
	resetIgnored       bool
	amnesia            bool
	halfForSecond      bool
	cordonIsFence      bool
	fenceNotRestarted  bool
	lagIgnored         bool
	fenceOfOne         bool
	fenceOnce          bool
	fenceLate          bool
	killsForever       bool
	memoryUnread       bool
	clockUnread        bool
	forgetsUnreachable bool
	restartByRefusal   bool
	rejoinsOnExit      bool
	avoidsOutage       bool
	clusterDeadline    bool
	wipesIgnored       bool
	evictionsIgnored   bool
	stepsIgnored       bool
	peersIgnored       bool
	peersForgotten     bool
	latestDelay        bool
	fenceShortened     bool

	early  earlyRules
	repair repairRules

	// Clients.
	sameToken         bool
	unordered         bool
	releaseYesOnly    bool
	noDrift           bool
	neverEnds         bool
	validityFromEnd   bool
	lateAnswers       bool
	optimistic        bool
	heldIsYes         bool
	fencedIsYes       bool
	absoluteExpiry    bool
	quorumOfConnected bool
	quorumOfHalf      bool
	extendMinority    bool

	// Servers: the scripts that clients send.
	overwrite      bool
	extendCreates  bool
	extendAnyones  bool
	extendShortens bool
	releaseAnyones bool
}

// from is the moment that D counts from, and by which clock.
type from uint8

const (
	fromFirstSight from = iota // of the new run_id: the only right one
	fromLastSeen
	fromUptime
	fromFailedPing
	fromWallClock // from first sight, but measured on a wall clock
)

// right are the product's own rules, with every check.
func right() rules {
	return rules{delay: 1, ttl: 1, checks: 1<<Exclusion | 1<<LeftBehind | 1<<EarlyRejoin | 1<<CordonRemoved | 1<<NeedlessFence | 1<<Resurrected}
}

// grants reports whether a broken way to count votes would grant.
func (r *rules) grants(n int, c *client) bool {
	yes := bits.OnesCount8(c.yes)
	switch {
	case yes == 0:
		return false
	case r.quorumOfHalf:
		return yes >= (n+1)/2
	case r.quorumOfConnected:
		return yes >= redlock.Quorum(n-bits.OnesCount8(c.dead))
	case r.extendMinority:
		return c.extend
	case r.lateAnswers:
		return yes >= redlock.Quorum(n)
	}
	return false
}
