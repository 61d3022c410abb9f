package finding

import (
	"cmp"
	"strings"
	"time"

	"redlockctl/internal/announce"
	"redlockctl/internal/words"
	"redlockctl/monitor"
)

func fenceOff(k known, n *monitor.Node, f *found) bool {
	return n.Facts.MaxLag == 0 && (k.guard == nil || guardedBy(k, n.Name)) &&
		f.seen("min-replicas-max-lag 0 switches min-replicas-to-write off")
}

func bootFence(k known, n *monitor.Node, f *found) bool {
	if k.opt.Fences[n.Name] == fenceByUser {
		f.Remedy = userRemedy
	}
	if g, ok := k.guardOf(n.Name); ok {
		switch {
		case g.Exposed:
			f.Severity = monitor.SeverityDanger
			return f.seen("it accepts writes though it should be fenced; %s", cmp.Or(g.Err, "the guard is fencing it"))
		case g.Known && !g.Verified && g.OpenFor > 0:
			return f.seen("its last start was unfenced, for at most %s", g.OpenFor)
		case g.Known && !g.Verified:
			return f.seen("its last start was unfenced, for how long is not known")
		}
		return bootFinding(k, n, f)
	}
	seen := !n.Facts.OpenAt.IsZero() && !n.Persistent
	if seen && k.At.Sub(n.Facts.OpenAt) < max(k.Cluster.MaxTTL, time.Second) {
		f.Severity = monitor.SeverityDanger // while a lock that it forgot may still be believed in
	} else if found := *f; bootFinding(k, n, &found) {
		*f = found
		return true
	}
	return seen && f.seen("it accepted writes right after its restart, %s", words.Ago(n.Facts.OpenAt, k.At))
}

// bootFenceUnverified: a guard watches, and has seen no start of them.
func bootFenceUnverified(k known, f *found) bool {
	var names []string
	f.Severity = monitor.SeverityInfo
	for i := range k.Nodes {
		n := &k.Nodes[i]
		if g, here := k.guardOf(n.Name); monitor.ProtectionOf(n, k.guard) == monitor.ProtectionUnverified && n.State.Readable() {
			f.Severity = monitor.SeverityWarning
		} else if !here || g.Known {
			continue
		}
		names = append(names, n.Name)
	}
	return len(names) > 0 && f.seen("no start of %s has been seen", strings.Join(names, ", "))
}

// staysFenced: a guard lets a node rejoin after D. One that stays fenced for longer
// has no guard that does.
func staysFenced(k known, n *monitor.Node, f *found) bool {
	fenced := k.At.Sub(n.Since)
	f.Remedy = strings.ReplaceAll(f.Remedy, "NAME", n.Name)
	switch {
	case n.State == monitor.NodeCordoned:
		f.Severity, f.Title = monitor.SeverityInfo, "cordoned by an operator"
		f.Consequence = "It has no vote, and no guard lets it rejoin."
		f.Remedy = "redlockctl node rejoin --now " + n.Name + " when the work on it is done."
		return f.seen("cordoned %s", words.Ago(n.Since, k.At))
	case n.State != monitor.NodeFenced, k.Cluster.MaxTTL == 0, fenced < 2*k.Cluster.MaxTTL+10*time.Second:
		return false
	case fenced < 2*announce.Greatest(n.Guards, "")+10*time.Second:
		return false // the guard that watches it waits for longer
	}
	text := "fenced since " + fenced.Round(time.Second).String() + ", far longer than a guard waits"
	if len(n.Guards) > 0 {
		f.Title = "its guard does not let it rejoin"
		f.Remedy = "See what the guard waits for: its log, and redlockctl guard status on its host. Or by hand: redlockctl node rejoin --now " + n.Name + "."
		text += ", though " + monitor.GuardName(n.Guards[0]) + " watches it"
	}
	return f.seen("%s", text)
}
