package finding

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/words"
	"redlockctl/server/announce"
	"redlockctl/server/fences"
)

// servesEarly: somebody has removed the fence of a node before it may vote.
func servesEarly(k known, n *monitor.Node, f *found) bool {
	f.Remedy = strings.ReplaceAll(f.Remedy, "NAME", n.Name)
	return n.Early && f.seen("it serves, and may vote from %s by the guard that watches it", n.EarlyUntil.Format("15:04:05"))
}

func isNotEarly(_ known, n *monitor.Node) bool { return !n.Early }

func fenceOff(k known, n *monitor.Node, f *found) bool {
	return n.Facts.MaxLag == 0 && (k.guard == nil || guardedBy(k, n.Name)) &&
		f.seen("min-replicas-max-lag 0 switches min-replicas-to-write off")
}

// fenceLeaks: writes get through the fence, now or after the next start.
func fenceLeaks(k known, n *monitor.Node, f *found) bool {
	f.Remedy = strings.ReplaceAll(f.Remedy, "NAME", n.Name)
	if n.Role == "slave" {
		f.Remedy = "Set replica-read-only yes, with CONFIG SET and in the server's file, and point the node at an independent master."
	}
	if n.Leak != "" {
		return f.seen("%s", n.Leak)
	}
	f.Severity, f.Title = monitor.SeverityWarning, "its fence would not hold"
	return n.ScriptsPass && n.State.Readable() && isGuarded(k, n) && f.seen("scripts write through min-replicas-to-write on version %s", n.Version)
}

// fenceBypass: users that the fence by ACL does not stop.
func fenceBypass(k known, n *monitor.Node, f *found) bool {
	return k.opt.Fences[n.Name] == fences.ACL && n.Facts.Writers != "" &&
		f.seen("may write locks beside the lock clients' user: %s", n.Facts.Writers)
}

func bootFence(k known, n *monitor.Node, f *found) bool {
	if k.opt.Fences[n.Name] == fences.ACL {
		f.Remedy = userRemedy
	}
	if g, ok := k.guardOf(n.Name); ok {
		switch {
		case g.Exposed && g.AtStart:
			f.Severity = monitor.SeverityDanger
			return stillOpen(f, g)
		case anotherRun(n, g.RunID): // it has not seen this start yet
		case g.Known && !g.Verified && g.OpenFor > 0:
			lostByStart(k, n, f)
			return f.seen("its last start was unfenced, for at most %s", g.OpenFor)
		case g.Known && !g.Verified:
			lostByStart(k, n, f)
			return f.seen("its last start was unfenced; the exposure is not known")
		}
		return bootFinding(k, n, f)
	}
	seen := !n.Facts.OpenAt.IsZero() && !n.Persistent
	if seen && k.believed(n.Facts.OpenAt) {
		f.Severity = monitor.SeverityDanger
	} else if found := *f; bootFinding(k, n, &found) {
		*f = found
		return true
	}
	return seen && f.seen("it accepted writes right after its restart, %s", words.At(n.Facts.OpenAt, k.At))
}

// anotherRun reports whether something that is known of the incarnation with this run ID says nothing
// about the present one.
func anotherRun(n *monitor.Node, runID string) bool {
	return runID != "" && n.RunID != "" && runID != n.RunID
}

// startedFenced reports whether a guard has seen the present incarnation start fenced, and none
// saw it start unfenced.
func startedFenced(k known, n *monitor.Node) bool {
	g, _ := k.guardOf(n.Name)
	return !g.Exposed && n.Started(g) == announce.BootFenced
}

// stillOpen adds the evidence for a node that its guard has not fenced yet.
func stillOpen(f *found, g monitor.GuardedNode) bool {
	return f.seen("it accepts writes though it should be fenced; %s", cmp.Or(g.Err, "the guard is fencing it"))
}

// believed reports whether a client may still rely on a lock that a node forgot at that time.
func (k known) believed(at time.Time) bool {
	return k.At.Sub(at) < max(k.Cluster.MaxTTL, time.Second)
}

// lostByStart makes an unfenced start a danger for as long as if this program had seen
// it, so that everyone who knows of it has the same verdict.
func lostByStart(k known, n *monitor.Node, f *found) {
	if !n.Persistent && k.believed(n.StartedAfter) {
		f.Severity = monitor.SeverityDanger
	}
}

// startsUnseen: a guard watches the nodes and has not seen any start yet. If their files
// say that the next start is fenced, that is normal: such nodes are named if there are no others.
func startsUnseen(k known, f *found) bool {
	var names, unknown []string
	for i := range k.Nodes {
		n := &k.Nodes[i]
		if g, here := k.guardOf(n.Name); monitor.ProtectionOf(n, k.guard) == monitor.ProtectionUnseen && n.State.Readable() {
			unknown = append(unknown, n.Name)
		} else if n.Started(g) == announce.BootUnknown && (here || len(n.Guards) > 0) {
			names = append(names, n.Name)
		}
	}
	f.Severity = monitor.SeverityInfo
	if len(unknown) > 0 {
		f.Severity, names = monitor.SeverityWarning, unknown
	}
	which := strings.Join(names, ", ")
	f.Title = "start of " + which + " not seen yet"
	if f.Severity == monitor.SeverityInfo {
		f.Consequence = "Nothing is wrong: they lose nothing by a crash, or would start fenced after it. A restart proves it."
	}
	return len(names) > 0 && f.seen("no guard has seen a start of %s", which)
}

// staysFenced: a guard lets a node rejoin after D. If a node stays fenced for much longer, no
// guard does.
func staysFenced(k known, n *monitor.Node, f *found) bool {
	fenced := k.At.Sub(n.Since)
	f.Remedy = strings.ReplaceAll(f.Remedy, "NAME", n.Name)
	switch {
	case n.State == monitor.NodeCordoned || n.State == monitor.NodeDown && n.Cordon != nil:
		f.Severity, f.Title = monitor.SeverityInfo, "cordoned by an operator"
		f.Consequence = "It does not vote, and no guard lets it rejoin."
		if at, known := n.MayRejoin(k.At); known && at.After(k.At) {
			f.Consequence += " Once uncordoned it may serve from " + at.Format("15:04:05") + "."
		}
		f.Remedy = "When the work on it is done: redlockctl node uncordon " + n.Name + "."
		if c := n.Cordon; c != nil {
			if how := c.GoOn(); how != "" {
				f.Remedy = how + ". To let it serve instead: redlockctl node uncordon " + n.Name + "."
			}
			return f.seen("cordoned %s, by the audit log here", c.Told(k.At))
		}
		if n.Older {
			return f.seen("it was found cordoned")
		}
		return f.seen("cordoned %s", words.At(n.Since, k.At))
	case n.State != monitor.NodeFenced, k.Cluster.MaxTTL == 0, fenced < 2*k.Cluster.MaxTTL+10*time.Second:
		return false
	case fenced < 2*announce.Greatest(n.Guards, "")+10*time.Second, n.RejoinsAfter.After(k.At):
		return false // the guard that watches it waits longer, or began to watch it later
	}
	text := "fenced since " + words.Moment(n.Since, k.At) + ", much longer than a guard waits"
	if n.Older {
		text = strings.Replace(text, "fenced since", "found fenced at", 1)
	}
	if len(n.Guards) > 0 {
		f.Title = "its guard does not let it rejoin"
		f.Remedy = "Find out what the guard waits for: read its log, and run redlockctl guard status on its host. By hand: redlockctl node rejoin --now " + n.Name + "."
		text += ", though " + monitor.GuardName(n.Guards[0]) + " watches it"
	}
	return f.seen("%s", text)
}

const userRemedy = "Put the lock clients' user without write commands into an ACL file that the server cannot write: redlockctl node boot-fence NAME prints it."

// bootFinding says what is wrong with how a node starts, apart from what a guard in this
// process knows.
func bootFinding(k known, n *monitor.Node, f *found) bool {
	boot := k.boots[n.Name]
	f.Remedy = cmp.Or(boot.Remedy, f.Remedy)
	if boot.Form == BootUnfenced {
		if isGuarded(k, n) {
			f.Severity = monitor.SeverityDanger // the guard comes too late
		}
		return f.seen("%s", boot.Evidence)
	}
	for _, g := range n.Guards {
		if g.Boot != announce.BootUnfenced {
			continue
		}
		lostByStart(k, n, f)
		text := "its last start was unfenced, as the guard on " + g.Host.Raw() + " saw"
		if g.Exposed > 0 {
			text += fmt.Sprintf(", for at most %s", g.Exposed.Round(time.Millisecond))
		}
		return f.seen("%s", text)
	}
	switch {
	case boot.Started == announce.BootUnfenced && !anotherRun(n, boot.RunID):
		lostByStart(k, n, f)
		return f.seen("its last start was unfenced, according to the memory of a guard on this host")
	case n.StartedUnfenced:
		return f.seen("its last start that a guard saw was unfenced")
	}
	f.Title = "its boot fence does not last"
	f.Consequence = "After one CONFIG REWRITE or ACL SAVE, by anybody, it starts unfenced and can vote a second time until a guard has fenced it."
	return boot.Form == BootFragile && f.seen("%s", boot.Evidence)
}

// fenceRewritten: CONFIG REWRITE and ACL SAVE write the settings of that moment, and so may
// remove the boot fence.
func fenceRewritten(k known, n *monitor.Node, f *found) bool {
	method, since := k.opt.Fences[n.Name], k.since[n.Name]
	what := []string{calls("CONFIG REWRITE", since.configRewrites, n.Facts.ConfigRewrites, k.At)}
	if method == fences.ACL {
		f.Consequence = "ACL SAVE and CONFIG REWRITE on a serving node write the lock clients' user with its write commands: the next start is unfenced."
		f.Remedy = "Check it on the server's own host: redlockctl node boot-fence NAME --verify. An ACL file that the server cannot write survives it."
		what = append(what, calls("ACL SAVE", since.aclSaves, n.Facts.ACLSaves, k.At))
	}
	what = slices.DeleteFunc(what, func(w string) bool { return w == "" })
	return len(what) > 0 && method != fences.None && rewriteMatters(k, n) && f.seen("%s", strings.Join(what, "; "))
}

// rewriteMatters reports whether a rewrite may undo the node's boot fence. If the form of the
// boot fence is known, this does not have to be guessed.
func rewriteMatters(k known, n *monitor.Node) bool {
	return isGuarded(k, n) && k.boots[n.Name].Form == BootUnseen
}

// fenceDenied: without CONFIG nobody can fence by min-replicas-to-write or let the node
// rejoin.
func fenceDenied(k known, n *monitor.Node, f *found) bool {
	if g, ok := k.guardOf(n.Name); ok && g.Exposed && !g.AtStart && k.At.Sub(g.Since) > fencesWithin {
		f.Severity = monitor.SeverityDanger
		return stillOpen(f, g)
	}
	if method := k.opt.Fences[n.Name]; n.Facts.ConfigError == "" || method == fences.ACL || method == fences.None {
		return false
	}
	guarded := isGuarded(k, n)
	if guarded {
		f.Severity = monitor.SeverityDanger
	}
	// Denied to this user. The guard's user may have the right: a guard that has seen how
	// the node started does.
	saw := slices.ContainsFunc(n.Guards, func(g announce.Guard) bool { return g.Boot != announce.BootUnknown })
	return (n.Facts.ConfigMissing || guarded && !saw) && f.seen("CONFIG GET min-replicas-to-write: %s", n.Facts.ConfigError)
}

// fencesWithin is how long a guard takes to fence a node that it can fence.
const fencesWithin = 2 * time.Second

// calls says how often a command was called on a node, as seen or by the server's count;
// empty if never.
func calls(command string, seen count64, total int64, now time.Time) string {
	switch {
	case seen.lately(now):
		return fmt.Sprintf("%s %d × while it was watched, the last %s", command, seen.n, words.At(seen.at, now))
	case total > 0:
		return fmt.Sprintf("%s %d × since its start", command, total)
	}
	return ""
}
