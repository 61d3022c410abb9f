package monitor

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"redlockctl/internal/safetext"
)

// allChecks are the checks in the order in which findings of one severity are
// listed.
func allChecks() []check {
	return []check{
		{"no-quorum", agreed, settles, noQuorum},
		{"split-lock", certain, settles, ofLocks(badSplit, SeverityDanger,
			"locks with several tokens",
			"Where a vote was given twice, two clients believe in one lock. Where a crashed client left copies behind, they keep others out until they expire.",
			"Look at the lock's copies: who has a quorum holds it. Find out if a node was restarted, flushed or promoted; release what a dead client left.")},
		{"same-server", agreed, settles, sameServer},
		{"eviction-policy", certain, settles, evictionPolicy},
		{"evictions", certain, settles, evictions},
		{"fence-off", certain, settles, fenceOff},
		{"boot-fence", certain, settles, bootFence},
		{"fence-denied", certain, settles, fenceDenied},
		{"open-server", certain, settles, openServer},
		{"guard-delays", agreed, settles, guardDelays},
		{"wrong-role", certain, settles, wrongRole},
		{"immortal-lock", certain, settles, ofLocks(badImmortal, SeverityDanger,
			"locks without a TTL",
			"Such a lock never ends by itself: if its holder dies, nobody gets it again.",
			"Set the TTL in the same command as the value (SET … NX PX). If the holder is dead, take the lock away: redlockctl force-release NAME.")},
		{"endless-copy", certain, settles, ofLocks(badEndless, SeverityWarning,
			"copies without a TTL on a minority of nodes",
			"Such a copy never ends by itself, and keeps others out of its node. They can still get the lock on the other nodes, with fewer of those to lose.",
			"Set the TTL in the same command as the value (SET … NX PX). If its client is dead, remove the copy: redlockctl force-release NAME.")},
		{"over-ttl", certain, settles, ofLocks(badOverTTL, SeverityDanger,
			"locks with a TTL above the cluster's maximum",
			"A node that was restarted is kept closed for the maximum only. A client with a longer lock still believes in it when the node votes again.",
			"Raise max_ttl in the configuration of every guard, or shorten the TTL in the client.")},
		{"clock-step", certain, settles, clockStep},
		{"clock-rate", measured, calms, clockRate},
		{"slow-attempts", measured, calms, slowAttempts},
		{"node-down", settles, settles, nodeDown},
		{"stays-closed", certain, settles, staysClosed},
		{"orphan-lock", certain, settles, ofLocks(badOrphan, SeverityWarning,
			"copies of locks that nobody completes",
			"A minority of copies keeps others out of those nodes until it expires: a client died, or does not release a failed attempt on all nodes.",
			"Let the client release on all nodes when an attempt fails. They go when their TTL ends, or by redlockctl force-release NAME.")},
		{"no-guard", settles, settles, notProtected},
		{"unsafe-persistence", agreed, settles, unsafePersistence},
		{"replicas", certain, settles, replicas},
		{"same-host", agreed, settles, sameHost},
		{"memory-full", measured, calms, memoryFull},
		{"disk-fails", certain, settles, diskFails},
		{"boot-fence-rewritten", certain, settles, fenceRewritten},
		{"save-by-hand", certain, settles, savedByHand},
		{"hostile-content", certain, settles, ofLocks(badHuge, SeverityWarning,
			"huge values or names among the locks",
			"A token has some twenty bytes. A client that reads such a value whole holds up the server for everybody, the lock clients too.",
			"Find out who writes it, and give other data names that lock_patterns do not match.")},
		{"console-stopped", certain, settles, consoleStopped},
		{"foreign-keys", certain, settles, ofLocks(badForeign, SeverityInfo,
			"keys under the lock patterns that are no locks",
			"Nobody can take a lock of that name, and they make the list longer.",
			"Narrow lock_patterns, or give them other names.")},
		{"number-without-ttl", certain, settles, ofLocks(badNumber, SeverityInfo,
			"numbers without a TTL under the lock patterns",
			"If it counts fencing tokens it must never go back: whoever deletes it breaks what the tokens protect. If it is a lock by SETNX, it never ends by itself.",
			"Find out who writes it. A counter wants a name that lock_patterns do not match, a lock a TTL. Do not delete it before you know.")},
		{"locks-unread", certain, settles, locksUnread},
		{"limited-sight", settles, settles, limitedSight},
		{"even-nodes", agreed, settles, evenNodes},
		{"single-node", agreed, settles, singleNode},
		{"boot-fence-unverified", agreed, settles, bootFenceUnverified},
	}
}

// ofLocks is the check for one kind of bad locks.
func ofLocks(kind int, severity Severity, title, consequence, remedy string) func(known, func(Finding)) {
	return func(k known, tell func(Finding)) {
		these := k.locks[kind]
		if these.count == 0 || these.sample == nil {
			return
		}
		evidence := exampleOf(these.sample, k.Nodes)
		if these.count > 1 {
			evidence = safetext.New(fmt.Sprintf("%d; the first: %s", these.count, evidence.Raw()))
		}
		tell(Finding{
			Severity: severity, Key: these.sample.Key, Count: these.count,
			Title: title, Evidence: evidence, Consequence: consequence, Remedy: remedy,
		})
	}
}

// each tells of the nodes that find finds something about.
func each(k known, tell func(Finding), find func(i int, n *Node) (Finding, bool)) {
	for i := range k.Nodes {
		if f, ok := find(i, &k.Nodes[i]); ok {
			f.Node = k.Nodes[i].Name
			tell(f)
		}
	}
}

func noQuorum(k known, tell func(Finding)) {
	if k.Cluster.Verdict != VerdictUnavailable {
		return
	}
	evidence := fmt.Sprintf("%d of %d nodes serve, a quorum is %d: %s", k.Cluster.Serving, k.Cluster.N, k.Cluster.Quorum, k.Cluster.Absent)
	if k.guard != nil && k.guard.Outlook != "" {
		evidence += "; " + k.guard.Outlook
	} else if closed := inState(k, NodeFenced); closed != "" && k.Cluster.MaxTTL > 0 {
		evidence += "; a guard opens " + closed + " when each has waited for a bit more than " + k.Cluster.MaxTTL.String()
	}
	tell(Finding{
		Severity: SeverityDanger, Title: "nothing can be locked", Evidence: safetext.New(evidence),
		Consequence: "No client can reach a quorum, neither for a new lock nor to extend one.",
		Remedy:      "Start the nodes that are down. Let a guard open those that are fenced: opening them by hand is only safe if no lock that they held can still be believed in.",
	})
}

func inState(k known, states ...NodeState) string {
	var names []string
	for i := range k.Nodes {
		if slices.Contains(states, k.Nodes[i].State) {
			names = append(names, k.Nodes[i].Name)
		}
	}
	return strings.Join(names, ", ")
}

func sameServer(k known, tell func(Finding)) {
	byID := map[string][]string{}
	for i := range k.Nodes {
		if n := &k.Nodes[i]; n.RunID != "" && n.State.Answers() {
			byID[n.RunID] = append(byID[n.RunID], n.Name+" ("+n.Addr+")")
		}
	}
	var same []string
	for _, names := range byID {
		if len(names) > 1 {
			same = append(same, strings.Join(names, " and "))
		}
	}
	if len(same) == 0 {
		return
	}
	slices.Sort(same)
	tell(Finding{
		Severity: SeverityDanger, Title: "two addresses are one server",
		Evidence:    safetext.New(strings.Join(same, "; ") + " have the same run_id"),
		Consequence: "One server has several votes: when it is lost, so are all of them, and the quorum is not what it seems. The second SET of an attempt there always fails.",
		Remedy:      "Give each node the address of a server of its own.",
	})
}

// sameHost: loopback addresses are those of a lab, where it is meant.
func sameHost(k known, tell func(Finding)) {
	byHost := map[string][]string{}
	for i := range k.Nodes {
		host := hostOf(k.Nodes[i].Addr)
		byHost[host] = append(byHost[host], k.Nodes[i].Name)
	}
	severity := SeverityInfo
	var same []string
	for host, names := range byHost {
		if len(names) < 2 {
			continue
		}
		if host != thisMachine {
			severity = SeverityWarning
		}
		same = append(same, strings.Join(names, ", ")+" on "+host)
	}
	if len(same) == 0 {
		return
	}
	slices.Sort(same)
	tell(Finding{
		Severity: severity, Title: "several nodes on one host", Evidence: safetext.New(strings.Join(same, "; ")),
		Consequence: "They are not independent: one crash, one reboot, one clock is theirs together.",
		Remedy:      "For more than a first try, put each node on a machine of its own, with its own power and clock.",
	})
}

const thisMachine = "this machine"

func hostOf(addr string) string {
	if strings.HasPrefix(addr, "/") {
		return thisMachine
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	if ip, err := netip.ParseAddr(host); strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback() {
		return thisMachine
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

func evictionPolicy(k known, tell func(Finding)) {
	each(k, tell, func(_ int, n *Node) (Finding, bool) {
		if n.Eviction == "" || n.Eviction == "noeviction" {
			return Finding{}, false
		}
		f := Finding{
			Severity:    SeverityInfo,
			Title:       "memory pressure may remove locks",
			Evidence:    safetext.New("maxmemory-policy " + n.Eviction + ", maxmemory 0 (no limit)"),
			Consequence: "When memory runs short the server drops keys with a TTL, and locks are such keys: their votes are given a second time.",
			Remedy:      "Set maxmemory-policy noeviction, in the server's file too.",
		}
		switch {
		case n.Facts.MaxMemory < 0:
			f.Severity, f.Evidence = SeverityWarning, safetext.New("maxmemory-policy "+n.Eviction+"; maxmemory cannot be read")
		case n.Facts.MaxMemory > 0:
			f.Severity = SeverityDanger
			f.Evidence = safetext.New(fmt.Sprintf("maxmemory-policy %s, %s of maxmemory %s used", n.Eviction, bytesOf(n.UsedMemory), bytesOf(n.Facts.MaxMemory)))
		}
		return f, true
	})
}

func bytesOf(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f kB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}

// lately is how long an act or an accident that leaves no state is told.
const lately = 10 * time.Minute

func ago(at, now time.Time) string {
	return now.Sub(at).Round(time.Second).String() + " ago"
}

func evictions(k known, tell func(Finding)) {
	each(k, tell, func(i int, n *Node) (Finding, bool) {
		f := Finding{
			Title:       "keys were evicted",
			Consequence: "A lock that was evicted has lost a vote while its holder believes in it.",
			Remedy:      "Set maxmemory-policy noeviction and leave enough memory. Keep the node out of the quorum for the longest TTL: redlockctl node hold, then node open.",
		}
		switch c := k.since[i].evicted; {
		case c.n > 0 && k.At.Sub(c.at) < lately:
			f.Severity, f.Evidence = SeverityDanger, safetext.New(fmt.Sprintf("%d evicted while it was watched, the last %s", c.n, ago(c.at, k.At)))
		case n.Facts.Evicted > 0:
			f.Severity, f.Evidence = SeverityWarning, safetext.New(fmt.Sprintf("evicted_keys %d since its start", n.Facts.Evicted))
		default:
			return f, false
		}
		return f, true
	})
}

func wrongRole(k known, tell func(Finding)) {
	each(k, tell, func(_ int, n *Node) (Finding, bool) {
		return Finding{
			Severity: SeverityDanger, Title: "not an independent master", Evidence: n.Err,
			Consequence: "Its copies are no votes of their own: replication is asynchronous, and a promoted replica has forgotten what its master promised.",
			Remedy:      "Point this node at a master of its own, without replicas, sentinel or cluster mode. After a promotion keep it closed for the longest TTL.",
		}, n.State == NodeWrongRole
	})
}

// openServer: a server beyond this host that obeys everybody. That it is no firewall
// or network policy which keeps strangers out cannot be seen from here.
func openServer(k known, tell func(Finding)) {
	each(k, tell, func(_ int, n *Node) (Finding, bool) {
		return Finding{
			Severity: SeverityWarning, Title: "no password is needed",
			Evidence:    safetext.New("PING without a login is obeyed at " + n.Addr),
			Consequence: "Whoever reaches this server can take, extend and delete every lock, and lift its fence.",
			Remedy:      `Set a password for the default user (CONFIG SET requirepass; with an ACL file a line "user default on >PASSWORD …"), or switch it off: ACL SETUSER default off. Then one user for each role: redlockctl config acl.`,
		}, n.Facts.Open && hostOf(n.Addr) != thisMachine
	})
}

func replicas(k known, tell func(Finding)) {
	each(k, tell, func(_ int, n *Node) (Finding, bool) {
		return Finding{
			Severity: SeverityWarning, Title: "replicas attached",
			Evidence:    safetext.New(fmt.Sprintf("connected_slaves %d", n.Replicas)),
			Consequence: "A failover to a replica forgets the votes of the last moments, and nobody waits for the longest TTL. With a replica, min-replicas-to-write 1 is no fence either.",
			Remedy:      "Use masters without replicas for locks, or make sure that nothing ever promotes them.",
		}, n.Replicas > 0 && n.Role == "master"
	})
}

func nodeDown(k known, tell func(Finding)) {
	if k.Cluster.Verdict == VerdictUnavailable {
		return // told as that
	}
	each(k, tell, func(_ int, n *Node) (Finding, bool) {
		f := Finding{
			Severity:    SeverityWarning,
			Title:       "the node is " + n.State.String(),
			Evidence:    n.Err,
			Consequence: fmt.Sprintf("%d more may fail before nothing can be locked.", max(0, k.Cluster.CanLose)),
			Remedy:      "Start it, or mend the way there. It comes back closed, and a guard opens it after the longest TTL.",
		}
		switch n.State {
		case NodeDown, NodeSlow:
		case NodeLoading:
			f.Evidence = safetext.New("LOADING: it reads its data")
			f.Remedy = "Wait. Lock masters without persistence have nothing to load."
		case NodeDenied:
			f.Consequence = "It is not known if it serves, and its locks are not seen."
			f.Remedy = "Give this user the rights that redlockctl config acl prints, or mend its password."
		default:
			return f, false
		}
		if f.Evidence.Empty() {
			f.Evidence = safetext.New(n.State.String())
		}
		return f, true
	})
}

// unsafePersistence: without a guard, what a server forgets is a vote to give
// again. One that keeps its data by halves looks safe, and is not.
func unsafePersistence(k known, tell func(Finding)) {
	each(k, tell, func(_ int, n *Node) (Finding, bool) {
		if n.Facts.AppendOnly == "" || !readable(n.State) {
			return Finding{}, false
		}
		if p := protectionOf(n, k.guard); p != unguardedNode && p != hiddenNode {
			return Finding{}, false
		}
		f := Finding{
			Severity: SeverityWarning, Title: "a crash forgets votes",
			Consequence: "It comes back without the locks of its last moments, and gives those votes again: two clients may hold one lock.",
			Remedy:      "Let a guard keep it closed after each start (redlockctl guard), or set appendonly yes with appendfsync always and live with its cost.",
		}
		switch {
		case n.Facts.AppendOnly == "yes":
			f.Evidence = safetext.New("appendonly yes, but appendfsync " + cmp.Or(n.Facts.AppendFsync, "unknown"))
		case n.Facts.SaveKnown && n.Facts.Save != "":
			f.Evidence = safetext.New(`snapshots only: save "` + n.Facts.Save + `", appendonly no`)
		case k.guard != nil:
			f.Evidence = safetext.New("no persistence, and no guard closes this node")
		default: // right for lock masters, if a guard watches: see notProtected
			return f, false
		}
		return f, true
	})
}

func memoryFull(k known, tell func(Finding)) {
	each(k, tell, func(_ int, n *Node) (Finding, bool) {
		limit := n.Facts.MaxMemory
		return Finding{
			Severity: SeverityWarning, Title: "memory is nearly used up",
			Evidence:    safetext.New(fmt.Sprintf("%s of maxmemory %s used", bytesOf(n.UsedMemory), bytesOf(limit))),
			Consequence: "At the limit it refuses every new lock, or evicts locks if its policy lets it.",
			Remedy:      "Raise maxmemory, or take other data off the lock masters.",
		}, limit > 0 && float64(n.UsedMemory) > 0.9*float64(limit)
	})
}

func diskFails(k known, tell func(Finding)) {
	each(k, tell, func(_ int, n *Node) (Finding, bool) {
		return Finding{
			Severity: SeverityWarning, Title: "it cannot write its data to disk",
			Evidence:    safetext.New(n.Facts.DiskFails),
			Consequence: "It may refuse all writes (MISCONF), and what it saved is not what it promised.",
			Remedy:      "Look at the server's log and its disk; lock masters need no snapshots: save \"\".",
		}, n.Facts.DiskFails != ""
	})
}

// savedByHand: commands that no lock client sends.
func savedByHand(k known, tell func(Finding)) {
	each(k, tell, func(i int, n *Node) (Finding, bool) {
		var what []string
		f := Finding{
			Severity: SeverityInfo, Title: "somebody saved or rewrote by hand",
			Consequence: "BGSAVE and BGREWRITEAOF fork: the server stands still for a moment, and needs memory.",
			Remedy:      "Find out who does it (a cron job, a backup), and let it leave the lock masters alone.",
		}
		note := func(c count64, total int64, name string, s Severity, consequence string) {
			switch {
			case c.n > 0 && k.At.Sub(c.at) < lately:
				what = append(what, fmt.Sprintf("%s %d × while it was watched, the last %s", name, c.n, ago(c.at, k.At)))
			case total > 0:
				what = append(what, fmt.Sprintf("%s %d × since its start", name, total))
				s = min(s, SeverityInfo)
			default:
				return
			}
			f.Severity = max(f.Severity, s)
			if consequence != "" {
				f.Consequence = consequence
			}
		}
		h := k.since[i]
		note(h.backgroundSaves, max(0, n.Facts.BackgroundSaves)+max(0, n.Facts.Rewrites), "BGSAVE or BGREWRITEAOF", SeverityInfo, "")
		note(h.saves, n.Facts.Saves, "SAVE", SeverityWarning, "SAVE stops the server for as long as it takes: attempts fail, validity runs out.")
		if !rewriteMatters(k, n) { // else it is a finding of its own
			note(h.configRewrites, n.Facts.ConfigRewrites, "CONFIG REWRITE", SeverityInfo, "")
			note(h.aclSaves, n.Facts.ACLSaves, "ACL SAVE", SeverityInfo, "")
		}
		f.Evidence = safetext.New(strings.Join(what, "; "))
		return f, len(what) > 0
	})
}

func evenNodes(k known, tell func(Finding)) {
	if n := k.Cluster.N; n > 1 && n%2 == 0 {
		tell(Finding{
			Severity: SeverityInfo, Title: "an even number of nodes",
			Evidence:    safetext.New(fmt.Sprintf("%d nodes, quorum %d", n, k.Cluster.Quorum)),
			Consequence: fmt.Sprintf("It tolerates the loss of %d, no more than %d nodes do, and contenders split the votes more often.", n-k.Cluster.Quorum, n-1),
			Remedy:      "Use one node more, or one less.",
		})
	}
}

func singleNode(k known, tell func(Finding)) {
	if k.Cluster.N == 1 {
		tell(Finding{
			Severity: SeverityInfo, Title: "a single node", Evidence: safetext.New("1 node, quorum 1"),
			Consequence: "When it is down nothing can be locked, and its crash forgets every lock.",
			Remedy:      "Use three or five independent masters.",
		})
	}
}

// limitedSight: what this user may not see cannot be found.
// locksUnread: what this program has no room for.
func locksUnread(k known, tell func(Finding)) {
	each(k, tell, func(_ int, n *Node) (Finding, bool) {
		f := Finding{
			Severity: SeverityWarning, Title: "more locks than this program has room for",
			Evidence:    safetext.New(fmt.Sprintf("no room for about %s in [monitor] max_memory, which is %s", count(n.NoRoomLocks, "key", "keys"), bytesOf(k.opt.MaxMemory))),
			Consequence: "Locks among them are not shown, and nothing warns of them. What is shown is right.",
			Remedy:      "Narrow lock_patterns to the names of locks, or raise max_memory.",
		}
		if n.NoRoomLocks == 0 {
			f.Severity, f.Title = SeverityInfo, "more keys that are no locks than this program has room for"
			f.Evidence = safetext.New(fmt.Sprintf("no room for about %s: such keys have a quarter of [monitor] max_memory, which is %s",
				count(n.NoRoom, "key", "keys"), bytesOf(k.opt.MaxMemory)))
			f.Consequence = "They are not listed. All locks are."
		}
		return f, n.NoRoom > 0
	})
}

func limitedSight(k known, tell func(Finding)) {
	each(k, tell, func(_ int, n *Node) (Finding, bool) {
		var notes []string
		for _, note := range n.Notes {
			if !strings.HasPrefix(note, "min-replicas-max-lag 0") { // a finding of its own
				notes = append(notes, note)
			}
		}
		return Finding{
			Severity: SeverityInfo, Title: "not everything can be seen",
			Evidence:    safetext.New(strings.Join(notes, "; ")),
			Consequence: "What cannot be read cannot be warned of.",
			Remedy:      "Give this user the rights that redlockctl config acl --role observer prints.",
		}, len(notes) > 0 && readable(n.State)
	})
}
