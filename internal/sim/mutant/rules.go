// Package mutant has the rules by which a simulation is played, and the ways to break one.
package mutant

// Rules are how the drivers of clients, guards and servers behave, and what the
// witness checks. The right ones are those of the product; a mutant breaks one
// of them. The product's own code is never changed: what it is told, and what
// becomes of what it says, is.
type Rules struct {
	Delay float64 // factor on D
	TTL   float64 // factor on all TTLs
	// checks is a set of properties, by their bits.
	Checks uint8
	// noExcuse counts a second vote that a master gives before any guard could
	// close it; it takes a boot fence to prevent those.
	NoExcuse bool

	// Guards.
	GuardBroken        bool // any of those below
	NoGuard            bool
	From               From
	RemovalRetried     bool
	InFlightRemovals   bool
	RivalRemovals      bool
	UnsettledRemovals  bool
	KillUnanswered     bool
	InFlightForgotten  bool
	SmallStepsIgnored  bool
	TightRate          bool
	RoleIgnored        bool
	BriefRoleIgnored   bool
	CounterIgnored     bool
	ResetIgnored       bool
	Amnesia            bool
	HalfForSecond      bool
	CordonIsFence      bool
	FenceNotRestarted  bool
	LagIgnored         bool
	FenceOfOne         bool
	FenceOnce          bool
	FenceLate          bool
	KillsForever       bool
	MemoryUnread       bool
	ClockUnread        bool
	ForgetsUnreachable bool
	RestartByRefusal   bool
	RejoinsOnExit      bool
	AvoidsOutage       bool
	ClusterDeadline    bool
	WipesIgnored       bool
	EvictionsIgnored   bool
	StepsIgnored       bool
	PeersIgnored       bool
	PeersForgotten     bool
	LatestDelay        bool
	FenceShortened     bool

	Early  EarlyRules
	Repair RepairRules

	// Clients.
	SameToken         bool
	Unordered         bool
	ReleaseYesOnly    bool
	NoDrift           bool
	NeverEnds         bool
	ValidityFromEnd   bool
	LateAnswers       bool
	Optimistic        bool
	HeldIsYes         bool
	FencedIsYes       bool
	AbsoluteExpiry    bool
	QuorumOfConnected bool
	QuorumOfHalf      bool
	ExtendMinority    bool

	// Servers: the scripts that clients send.
	Overwrite      bool
	ExtendCreates  bool
	ExtendAnyones  bool
	ExtendShortens bool
	ReleaseAnyones bool
}

// From is the moment that D counts from, and by which clock.
type From uint8

const (
	FromFirstSight From = iota // of the new run_id: the only right one
	FromLastSeen
	FromUptime
	FromFailedPing
	FromWallClock // from first sight, but measured on a wall clock
)

// Right are the product's own rules, with every check.
func Right() Rules {
	return Rules{Delay: 1, TTL: 1, Checks: 1<<Exclusion | 1<<LeftBehind | 1<<EarlyRejoin | 1<<CordonRemoved | 1<<NeedlessFence | 1<<Resurrected}
}

// EarlyRules are how early rejoin is broken by mutants.
type EarlyRules struct {
	On bool
	// Guards.
	AtOnce            bool // the bound of an attempt is not waited for
	OldScans          bool // what was seen before counts for a scan
	UnreachableIsFine bool
	LostNodeCounts    bool
	EndsIgnored       bool
	LossesIgnored     bool
	// Clients.
	LongAttempts bool
	SameTokens   bool
}

// RepairRules are how putting copies back is broken by mutants.
type RepairRules struct {
	Anywhere     bool // what was deleted is put back, too
	Unconfirmed  bool // behind an extension that failed
	Late         bool // when validity has ended
	CountsAtOnce bool
	Unanswered   bool // a copy counts that the acquisition was not told of
	Overwrites   bool // without NX
	ThroughFence bool
	Unordered    bool // by another connection than the release
	Long         bool // with a TTL that is longer than that of the extension
}
