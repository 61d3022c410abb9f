package finding

import (
	"redlockctl/monitor"
	"slices"
)

// allChecks are the checks in the order in which findings of one severity are
// listed.
func allChecks() []check {
	return []check{{
		id: "no-quorum", part: aboutQuorum, severity: monitor.SeverityDanger, after: agreed, before: settles, find: once(noQuorum),
		title: "nothing can be locked",
		why:   "Fewer nodes serve than a quorum needs: no client can take a lock or extend one.",
		do:    "Start the nodes that are down. Let a guard let those rejoin that are fenced: by hand that is only safe if no lock that they held can still be believed in.",
		more:  "Where a guard runs in this program, the evidence says when a quorum is back.",
	}, {
		id: "split-lock", part: aboutLocks, severity: monitor.SeverityDanger, after: certain, before: settles, find: once(ofLocks(badSplit)),
		title: "locks with several tokens",
		why:   "Where a vote was given twice, two clients believe in one lock. Where a crashed client left copies behind, they keep others out until they expire.",
		do:    "Look at the lock's copies: who has a quorum holds it. Find out if a node was restarted, flushed or promoted; release what a dead client left.",
	}, {
		id: "same-server", part: aboutQuorum, severity: monitor.SeverityDanger, after: agreed, before: settles, find: once(sameServer),
		title: "two addresses are one server",
		why:   "One server has several votes: when it is lost, so are all of them, and the quorum is not what it seems. The second SET of an attempt there always fails.",
		do:    "Give each node the address of a server of its own.",
		more:  "They have the same run_id.",
	}, {
		id: "eviction-policy", part: aboutMemory, severity: monitor.SeverityDanger, after: certain, before: settles, find: each(evictionPolicy),
		title: "memory pressure may remove locks",
		why:   "When memory runs short the server drops keys with a TTL, and locks are such keys: their votes are given a second time.",
		do:    "Set maxmemory-policy noeviction, in the server's file too.",
		more:  "It is for information where maxmemory is 0 (no limit), and a warning where that cannot be read.",
	}, {
		id: "evictions", part: aboutMemory, severity: monitor.SeverityDanger, after: certain, before: settles, find: each(evictions),
		title: "keys were evicted",
		why:   "A lock that was evicted has lost a vote while its holder believes in it.",
		do:    "Set maxmemory-policy noeviction and leave enough memory. Keep the node out of the quorum for the longest TTL: redlockctl node cordon, then node uncordon.",
		more:  "It is a warning if they were evicted before this program looked.",
	}, {
		id: "fence-off", part: aboutMemory, severity: monitor.SeverityDanger, after: certain, before: settles, find: each(fenceOff),
		title: "its fence has no effect",
		why:   "After a crash this node votes again at once, with its votes forgotten, whatever the boot fence and the guard set.",
		do:    "Set min-replicas-max-lag 10, with the boot fence too (redlockctl node boot-fence prints it).",
		more:  "min-replicas-max-lag 0 switches min-replicas-to-write off.",
	}, {
		id: "boot-fence", part: aboutMemory, severity: monitor.SeverityWarning, after: certain, before: settles, find: each(bootFence),
		title: "no boot fence",
		why:   "From its start until it is fenced such a node votes a second time: milliseconds are enough for an eager client.",
		do:    "Start it fenced: by its command line, or by an included file with anchors. redlockctl node boot-fence NAME prints both, and with --verify says what it has.",
		more: "It is a danger while a lock that the node forgot may still be believed in, and where its files or its command line show that a node under guard would start unfenced. " +
			"It is told where the node started unfenced, as this program, a guard here, a guard that announces itself on the node, or the guard's memory on this host saw; where it would; " +
			"and where its boot fence does not last: an include without anchors, a line in the main file, an ACL file that the server can write. " +
			"doctor reads the files of servers on its own host, and of others only what the guards know.",
	}, {
		id: "fence-denied", part: aboutMemory, severity: monitor.SeverityWarning, after: certain, before: settles, find: each(fenceDenied),
		title: "it cannot be fenced",
		why:   "A guard can neither fence this node after a loss nor let it rejoin: after FLUSHALL, a failover or an unfenced start it votes a second time.",
		do:    `Give the guard's user CONFIG GET and CONFIG SET (redlockctl config acl --role guard), take rename-command CONFIG away, or use fence = "acl" for this node.`,
		more:  "It is a danger under a guard. Where CONFIG is denied to the user of this program only, it is not told if a guard has seen a fence there.",
	}, {
		id: "open-server", part: aboutMemory, severity: monitor.SeverityWarning, after: certain, before: settles, find: each(openServer),
		title: "no password is needed",
		why:   "Everybody who reaches this server can take, extend and delete every lock, and remove its fence.",
		do:    `Set a password for the default user (CONFIG SET requirepass; with an ACL file a line "user default on >PASSWORD …"), or switch it off: ACL SETUSER default off. Then one user for each role: redlockctl config acl.`,
		more:  "Servers on this host are left out. A firewall in between cannot be seen.",
	}, {
		id: "guard-delays", part: aboutMemory, severity: monitor.SeverityDanger, after: agreed, before: settles, find: once(guardDelays),
		title: "guards do not agree on the delay",
		why:   "Each waits for the greatest D that it sees. One that sees no other for a moment lets nodes rejoin by its own, and then two clients may hold one lock.",
		do:    "Give all guards, consoles too, the same max_ttl and delay, and end those with an old configuration.",
		more:  "It is told too where all agree on a D that is shorter than the max_ttl of the configuration in use here. A D above a day is no guard's: somebody announces nonsense, and it counts as a day.",
	}, {
		id: "wrong-role", part: aboutQuorum, severity: monitor.SeverityDanger, after: certain, before: settles, find: each(wrongRole),
		title: "not an independent master",
		why:   "Its copies are no votes of their own: replication is asynchronous, and a promoted replica has forgotten what its master promised.",
		do:    "Point this node at a master of its own, without replicas, sentinel or cluster mode. After a promotion keep it fenced for the longest TTL.",
	}, {
		id: "no-ttl-lock", part: aboutLocks, severity: monitor.SeverityDanger, after: certain, before: settles, find: once(ofLocks(badNoTTL)),
		title: "locks without a TTL",
		why:   "Such a lock never ends by itself: if its holder dies, nobody gets it again.",
		do:    "Set the TTL in the same command as the value (SET … NX PX). If the holder is dead, end the lock: redlockctl revoke NAME, or force-release NAME.",
		more:  "Copies without a TTL are on so many nodes that nobody else can reach a quorum.",
	}, {
		id: "endless-copy", part: aboutLocks, severity: monitor.SeverityWarning, after: certain, before: settles, find: once(ofLocks(badEndless)),
		title: "copies without a TTL on a minority of nodes",
		why:   "Such a copy never ends by itself, and keeps others out of its node. They can still get the lock on the other nodes, with fewer of those to lose.",
		do:    "Set the TTL in the same command as the value (SET … NX PX). If its client is dead, remove the copy: redlockctl force-release NAME.",
		more:  "Its client died between SETNX and EXPIRE, or never sets a TTL.",
	}, {
		id: "over-ttl", part: aboutLocks, severity: monitor.SeverityDanger, after: certain, before: settles, find: once(ofLocks(badOverTTL)),
		title: "locks with a TTL above the cluster's maximum",
		why:   "A node that was restarted is kept fenced for the maximum only. A client with a longer lock still believes in it when the node votes again.",
		do:    "Raise max_ttl in the configuration of every guard, or shorten the TTL in the client.",
	}, {
		id: "clock-step", state: true, part: aboutTime, severity: monitor.SeverityDanger, after: certain, before: settles, find: each(clockStep),
		title: "its clock was stepped",
		why:   "All locks on it end sooner than their holders believe: another client may get in.",
		do:    "Let the time daemon slew (chrony: makestep only at the start; ntpd -x). A node whose clock went forward has to stay fenced for the longest TTL.",
		more:  "It is a warning where the clock went back. It is told for max_ttl, a minute at least.",
	}, {
		id: "clock-rate", part: aboutTime, severity: monitor.SeverityWarning, after: measured, before: calms, find: once(clockRate),
		title: "clocks run at different rates",
		why:   "Time daemons slew by 500 ppm at most; this clock is broken or being set, and a good part of the drift allowance is used up.",
		do:    "Fix the time daemon of that node, or raise drift_factor in every client and every guard.",
		more: "It is told from half of the drift allowance on, or from more than time daemons slew, and is a danger beyond the allowance. This machine's clock is among those that are compared. " +
			"What counts is the hard lower bound of the measured difference, so a short look never raises it wrongly. doctor prints the comparison in any case.",
	}, {
		id: "slow-attempts", part: aboutTime, severity: monitor.SeverityWarning, after: measured, before: calms, find: once(slowAttempts),
		title: "the round trip is a large part of the TTL",
		why:   "What an attempt takes is gone from the validity: holders have little time, and more attempts fail.",
		do:    "Use longer TTLs, bring clients and nodes nearer to each other, or find out what holds the nodes up (SLOWLOG, latency doctor).",
		more: "A quorum answers at p99 only after a quarter of the smallest TTL in use; after half of it, it is a danger. " +
			"The smallest TTL in use is what a tenth of the new locks stay below; until twenty were seen it is the max TTL.",
	}, {
		id: "node-down", state: true, part: aboutQuorum, severity: monitor.SeverityWarning, after: settles, before: settles, find: each(nodeDown),
		title: "the node does not serve",
		why:   "The locks on the others go on, and fewer more nodes may fail before nothing can be locked.",
		do:    "Start it, or fix the way there. It comes back fenced, and rejoins after the longest TTL.",
		more:  "The node is down, slow or loading, or lets us not look. The finding says how many more may fail.",
	}, {
		id: "clients-full", part: aboutQuorum, severity: monitor.SeverityWarning, after: measured, before: calms, find: each(clientsFull),
		title: "maxclients is nearly reached",
		why:   "At the limit it refuses every new connection: of lock clients, of its guard, and of this program. Who is connected goes on.",
		do:    "Find who opens the connections (CLIENT LIST) and let clients share them, or raise maxclients and the server's limit of descriptors (ulimit -n, LimitNOFILE).",
		more:  "It is told from 90 % on, and for ten minutes after a connection was refused.",
	}, {
		id: "stays-fenced", part: aboutQuorum, severity: monitor.SeverityWarning, after: certain, before: settles, find: each(staysFenced),
		title: "nobody lets it rejoin",
		why:   "It has no vote: the cluster can lose fewer other nodes.",
		do:    "Run a guard (redlockctl guard), or let it rejoin by hand: redlockctl node rejoin --now NAME.",
		more:  "The node has been fenced for far longer than any guard waits. A guard that announces itself there and does not let it rejoin is named. It is for information where an operator cordoned the node.",
	}, {
		id: "orphan-lock", part: aboutLocks, severity: monitor.SeverityWarning, after: certain, before: settles, find: once(ofLocks(badOrphan)),
		title: "orphaned copies of locks",
		why:   "A minority of copies keeps others out of those nodes until it expires: a client died, or does not release a failed attempt on all nodes.",
		do:    "Let the client release on all nodes when an attempt fails. They go when their TTL ends, or by redlockctl force-release NAME.",
	}, {
		id: "no-guard", part: aboutMemory, severity: monitor.SeverityWarning, after: settles, before: settles, find: once(notProtected),
		title: "not protected against restarts",
		why:   "A node that restarts comes back without its locks and gives those votes again: two clients may hold one lock.",
		do:    "Run redlockctl init --nodes with all masters: it writes all that is to be installed, and the commands. Or set appendonly yes with appendfsync always, and live with its cost.",
		more: "Guards announce themselves on each node that they watch, wherever they run; the monitor reads that by PUBSUB CHANNELS. Where that is denied it is not known whether one watches, and the finding says so. " +
			"A node kept by redlockctl supervise alone has no such guard: it is reported all the same.",
	}, {
		id: "unsafe-persistence", part: aboutMemory, severity: monitor.SeverityWarning, after: agreed, before: settles, find: each(unsafePersistence),
		title: "a crash forgets votes",
		why:   "It comes back without the locks of its last moments, and gives those votes again: two clients may hold one lock.",
		do:    "Let a guard keep it fenced after each start (redlockctl guard), or set appendonly yes with appendfsync always and live with its cost.",
		more:  "The master is persistent by halves (everysec, snapshots), and no guard is seen on it. It looks durable and is not.",
	}, {
		id: "replicas", part: aboutQuorum, severity: monitor.SeverityWarning, after: certain, before: settles, find: each(replicas),
		title: "replicas attached",
		why:   "A failover to a replica forgets the votes of the last moments, and nobody waits for the longest TTL. With a replica, min-replicas-to-write 1 is no fence either.",
		do:    "Use masters without replicas for locks, or make sure that nothing ever promotes them.",
	}, {
		id: "same-host", part: aboutQuorum, severity: monitor.SeverityWarning, after: agreed, before: settles, find: once(sameHost),
		title: "several nodes on one host",
		why:   "They are not independent: one crash, one reboot, one clock is theirs together.",
		do:    "For more than a first try, put each node on a machine of its own, with its own power and clock.",
		more:  "It is for information where all are on this machine.",
	}, {
		id: "memory-full", part: aboutMemory, severity: monitor.SeverityWarning, after: measured, before: calms, find: each(memoryFull),
		title: "memory is nearly used up",
		why:   "At the limit it refuses every new lock, or evicts locks if its policy lets it.",
		do:    "Raise maxmemory, or take other data off the lock masters.",
		more:  "It is told from 90 % of maxmemory on.",
	}, {
		id: "disk-fails", part: aboutMemory, severity: monitor.SeverityWarning, after: certain, before: settles, find: each(diskFails),
		title: "it cannot write its data to disk",
		why:   "It may refuse all writes (MISCONF), and what it saved is not what it promised.",
		do:    `Look at the server's log and its disk; lock masters need no snapshots: save "".`,
		more:  "The last attempt to save failed.",
	}, {
		id: "boot-fence-rewritten", part: aboutMemory, severity: monitor.SeverityWarning, after: certain, before: settles, find: each(fenceRewritten),
		title: "it was told to rewrite its own files",
		why:   "CONFIG REWRITE while it serves writes min-replicas-to-write 0: if the boot fence is only in the main file, or in an included file without anchors, the next start is unfenced.",
		do:    "Check it on the server's own host: redlockctl node boot-fence NAME --verify. The command line and anchors survive it.",
		more: "The node is under guard, and the form of its boot fence cannot be seen from here. Where the fence is a user, ACL SAVE counts too: " +
			"sent while the node serves, it writes the user with its commands into an ACL file that the server can write.",
	}, {
		id: "save-by-hand", part: aboutMemory, severity: monitor.SeverityInfo, after: certain, before: settles, find: each(savedByHand),
		title: "somebody saved or rewrote by hand",
		why:   "BGSAVE and BGREWRITEAOF fork: the server stands still for a moment, and needs memory.",
		do:    "Find out who does it (a cron job, a backup), and let it leave the lock masters alone.",
		more: "It is a warning for SAVE while this program looks: that stops the server. CONFIG REWRITE and ACL SAVE stand here where the boot fence is known to survive them, " +
			"or no guard fences the node; else see boot-fence-rewritten.",
	}, {
		id: "hostile-content", part: aboutLocks, severity: monitor.SeverityWarning, after: certain, before: settles, find: once(ofLocks(badHuge)),
		title: "huge values or names among the locks",
		why:   "A token has some twenty bytes. A client that reads such a value whole holds up the server for everybody, the lock clients too.",
		do:    "Find out who writes it, and give other data names that lock_patterns do not match.",
		more:  "A value is of more than a megabyte, or a name of more than 4 kB. This program never reads them whole.",
	}, {
		id: "console-stopped", state: true, part: aboutTime, severity: monitor.SeverityInfo, after: certain, before: settles, find: once(consoleStopped),
		title: "this console was stopped, or its clock moved",
		why:   "What it measured before is not believed: clocks and round trips begin anew. A guard on this machine waits longer, never shorter.",
		do:    "Do not suspend this machine or process while it watches, and let its clock be slewed, not stepped.",
		more:  "It is a warning when the clock moved or the stop was long. Locks are read again.",
	}, {
		id: "foreign-keys", part: aboutLocks, severity: monitor.SeverityInfo, after: certain, before: settles, find: once(ofLocks(badForeign)),
		title: "keys under the lock patterns that are not locks",
		why:   "Nobody can take a lock of that name, and they make the list longer.",
		do:    "Narrow lock_patterns, or give them other names.",
		more:  "They cannot be locks, by their type. What a library keeps beside its locks, as Redisson its queues, is not counted.",
	}, {
		id: "number-without-ttl", part: aboutLocks, severity: monitor.SeverityInfo, after: certain, before: settles, find: once(ofLocks(badNumber)),
		title: "numbers without a TTL under the lock patterns",
		why:   "If it counts fencing tokens it must never go back: whoever deletes it breaks what the tokens protect. If it is a lock by SETNX, it never ends by itself.",
		do:    "Find out who writes it. A counter wants a name that lock_patterns do not match, a lock a TTL. Do not delete it before you know.",
		more:  "force-release refuses it.",
	}, {
		id: "locks-unread", part: aboutSight, severity: monitor.SeverityWarning, after: certain, before: settles, find: each(locksUnread),
		title: "more locks than this program has room for",
		why:   "Locks among them are not shown, and nothing warns of them. What is shown is right.",
		do:    "Narrow lock_patterns to the names of locks, or raise max_memory.",
		more: "More keys match lock_patterns than this program has room for ([monitor] max_memory; keys that are no locks have a quarter of it). About so many keys of the node are missing. " +
			"It is for information where all that is missing is known to be no lock. Guarding does not depend on it.",
	}, {
		id: "limited-sight", part: aboutSight, severity: monitor.SeverityInfo, after: settles, before: settles, find: each(limitedSight),
		title: "not everything can be seen",
		why:   "What cannot be read cannot be warned of.",
		do:    monitor.AdviceRights,
		more: "The evidence says what of a node is not seen, and why; what to do follows from that: rights, where the user of this program may not use INFO, CONFIG, TIME, scripts or tracking; " +
			"the way there, where the node does not tell of its changes any more; lock_patterns, where it tells of too many. Without tracking, changes are seen by scanning alone, and later.",
	}, {
		id: "even-nodes", part: aboutQuorum, severity: monitor.SeverityInfo, after: agreed, before: settles, find: once(evenNodes),
		title: "an even number of nodes",
		why:   "It tolerates the loss of no more nodes than one node fewer does, and contenders split the votes more often.",
		do:    "Use one node more, or one less.",
	}, {
		id: "single-node", part: aboutQuorum, severity: monitor.SeverityInfo, after: agreed, before: settles, find: once(singleNode),
		title: "a single node",
		why:   "When it is down nothing can be locked, and its crash forgets every lock.",
		do:    "Use three or five independent masters.",
	}, {
		id: "boot-fence-unverified", part: aboutMemory, severity: monitor.SeverityWarning, after: agreed, before: settles, find: once(bootFenceUnverified),
		title: "boot fences not verified yet",
		why:   "If one of them has no boot fence, it shows with its first crash.",
		do:    "Restart one node after the other while the guard watches, and wait for each to rejoin.",
		more:  "No guard has seen a start of these nodes, so none can know. It is for information for a durable node.",
	}}
}

// New watches for all findings but those that are meant.
func New(opt Options) *Findings {
	checks := slices.DeleteFunc(allChecks(), func(c check) bool { return slices.Contains(opt.Meant, c.id) })
	return &Findings{opt: opt, checks: checks, open: map[findingName]*openFinding{}}
}
