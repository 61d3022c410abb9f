package cli

import (
	"fmt"
	"slices"
	"strings"

	"redlockctl/internal/announce"
	"redlockctl/internal/config"
	"redlockctl/internal/safetext"
	"redlockctl/monitor"
)

// guardsSeen is what can be told from here of the guards that run: those that
// announce themselves on the nodes, wherever they run, and the one on this machine's
// state directory.
type guardsSeen struct {
	all   []announce.Guard // the one with the greatest D first
	known bool             // nobody else is there
	here  *bool            // nil: none ever wrote to the directory, or it cannot be told
	dir   string
	s     *monitor.Snapshot
}

func guardsSeenOf(cfg *config.Config, s *monitor.Snapshot) guardsSeen {
	g := guardsSeen{here: guardRunning(cfg), dir: cfg.Guard.StateDir, s: s}
	g.all, g.known = s.Guards()
	return g
}

// running reports whether a guard runs; nil: that is not known.
func (g guardsSeen) running() *bool {
	runs := len(g.all) > 0 || g.here != nil && *g.here
	if !runs && !g.known {
		return nil
	}
	return &runs
}

// none says that no guard runs, or that it is not known if one does, and what that
// means for these nodes; empty where one runs.
func (g guardsSeen) none(nodes ...string) string {
	effect := "no node that is fenced rejoins"
	if len(nodes) > 0 {
		effect = "nothing opens " + strings.Join(nodes, ", ")
	}
	switch running := g.running(); {
	case running != nil && *running:
		return ""
	case running != nil:
		return "no guard runs (none announces itself on the nodes): " + effect + " until one is started"
	case g.here != nil:
		return fmt.Sprintf("no guard runs on this state directory (%s), and it is not known if one runs elsewhere, since guards cannot be seen on the nodes: if none does, %s", g.dir, effect)
	}
	return "it is not known if a guard runs, since guards cannot be seen on the nodes: if none does, " + effect
}

// on are the nodes on which a guard announces itself.
func (g guardsSeen) on(one announce.Guard) (nodes []string) {
	for _, n := range g.s.Nodes {
		if slices.ContainsFunc(n.Guards, one.Same) {
			nodes = append(nodes, n.Name)
		}
	}
	return nodes
}

// lines are the guards that are seen, one a line, and how many more there are.
func (g guardsSeen) lines() (lines []string) {
	const most = 4
	for i, one := range g.all {
		if i == most {
			return append(lines, fmt.Sprintf("guards: %d more", len(g.all)-most))
		}
		line := "guard: " + monitor.GuardName(one)
		if one.PID > 0 {
			line += fmt.Sprintf(", pid %d", one.PID)
		}
		line += ", D " + one.Delay.String()
		if own := g.s.Cluster.Name; one.Cluster.Raw() != own && !one.Cluster.Empty() {
			line += ", which calls the cluster " + one.Cluster.Word()
		}
		lines = append(lines, fmt.Sprintf("%s, on %d of %d nodes", line, len(g.on(one)), len(g.s.Nodes)))
	}
	return lines
}

// guardsSeenJSON are the guards that run, as far as it can be told from here.
type guardsSeenJSON struct {
	Running     *bool           `json:"guard_running,omitempty"` // left out: not known
	GuardsKnown bool            `json:"guards_known"`
	Guards      []seenGuardJSON `json:"guards"`
}

// seenGuardJSON is a guard that announces itself on nodes.
type seenGuardJSON struct {
	ID      string          `json:"id"`
	Host    safetext.Text   `json:"host"`
	PID     int             `json:"pid,omitempty"`
	DelayMs int64           `json:"delay_ms"`
	On      []safetext.Text `json:"on"`
}

func (g guardsSeen) doc() guardsSeenJSON {
	doc := guardsSeenJSON{Running: g.running(), GuardsKnown: g.known, Guards: []seenGuardJSON{}}
	for _, one := range g.all {
		seen := seenGuardJSON{ID: one.ID, Host: one.Host, PID: one.PID, DelayMs: ms(one.Delay), On: []safetext.Text{}}
		for _, name := range g.on(one) {
			seen.On = append(seen.On, text(name))
		}
		doc.Guards = append(doc.Guards, seen)
	}
	return doc
}

// announcedBoot is what guards announce of how a node came up last: verified, not
// verified, or unknown.
func announcedBoot(n monitor.Node) string {
	word := "unknown"
	for _, g := range n.Guards {
		switch g.Boot {
		case announce.BootUnfenced:
			return "not verified"
		case announce.BootFenced:
			word = "verified"
		}
	}
	return word
}
