package monitor

import (
	"fmt"
	"strings"
	"time"

	"redlockctl/internal/announce"
	"redlockctl/internal/safetext"
)

// BootForm says how a node starts, as far as its files and its command line
// tell.
type BootForm uint8

const (
	BootUnseen   BootForm = iota // they cannot be seen
	BootFirm                     // fenced, whatever the server writes into its files
	BootFragile                  // fenced, until the server rewrites its files
	BootUnfenced                 // unfenced
)

// BootSight is what is known of a node's starts beyond what the node itself
// tells.
type BootSight struct {
	Form BootForm
	// Guarded: a guard remembers the node, so that it fences it after a loss.
	Guarded bool
	// StartedUnfenced: a guard remembers that its present process started unfenced.
	StartedUnfenced bool
	Evidence        string // of Form
	Remedy          string // empty: the usual one
}

// Booted tells the monitor how nodes start, by their names; what is told before
// is replaced.
func (m *Monitor) Booted(boots map[string]BootSight) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.world.findings.boots = boots
}

// Words of [Options.Fences], as in the configuration.
const (
	fenceByUser = "acl"
	fenceByNone = "none"
)

// isGuarded reports whether a guard fences the node after a loss: one in this
// process, one that announces itself on the node, or one that remembers it.
func isGuarded(k known, n *Node) bool {
	return k.guard != nil && guardedBy(k, n.Name) || len(n.Guards) > 0 || k.boots[n.Name].Guarded
}

const (
	bootRemedy = "Start it fenced: by its command line, or by an included file with anchors. redlockctl node boot-fence NAME prints both, and with --verify says what it has."
	userRemedy = "Start the lock clients' user without commands that write, in an ACL file that the server cannot write: redlockctl node boot-fence NAME prints it."
)

// bootFinding is what is wrong with how a node starts, beyond what a guard in
// this process tells.
func bootFinding(k known, n *Node, f Finding) (Finding, bool) {
	boot := k.boots[n.Name]
	if boot.Remedy != "" {
		f.Remedy = boot.Remedy
	}
	if boot.Form == BootUnfenced {
		if isGuarded(k, n) {
			f.Severity = SeverityDanger // the guard comes too late
		}
		f.Evidence = safetext.New(boot.Evidence)
		return f, true
	}
	for _, g := range n.Guards {
		if g.Boot != announce.BootUnfenced {
			continue
		}
		text := "its last start was unfenced, as the guard on " + g.Host.Raw() + " saw"
		if g.Exposed > 0 {
			text += fmt.Sprintf(", for at most %s", g.Exposed.Round(time.Millisecond))
		}
		f.Evidence = safetext.New(text)
		return f, true
	}
	switch {
	case boot.StartedUnfenced:
		f.Evidence = safetext.New("its last start was unfenced, as a guard remembers")
		return f, true
	case boot.Form == BootFragile:
		f.Title = "its boot fence does not last"
		f.Evidence = safetext.New(boot.Evidence)
		f.Consequence = "One CONFIG REWRITE or ACL SAVE, by a person, a tool or another program, and it starts unfenced: it then votes a second time until a guard has fenced it."
		return f, true
	}
	return f, false
}

// fenceRewritten: CONFIG REWRITE and ACL SAVE write what is set at that moment,
// and so may write the fence away.
func fenceRewritten(k known, tell func(Finding)) {
	each(k, tell, func(i int, n *Node) (Finding, bool) {
		f := Finding{
			Severity: SeverityWarning, Title: "it was told to rewrite its own files",
			Consequence: "CONFIG REWRITE while it serves writes min-replicas-to-write 0: if the boot fence is only in the main file, or in an included file without anchors, the next start is unfenced.",
			Remedy:      "Check it on the server's own host: redlockctl node boot-fence NAME --verify. The command line and anchors survive it.",
		}
		method := k.opt.Fences[n.Name]
		counts, total := k.since[i].configRewrites, n.Facts.ConfigRewrites
		what := []string{rewriteText("CONFIG REWRITE", counts, total, k.At)}
		if method == fenceByUser {
			f.Consequence = "ACL SAVE and CONFIG REWRITE while it serves write the lock clients' user with its commands that write: the next start is unfenced."
			f.Remedy = "Check it on the server's own host: redlockctl node boot-fence NAME --verify. An ACL file that the server cannot write survives it."
			what = append(what, rewriteText("ACL SAVE", k.since[i].aclSaves, n.Facts.ACLSaves, k.At))
		}
		var text []string
		for _, w := range what {
			if w != "" {
				text = append(text, w)
			}
		}
		f.Evidence = safetext.New(strings.Join(text, "; "))
		return f, len(text) > 0 && method != fenceByNone && rewriteMatters(k, n)
	})
}

// rewriteMatters reports whether a rewrite may undo the node's boot fence. Of a
// node that is known to be firm or broken nothing needs to be guessed.
func rewriteMatters(k known, n *Node) bool {
	return isGuarded(k, n) && k.boots[n.Name].Form == BootUnseen
}

func rewriteText(command string, seen count64, total int64, now time.Time) string {
	switch {
	case seen.n > 0 && now.Sub(seen.at) < lately:
		return fmt.Sprintf("%s %d × while it was watched, the last %s", command, seen.n, ago(seen.at, now))
	case total > 0:
		return fmt.Sprintf("%s %d × since its start", command, total)
	}
	return ""
}

// fenceDenied: where CONFIG cannot be used, nobody can fence by
// min-replicas-to-write, nor let the node rejoin.
func fenceDenied(k known, tell func(Finding)) {
	each(k, tell, func(_ int, n *Node) (Finding, bool) {
		f := Finding{
			Severity: SeverityWarning, Title: "it cannot be fenced",
			Consequence: "A guard can neither fence this node after a loss nor let it rejoin: after FLUSHALL, a failover or an unfenced start it votes a second time.",
			Remedy:      `Give the guard's user CONFIG GET and CONFIG SET (redlockctl config acl --role guard), take rename-command CONFIG away, or use fence = "acl" for this node.`,
		}
		if isGuarded(k, n) {
			f.Severity = SeverityDanger
		}
		f.Evidence = safetext.New("CONFIG GET min-replicas-to-write: " + n.Facts.ConfigError)
		if method := k.opt.Fences[n.Name]; n.Facts.ConfigError == "" || method == fenceByUser || method == fenceByNone {
			return f, false
		}
		if n.Facts.ConfigMissing {
			return f, true
		}
		// Denied to this user. Another one, as which the guard logs in, may have the
		// right: a guard that has seen the fence of a start has it.
		for _, g := range n.Guards {
			if g.Boot != announce.BootUnknown {
				return f, false
			}
		}
		return f, isGuarded(k, n)
	})
}
