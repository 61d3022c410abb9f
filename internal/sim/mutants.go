package sim

import (
	"time"

	"redlockctl/restartguard"
)

// Mutant is a deliberate weakening of the guard, of the lock algorithm, or of
// the scripts that clients send. The simulator must find each of them.
type Mutant struct {
	Name     string   // one word, for --mutant
	What     string   // what it does wrong
	Property Property // what it breaks
	weaken   func(r *rules)
	force    func(p *plan) // what a schedule needs for it to matter; may be nil
}

// rules are those of the mutant: one is broken, and only the property that it
// breaks is checked, so that it is not found by something weaker.
func (m Mutant) rules() rules {
	r := right()
	r.checks = 1 << m.Property
	r.guardBroken = true
	m.weaken(&r)
	return r
}

// Mutants are all that there are, those of the guard first.
func Mutants() []Mutant {
	open := func(p *plan) { p.fenced = false }
	return []Mutant{
		{"no-guard", "no guard: a crashed master votes as soon as it is back", Exclusion,
			func(r *rules) { r.noGuard, r.noExcuse = true, true }, open},
		{"delay-0.9", "waits for 0.9 × D", Exclusion, func(r *rules) { r.delay = 0.9 }, nil},
		{"delay-0.98", "waits for 0.98 × D", Exclusion, func(r *rules) { r.delay = 0.98 }, nil},
		{"from-last-seen", "counts D from when the master was last seen alive", Exclusion, func(r *rules) { r.from = fromLastSeen }, nil},
		{"from-uptime", "counts D by the server's uptime_in_seconds", Exclusion, func(r *rules) { r.from = fromUptime }, nil},
		{"from-failed-ping", "counts D from the first failed ping", Exclusion, func(r *rules) { r.from = fromFailedPing }, nil},
		{"wall-clock", "measures D on the wall clock of the guard's host", Exclusion, func(r *rules) { r.from = fromWallClock }, nil},
		{"rejoin-retried", "sends a rejoin without answer again, to the next incarnation of the server", Exclusion, func(r *rules) { r.removalRetried = true }, lostAnswers},
		{"late-rejoin", "a rejoin in flight on a connection given up is not stopped, and lets serve what was fenced again since", Exclusion,
			func(r *rules) { r.inFlightRemovals = true }, inFlight},
		{"kill-unanswered", "does not end a connection again when the order to do so was lost on its way", Exclusion,
			func(r *rules) { r.killUnanswered = true }, lostKills},
		{"in-flight-forgotten", "forgets with its own restart that a rejoin may be in flight", Exclusion,
			func(r *rules) { r.inFlightForgotten = true }, forgottenInFlight},
		{"rivals-ignored", "after a loss does not end the connections of other guards, whose commands may be in flight", Exclusion,
			func(r *rules) { r.rivalRemovals = true }, crossed},
		{"unsettled-rejoin", "lets a master rejoin whose clock may have stepped, before it is read a second time", Exclusion,
			func(r *rules) { r.unsettledRemovals = true }, steppedBehind},
		{"small-steps-ignored", "compares a clock with its last reading only, so that small steps do not add up", Exclusion,
			func(r *rules) { r.smallStepsIgnored = true }, creeps},
		{"tight-rate", "takes a clock that is fast within its bounds for one that steps", NeedlessFence, func(r *rules) { r.tightRate = true }, nil},
		{"role-ignored", "does not notice that a master was made a replica", Exclusion, func(r *rules) { r.roleIgnored = true }, nil},
		{"brief-role-ignored", "does not notice that a master was a replica between two looks", Exclusion,
			func(r *rules) { r.briefRoleIgnored = true }, nil},
		{"counter-ignored", "does not notice that a master's memory was put back", Exclusion, func(r *rules) { r.counterIgnored = true },
			restores},
		{"reset-ignored", "does not notice a wipe behind CONFIG RESETSTAT, where the count is what it was", Exclusion,
			func(r *rules) { r.resetIgnored = true }, resets},
		{"amnesia", "after its own restart takes a closed master as free to open", Exclusion, func(r *rules) { r.amnesia = true }, nil},
		{"half-for-second", "a second guard trusts the first to have waited for half of D", Exclusion, func(r *rules) { r.halfForSecond = true },
			func(p *plan) { p.guards = 2 }},
		{"hold-is-fence", "takes an operator's hold for a fence of its own", CordonRemoved, func(r *rules) { r.cordonIsFence = true }, nil},
		{"fence-not-restarted", "a restart inside the fence does not start D again", Exclusion, func(r *rules) { r.fenceNotRestarted = true }, open},
		{"no-boot-fence", "masters without a boot fence, and a guard that closes what it sees", Exclusion, func(r *rules) { r.noExcuse = true }, open},
		{"lag-ignored", "believes in a fence although min-replicas-max-lag 0 switches it off", Exclusion, func(r *rules) { r.lagIgnored = true },
			func(p *plan) { p.lagZero = true }},
		{"fence-of-one", "closes with min-replicas-to-write 1, and a replica is attached", Exclusion, func(r *rules) { r.fenceOfOne = true },
			func(p *plan) { p.fenced, p.replicas = false, true }},
		{"close-once", "does not close again when a closing was lost on its way", Exclusion, func(r *rules) { r.fenceOnce = true }, open},
		{"close-late", "closes a master at the look after the one at which it learnt of the loss", Exclusion, func(r *rules) { r.fenceLate = true }, open},
		{"kills-forever", "ends its earlier connections at each look anew, and does not come to closing", Exclusion,
			func(r *rules) { r.killsForever = true }, open},
		{"memory-unread", "after its own restart does not see that an open master has restarted meanwhile", Exclusion,
			func(r *rules) { r.memoryUnread = true }, awayAtCrash},
		{"clock-unread", "after its own restart does not compare a master's clock with what it was before", Exclusion,
			func(r *rules) { r.clockUnread = true }, awayAtStep},
		{"forgets-unreachable", "forgets a master that it cannot reach, and adopts what comes back", Exclusion, func(r *rules) { r.forgetsUnreachable = true }, open},
		{"restart-by-refusal", "sees a restart only if a connection was refused meanwhile", Exclusion, func(r *rules) { r.restartByRefusal = true }, open},
		{"opens-on-exit", "opens what it has closed when it ends", Exclusion, func(r *rules) { r.rejoinsOnExit = true }, nil},
		{"avoids-outage", "does not wait when too few masters would be left for a quorum", Exclusion, func(r *rules) { r.avoidsOutage = true }, nil},
		{"cluster-deadline", "one deadline for all masters, that of the first", Exclusion, func(r *rules) { r.clusterDeadline = true }, nil},
		{"wipes-ignored", "does not notice FLUSHALL", Exclusion, func(r *rules) { r.wipesIgnored = true }, nil},
		{"evictions-ignored", "does not notice that locks are evicted", Exclusion, func(r *rules) { r.evictionsIgnored = true }, nil},
		{"steps-ignored", "does not notice that a master's wall clock stepped forward", Exclusion, func(r *rules) { r.stepsIgnored = true }, nil},
		{"peers-ignored", "waits for its own D, although another guard announces a longer one", Exclusion,
			func(r *rules) { r.peersIgnored = true }, differing},
		{"peers-forgotten", "counts only the D that is announced just now on the master itself", Exclusion,
			func(r *rules) { r.peersForgotten = true }, leaving},
		{"latest-delay", "waits for the D that it heard last, and not for the greatest", Exclusion,
			func(r *rules) { r.latestDelay = true }, differing},
		{"fence-shortened", "shortens a fence when the guard with the longer D has gone", Exclusion,
			func(r *rules) { r.fenceShortened = true }, leaving},

		{"early-without-bound", "early rejoin that does not wait until attempts from before the loss are over", Exclusion,
			func(r *rules) { r.early.on, r.early.atOnce = true, true }, lateVotes},
		{"early-long-attempts", "early rejoin, and clients whose attempts take longer than the bound", Exclusion,
			func(r *rules) { r.early.on, r.early.longAttempts = true, true }, lateVotes},
		{"early-old-scan", "early rejoin by what was seen of the others before the bound was over", Exclusion,
			func(r *rules) { r.early.on, r.early.oldScans = true, true }, lateVotes},
		{"early-ignores-unreachable", "early rejoin without the word of masters that do not answer", Exclusion,
			func(r *rules) { r.early.on, r.early.unreachableIsFine = true, true }, nil},
		{"early-counts-lost-node", "early rejoin that counts the lost copy for one of the quorum", Exclusion,
			func(r *rules) { r.early.on, r.early.lostNodeCounts = true, true }, nil},
		{"early-ignores-ends", "early rejoin that does not look when the copies end", Exclusion,
			func(r *rules) { r.early.on, r.early.endsIgnored = true, true }, unevenEnds},
		{"early-equal-tokens", "early rejoin where all clients write the same value", Exclusion,
			func(r *rules) { r.early.on, r.early.sameTokens = true, true }, failedBeside},
		{"early-ignores-losses", "early rejoin by the word of masters that have lost votes themselves", Exclusion,
			func(r *rules) { r.early.on, r.early.lossesIgnored = true, true }, nil},

		{"ttl-above-max", "TTLs of 1.3 × max TTL", Exclusion, func(r *rules) { r.ttl = 1.3 }, nil},
		{"token-reused", "the retries of a client use one token", Exclusion, func(r *rules) { r.sameToken = true }, nil},
		{"unordered-release", "a release goes by another connection than its SET", LeftBehind, func(r *rules) { r.unordered = true }, nil},
		{"release-yes-only", "a release is sent only to nodes that said yes", LeftBehind, func(r *rules) { r.releaseYesOnly = true }, nil},
		{"quorum-of-connected", "a quorum of the masters that can be reached", Exclusion, func(r *rules) { r.quorumOfConnected = true }, nil},
		{"quorum-of-half", "half of an even number of masters is a quorum", Exclusion, func(r *rules) { r.quorumOfHalf = true }, nil},
		{"no-drift-allowance", "validity without drift allowance", Exclusion, func(r *rules) { r.noDrift = true }, nil},
		{"validity-ignored", "a holder goes on after the end of its validity", Exclusion, func(r *rules) { r.neverEnds = true }, nil},
		{"validity-from-end", "validity counted from the grant and not from the first request", Exclusion, func(r *rules) { r.validityFromEnd = true }, nil},
		{"late-answers", "answers count after the attempt was given up", Exclusion, func(r *rules) { r.lateAnswers = true }, nil},
		{"held-is-yes", "a master that has another token counts as a vote", Exclusion, func(r *rules) { r.heldIsYes = true }, nil},
		{"fenced-is-yes", "a master that refuses writes counts as a vote", Exclusion, func(r *rules) { r.fencedIsYes = true }, nil},
		{"absolute-expiry", "expiry as a time of the client's clock (PXAT)", Exclusion, func(r *rules) { r.absoluteExpiry = true }, nil},
		{"extension-optimistic", "an extension counts before a quorum has confirmed it", Exclusion, func(r *rules) { r.optimistic = true }, nil},
		{"extension-of-minority", "one answer is enough for an extension", Exclusion, func(r *rules) { r.extendMinority = true }, nil},
		{"extension-creates", "an extension makes a copy that is gone anew", LeftBehind, func(r *rules) { r.extendCreates = true }, nil},
		{"extension-of-anyone", "an extension does not compare the token, and may come late", Exclusion,
			func(r *rules) { r.extendAnyones = true }, nil},
		{"extension-shortens", "an extension that was overtaken by a longer one cuts it down", Exclusion, func(r *rules) { r.extendShortens = true }, nil},
		{"repair-of-deleted", "copies are put back that were deleted, one after the other", Resurrected,
			func(r *rules) { r.repair.anywhere = true }, slowlyTaken},
		{"repair-unconfirmed", "copies are put back although no quorum has confirmed the lock", Resurrected,
			func(r *rules) { r.repair.unconfirmed = true }, nil},
		{"repair-late", "copies are put back when the validity of the lock has ended", Resurrected,
			func(r *rules) { r.repair.late = true }, suspendedBehind},
		{"repair-counts-at-once", "what was put back counts before it has settled", Resurrected,
			func(r *rules) { r.repair.countsAtOnce = true }, rollingTaken},
		{"unanswered-counts", "a copy counts of which the acquisition was not told", Resurrected,
			func(r *rules) { r.repair.unanswered = true }, takenBefore},
		{"repair-overwrites", "a copy is put back in the place of another's", Resurrected, func(r *rules) { r.repair.overwrites = true }, nil},
		{"repair-through-fence", "a fenced master accepts a copy that is put back", Resurrected, func(r *rules) { r.repair.throughFence = true }, nil},
		{"repair-unordered", "a copy is put back by another connection than the release behind it", LeftBehind,
			func(r *rules) { r.repair.unordered = true }, nil},
		{"repair-outlives", "a copy is put back with a longer TTL than the extension's", LeftBehind, func(r *rules) { r.repair.long = true }, rolling},
		{"release-of-anyone", "a release does not compare the token", Exclusion, func(r *rules) { r.releaseAnyones = true }, nil},
		{"set-overwrites", "SET without NX", Exclusion, func(r *rules) { r.overwrite = true }, nil},
	}
}

// awayAtCrash makes plans in which a guard that keeps its memory is down when masters
// crash that start unfenced.
func awayAtCrash(p *plan) {
	p.fenced, p.guards = false, 1
	p.guard[0].poll = MaxTTL / 30
	p.fault[0] = faultPlan{kind: faultGuardCrash, on: onGrant, nth: 1, after: 1, length: 20 * ms, memory: true}
	p.fault[1] = faultPlan{kind: faultCrash, on: onGrant, nth: 1, choice: theHolders, count: uint8(p.n), after: 5 * ms, length: ms}
	p.faults = 2
}

// awayAtStep makes plans in which the clocks of the masters that voted are set ahead
// while the only guard is away for a moment, with its memory.
func awayAtStep(p *plan) {
	p.fenced, p.guards = true, 1
	p.guard[0].poll = MaxTTL / 30
	p.fault[0] = faultPlan{kind: faultGuardCrash, on: onGrant, nth: 1, after: 1, length: 20 * ms, memory: true}
	p.fault[1] = faultPlan{kind: faultStep, on: onGrant, nth: 1, choice: theHolders, count: uint8(p.n), after: 5 * ms, length: 2 * MaxTTL}
	p.faults = 2
}

// creeps makes plans in which readings of clocks are slow, and clocks are set ahead
// by small steps while locks are held.
func creeps(p *plan) {
	p.guards, p.fenced = 1, true
	g := &p.guard[0]
	g.poll = MaxTTL / 30
	for k := range g.trips {
		g.trips[k] = trip{20 * ms, 20 * ms}
	}
	p.fault[0] = faultPlan{kind: faultCreep, on: onGrant, nth: 1, choice: theHolders, count: 60, after: ms, length: 60 * 35 * ms, stagger: time.Second}
	p.faults = 1
}

// restores makes plans in which masters' memory is put back while locks are held.
func restores(p *plan) {
	p.guards, p.counter = 1, true
	p.guard[0].poll = MaxTTL / 30
	p.fault[0] = faultPlan{kind: faultRestore, on: onGrant, nth: 1, choice: theHolders, count: uint8(p.n), after: MaxTTL / 3}
	p.faults = 1
}

// resets makes plans in which a master is flushed, and flushed again behind a
// reset of its counters.
func resets(p *plan) {
	p.counter = false
	first := faultPlan{kind: faultFlush, on: onGrant, nth: 1, choice: theHolders, count: uint8(p.n), after: ms}
	again := faultPlan{kind: faultReset, on: onGrant, nth: 2, choice: theHolders, count: uint8(p.n), after: ms}
	p.fault[0], p.fault[1], p.faults = first, again, 2
}

// differing makes plans with a second guard that has a shorter D.
func differing(p *plan) {
	p.fenced, p.lagZero, p.guards, p.shorter = true, false, 2, true
	p.guard[0].start, p.guard[1].start = 0, 0
}

// leaving makes plans in which the guard with the longer D ends for good, and masters
// lose votes when the other has not forgotten it quite yet.
func leaving(p *plan) {
	differing(p)
	p.blind = 0
	g := &p.guard[1]
	g.poll, g.eager = MaxTTL/30, true
	for k := range g.trips {
		g.trips[k] = trip{ms, ms}
	}
	for i := range p.clients {
		p.client[i].attempt[0].on = onTime
		p.client[i].attempt[0].pause = restartguard.PeerKept - MaxTTL/15 + p.client[i].attempt[0].set[0].back*1000
	}
	p.fault[0] = faultPlan{kind: faultGuardCrash, who: 0, after: time.Second, length: 2 * horizon}
	p.fault[1] = faultPlan{kind: faultCrash, on: onGrant, nth: 1, choice: theHolders, count: uint8(p.n), after: ms, length: ms}
	p.faults = 2
}
