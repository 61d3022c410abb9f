package finding

import (
	"redlockctl/monitor"
	"slices"
)

// Checks returns what is checked: the titles of all findings there can be.
func Checks() (titles []string) {
	for _, c := range allChecks() {
		if !slices.Contains(titles, c.title) {
			titles = append(titles, c.title)
		}
	}
	return titles
}

// allChecks returns the checks. Findings of the same severity are listed in this order.
func allChecks() []check {
	return []check{{
		id: "no-quorum", part: aboutQuorum, severity: monitor.SeverityDanger, after: agreed, before: settles, find: once(noQuorum),
		title: "nothing can be locked",
		why:   "Fewer nodes serve than a quorum needs. No client can take or extend a lock.",
		do:    "Start the nodes that are down. Leave fenced nodes to the guard: removing a fence by hand is safe only if no client can still rely on a lock that the node lost.",
		more:  "If a guard runs in this program, the evidence says when a quorum is back.",
	}, {
		id: "split-lock", part: aboutLocks, severity: monitor.SeverityDanger, after: certain, before: settles, find: once(ofLocks(badSplit, "two clients may rely on one lock")),
		title: "locks on which two clients may rely",
		why:   "A vote was lost or given twice, so that another client got in, or may have, before the holder's end. Both may work at once.",
		do:    "Look at the copies and until when each client relies on the lock (redlockctl locks NAME), and stop one of them. Find out whether a node restarted, was flushed or was promoted.",
		more:  "Reported after 0.1 s. Where a slow attempt was reported so, the next reports wait twice as long, at most 1.5 s. The same holds for several-tokens, no-ttl-lock and a TTL that is set by a second command.",
	}, {
		id: "same-server", part: aboutQuorum, severity: monitor.SeverityDanger, after: agreed, before: settles, find: once(sameServer),
		title: "two addresses are one server",
		why:   "One server has several votes. The second SET of each attempt fails there, and one crash loses all of these votes.",
		do:    "Point each node at a server of its own.",
		more:  "The addresses report the same run_id.",
	}, {
		id: "eviction-policy", part: aboutMemory, severity: monitor.SeverityDanger, after: certain, before: settles, find: each(evictionPolicy),
		title: "memory pressure may remove locks",
		why:   "When memory runs short, the server evicts keys with a TTL, and locks are such keys. An evicted vote can be given a second time.",
		do:    "Set maxmemory-policy noeviction, with CONFIG SET and in the server's file.",
		more:  "Info if maxmemory is 0 (no limit); warning if maxmemory cannot be read.",
	}, {
		id: "evictions", part: aboutMemory, severity: monitor.SeverityDanger, after: certain, before: settles, find: each(evictions),
		title: "keys were evicted",
		why:   "An evicted lock has lost a vote, and its holder does not know.",
		do:    "Set maxmemory-policy noeviction and give the server enough memory. Keep the node out of the quorum for the longest TTL: redlockctl node cordon, then node uncordon.",
		more:  "Warning if the keys were evicted before this program started to watch.",
	}, {
		id: "fence-off", part: aboutMemory, severity: monitor.SeverityDanger, after: certain, before: settles, find: each(fenceOff),
		title: "its fence has no effect",
		why:   "After a crash this node votes again at once, without its locks, whatever the boot fence and the guard set.",
		do:    "Set min-replicas-max-lag 10, also in the boot fence (redlockctl node boot-fence NAME prints it).",
		more:  "min-replicas-max-lag 0 switches min-replicas-to-write off.",
	}, {
		id: "fence-leaks", part: aboutMemory, severity: monitor.SeverityDanger, after: certain, before: settles, find: each(fenceLeaks),
		title: "its fence does not hold",
		why:   "Clients still get votes through the fence. After a crash this node can vote a second time.",
		do:    "Upgrade the server (Redis 6.0.17, 6.2.7 or 7.0), or set fence = \"none\" and start it late: ExecStartPre=redlockctl node wait NAME --before-start.",
		more: "Reported if a write of a guard got through the fence, if the server's version lets scripts write through it, or if the node is a writable replica. " +
			"Warning while such a server serves: its fence would not hold after a crash. [What each server's fence stops](fences.md).",
	}, {
		id: "boot-fence", part: aboutMemory, severity: monitor.SeverityWarning, after: certain, before: settles, find: each(bootFence), disproved: startedFenced,
		title: "no boot fence",
		why:   "Such a node can vote a second time between its start and the guard's fence. A few milliseconds are enough for a waiting client.",
		do:    "Make it start fenced, by its command line or by an included file with anchors: redlockctl node boot-fence NAME prints both, and --verify checks what it has.",
		more: "Reported if the node started unfenced (seen by this program, by a guard, or in a guard's memory on this host), if it would start unfenced, " +
			"or if its boot fence does not last: an include without anchors, a line in the main file, an ACL file that the server can write. " +
			"Danger while a client may still rely on a lock that the node lost, and if a node under guard would start unfenced. " +
			"doctor reads the files of servers on its own host; of others it knows only what their guards announce.",
	}, {
		id: "fence-denied", part: aboutMemory, severity: monitor.SeverityWarning, after: certain, before: settles, find: each(fenceDenied),
		title: "it cannot be fenced",
		why:   "A guard can neither fence this node nor let it rejoin. After FLUSHALL, a failover or an unfenced start, the node can vote a second time.",
		do:    `Give the guard's user CONFIG GET and CONFIG SET (redlockctl config acl --role guard), remove rename-command CONFIG, or set fence = "acl" for this node.`,
		more:  "Danger if the node is under guard. Not reported if only this program's user is denied CONFIG and a guard has already seen the fence there.",
	}, {
		id: "open-server", part: aboutMemory, severity: monitor.SeverityWarning, after: certain, before: settles, find: each(openServer),
		title: "no password is needed",
		why:   "Anybody who reaches this server can take, extend and delete every lock, and can remove its fence.",
		do:    `Set a password for the default user (CONFIG SET requirepass; with an ACL file, a line "user default on >PASSWORD …"), or disable that user: ACL SETUSER default off. Then create one user for each role: redlockctl config acl.`,
		more:  "Danger, also on this host, with fence = \"acl\": the default user gets around such a fence. Other servers on this host are not reported. A firewall in between cannot be seen from here.",
	}, {
		id: "fence-bypass", part: aboutMemory, severity: monitor.SeverityWarning, after: certain, before: settles, find: each(fenceBypass),
		title: "its fence does not stop every user",
		why:   "The fence takes the right to write from one user, fence_user. A lock client that logs in as another one gets votes from a fenced node.",
		do:    "Let all lock clients log in as fence_user, and take the right to write locks from the others: ACL SETUSER NAME -@write, in the ACL file too.",
		more:  "Only with fence = \"acl\". The administrator (default) and this program's own user are not reported: redlockctl asks the server for the fence with each vote.",
	}, {
		id: "guard-delays", part: aboutMemory, severity: monitor.SeverityDanger, after: agreed, before: settles, find: once(guardDelays),
		title: "guards have different delays",
		why:   "Each guard waits for the greatest D that it sees. One that loses sight of the others for a moment uses its own, shorter D, and then two clients may hold one lock.",
		do:    "Give all guards, consoles included, the same max_ttl and delay. Stop guards with an old configuration.",
		more:  "Also reported if all guards have a D shorter than the max_ttl configured here. A D above one day is invalid and counts as one day.",
	}, {
		id: monitor.ServesEarlyID, part: aboutMemory, severity: monitor.SeverityDanger, after: certain, find: each(servesEarly), disproved: isNotEarly,
		title: "serves before it may vote",
		why:   "Its fence was removed by hand, or it was not fenced in time: until then a lock that it lost can be granted to a second client.",
		do:    "If clients may still rely on locks that it lost: redlockctl node cordon NAME, and node uncordon NAME when the time has passed.",
		more:  "The guards that watch a node announce from when it may vote. The finding ends at that time. A node that another guard let rejoin by the rule is not reported.",
	}, {
		id: "wrong-role", part: aboutQuorum, severity: monitor.SeverityDanger, after: certain, before: settles, find: each(wrongRole),
		title: "not an independent master",
		why:   "Its copies are not independent votes: replication is asynchronous, and a promoted replica lacks some of its master's votes.",
		do:    "Point this node at an independent master: no replicas, no sentinel, no cluster mode. After a promotion keep it fenced for the longest TTL.",
	}, {
		id: "no-ttl-lock", part: aboutLocks, severity: monitor.SeverityDanger, after: certain, before: settles, find: once(ofLocks(badNoTTL, "a lock without a TTL")),
		title: "locks without a TTL",
		why:   "Such a lock never expires: if its holder dies, nobody gets it until somebody removes it, or nodes serve that have lost its copies.",
		do:    "Set the TTL in the same command as the value (SET … NX PX). If the holder is dead, end the lock: redlockctl revoke NAME, or force-release NAME.",
		more:  "So many nodes have a copy without a TTL that nobody else can reach a quorum. A node that does not serve and may have one, or have lost one, counts too.",
	}, {
		id: "endless-copy", part: aboutLocks, severity: monitor.SeverityWarning, after: certain, before: settles, find: once(endlessCopy),
		title: "copies without a TTL on a minority of nodes",
		why:   "Such a copy never expires and blocks its node for other clients. They can still take the lock on the other nodes, with a smaller margin.",
		do:    "Set the TTL in the same command as the value (SET … NX PX). If the client is dead, remove the copy: redlockctl force-release NAME.",
		more:  "The client died between SETNX and EXPIRE, or never sets a TTL. Not reported of a lock that lost its majority: see lost-majority and exposed-lock.",
	}, {
		id: "over-ttl", part: aboutLocks, severity: monitor.SeverityDanger, after: certain, before: settles, find: once(ofLocks(badOverTTL, "a lock with a TTL above the cluster's maximum")),
		title: "locks with a TTL above the cluster's maximum",
		why:   "A restarted node stays fenced only for the maximum. A client with a longer lock may still rely on it when the node votes again.",
		do:    "Raise max_ttl in the configuration of every guard, or shorten the TTL in the client.",
	}, {
		id: "clock-step", state: true, part: aboutTime, severity: monitor.SeverityDanger, after: certain, before: settles, find: each(clockStep),
		title: "its clock was stepped",
		why:   "All locks on it expire earlier than their holders believe: another client may get in.",
		do:    slewRemedy + " After a forward step keep the node fenced for the longest TTL.",
		more:  "Warning if the clock went back, if the node is fenced, and once max_ttl has passed. Reported for max_ttl, but at least one minute.",
	}, {
		id: "clock-rate", part: aboutTime, severity: monitor.SeverityWarning, after: measured, before: calms, find: once(clockRate),
		title: "clocks run at different rates",
		why:   "Time daemons slew by at most 500 ppm, so a clock is broken or is being set. A large part of the drift allowance is used up.",
		do:    "Fix the time daemon of that node, or raise drift_factor in every client and every guard.",
		more: "Reported above half of the drift allowance or above 1,000 ppm, whichever is less; danger above the allowance. This machine's clock is compared too. " +
			"The check uses the lower bound of the measured difference, so a short look raises no false alarm. doctor always prints the comparison.",
	}, {
		id: "slow-attempts", part: aboutTime, severity: monitor.SeverityWarning, after: measured, before: calms, find: once(slowAttempts),
		title: "the round trip is a large part of the TTL",
		why:   "The time of an attempt is subtracted from the validity: holders have less time, and more attempts fail.",
		do:    "Use longer TTLs, move clients and nodes closer together, or find out what slows the nodes down (SLOWLOG, LATENCY DOCTOR).",
		more: "Reported if a quorum takes at least 20 ms and a quarter of the smallest TTL in use to answer (p99); danger above half of it. " +
			"Nine of ten new locks have at least the smallest TTL in use; until 20 locks were seen, it is max_ttl.",
	}, {
		id: "not-seen", part: aboutQuorum, severity: monitor.SeverityWarning, after: agreed, before: settles, find: once(notSeen),
		title: "the nodes are not seen from here",
		why:   "Nothing is heard of too many nodes at once, and of no other node since. Most likely the line from this console is cut. Clients may go on as before: nothing is claimed of the cluster.",
		do:    "Look at the network of this machine first (VPN, route, firewall). Then look from another place: redlockctl status on a host beside the masters.",
		more:  "Reported instead of no-quorum and node-down. What the guards of [guard] witnesses see is said beside it, with its time. A node that answers, or a host that says that nobody listens there, shows that the line works.",
	}, {
		id: "node-timeout", part: aboutQuorum, severity: monitor.SeverityWarning, after: measured, before: calms, find: each(nodeTimeout),
		title: "its answers take longer than locks wait for them",
		why:   "Whoever takes locks from here gives the node up before its answer can arrive. Where this is so for a quorum, nothing can be locked from here; clients elsewhere are not concerned.",
		do:    "Leave [redlock] node_timeout to follow the round trip (auto), or set it to one and a half round trips. At most a tenth of a lock's TTL is used: take longer TTLs from far.",
		more:  "Nine of ten of the last round trips took longer than the node_timeout that is set. Of a TTL that is too short for the distance, see slow-attempts.",
	}, {
		id: monitor.NodeDownID, state: true, part: aboutQuorum, severity: monitor.SeverityWarning, after: settles, before: settles, find: each(nodeDown),
		covered: (*monitor.Cluster).TooFewSeen,
		title:   "the node does not serve",
		why:     "Locks on the other nodes go on, but the cluster can lose fewer nodes.",
		do:      "Start the server, or fix the network. The node starts fenced, and rejoins after the longest TTL.",
		more:    "The node is down, slow or loading, or it refuses this program's user. The finding says how many more nodes may fail. Once too few nodes are seen, no new one is reported; one that was reported before ends when the node answers.",
	}, {
		id: "invalid-answers", part: aboutQuorum, severity: monitor.SeverityWarning, after: certain, before: settles, find: each(invalidAnswers),
		title: "its answers are invalid",
		why:   "It answers as no Redis or Valkey server does. The node is guarded, but other guards and consoles do not see this guard there.",
		do:    "Check what listens at this address: a proxy that does not pass all commands on, or a server that only imitates Redis. Point the node at the server itself.",
		more:  "Reported by a guard in this program. Other guards write it to their log and audit log. A node whose other answers are invalid too counts as down: see node-down.",
	}, {
		id: "clients-full", part: aboutQuorum, severity: monitor.SeverityWarning, after: measured, before: calms, find: each(clientsFull),
		title: "maxclients is nearly reached",
		why:   "At the limit the server refuses every new connection: from lock clients, from its guard and from this program. Open connections stay.",
		do:    "Find who opens the connections (CLIENT LIST) and let clients share them, or raise maxclients and the limit of open files (ulimit -n, LimitNOFILE).",
		more:  "Reported from 90 % on, and for ten minutes after a connection was refused.",
	}, {
		id: "stays-fenced", part: aboutQuorum, severity: monitor.SeverityWarning, after: certain, before: settles, find: each(staysFenced),
		title: "fenced for too long",
		why:   "It does not vote: fewer other nodes may fail.",
		do:    "Run a guard (redlockctl guard), or let it rejoin by hand: redlockctl node rejoin --now NAME.",
		more:  "The node has been fenced for much longer than any guard waits. If a guard watches it and does not let it rejoin, the finding names that guard. Info if an operator cordoned the node.",
	}, {
		id: "exposed-lock", part: aboutLocks, severity: monitor.SeverityDanger, after: certain, before: agreed, find: once(exposedLock),
		title: "another client can get locks that their holders still rely on",
		why:   "Copies were lost, and nodes without one serve before the holder's end, or will: another client can reach a quorum now or before that end. Both may work at once then.",
		do:    "Stop the holders, or let them finish before anybody else starts.",
		more:  "The finding says how the copies were lost, which of the nodes serve, and what to find out. A lock without a TTL, or with one above the maximum, counts too.",
	}, {
		id: "lost-majority", part: aboutLocks, severity: monitor.SeverityWarning, after: certain, before: settles, find: once(lostMajority),
		title: "locks that lost their majority",
		why:   "Copies were lost: by a restart, a wipe of data, a step of a clock or a deletion on some nodes only. Their holders rely on the locks until they expire, and cannot extend them. While the nodes that lost the copies stay fenced, no other client gets in.",
		do:    "Wait until the locks have expired. Do not force-release them while their holders may work: that lets a second client in.",
		more:  "See exposed-lock for those that another client can get before the end.",
	}, {
		id: "several-tokens", part: aboutLocks, severity: monitor.SeverityWarning, after: certain, before: settles, find: once(ofLocks(badMixed, "a lock with several tokens")),
		title: "locks with several tokens",
		why:   "At most one client relies on the lock, as far as was seen. Copies of others block those nodes until they expire or, without a TTL, until somebody removes them: a client died or did not release after an attempt failed. If no token has a quorum, nobody can take the lock until some expire.",
		do:    "Make the client release on all nodes when an attempt fails. Look at the copies (redlockctl locks NAME): a token with a quorum holds the lock; those of others expire by themselves, unless they have no TTL.",
		more:  "Reported 0.2 s after the last token came or went. See split-lock for those on which two clients may rely.",
	}, {
		id: "force-released", part: aboutLocks, severity: monitor.SeverityWarning, after: certain, before: certain, find: once(forceReleased),
		title: "locks that were force-released while their holders may work",
		why:   "Nobody told the first client, and the next one has the lock: two clients may work at once, unless the first is dead.",
		do:    "Find out whether the first client is dead. If it works, stop it.",
		more: "Cleared when the first client does not rely on the lock any more, or nobody has it; of a lock without a TTL, max_ttl after the force-release. " +
			"Known by the audit log: not of a force-release on another machine.",
	}, {
		id: "orphan-lock", part: aboutLocks, severity: monitor.SeverityWarning, after: certain, before: settles, find: once(orphaned),
		title: "orphaned copies of locks",
		why:   "A minority of copies blocks those nodes until it expires. It was never granted, or its grant has ended: a client died, does not release on all nodes, or was force-released where it could be (such a client is not told, and may work until its end).",
		do:    "Make the client release on all nodes when an attempt fails. Wait until the copies expire, or remove them from nodes that accept writes: redlockctl force-release NAME.",
		more:  "Info if all of them are on nodes that are fenced or cordoned: such a node gives nobody a vote, and refuses a release. If it takes writes again before they expire, they are orphaned there.",
	}, {
		id: "no-guard", part: aboutMemory, severity: monitor.SeverityWarning, after: settles, before: settles, find: once(notProtected),
		title: "not protected against restarts",
		why:   "A node that restarts comes back without its locks and can give those votes again: two clients may hold one lock.",
		do:    "Start the guard that was set up: its unit, or redlockctl guard. If none was, run redlockctl init --nodes with all masters: it writes what to install, and the commands. Or set appendonly yes with appendfsync always, which costs a disk sync for each write.",
		more: "Guards announce themselves on each node that they watch, and the monitor reads that with PUBSUB CHANNELS. If this is denied, the finding says that it is not known whether a guard watches. " +
			"A node that only waits before its start (redlockctl node wait) is reported too.",
	}, {
		id: "unsafe-persistence", part: aboutMemory, severity: monitor.SeverityWarning, after: agreed, before: settles, find: each(unsafePersistence),
		title: "a crash loses votes",
		why:   "After a crash the node lacks the locks of its last moments and can give those votes again: two clients may hold one lock.",
		do:    "Let a guard fence it after each start (redlockctl guard), or set appendonly yes with appendfsync always, which costs a disk sync for each write.",
		more:  "The server is only partly persistent (everysec, snapshots), and no guard is seen on it.",
	}, {
		id: "replicas", part: aboutQuorum, severity: monitor.SeverityWarning, after: certain, before: settles, find: each(replicas),
		title: "replicas attached",
		why:   "A failover to a replica loses the votes of the last moments, and nothing waits for the longest TTL. With a replica attached, min-replicas-to-write 1 is not a fence.",
		do:    "Use masters without replicas for locks, or make sure that no replica is ever promoted.",
	}, {
		id: "same-host", part: aboutQuorum, severity: monitor.SeverityWarning, after: agreed, before: settles, find: once(sameHost),
		title: "several nodes on one host",
		why:   "They are not independent: they share one power supply, one reboot and one clock.",
		do:    "In production give each node its own machine, power supply and clock.",
		more:  "Info if all are on this machine.",
	}, {
		id: "memory-full", part: aboutMemory, severity: monitor.SeverityWarning, after: measured, before: calms, find: each(memoryFull),
		title: "memory is nearly used up",
		why:   "At the limit the server refuses every new lock, or evicts locks if its policy allows it.",
		do:    "Raise maxmemory, or move other data off the lock masters.",
		more:  "Reported from 90 % of maxmemory on.",
	}, {
		id: "disk-fails", part: aboutMemory, severity: monitor.SeverityWarning, after: certain, before: settles, find: each(diskFails),
		title: "it cannot write its data to disk",
		why:   "The server may refuse all writes (MISCONF), and its data on disk is out of date.",
		do:    `Look at the server's log and its disk. Lock masters need no snapshots: save "".`,
		more:  "The last attempt to save failed.",
	}, {
		id: "boot-fence-rewritten", part: aboutMemory, severity: monitor.SeverityWarning, after: certain, before: settles, find: each(fenceRewritten),
		title: "it rewrote its own configuration",
		why:   "CONFIG REWRITE on a serving node writes min-replicas-to-write 0. If the boot fence is only in the main file, or in an include without anchors, the next start is unfenced.",
		do:    "Check it on the server's own host: redlockctl node boot-fence NAME --verify. The command line and anchors survive a rewrite.",
		more: "Reported if the node is under guard and the form of its boot fence cannot be seen from here. With fence = \"acl\", ACL SAVE counts too: " +
			"on a serving node it writes the user with its write commands into an ACL file that the server can write.",
	}, {
		id: "save-by-hand", part: aboutMemory, severity: monitor.SeverityInfo, after: certain, before: settles, find: each(savedByHand),
		title: "somebody ran a save or a rewrite",
		why:   "BGSAVE and BGREWRITEAOF fork: the server stalls for a moment and needs more memory.",
		do:    "Find out who does it (a cron job, a backup), and leave the lock masters out.",
		more: "Warning if SAVE ran while this program watched: it blocks the server. CONFIG REWRITE and ACL SAVE are listed here if the boot fence is known to survive them " +
			"or no guard fences the node; otherwise see boot-fence-rewritten.",
	}, {
		id: "hostile-content", part: aboutLocks, severity: monitor.SeverityWarning, after: certain, before: settles, find: once(ofLocks(badHuge, "a huge value or name among the locks")),
		title: "huge values or names among the locks",
		why:   "A token has about 20 bytes. A client that reads such a value blocks the server for everybody.",
		do:    "Find out who writes it, and give other data names that lock_patterns do not match.",
		more:  "A value of more than 1 MiB or a million elements, or a name of more than 4 KiB. This program never reads them whole.",
	}, {
		id: "console-stopped", state: true, part: aboutTime, severity: monitor.SeverityInfo, after: certain, before: settles, find: once(consoleStopped),
		title: "this process was suspended, or its clock jumped",
		why:   "Earlier measurements of clocks and round trips are dropped, and locks are read again. A guard on this machine waits longer, never shorter.",
		do:    "Do not suspend this machine or process while it watches. Let the time daemon slew the clock, not step it.",
		more:  "Warning if the clock jumped or the process was suspended for 5 s or longer.",
	}, {
		id: "foreign-keys", part: aboutLocks, severity: monitor.SeverityInfo, after: certain, before: settles, find: once(ofLocks(badForeign, "a key under the lock patterns that is not a lock")),
		title: "keys under the lock patterns that are not locks",
		why:   "Nobody can take a lock with such a name, and the list gets longer.",
		do:    "Narrow lock_patterns, or rename the keys.",
		more:  "Their type cannot be a lock. Keys that a library keeps beside its locks, such as Redisson's queues, are not counted.",
	}, {
		id: "number-without-ttl", part: aboutLocks, severity: monitor.SeverityInfo, after: certain, before: settles, find: once(ofLocks(badNumber, "a number without a TTL under the lock patterns")),
		title: "numbers without a TTL under the lock patterns",
		why:   "A counter of fencing tokens must never go back: deleting it breaks the protection. A lock made with SETNX never expires.",
		do:    "Find out who writes it before you delete it. Give a counter a name that lock_patterns do not match, and a lock a TTL.",
		more:  "force-release refuses it.",
	}, {
		id: "unreported-changes", part: aboutSight, severity: monitor.SeverityWarning, after: certain, before: settles, find: each(unreportedChanges),
		title: "keys changed and the node did not report it",
		why:   "What was shown of these keys was out of date, and others may have been too. All keys of the node have been read again since.",
		do:    "Find out what changes keys without reporting it: SWAPDB, a restored snapshot, a module, or a proxy between this program and the server.",
		more: "Each second a few keys of each node that reports its changes are read and compared with what is shown. A key counts if it still differs after the node has proved " +
			"twice that it reported all changes. Reported for ten minutes.",
	}, {
		id: "locks-unread", part: aboutSight, severity: monitor.SeverityWarning, after: certain, before: settles, find: each(locksUnread),
		title: "more locks than this program has room for",
		why:   "Some locks are not shown, and nothing warns of them. What is shown is right.",
		do:    "Narrow lock_patterns to the names of locks, or raise max_memory.",
		more: "More keys match lock_patterns than fit into [monitor] max_memory (keys that are not locks may use a quarter of it). The evidence says about how many are missing. " +
			"Info if only keys that are not locks are missing. The guard does not depend on this.",
	}, {
		id: "limited-sight", part: aboutSight, severity: monitor.SeverityInfo, after: settles, before: settles, find: each(limitedSight),
		title: "not everything can be seen",
		why:   "The monitor cannot warn of what it cannot read.",
		do:    monitor.AdviceRights,
		more: "The evidence says what cannot be seen and why; the advice fits it: rights, if this program's user may not use INFO, CONFIG, TIME, scripts or tracking; " +
			"the network, if the node stopped sending changes; lock_patterns, if it sends too many. Without tracking, changes are seen by scanning alone, and later.",
	}, {
		id: "record-fails", part: aboutSight, severity: monitor.SeverityWarning, after: certain, before: settles, find: once(recordFails),
		title: "nothing is recorded",
		why:   "history, report and replay will not know what happens meanwhile. Guards and locks do not depend on it.",
		do:    "Make room on the disk, end what locks the file, or give its directory back to the user that records. Recording is tried again every half a minute.",
		more: "The evidence says why. " +
			"The disk is full: make room, or lower [record] max_size, and the oldest is deleted. " +
			"The file is locked, or another process records into it: end that process; one that only reads needs sqlite3 -readonly. " +
			"A directory is refused, or the path is a symbolic link: name the real path in [record] dir, and let only its user write there (chmod 700). " +
			"The file is damaged: a new one is begun at once, and the old one is kept beside it as CLUSTER.db.damaged-TIME; history, report and replay read what is left of it with --file. " +
			"Then look for the cause on the disk: smartctl, dmesg. " +
			"It was removed or replaced: a new one is begun within seconds. " +
			"Reported by the process that records, and on its machine by others as long as a guard runs there.",
	}, {
		id: "even-nodes", part: aboutQuorum, severity: monitor.SeverityInfo, after: agreed, before: settles, find: once(evenNodes),
		title: "an even number of nodes",
		why:   "It tolerates no more losses than one node fewer, and contending clients split the votes more often.",
		do:    "Add or remove one node.",
	}, {
		id: "single-node", part: aboutQuorum, severity: monitor.SeverityInfo, after: agreed, before: settles, find: once(singleNode),
		title: "a single node",
		why:   "When it is down nothing can be locked, and a crash loses every lock.",
		do:    "Use three or five independent masters.",
	}, {
		id: "boot-fence-unverified", part: aboutMemory, severity: monitor.SeverityWarning, after: agreed, before: settles, find: once(startsUnseen),
		title: "start not seen yet",
		why:   "It is not known whether these nodes would start fenced after a crash.",
		do:    "Find out how they would start: redlockctl node boot-fence NAME --verify on their hosts, or redlockctl init --check. Or restart one after the other while the guard watches: redlockctl restart.",
		more:  "Normal after the adoption of running masters. Info where their files, as seen from here, say that they would start fenced, and for a durable node.",
	}}
}

// New makes the watch for all findings except those in opt.Meant.
func New(opt Options) *Findings {
	checks := slices.DeleteFunc(allChecks(), func(c check) bool { return slices.Contains(opt.Meant, c.id) })
	return &Findings{opt: opt, checks: checks, open: map[findingName]*openFinding{}}
}
