package mutant

import (
	"slices"

	"redlockctl/internal/sim/schedule"
)

// Mutant is a deliberate weakening of the guard, of the lock algorithm, or of
// the scripts that clients send. The simulator must find each of them.
type Mutant struct {
	Name     string   // one word, for --mutant
	What     string   // what it does wrong
	Property Property // what it breaks
	weaken   func(r *Rules)
	Force    func(p *schedule.Plan) // what a schedule needs for it to matter; may be nil
}

// Rules are those of the mutant: one is broken, and only the property that it
// breaks is checked, so that it is not found by something weaker.
func (m Mutant) Rules() Rules {
	r := Right()
	r.Checks = 1 << m.Property
	r.GuardBroken = true
	m.weaken(&r)
	return r
}

// Named is the mutant of a name.
func Named(name string) (Mutant, bool) {
	all := All()
	i := slices.IndexFunc(all, func(m Mutant) bool { return m.Name == name })
	if i < 0 {
		return Mutant{}, false
	}
	return all[i], true
}

// All are all that there are, those of the guard first.
func All() []Mutant {
	open := func(p *schedule.Plan) { p.Fenced = false }
	return []Mutant{
		{"no-guard", "no guard: a crashed master votes as soon as it is back", Exclusion,
			func(r *Rules) { r.NoGuard, r.NoExcuse = true, true }, open},
		{"delay-0.9", "waits for 0.9 × D", Exclusion, func(r *Rules) { r.Delay = 0.9 }, nil},
		{"delay-0.98", "waits for 0.98 × D", Exclusion, func(r *Rules) { r.Delay = 0.98 }, nil},
		{"from-last-seen", "counts D from when the master was last seen alive", Exclusion, func(r *Rules) { r.From = FromLastSeen }, nil},
		{"from-uptime", "counts D by the server's uptime_in_seconds", Exclusion, func(r *Rules) { r.From = FromUptime }, nil},
		{"from-failed-ping", "counts D from the first failed ping", Exclusion, func(r *Rules) { r.From = FromFailedPing }, nil},
		{"wall-clock", "measures D on the wall clock of the guard's host", Exclusion, func(r *Rules) { r.From = FromWallClock }, nil},
		{"rejoin-retried", "sends a rejoin without answer again, to the next incarnation of the server", Exclusion, func(r *Rules) { r.RemovalRetried = true }, lostAnswers},
		{"late-rejoin", "a rejoin in flight on a connection given up is not stopped, and lets serve what was fenced again since", Exclusion,
			func(r *Rules) { r.InFlightRemovals = true }, inFlight},
		{"kill-unanswered", "does not end a connection again when the order to do so was lost on its way", Exclusion,
			func(r *Rules) { r.KillUnanswered = true }, lostKills},
		{"in-flight-forgotten", "forgets with its own restart that a rejoin may be in flight", Exclusion,
			func(r *Rules) { r.InFlightForgotten = true }, forgottenInFlight},
		{"rivals-ignored", "after a loss does not end the connections of other guards, whose commands may be in flight", Exclusion,
			func(r *Rules) { r.RivalRemovals = true }, crossed},
		{"unsettled-rejoin", "lets a master rejoin whose clock may have stepped, before it is read a second time", Exclusion,
			func(r *Rules) { r.UnsettledRemovals = true }, steppedBehind},
		{"small-steps-ignored", "compares a clock with its last reading only, so that small steps do not add up", Exclusion,
			func(r *Rules) { r.SmallStepsIgnored = true }, creeps},
		{"tight-rate", "takes a clock that is fast within its bounds for one that steps", NeedlessFence, func(r *Rules) { r.TightRate = true }, nil},
		{"role-ignored", "does not notice that a master was made a replica", Exclusion, func(r *Rules) { r.RoleIgnored = true }, nil},
		{"brief-role-ignored", "does not notice that a master was a replica between two looks", Exclusion,
			func(r *Rules) { r.BriefRoleIgnored = true }, nil},
		{"counter-ignored", "does not notice that a master's memory was put back", Exclusion, func(r *Rules) { r.CounterIgnored = true },
			restores},
		{"reset-ignored", "does not notice a wipe behind CONFIG RESETSTAT, where the count is what it was", Exclusion,
			func(r *Rules) { r.ResetIgnored = true }, resets},
		{"amnesia", "after its own restart takes a fenced master as free to rejoin", Exclusion, func(r *Rules) { r.Amnesia = true }, nil},
		{"half-for-second", "a second guard trusts the first to have waited for half of D", Exclusion, func(r *Rules) { r.HalfForSecond = true },
			func(p *schedule.Plan) { p.Guards = 2 }},
		{"hold-is-fence", "takes an operator's hold for a fence of its own", CordonRemoved, func(r *Rules) { r.CordonIsFence = true }, nil},
		{"fence-not-restarted", "a restart inside the fence does not start D again", Exclusion, func(r *Rules) { r.FenceNotRestarted = true }, open},
		{"no-boot-fence", "masters without a boot fence, and a guard that fences what it sees", Exclusion, func(r *Rules) { r.NoExcuse = true }, open},
		{"lag-ignored", "believes in a fence although min-replicas-max-lag 0 switches it off", Exclusion, func(r *Rules) { r.LagIgnored = true },
			func(p *schedule.Plan) { p.LagZero = true }},
		{"fence-of-one", "fences with min-replicas-to-write 1, and a replica is attached", Exclusion, func(r *Rules) { r.FenceOfOne = true },
			func(p *schedule.Plan) { p.Fenced, p.Replicas = false, true }},
		{"fence-once", "does not fence again when an order to fence was lost on its way", Exclusion, func(r *Rules) { r.FenceOnce = true }, open},
		{"fence-late", "fences a master at the look after the one at which it learnt of the loss", Exclusion, func(r *Rules) { r.FenceLate = true }, open},
		{"kills-forever", "ends its earlier connections at each look anew, and never comes to fencing", Exclusion,
			func(r *Rules) { r.KillsForever = true }, open},
		{"memory-unread", "after its own restart does not see that a serving master has restarted meanwhile", Exclusion,
			func(r *Rules) { r.MemoryUnread = true }, awayAtCrash},
		{"clock-unread", "after its own restart does not compare a master's clock with what it was before", Exclusion,
			func(r *Rules) { r.ClockUnread = true }, awayAtStep},
		{"forgets-unreachable", "forgets a master that it cannot reach, and adopts what comes back", Exclusion, func(r *Rules) { r.ForgetsUnreachable = true }, open},
		{"restart-by-refusal", "sees a restart only if a connection was refused meanwhile", Exclusion, func(r *Rules) { r.RestartByRefusal = true }, open},
		{"rejoins-on-exit", "lets rejoin what it has fenced when it ends", Exclusion, func(r *Rules) { r.RejoinsOnExit = true }, nil},
		{"avoids-outage", "does not wait when too few masters would be left for a quorum", Exclusion, func(r *Rules) { r.AvoidsOutage = true }, nil},
		{"cluster-deadline", "one deadline for all masters, that of the first", Exclusion, func(r *Rules) { r.ClusterDeadline = true }, nil},
		{"wipes-ignored", "does not notice FLUSHALL", Exclusion, func(r *Rules) { r.WipesIgnored = true }, nil},
		{"evictions-ignored", "does not notice that locks are evicted", Exclusion, func(r *Rules) { r.EvictionsIgnored = true }, nil},
		{"steps-ignored", "does not notice that a master's wall clock stepped forward", Exclusion, func(r *Rules) { r.StepsIgnored = true }, nil},
		{"peers-ignored", "waits for its own D, although another guard announces a longer one", Exclusion,
			func(r *Rules) { r.PeersIgnored = true }, differing},
		{"peers-forgotten", "counts only the D that is announced just now on the master itself", Exclusion,
			func(r *Rules) { r.PeersForgotten = true }, leaving},
		{"latest-delay", "waits for the D that it heard last, and not for the greatest", Exclusion,
			func(r *Rules) { r.LatestDelay = true }, differing},
		{"fence-shortened", "shortens a fence when the guard with the longer D has gone", Exclusion,
			func(r *Rules) { r.FenceShortened = true }, leaving},

		{"early-without-bound", "early rejoin that does not wait until attempts from before the loss are over", Exclusion,
			func(r *Rules) { r.Early.On, r.Early.AtOnce = true, true }, lateVotes},
		{"early-long-attempts", "early rejoin, and clients whose attempts take longer than the bound", Exclusion,
			func(r *Rules) { r.Early.On, r.Early.LongAttempts = true, true }, lateVotes},
		{"early-old-scan", "early rejoin by what was seen of the others before the bound was over", Exclusion,
			func(r *Rules) { r.Early.On, r.Early.OldScans = true, true }, lateVotes},
		{"early-ignores-unreachable", "early rejoin without the word of masters that do not answer", Exclusion,
			func(r *Rules) { r.Early.On, r.Early.UnreachableIsFine = true, true }, nil},
		{"early-counts-lost-node", "early rejoin that counts the lost copy for one of the quorum", Exclusion,
			func(r *Rules) { r.Early.On, r.Early.LostNodeCounts = true, true }, nil},
		{"early-ignores-ends", "early rejoin that does not look when the copies end", Exclusion,
			func(r *Rules) { r.Early.On, r.Early.EndsIgnored = true, true }, unevenEnds},
		{"early-equal-tokens", "early rejoin where all clients write the same value", Exclusion,
			func(r *Rules) { r.Early.On, r.Early.SameTokens = true, true }, failedBeside},
		{"early-ignores-losses", "early rejoin by the word of masters that have lost votes themselves", Exclusion,
			func(r *Rules) { r.Early.On, r.Early.LossesIgnored = true, true }, nil},

		{"ttl-above-max", "TTLs of 1.3 × max TTL", Exclusion, func(r *Rules) { r.TTL = 1.3 }, nil},
		{"token-reused", "the retries of a client use one token", Exclusion, func(r *Rules) { r.SameToken = true }, nil},
		{"unordered-release", "a release goes by another connection than its SET", LeftBehind, func(r *Rules) { r.Unordered = true }, nil},
		{"release-yes-only", "a release is sent only to nodes that said yes", LeftBehind, func(r *Rules) { r.ReleaseYesOnly = true }, nil},
		{"quorum-of-connected", "a quorum of the masters that can be reached", Exclusion, func(r *Rules) { r.QuorumOfConnected = true }, nil},
		{"quorum-of-half", "half of an even number of masters is a quorum", Exclusion, func(r *Rules) { r.QuorumOfHalf = true }, nil},
		{"no-drift-allowance", "validity without drift allowance", Exclusion, func(r *Rules) { r.NoDrift = true }, nil},
		{"validity-ignored", "a holder goes on after the end of its validity", Exclusion, func(r *Rules) { r.NeverEnds = true }, nil},
		{"validity-from-end", "validity counted from the grant and not from the first request", Exclusion, func(r *Rules) { r.ValidityFromEnd = true }, nil},
		{"late-answers", "answers count after the attempt was given up", Exclusion, func(r *Rules) { r.LateAnswers = true }, nil},
		{"held-is-yes", "a master that has another token counts as a vote", Exclusion, func(r *Rules) { r.HeldIsYes = true }, nil},
		{"fenced-is-yes", "a master that refuses writes counts as a vote", Exclusion, func(r *Rules) { r.FencedIsYes = true }, nil},
		{"absolute-expiry", "expiry as a time of the client's clock (PXAT)", Exclusion, func(r *Rules) { r.AbsoluteExpiry = true }, nil},
		{"extension-optimistic", "an extension counts before a quorum has confirmed it", Exclusion, func(r *Rules) { r.Optimistic = true }, nil},
		{"extension-of-minority", "one answer is enough for an extension", Exclusion, func(r *Rules) { r.ExtendMinority = true }, nil},
		{"extension-creates", "an extension makes a copy that is gone anew", LeftBehind, func(r *Rules) { r.ExtendCreates = true }, nil},
		{"extension-of-anyone", "an extension does not compare the token, and may come late", Exclusion,
			func(r *Rules) { r.ExtendAnyones = true }, nil},
		{"extension-shortens", "an extension that was overtaken by a longer one cuts it down", Exclusion, func(r *Rules) { r.ExtendShortens = true }, nil},
		{"repair-of-deleted", "copies are put back that were deleted, one after the other", Resurrected,
			func(r *Rules) { r.Repair.Anywhere = true }, slowlyTaken},
		{"repair-unconfirmed", "copies are put back although no quorum has confirmed the lock", Resurrected,
			func(r *Rules) { r.Repair.Unconfirmed = true }, nil},
		{"repair-late", "copies are put back when the validity of the lock has ended", Resurrected,
			func(r *Rules) { r.Repair.Late = true }, suspendedBehind},
		{"repair-counts-at-once", "what was put back counts before it has settled", Resurrected,
			func(r *Rules) { r.Repair.CountsAtOnce = true }, rollingTaken},
		{"unanswered-counts", "a copy counts of which the acquisition was not told", Resurrected,
			func(r *Rules) { r.Repair.Unanswered = true }, takenBefore},
		{"repair-overwrites", "a copy is put back in the place of another's", Resurrected, func(r *Rules) { r.Repair.Overwrites = true }, nil},
		{"repair-through-fence", "a fenced master accepts a copy that is put back", Resurrected, func(r *Rules) { r.Repair.ThroughFence = true }, nil},
		{"repair-unordered", "a copy is put back by another connection than the release behind it", LeftBehind,
			func(r *Rules) { r.Repair.Unordered = true }, nil},
		{"repair-outlives", "a copy is put back with a longer TTL than the extension's", LeftBehind, func(r *Rules) { r.Repair.Long = true }, rolling},
		{"release-of-anyone", "a release does not compare the token", Exclusion, func(r *Rules) { r.ReleaseAnyones = true }, nil},
		{"set-overwrites", "SET without NX", Exclusion, func(r *Rules) { r.Overwrite = true }, nil},
	}
}
