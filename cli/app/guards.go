package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"redlockctl/internal/config"
	"redlockctl/internal/metrics"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/restartguard"
	"redlockctl/restartguard/memory"
	"redlockctl/server/announce"
	"redlockctl/server/safetext"
)

// Remembered returns what the guard's daemon on this machine remembers of each node; nothing if it
// never ran. A memory that cannot be read is an error, because it may matter.
func Remembered(cfg *config.Config) (map[string]restartguard.Fact, error) {
	return remembered(cfg.Guard.StateDir)
}

func remembered(dir string) (map[string]restartguard.Fact, error) {
	if dir == "" {
		return nil, nil
	}
	m, err := memory.Read(dir)
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
	return memory.Running(cfg.Guard.StateDir)
}

// Guards is what is known here about running guards: those that announce themselves on the nodes,
// wherever they run, and the one with this machine's state directory, by its memory.
type Guards struct {
	All   []announce.Guard // the one with the greatest D first
	Known bool             // there are no others

	cfg    *config.Config
	s      *monitor.Snapshot
	memory map[string]restartguard.Fact
	err    error // the memory cannot be read
	here   *bool // whether a guard runs on the state directory; nil: none ever did, or that is not known
}

// GuardsOf returns what a snapshot and the state directory show about the guards.
func GuardsOf(cfg *config.Config, s *monitor.Snapshot) Guards {
	g := Guards{cfg: cfg, s: s}
	g.All, g.Known = s.Guards()
	if g.memory, g.err = Remembered(cfg); len(g.memory) > 0 {
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

// Missing says that no guard runs, or that it is not known whether one does, and what that means
// for these nodes; empty if one runs.
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
		return fmt.Sprintf("no guard runs on this state directory (%s), and it is not known if one runs elsewhere, since guards cannot be seen on the nodes: if none does, %s", g.cfg.Guard.StateDir, effect)
	}
	return "it is not known if a guard runs, since guards cannot be seen on the nodes: if none does, " + effect
}

// Forsaken says which fenced nodes no known guard will let rejoin; empty if there are none, or if a
// guard runs.
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

// On returns the nodes on which a guard announces itself.
func (g Guards) On(one announce.Guard) (nodes []string) {
	for _, n := range g.s.Nodes {
		if slices.ContainsFunc(n.Guards, one.Same) {
			nodes = append(nodes, n.Name)
		}
	}
	return nodes
}

// Lines returns the guards that are seen, one a line, and how many more there are.
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

// Remembered returns the guards that are not seen now, but whose D still counts for the guard on
// this machine.
func (g Guards) Remembered() []memory.KnownDelay {
	if g.cfg.Guard.StateDir == "" {
		return nil
	}
	all, err := memory.ReadDelays(g.cfg.Guard.StateDir)
	if err != nil {
		return nil // the guard reports that itself
	}
	return slices.DeleteFunc(all, func(k memory.KnownDelay) bool {
		return slices.ContainsFunc(g.All, func(one announce.Guard) bool { return one.ID == k.ID })
	})
}

// told returns what the guard on this machine remembers of the fenced nodes, if it runs.
func (g Guards) told() []restartguard.NodeStatus {
	if g.here == nil || !*g.here {
		return nil
	}
	return statusIn(g.memory, g.s)
}

// statusIn returns what a memory has of the fenced nodes, without what it has of another incarnation
// or another server.
func statusIn(memory map[string]restartguard.Fact, s *monitor.Snapshot) (told []restartguard.NodeStatus) {
	for _, n := range s.Nodes {
		if m, ok := memory[n.Name]; ok && m.Addr == n.Addr && m.RunID == n.RunID && n.State == monitor.NodeFenced {
			told = append(told, waiting(n.Name, m, s.At))
		}
	}
	return told
}

// waiting returns the status of a fenced node, from what a guard knows of it.
func waiting(node string, fact restartguard.Fact, now time.Time) restartguard.NodeStatus {
	st := restartguard.NodeStatus{Node: node, Phase: restartguard.PhaseFenced, Reason: fact.Cause}
	if fact.Wait > 0 {
		st.Until = now.Add(fact.Wait)
	}
	return st
}

// view returns what is known about fences: what a guard has told, and what all announce.
func (g Guards) view(told []restartguard.NodeStatus) view.Guard {
	v := view.NewGuard("", told)
	v.Configured = g.cfg.Guard.Delay
	v.See(g.s)
	return v
}

// Outlook returns what the fences mean, as far as the guards announce it and the one on this machine
// remembers; false if no wait is known that ends. A command that has just started does not know
// since when no lock can be acquired.
func (g Guards) Outlook() (restartguard.Outlook, bool) { return outlookOf(g.view(g.told()), g.s) }

func outlookOf(v view.Guard, s *monitor.Snapshot) (o restartguard.Outlook, known bool) {
	o = v.Outlook(s)
	return o, o.First != ""
}

// rememberedStatus returns what the guard with this state directory remembers of the fenced nodes;
// nil: nothing, or it does not run.
func rememberedStatus(dir string, s *monitor.Snapshot) []restartguard.NodeStatus {
	fenced := func(n monitor.Node) bool { return n.State == monitor.NodeFenced }
	if dir == "" || !slices.ContainsFunc(s.Nodes, fenced) {
		return nil
	}
	if runs, err := memory.Running(dir); err != nil || !runs {
		return nil
	}
	memory, err := memory.Read(dir)
	if err != nil {
		return nil
	}
	return statusIn(memory, s)
}

// GuardAt reports whether a running guard watches a node; nil: that is not known.
func GuardAt(ctx context.Context, cfg *config.Config, name string) *bool {
	runs, _ := GuardRuns(cfg)
	if runs {
		return &runs
	}
	s, err := Look(ctx, cfg, Aim{Nodes: true})
	if err != nil {
		return nil
	}
	n := s.Node(name)
	if n == nil || !n.GuardsKnown && len(n.Guards) == 0 {
		return nil
	}
	return new(len(n.Guards) > 0)
}

// Doc returns what is known about the guards: by the memory of the one on this machine, and by the
// /status of one that was asked, if answer is not nil.
func (g Guards) Doc(answer *metrics.Status) view.GuardsDoc {
	doc := view.GuardsDoc{
		DelayMs: g.cfg.Guard.Delay.Milliseconds(), StateDir: safetext.New(g.cfg.Guard.StateDir), Memory: "none", GuardsSeenDoc: g.docOfSeen(),
	}
	switch {
	case g.err != nil:
		doc.Memory, doc.Error = "unreadable", safetext.OptionalError(g.err)
	case g.memory != nil:
		doc.Memory = "there"
	}
	for _, k := range g.Remembered() {
		doc.Remembered = append(doc.Remembered, view.KnownDelayDoc{ID: k.ID, Host: safetext.New(k.Host), DelayMs: k.Delay.Milliseconds(), Since: k.Seen})
	}
	told := g.told()
	var asked map[string]restartguard.Fact
	if answer != nil {
		doc.Running, asked, told = new(true), answer.Nodes, nil
		for name, fact := range asked {
			if n := g.s.Node(name); n != nil && fact.Wait >= 0 && n.State == monitor.NodeFenced {
				told = append(told, waiting(name, fact, g.s.At))
			}
		}
	}
	fences := g.view(told)
	methods := Methods(g.cfg)
	for _, n := range g.s.Nodes {
		var saw restartguard.Fact
		m, remembered := g.memory[n.Name]
		remembered = remembered && m.Addr == n.Addr
		same := remembered && m.RunID == n.RunID && n.RunID != ""
		if remembered && !n.State.Answers() { // of what does not answer, the last start that it saw
			saw = m
		}
		fact, answered := asked[n.Name]
		if answered && fact.Known {
			saw = fact
		}
		one := view.DocOfGuarded(&n, methods[n.Name].Kind.String(), monitor.GuardedNode{Known: saw.Known, Verified: saw.Verified})
		if one.Known = same; remembered {
			one.Incarnations, one.Cordoned = m.Incarnations, m.Cordoned
		}
		if answered {
			one.Known = fact.Known
		}
		if n.Leak != "" {
			one.BootFence = "does not hold"
		}
		if st := fences.Status[n.Name]; !st.Until.IsZero() {
			one.RejoinMs, one.Cause = new(st.Until.Sub(g.s.At).Milliseconds()), st.Reason
		}
		doc.Nodes = append(doc.Nodes, one)
	}
	if o, known := outlookOf(fences, g.s); known || g.here != nil && !o.Possible() {
		doc.Outlook = safetext.Optional(o.Text())
		doc.OutlookDoc = view.DocOfOutlook(o, g.s.At)
	}
	return doc
}

func (g Guards) docOfSeen() view.GuardsSeenDoc {
	doc := view.GuardsSeenDoc{Running: g.Running(), GuardsKnown: g.Known, Guards: []view.SeenGuardDoc{}}
	for _, one := range g.All {
		on := append([]safetext.Text{}, safetext.Texts(g.On(one))...)
		doc.Guards = append(doc.Guards, view.SeenGuardDoc{ID: one.ID, Host: one.Host, PID: one.PID, DelayMs: one.Delay.Milliseconds(), On: on})
	}
	return doc
}
