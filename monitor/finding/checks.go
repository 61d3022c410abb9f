package finding

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"redlockctl/monitor"
	"redlockctl/monitor/words"
	"redlockctl/server/fences"
	"slices"
	"strconv"
	"strings"
	"time"
)

func noQuorum(k known, f *found) bool {
	evidence := fmt.Sprintf("%d of %d nodes serve, a quorum is %d: %s", k.Cluster.Serving, k.Cluster.N, k.Cluster.Quorum, k.Cluster.Absent)
	var fenced, left, cordoned []string
	for i := range k.Nodes {
		switch n := &k.Nodes[i]; {
		case n.State == monitor.NodeCordoned:
			cordoned = append(cordoned, n.Name)
		case n.State != monitor.NodeFenced:
		case n.GuardsKnown && len(n.Guards) == 0 && !guardedBy(k, n.Name):
			left = append(left, n.Name)
		default:
			fenced = append(fenced, n.Name)
		}
	}
	if len(left) > 0 {
		evidence += "; no guard is seen on " + strings.Join(left, ", ") + ": what is fenced stays so until one runs"
	}
	if k.guard != nil && k.guard.Outlook != "" {
		evidence += "; " + k.guard.Outlook
	} else if len(fenced) > 0 && k.Cluster.MaxTTL > 0 {
		evidence += "; a guard lets " + strings.Join(fenced, ", ") + " rejoin when each has waited for a bit more than " + k.Cluster.MaxTTL.String()
	}
	if len(cordoned) > 0 {
		f.Remedy = "Uncordon " + words.Names(cordoned) + " (redlockctl node uncordon), unless they are being restarted. " + f.Remedy
	}
	return k.Cluster.Verdict == monitor.VerdictUnavailable && f.seen("%s", evidence)
}

func notSeen(k known, f *found) bool {
	return k.Cluster.NotSeen && f.seen("%s; %s", k.NotSeenText(), k.Cluster.Absent)
}

func nodeTimeout(k known, n *monitor.Node, f *found) bool {
	if !k.opt.NodeTimeoutSet || len(n.RTTs) < 10 || !n.State.Readable() {
		return false
	}
	trips := slices.Sorted(slices.Values(n.RTTs))
	trip := trips[len(trips)/10]
	return trip >= k.opt.NodeTimeout && f.seen("a round trip takes %s, node_timeout is %s", trip.Round(time.Millisecond), k.opt.NodeTimeout)
}

func sameServer(k known, f *found) bool {
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
	slices.Sort(same)
	return len(same) > 0 && f.seen("%s have the same run_id", strings.Join(same, "; "))
}

// sameHost: on loopback addresses it is a lab, and intended.
func sameHost(k known, f *found) bool {
	byHost := map[string][]string{}
	for i := range k.Nodes {
		host := hostOf(k.Nodes[i].Addr)
		byHost[host] = append(byHost[host], k.Nodes[i].Name)
	}
	var same []string
	for host, names := range byHost {
		if len(names) > 1 {
			same = append(same, strings.Join(names, ", ")+" on "+host)
		}
	}
	if len(same) == 1 && len(byHost[monitor.ThisMachine]) > 1 {
		f.Severity = monitor.SeverityInfo
	}
	slices.Sort(same)
	return len(same) > 0 && f.seen("%s", strings.Join(same, "; "))
}

func hostOf(addr string) string {
	if strings.HasPrefix(addr, "/") {
		return monitor.ThisMachine
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	if ip, err := netip.ParseAddr(host); strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback() {
		return monitor.ThisMachine
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

func evictionPolicy(_ known, n *monitor.Node, f *found) bool {
	switch {
	case n.Eviction == "", n.Eviction == "noeviction":
		return false
	case n.Facts.MaxMemory < 0:
		f.Severity = monitor.SeverityWarning
		return f.seen("maxmemory-policy %s; maxmemory cannot be read", n.Eviction)
	case n.Facts.MaxMemory == 0:
		f.Severity = monitor.SeverityInfo
		return f.seen("maxmemory-policy %s, maxmemory 0 (no limit)", n.Eviction)
	}
	return f.seen("maxmemory-policy %s, %s of maxmemory %s used", n.Eviction, words.Bytes(n.UsedMemory), words.Bytes(n.Facts.MaxMemory))
}

func evictions(k known, n *monitor.Node, f *found) bool {
	c := k.since[n.Name].evicted
	if max(c.n, n.Facts.Evicted) == 1 {
		f.Title = "a key was evicted"
	}
	if c.lately(k.At) {
		return f.seen("%d evicted while it was watched, the last %s", c.n, words.At(c.at, k.At))
	}
	f.Severity = monitor.SeverityWarning
	return n.Facts.Evicted > 0 && f.seen("evicted_keys %d since its start", n.Facts.Evicted)
}

func wrongRole(_ known, n *monitor.Node, f *found) bool {
	f.Evidence = n.Err
	return n.State == monitor.NodeWrongRole
}

// openServer: a server on another host that accepts commands without a login. A firewall or
// network policy that keeps strangers out cannot be seen from here.
func openServer(k known, n *monitor.Node, f *found) bool {
	if k.opt.Fences[n.Name] == fences.ACL && n.Facts.Open {
		f.Severity, f.Title = monitor.SeverityDanger, "no password is needed to get around its fence"
		f.Consequence = "Its fence stops only the lock clients' user. Whoever does not log in, or sends RESET, is the default user and may write: after a crash this node can vote a second time."
		return f.seen("PING without a login is answered at %s, and the fence is that of a user", n.Addr)
	}
	return n.Facts.Open && hostOf(n.Addr) != monitor.ThisMachine && f.seen("PING without a login is answered at %s", n.Addr)
}

func replicas(_ known, n *monitor.Node, f *found) bool {
	if n.Replicas == 1 {
		f.Title = "a replica is attached"
	}
	return n.Replicas > 0 && n.Role == "master" && f.seen("connected_slaves %d", n.Replicas)
}

func nodeDown(k known, n *monitor.Node, f *found) bool {
	f.Title, f.Evidence = "the node is "+n.State.String(), n.Err
	f.Consequence = "Losing one more node stops all locking."
	if n := k.Cluster.CanLose; k.Cluster.TooFewSeen() {
		f.Consequence = "It was found before too few nodes were seen serving, and goes on."
	} else if n > 0 {
		f.Consequence = fmt.Sprintf("Losing %d more nodes stops all locking.", n+1)
	}
	switch n.State {
	case monitor.NodeDown:
		if c := n.Cordon; c != nil {
			f.Remedy = "Start the server, or fix the network. It starts fenced, and stays cordoned until it is uncordoned."
			if c.Restart != nil && !c.Stopped {
				f.Remedy = "Wait for the restart, whose command starts it. If it was interrupted, start the server. It stays cordoned until it is uncordoned."
			}
		}
	case monitor.NodeSlow:
		f.Remedy = "Find out what holds it up: a long command (SLOWLOG), swapping, a paused machine, the network. Do not restart it for that: it would lose its locks, and rejoin only after the longest TTL."
	case monitor.NodeLoading:
		f.Remedy = "Wait. Lock masters without persistence have nothing to load."
		return f.seen("LOADING: it is reading its data")
	case monitor.NodeDenied:
		f.Consequence = "It is not known whether it serves, and its locks cannot be seen."
		f.Remedy = "Give this user the rights that redlockctl config acl prints, or correct its password."
	default:
		return false
	}
	return !f.Evidence.Empty() || f.seen("%s", n.State)
}

// unsafePersistence: without a guard, a server that loses a lock can give the vote again. One
// that is only partly persistent looks safe and is not.
func unsafePersistence(k known, n *monitor.Node, f *found) bool {
	if n.Facts.AppendOnly == "" || !n.State.Readable() {
		return false
	}
	if p := monitor.ProtectionOf(n, k.guard); p != monitor.ProtectionNone && p != monitor.ProtectionHidden {
		return false
	}
	_, doubt := n.Facts.Durable()
	switch {
	case doubt != "":
		f.Remedy = "Let a guard fence it after each start (redlockctl guard), or have appendonly yes, appendfsync always and no-appendfsync-on-rewrite no in its command line or file, and restart it."
		return f.seen("appendonly yes with appendfsync always, but durability not verified: %s", doubt)
	case n.Facts.AppendOnly == "yes":
		return f.seen("appendonly yes, but appendfsync %s", cmp.Or(n.Facts.AppendFsync, "unknown"))
	case n.Facts.SaveKnown && n.Facts.Save != "":
		return f.seen(`snapshots only: save "%s", appendonly no`, n.Facts.Save)
	}
	// No persistence is right for lock masters if a guard watches: see notProtected.
	return k.guard != nil && f.seen("no persistence, and no guard fences this node")
}

// clientsFull counts refused connections, too. A server with protected-mode also counts those that were reset before it
// looked at them: one or two of these say nothing.
func clientsFull(k known, n *monitor.Node, f *found) bool {
	most := n.Facts.MaxClients
	if c, many := k.since[n.Name].refused, most <= 0 || 2*int64(n.Clients) >= most; c.lately(k.At) && (many || c.n > 2) {
		f.Title = "maxclients was reached"
		why := ""
		if !many {
			f.Consequence = "Clients that were refused could not lock on it at that moment. It is far from its limit now."
			f.Remedy = "If the number grows, find who is refused (CLIENT LIST, the server's log). After a pause of the server there is nothing to do."
			f.Title, why = "connections were refused", ": maxclients was reached for a moment, protected-mode refused clients of other hosts, or clients had left before they were accepted, as while the server was stopped"
		}
		return f.seen("%s refused while it was watched, the last %s; %s are open%s", words.Count(int(c.n), "connection", "connections"), words.At(c.at, k.At), clientsOf(n), why)
	}
	return most > 0 && 10*int64(n.Clients) >= 9*most && f.seen("%s connections are open", clientsOf(n))
}

// clientsOf returns how many connections a node has, of how many.
func clientsOf(n *monitor.Node) string {
	if n.Facts.MaxClients < 0 {
		return strconv.Itoa(n.Clients)
	}
	return fmt.Sprintf("%d of maxclients %d", n.Clients, n.Facts.MaxClients)
}

func memoryFull(_ known, n *monitor.Node, f *found) bool {
	limit := n.Facts.MaxMemory
	return limit > 0 && float64(n.UsedMemory) > 0.9*float64(limit) && f.seen("%s of maxmemory %s used", words.Bytes(n.UsedMemory), words.Bytes(limit))
}

func diskFails(_ known, n *monitor.Node, f *found) bool {
	return n.Facts.DiskFails != "" && f.seen("%s", n.Facts.DiskFails)
}

// savedByHand: commands that no lock client sends.
func savedByHand(k known, n *monitor.Node, f *found) bool {
	var what []string
	note := func(c count64, total int64, name string) (seen bool) {
		text := calls(name, c, total, k.At)
		if text != "" {
			what = append(what, text)
		}
		return text != ""
	}
	h := k.since[n.Name]
	note(h.backgroundSaves, max(0, n.Facts.BackgroundSaves)+max(0, n.Facts.Rewrites), "BGSAVE or BGREWRITEAOF")
	if note(h.saves, n.Facts.Saves, "SAVE") {
		f.Consequence = "SAVE blocks the server until it is done: attempts fail, and locks expire."
		if h.saves.lately(k.At) {
			f.Severity = monitor.SeverityWarning
		}
	}
	if !rewriteMatters(k, n) { // otherwise a separate finding reports it
		note(h.configRewrites, n.Facts.ConfigRewrites, "CONFIG REWRITE")
		note(h.aclSaves, n.Facts.ACLSaves, "ACL SAVE")
	}
	return len(what) > 0 && f.seen("%s", strings.Join(what, "; "))
}

func evenNodes(k known, f *found) bool {
	n := k.Cluster.N
	f.Consequence = fmt.Sprintf("It tolerates the loss of %d, as %d nodes do, and contending clients split the votes more often.", n-k.Cluster.Quorum, n-1)
	return n > 1 && n%2 == 0 && f.seen("%d nodes, quorum %d", n, k.Cluster.Quorum)
}

func singleNode(k known, f *found) bool { return k.Cluster.N == 1 && f.seen("1 node, quorum 1") }

// locksUnread: keys for which this program has no memory.
func locksUnread(k known, n *monitor.Node, f *found) bool {
	switch {
	case n.NoRoom == 0:
		return false
	case n.NoRoomLocks > 0:
		return f.seen("no room for about %s in [monitor] max_memory, which is %s", words.Count(n.NoRoomLocks, "key", "keys"), words.Bytes(k.opt.MaxMemory))
	}
	f.Severity, f.Title = monitor.SeverityInfo, "more keys that are not locks than this program has room for"
	f.Consequence = "They are not listed. All locks are."
	return f.seen("no room for about %s: such keys may use a quarter of [monitor] max_memory, which is %s", words.Count(n.NoRoom, "key", "keys"), words.Bytes(k.opt.MaxMemory))
}

// limitedSight: what this user may not read, or what does not arrive. The remedy lists
// the advice for each.
func limitedSight(_ known, n *monitor.Node, f *found) bool {
	var seen, do []string
	for _, l := range n.Limits {
		seen = append(seen, l.Text)
		if !slices.Contains(do, l.Do) {
			do = append(do, l.Do)
		}
	}
	f.Remedy = strings.Join(do, " ")
	return len(seen) > 0 && n.State.Readable() && f.seen("%s", strings.Join(seen, "; "))
}

// ofLocks makes a check for locks of a kind; one is the title for a single lock, if it
// differs.
func ofLocks(kind int, one string) func(known, *found) bool {
	return func(k known, f *found) bool {
		these := k.locks[kind]
		if these.count == 0 || these.sample == nil {
			return false
		}
		f.Key, f.Count, f.Evidence = these.sample.Key, these.count, exampleOf(these.sample, k.Nodes)
		if these.count == 1 {
			f.Title = cmp.Or(one, f.Title)
			return true
		}
		return f.seen("%d; the first: %s", these.count, f.Evidence.Raw())
	}
}

// orphaned: copies on nodes that refuse writes keep nobody out as long as that is so.
func orphaned(k known, f *found) bool {
	if ofLocks(badOrphan, "orphaned copies of a lock")(k, f) {
		return true
	}
	f.Severity, f.Title = monitor.SeverityInfo, "copies of locks left over on nodes that refuse writes"
	f.Consequence = "They keep nobody out: a fenced or cordoned node gives no vote. It refused their release, or nobody holds them any more."
	f.Remedy = "Nothing: they expire. A node that takes writes again before that gives no other client its vote for these locks until then."
	return ofLocks(badLeft, "copies of a lock left over on nodes that refuse writes")(k, f)
}

// endlessCopy: a force-release of a lock on which somebody relies lets a second client in, so that is
// no advice then.
func endlessCopy(k known, f *found) bool {
	if !ofLocks(badEndless, "")(k, f) {
		return false
	}
	if k.locks[badEndless].relied {
		until := "its holder has released it or it has expired"
		if k.locks[badEndless].unending {
			until = "its holder has released it: it may never expire"
		}
		f.Remedy = "Set the TTL in the same command as the value (SET … NX PX). Do not force-release a lock while somebody relies on it: wait until " + until + ", and remove only a copy that is left then."
	}
	return true
}
