package mutant

import (
	"slices"
	"strings"

	"redlockctl/proof/sim/schedule"
)

// Mutant is a deliberate weakening of the guard, of the lock algorithm, or of
// the scripts that clients send. The simulator must find each of them.
type Mutant struct {
	Name     string                 `json:"name"`     // one word, for --mutant
	What     string                 `json:"what"`     // what it does wrong
	Property Property               `json:"property"` // what it breaks
	Force    func(p *schedule.Plan) `json:"-"`        // what a schedule needs for it to matter; may be nil
}

// Rules are those of the mutant: one is broken, and only the property that it
// breaks is checked, so that it is not found by something weaker.
func (m Mutant) Rules() Rules {
	r := Right()
	r.mutant, r.Checks, r.GuardBroken = m.Name, 1<<m.Property, true
	switch m.Name {
	case "no-guard":
		r.NoGuard, r.NoExcuse = true, true
	case "no-boot-fence":
		r.NoExcuse = true
	case "delay-0.9":
		r.Delay = 0.9
	case "delay-0.98":
		r.Delay = 0.98
	case "ttl-above-max":
		r.TTL = 1.3
	}
	r.EarlyRejoin = strings.HasPrefix(m.Name, "early-")
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

// All has all mutants, those of the guard first.
func All() []Mutant {
	open := func(p *schedule.Plan) { p.Fenced = false }
	return []Mutant{
		{"no-guard", "no guard: a crashed master votes as soon as it is back", Exclusion, open},
		{"delay-0.9", "waits for 0.9 × D", Exclusion, nil},
		{"delay-0.98", "waits for 0.98 × D", Exclusion, nil},
		{"from-last-seen", "counts D from when the master was last seen alive", Exclusion, nil},
		{"from-uptime", "counts D by the server's uptime_in_seconds", Exclusion, nil},
		{"from-failed-ping", "counts D from the first failed ping", Exclusion, nil},
		{"wall-clock", "measures D on the wall clock of the guard's host", Exclusion, nil},
		{"rejoin-retried", "sends a rejoin without answer again, to the next incarnation of the server", Exclusion, lostAnswers},
		{"late-rejoin", "a rejoin in flight on a connection given up is not stopped, and lets serve what was fenced again since", Exclusion, inFlight},
		{"kill-unanswered", "does not end a connection again when the order to do so was lost on its way", Exclusion, lostKills},
		{"in-flight-forgotten", "forgets with its own restart that a rejoin may be in flight", Exclusion, forgottenInFlight},
		{"rivals-ignored", "after a loss does not end the connections of other guards, whose commands may be in flight", Exclusion, crossed},
		{"unsettled-rejoin", "lets a master rejoin whose clock may have stepped, before it is read a second time", Exclusion, steppedBehind},
		{"small-steps-ignored", "compares a clock with its last reading only, so that small steps do not add up", Exclusion, creeps},
		{"tight-rate", "takes a clock that is fast within its bounds for one that steps", NeedlessFence, nil},
		{"role-ignored", "does not notice that a master was made a replica", Exclusion, nil},
		{"brief-role-ignored", "does not notice that a master was a replica between two looks", Exclusion, nil},
		{"counter-ignored", "does not notice that a master's memory was put back", Exclusion, restores},
		{"reset-ignored", "does not notice a wipe behind CONFIG RESETSTAT, where the count is what it was", Exclusion, resets},
		{"amnesia", "after its own restart takes a fenced master as free to rejoin", Exclusion, nil},
		{"half-for-second", "a second guard trusts the first to have waited for half of D", Exclusion, func(p *schedule.Plan) { p.Guards = 2 }},
		{"cordon-is-fence", "takes an operator's cordon for a fence of its own", CordonRemoved, nil},
		{"fence-not-restarted", "a restart inside the fence does not start D again", Exclusion, open},
		{"no-boot-fence", "masters without a boot fence, and a guard that fences what it sees", Exclusion, open},
		{"lag-ignored", "relies on a fence although min-replicas-max-lag 0 switches it off", Exclusion, func(p *schedule.Plan) { p.LagZero = true }},
		{"fence-of-one", "fences with min-replicas-to-write 1, and a replica is attached", Exclusion, func(p *schedule.Plan) { p.Fenced, p.Replicas = false, true }},
		{"fence-once", "does not fence again when an order to fence was lost on its way", Exclusion, open},
		{"fence-late", "fences a master at the look after the one at which it learnt of the loss", Exclusion, open},
		{"kills-forever", "ends its earlier connections at each look anew, and never comes to fencing", Exclusion, open},
		{"memory-unread", "after its own restart does not see that a serving master was flushed meanwhile", Exclusion, awayAtFlush},
		{"clock-unread", "after its own restart does not compare a master's clock with what it was before", Exclusion, awayAtStep},
		{"forgets-unreachable", "forgets a master that it cannot reach, and adopts what comes back", Exclusion, open},
		{"restart-by-refusal", "sees a restart only if a connection was refused meanwhile", Exclusion, open},
		{"rejoins-on-exit", "lets rejoin what it has fenced when it ends", Exclusion, nil},
		{"avoids-outage", "does not wait when too few masters would be left for a quorum", Exclusion, nil},
		{"cluster-deadline", "one deadline for all masters, that of the first", Exclusion, nil},
		{"wipes-ignored", "does not notice FLUSHALL", Exclusion, nil},
		{"evictions-ignored", "does not notice that locks are evicted", Exclusion, nil},
		{"steps-ignored", "does not notice that a master's wall clock stepped forward", Exclusion, nil},
		{"script-unproved", "proves a fence by a plain command alone, although scripts pass it", Proof, leaky},
		{"replica-rejoins", "lets a replica rejoin after D", EarlyRejoin, demoted},
		{"replica-writable", "leaves a replica as it is that accepts writes", Exclusion, demoted},
		{"peers-ignored", "waits for its own D, although another guard announces a longer one", Exclusion, differing},
		{"peers-forgotten", "counts only the D that is announced just now on the master itself", Exclusion, leaving},
		{"latest-delay", "waits for the D that it heard last, and not for the greatest", Exclusion, differing},
		{"delays-unread", "forgets over its own restart which D others have announced", Exclusion, restartedApart},
		{"uncordon-cancels", "an uncordon ends the wait that a restart has earned", EarlyRejoin, cordonedInFence},
		{"drain-uncounted", "takes a cordoned master for drained without counting its copies", Exclusion, emptied},
		{"drain-stepped", "takes a master for drained that the step of its clock may have emptied", Exclusion, emptiedByStep},
		{"drain-own-lease", "takes a master for drained for as long as its own D allows, although another guard has a shorter one, and waits for none that counts D", Exclusion, drainedShorter},
		{"drain-unheard", "lets a master rejoin that was drained, although another guard may still take it for drained, and waits for none that counts D", Exclusion, drainedApart},
		{"fence-shortened", "shortens a fence when the guard with the longer D has gone", Exclusion, leaving},
		{"joins-adopted", "takes a master that joins a cluster in use as it is", Exclusion, replaced},
		{"young-adopted", "takes a master as it is that started less than D ago, at first contact", Exclusion, metYoung},
		{"new-cluster-unasked", "lets masters serve as a new cluster without asking the guards whether they were in use", Exclusion, powerCut},
		{"new-cluster-unwatched", "lets masters serve as a new cluster although no guard is there to ask", Exclusion, powerCutUnwatched},
		{"use-forgotten", "a guard forgets with its own restart that the cluster was in use", Exclusion, powerCutRestarted},

		{"early-without-bound", "early rejoin that does not wait until attempts from before the loss are over", Exclusion, lateVotes},
		{"early-long-attempts", "early rejoin, and clients whose attempts take longer than the bound", Exclusion, lateVotes},
		{"early-old-scan", "early rejoin by what was seen of the others before the bound was over", Exclusion, lateVotes},
		{"early-ignores-unreachable", "early rejoin without the word of masters that do not answer", Exclusion, nil},
		{"early-counts-lost-node", "early rejoin that counts the lost copy for one of the quorum", Exclusion, nil},
		{"early-ignores-ends", "early rejoin that does not look when the copies end", Exclusion, unevenEnds},
		{"early-equal-tokens", "early rejoin where all clients write the same value", Exclusion, failedBeside},
		{"early-ignores-losses", "early rejoin by the word of masters that have lost votes themselves", Exclusion, nil},

		{"ttl-above-max", "TTLs of 1.3 × max TTL", Exclusion, nil},
		{"token-reused", "the retries of a client use one token", Exclusion, nil},
		{"unordered-release", "a release goes by another connection than its SET", LeftBehind, nil},
		{"release-yes-only", "a release is sent only to nodes that said yes", LeftBehind, nil},
		{"quorum-of-connected", "a quorum of the masters that can be reached", Exclusion, nil},
		{"quorum-of-half", "half of an even number of masters is a quorum", Exclusion, nil},
		{"no-drift-allowance", "validity without drift allowance", Exclusion, nil},
		{"validity-ignored", "a holder goes on after the end of its validity", Exclusion, nil},
		{"validity-from-end", "validity counted from the grant and not from the first request", Exclusion, nil},
		{"late-answers", "answers count after the attempt was given up", Exclusion, nil},
		{"held-is-yes", "a master that has another token counts as a vote", Exclusion, nil},
		{"user-fence-unasked", "a client that logs in as another user than the one whom the fence stops does not ask for the fence", Exclusion, byUser},
		{"fenced-is-yes", "a master that refuses writes counts as a vote", Exclusion, nil},
		{"absolute-expiry", "expiry as a time of the client's clock (PXAT)", Exclusion, nil},
		{"extension-optimistic", "an extension counts before a quorum has confirmed it", Exclusion, nil},
		{"extension-of-minority", "one answer is enough for an extension", Exclusion, nil},
		{"extension-creates", "an extension makes a copy that is gone anew", LeftBehind, nil},
		{"extension-of-anyone", "an extension does not compare the token, and may come late", Exclusion, nil},
		{"extension-shortens", "an extension that was overtaken by a longer one cuts it down", Exclusion, nil},
		{"repair-of-deleted", "copies are put back that were deleted, one after the other", Resurrected, slowlyTaken},
		{"repair-of-fenced", "a copy that a fence kept from being extended is put back although it was deleted before its end", Resurrected, fencedTaken},
		{"repair-unconfirmed", "copies are put back although no quorum has confirmed the lock", Resurrected, nil},
		{"repair-late", "copies are put back when the validity of the lock has ended", Resurrected, suspendedBehind},
		{"repair-counts-at-once", "what was put back counts before it has settled", Resurrected, rollingTaken},
		{"unanswered-counts", "a copy counts of which the acquisition was not told", Resurrected, takenBefore},
		{"repair-overwrites", "a copy is put back in the place of another's", Resurrected, nil},
		{"repair-through-fence", "a fenced master accepts a copy that is put back", Resurrected, nil},
		{"repair-unordered", "a copy is put back by another connection than the release behind it", LeftBehind, nil},
		{"repair-outlives", "a copy is put back with a longer TTL than the extension's", LeftBehind, rolling},
		{"release-of-anyone", "a release does not compare the token", Exclusion, nil},
		{"set-overwrites", "SET without NX", Exclusion, nil},

		{"view-restarts-ignored", "a monitor does not notice that a master has restarted", Shown, watched},
		{"view-wipes-ignored", "a monitor does not notice FLUSHALL", Shown, watched},
		{"view-silent-is-empty", "a monitor takes a master that does not answer for one without a copy", Shown, watched},
		{"view-first-look-knows", "a monitor that looks for the first time takes no vote for lost", Shown, watched},
		{"view-fenced-for-ever", "a monitor takes a fenced master for one that never rejoins", Shown, watched},
		{"view-clears-lost-majority", "an operator force-releases a lock that lost its majority as if it were orphaned", Exclusion, watched},
	}
}
