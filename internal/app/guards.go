package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"redlockctl/internal/announce"
	"redlockctl/internal/config"
	"redlockctl/internal/metrics"
	"redlockctl/internal/safetext"
	"redlockctl/internal/view"
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

// DocOfGuards is what is known of the guards: of the one on this machine by what it has
// written down, and of the one that was asked, if told is not nil.
func DocOfGuards(cfg *config.Config, s *monitor.Snapshot, told *metrics.Told) view.GuardsDoc {
	doc := view.GuardsDoc{DelayMs: cfg.Guard.Delay.Milliseconds(), StateDir: safetext.New(cfg.Guard.StateDir), Memory: "none"}
	memory, err := Remembered(cfg)
	switch {
	case err != nil:
		doc.Memory, doc.Error = "unreadable", safetext.OptionalError(err)
	case memory != nil:
		doc.Memory = "there"
	}
	doc.GuardsSeenDoc = DocOfSeen(GuardsOf(cfg, s))
	running, _ := GuardRuns(cfg)
	if told != nil {
		doc.Running = new(true)
	}
	methods, waits := Methods(cfg), map[string]time.Duration{}
	for _, n := range s.Nodes {
		one := view.GuardDoc{Name: safetext.New(n.Name), Addr: safetext.New(n.Addr), State: n.State.String(), Method: methods[n.Name].Kind.String(), BootFence: (&view.Guard{}).BootFence(&n)}
		// Of a node that does not answer it is not known whose incarnation comes next.
		if m, ok := memory[n.Name]; ok && m.Addr == n.Addr {
			one.Incarnations, one.Cordoned = m.Incarnations, m.Cordoned
			if one.Known = m.RunID == n.RunID && n.RunID != ""; one.Known {
				if m.Known {
					one.BootFence = "not verified"
					if m.Verified {
						one.BootFence = "verified"
					}
				}
				if running && m.Wait > 0 && n.State == monitor.NodeFenced {
					one.RejoinMs = new(m.Wait.Milliseconds())
				}
			}
		}
		if t, ok := toldOf(told, n.Name); ok {
			one.Known = t.Boot != announce.BootUnknown.String()
			one.BootFence = cmp.Or(map[string]string{
				announce.BootFenced.String(): "verified", announce.BootUnfenced.String(): "not verified",
			}[t.Boot], "unknown")
			one.RejoinMs = nil
			if t.Wait >= 0 && n.State == monitor.NodeFenced {
				one.RejoinMs, waits[n.Name] = new(t.Wait.Milliseconds()), t.Wait
			}
		}
		doc.Nodes = append(doc.Nodes, one)
	}
	o, known := OutlookOf(cfg, s)
	if told != nil {
		o, known = OutlookBy(s, waits)
	}
	if known || err == nil && memory != nil && !o.Possible() {
		doc.Outlook = safetext.Optional(o.Text(s.At))
		doc.OutlookDoc = view.DocOfOutlook(o, s.At)
	}
	return doc
}

func toldOf(told *metrics.Told, name string) (metrics.ToldNode, bool) {
	if told != nil {
		for _, n := range told.Nodes {
			if n.Name == name {
				return n, true
			}
		}
	}
	return metrics.ToldNode{}, false
}

// DocOfSeen is what can be told of the guards.
func DocOfSeen(g Guards) view.GuardsSeenDoc {
	doc := view.GuardsSeenDoc{Running: g.Running(), GuardsKnown: g.Known, Guards: []view.SeenGuardDoc{}}
	for _, one := range g.All {
		on := append([]safetext.Text{}, safetext.Texts(g.On(one))...)
		doc.Guards = append(doc.Guards, view.SeenGuardDoc{ID: one.ID, Host: one.Host, PID: one.PID, DelayMs: one.Delay.Milliseconds(), On: on})
	}
	return doc
}
