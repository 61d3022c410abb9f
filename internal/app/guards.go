package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"redlockctl/internal/announce"
	"redlockctl/internal/config"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/restartguard"
)

// Remembered is what the guard's daemon on this machine remembers of each node,
// nothing if it never ran. A memory that cannot be read is an error: it may say what
// must be known.
func Remembered(cfg *config.Config) (map[string]restartguard.Remembered, error) {
	if cfg.Guard.StateDir == "" {
		return nil, nil
	}
	m, err := restartguard.ReadMemory(cfg.Guard.StateDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("what the guard remembers cannot be read: %w", err)
	}
	return m, nil
}

// GuardRuns reports whether a guard runs on the state directory of the configuration.
func GuardRuns(cfg *config.Config) (bool, error) {
	if cfg.Guard.StateDir == "" {
		return false, nil
	}
	return restartguard.Running(cfg.Guard.StateDir)
}

// Guards is what can be told from here of the guards that run: those that announce
// themselves on the nodes, wherever they run, and the one on this machine's state
// directory.
type Guards struct {
	All   []announce.Guard // the one with the greatest D first
	Known bool             // nobody else is there
	here  *bool            // nil: none ever wrote to the directory, or it cannot be told
	dir   string
	s     *monitor.Snapshot
}

// GuardsOf is what a snapshot and the state directory tell of the guards.
func GuardsOf(cfg *config.Config, s *monitor.Snapshot) Guards {
	g := Guards{dir: cfg.Guard.StateDir, s: s}
	g.All, g.Known = s.Guards()
	if memory, err := Remembered(cfg); err == nil && len(memory) > 0 {
		if running, err := GuardRuns(cfg); err == nil {
			g.here = &running
		}
	}
	return g
}

// Running reports whether a guard runs; nil: that is not known.
func (g Guards) Running() *bool {
	runs := len(g.All) > 0 || g.here != nil && *g.here
	if !runs && !g.Known {
		return nil
	}
	return &runs
}

// Missing says that no guard runs, or that it is not known if one does, and what
// that means for these nodes; empty where one runs.
func (g Guards) Missing(nodes ...string) string {
	effect := "fenced nodes do not rejoin"
	if len(nodes) > 0 {
		effect = "nothing lets " + strings.Join(nodes, ", ") + " rejoin"
	}
	switch running := g.Running(); {
	case running != nil && *running:
		return ""
	case running != nil:
		return "no guard runs (none announces itself on the nodes): " + effect + " until one is started"
	case g.here != nil:
		return fmt.Sprintf("no guard runs on this state directory (%s), and it is not known if one runs elsewhere, since guards cannot be seen on the nodes: if none does, %s", g.dir, effect)
	}
	return "it is not known if a guard runs, since guards cannot be seen on the nodes: if none does, " + effect
}

// Forsaken says which fenced nodes nobody is known to let rejoin; empty where there are
// none, or where a guard runs.
func (g Guards) Forsaken() string {
	var fenced []string
	for _, n := range g.s.Nodes {
		if n.State == monitor.NodeFenced {
			fenced = append(fenced, n.Name)
		}
	}
	if fenced == nil {
		return ""
	}
	return g.Missing(fenced...)
}

// On are the nodes on which a guard announces itself.
func (g Guards) On(one announce.Guard) (nodes []string) {
	for _, n := range g.s.Nodes {
		if slices.ContainsFunc(n.Guards, one.Same) {
			nodes = append(nodes, n.Name)
		}
	}
	return nodes
}

// Lines are the guards that are seen, one a line, and how many more there are.
func (g Guards) Lines() (lines []string) {
	const most = 4
	for i, one := range g.All {
		if i == most {
			return append(lines, fmt.Sprintf("guards: %d more", len(g.All)-most))
		}
		line := "guard: " + monitor.GuardName(one)
		if one.PID > 0 {
			line += fmt.Sprintf(", pid %d", one.PID)
		}
		line += ", D " + one.Delay.String()
		if own := g.s.Cluster.Name; one.Cluster.Raw() != own && !one.Cluster.Empty() {
			line += ", which calls the cluster " + one.Cluster.Word()
		}
		lines = append(lines, fmt.Sprintf("%s, on %d of %d nodes", line, len(g.On(one)), len(g.s.Nodes)))
	}
	return lines
}

// OutlookOf is what the fences mean, as far as a guard on this machine has
// written down what it knows, and runs; false where there is nothing to be read.
// A node that is fenced and of which nothing is known comes back nobody knows
// when. Since when nothing can be locked is not known to one who has just come.
func OutlookOf(cfg *config.Config, s *monitor.Snapshot) (restartguard.Outlook, bool) {
	memory, err := Remembered(cfg)
	if err != nil || len(memory) == 0 {
		return restartguard.Outlook{}, false
	}
	running, err := GuardRuns(cfg)
	if err != nil {
		return restartguard.Outlook{}, false
	}
	waits := map[string]time.Duration{}
	for _, n := range s.Nodes {
		// What was remembered of another incarnation or another server says nothing.
		if m, ok := memory[n.Name]; ok && running && m.Addr == n.Addr && m.RunID == n.RunID && m.Wait > 0 {
			waits[n.Name] = m.Wait
		}
	}
	return OutlookBy(s, waits)
}

// OutlookBy is what the fences mean, where it is known how long some nodes wait.
func OutlookBy(s *monitor.Snapshot, waits map[string]time.Duration) (restartguard.Outlook, bool) {
	known := false
	status := make([]restartguard.NodeStatus, 0, len(s.Nodes))
	for _, n := range s.Nodes {
		st := restartguard.NodeStatus{Node: n.Name, Phase: restartguard.PhaseUnreachable}
		switch n.State {
		case monitor.NodeServing:
			st.Phase = restartguard.PhaseServing
		case monitor.NodeCordoned:
			st.Phase = restartguard.PhaseCordoned
		case monitor.NodeFenced:
			st.Phase = restartguard.PhaseFenced
			if wait, ok := waits[n.Name]; ok {
				st.Until = s.At.Add(wait)
				known = true
			}
		}
		status = append(status, st)
	}
	return restartguard.OutlookOf(status, len(s.Nodes), redlock.Quorum(len(s.Nodes))), known
}

// GuardAt reports whether a guard runs that watches a node; nil: it is not known.
func GuardAt(ctx context.Context, cfg *config.Config, name string) *bool {
	runs, _ := GuardRuns(cfg)
	if runs {
		return &runs
	}
	s, err := Look(ctx, cfg, Aim{Nodes: true})
	if err != nil {
		return nil
	}
	for _, n := range s.Nodes {
		if n.Name == name && (n.GuardsKnown || len(n.Guards) > 0) {
			runs = len(n.Guards) > 0
			return &runs
		}
	}
	return nil
}
