package monitor

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"redlockctl/internal/announce"
	"redlockctl/internal/safetext"
)

// GuardSight is what findings know of a restart guard in this process.
type GuardSight struct {
	// Nodes are those that the guard closes after a loss, by name.
	Nodes map[string]GuardedNode
	// Outlook says when a quorum is back, while there is none; empty: not known.
	Outlook string
}

// GuardedNode is one node as its guard sees it.
type GuardedNode struct {
	Known    bool // a start of it was seen, so that Verified means something
	Verified bool // its last start came up closed
	Exposed  bool // it accepts writes though it should be closed
	// OpenFor is how long its last incarnation was open before it was closed.
	OpenFor time.Duration
	Err     string // why it could not be closed or opened, or talked to
}

// Guarded tells the monitor of the guard in this process: sight is called with
// each look for findings, and must answer at once. Without one, what only a
// guard can know is not told.
func (m *Monitor) Guarded(sight func() GuardSight) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.world.findings.guard = sight
}

func fenceOff(k known, tell func(Finding)) {
	each(k, tell, func(_ int, n *Node) (Finding, bool) {
		return Finding{
			Severity: SeverityDanger, Title: "its fence cannot close",
			Evidence:    safetext.New("min-replicas-max-lag 0 switches min-replicas-to-write off"),
			Consequence: "After a crash this node votes again at once, with its votes forgotten, whatever the boot fence and the guard set.",
			Remedy:      "Set min-replicas-max-lag 10, with the boot fence too (redlockctl node boot-fence prints it).",
		}, n.Facts.MaxLag == 0 && (k.guard == nil || guardedBy(k, n.Name))
	})
}

func guardedBy(k known, node string) bool {
	_, ok := k.guard.Nodes[node]
	return ok
}

func bootFence(k known, tell func(Finding)) {
	each(k, tell, func(_ int, n *Node) (Finding, bool) {
		f := Finding{
			Severity:    SeverityWarning,
			Title:       "no boot fence",
			Consequence: "From its start until it is fenced such a node votes a second time: milliseconds are enough for an eager client.",
			Remedy:      bootRemedy,
		}
		if k.opt.Fences[n.Name] == fenceByUser {
			f.Remedy = userRemedy
		}
		if k.guard != nil {
			if g, ok := k.guard.Nodes[n.Name]; ok {
				switch {
				case g.Exposed:
					f.Severity = SeverityDanger
					f.Evidence = safetext.New("it accepts writes though it should be closed; " + cmp.Or(g.Err, "the guard is closing it"))
				case g.Known && !g.Verified:
					f.Evidence = safetext.New("its last start was unfenced, for how long is not known")
					if g.OpenFor > 0 {
						f.Evidence = safetext.New(fmt.Sprintf("its last start was unfenced, for at most %s", g.OpenFor))
					}
				default:
					return bootFinding(k, n, f)
				}
				return f, true
			}
		}
		seen := !n.Facts.OpenAt.IsZero() && !n.Persistent
		if seen && k.At.Sub(n.Facts.OpenAt) < max(k.Cluster.MaxTTL, time.Second) {
			f.Severity = SeverityDanger // while a lock that it forgot may still be believed in
		} else if found, ok := bootFinding(k, n, f); ok || !seen {
			return found, ok
		}
		f.Evidence = safetext.New("it accepted writes right after its restart, " + ago(n.Facts.OpenAt, k.At))
		return f, true
	})
}

// bootFenceUnverified: a guard watches, and has seen no start of them.
func bootFenceUnverified(k known, tell func(Finding)) {
	var names []string
	severity := SeverityInfo
	for i := range k.Nodes {
		n := &k.Nodes[i]
		if g, here := k.guardOf(n.Name); protectionOf(n, k.guard) == unverifiedNode && readable(n.State) {
			severity = SeverityWarning
		} else if !here || g.Known {
			continue
		}
		names = append(names, n.Name)
	}
	if len(names) == 0 {
		return
	}
	tell(Finding{
		Severity: severity, Title: "boot fences not verified yet",
		Evidence:    safetext.New("no start of " + strings.Join(names, ", ") + " has been seen"),
		Consequence: "If one of them has no boot fence, it shows with its first crash.",
		Remedy:      "Restart one node after the other while the guard watches, and wait for each to rejoin.",
	})
}

// guardOf is what the guard in this process sees of a node.
func (k known) guardOf(node string) (g GuardedNode, ok bool) {
	if k.guard != nil {
		g, ok = k.guard.Nodes[node]
	}
	return g, ok
}

// staysClosed: a guard opens a node after D. One that stays closed for longer
// has nobody who does.
func staysClosed(k known, tell func(Finding)) {
	each(k, tell, func(_ int, n *Node) (Finding, bool) {
		long := 2*k.Cluster.MaxTTL + 10*time.Second
		switch {
		case n.State == NodeHeld:
			return Finding{
				Severity: SeverityInfo, Title: "held by an operator",
				Evidence:    safetext.New("closed by hand " + ago(n.Since, k.At)),
				Consequence: "It has no vote, and no guard opens it.",
				Remedy:      "redlockctl node open " + n.Name + " when the work on it is done.",
			}, true
		case n.State != NodeFenced || k.Cluster.MaxTTL == 0 || k.At.Sub(n.Since) < long:
			return Finding{}, false
		}
		if k.At.Sub(n.Since) < 2*announce.Greatest(n.Guards, "")+10*time.Second {
			return Finding{}, false // the guard that watches it waits for longer
		}
		f := Finding{
			Severity: SeverityWarning, Title: "nobody opens it",
			Evidence:    safetext.New("closed since " + k.At.Sub(n.Since).Round(time.Second).String() + ", far longer than a guard waits"),
			Consequence: "It has no vote: the cluster can lose fewer other nodes.",
			Remedy:      "Run a guard (redlockctl guard), or open it by hand: redlockctl node open " + n.Name + ".",
		}
		if len(n.Guards) > 0 {
			f.Title = "its guard does not open it"
			f.Evidence = safetext.New(f.Evidence.Raw() + ", though " + GuardName(n.Guards[0]) + " watches it")
			f.Remedy = "See what the guard waits for: its log, and redlockctl guard status on its host. Or open it by hand: redlockctl node open " + n.Name + "."
		}
		return f, true
	})
}
