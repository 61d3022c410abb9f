package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/internal/announce"
	"redlockctl/internal/app"
	"redlockctl/internal/audit"
	"redlockctl/internal/config"
	"redlockctl/internal/metrics"
	"redlockctl/internal/safetext"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/restartguard"
)

// guardPageJSON is the document of guard status.
type guardPageJSON struct {
	view.ClusterDoc
	guardsJSON
	History []auditEntryJSON `json:"history"` // of fences and rejoins, the latest last
}

// guardsJSON is what a guard on this machine has written down, beside what is
// seen of the nodes now.
type guardsJSON struct {
	DelayMs  int64         `json:"delay_ms"`
	StateDir safetext.Text `json:"state_dir"`
	Memory   string        `json:"memory"` // there, none or unreadable
	guardsSeenJSON
	Error *safetext.Text  `json:"error,omitempty"`
	Nodes []view.GuardDoc `json:"nodes"`
	// As in the document of status.
	FirstNode    *safetext.Text `json:"first_rejoin_node,omitempty"`
	FirstMs      *int64         `json:"first_rejoin_ms,omitempty"`
	QuorumBackMs *int64         `json:"quorum_back_ms,omitempty"`
	Outlook      *safetext.Text `json:"outlook,omitempty"`
}

// view is the same for those who show nodes.
func (g guardsJSON) view(s *monitor.Snapshot) view.Guard {
	var list []restartguard.NodeStatus
	for i, one := range g.Nodes {
		status := restartguard.NodeStatus{Node: s.Nodes[i].Name, Known: one.BootFence != "unknown", Verified: one.BootFence == "verified", Phase: restartguard.PhaseActive}
		if one.RejoinMs != nil {
			status.Phase, status.Until = restartguard.PhaseClosed, s.At.Add(time.Duration(*one.RejoinMs)*time.Millisecond)
		}
		if status.Known || one.RejoinMs != nil {
			list = append(list, status)
		}
	}
	guard := view.NewGuard("", list)
	guard.Configured = time.Duration(g.DelayMs) * time.Millisecond
	guard.See(s)
	return guard
}

// guardsOf is what is known of the guards: of the one on this machine by what it has
// written down, and of the one that was asked, if told is not nil.
func guardsOf(cfg *config.Config, s *monitor.Snapshot, told *metrics.Told) guardsJSON {
	doc := guardsJSON{DelayMs: ms(cfg.Guard.Delay), StateDir: text(cfg.Guard.StateDir), Memory: "none"}
	memory, err := app.Remembered(cfg)
	switch {
	case err != nil:
		doc.Memory, doc.Error = "unreadable", optional(err.Error())
	case memory != nil:
		doc.Memory = "there"
	}
	doc.guardsSeenJSON = seenDoc(app.GuardsOf(cfg, s))
	running, _ := app.GuardRuns(cfg)
	if told != nil {
		yes := true
		doc.Running = &yes
	}
	methods, waits := app.Methods(cfg), map[string]time.Duration{}
	for _, n := range s.Nodes {
		one := view.GuardDoc{Name: text(n.Name), Addr: text(n.Addr), State: n.State.String(), Method: methods[n.Name].Kind.String(), BootFence: (&view.Guard{}).BootFence(&n)}
		// Of a node that does not answer it is not known whose life comes next.
		if m, ok := memory[n.Name]; ok && m.Addr == n.Addr {
			one.Lives, one.Held = m.Incarnations, m.Cordoned
			if one.Known = m.RunID == n.RunID && n.RunID != ""; one.Known {
				if m.Known {
					one.BootFence = "not verified"
					if m.Verified {
						one.BootFence = "verified"
					}
				}
				if running && m.Wait > 0 && n.State == monitor.NodeFenced {
					v := ms(m.Wait)
					one.RejoinMs = &v
				}
			}
		}
		if t, ok := toldOf(told, n.Name); ok {
			one.Known = t.Boot != announce.BootUnknown.String()
			one.BootFence = map[string]string{
				announce.BootFenced.String(): "verified", announce.BootUnfenced.String(): "not verified",
			}[t.Boot]
			one.BootFence = cmp.Or(one.BootFence, "unknown")
			one.RejoinMs = nil
			if t.Wait >= 0 && n.State == monitor.NodeFenced {
				v := ms(t.Wait)
				one.RejoinMs, waits[n.Name] = &v, t.Wait
			}
		}
		doc.Nodes = append(doc.Nodes, one)
	}
	o, known := app.OutlookOf(cfg, s)
	if told != nil {
		o, known = app.OutlookBy(s, waits)
	}
	if known || err == nil && memory != nil && !o.Possible() {
		doc.Outlook = optional(o.Text(s.At))
		if o.First != "" {
			doc.FirstNode, doc.FirstMs = optional(o.First), msUntil(o.FirstAt, s.At)
		}
		doc.QuorumBackMs = msUntil(o.Until, s.At)
	}
	return doc
}

// toldOf is what a guard that was asked told of a node.
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

// ask asks the guard that listens at an address.
func ask(ctx context.Context, cfg *config.Config, addr string) (*metrics.Told, error) {
	if addr == "" {
		return nil, nil
	}
	told, err := metrics.ReadStatus(ctx, addr)
	switch {
	case errors.Is(err, metrics.ErrURL):
		return nil, usageError{fmt.Errorf("--url %q: %w", addr, err)}
	case err != nil:
		return nil, fmt.Errorf("--url: %w", err)
	case told.Cluster != cfg.Cluster.Name:
		return nil, fmt.Errorf("--url: the guard there is one of the cluster %s, not of %q", safetext.New(told.Cluster).Word(), cfg.Cluster.Name)
	}
	return &told, nil
}

func (a *commandLine) guardStatusCommand() *cobra.Command {
	var again live
	var as listing
	var last int
	var addr string
	cmd := as.add(again.add(&cobra.Command{
		Use:   "status",
		Short: "Which nodes are closed, for how long still, and what fenced and opened them",
		Long: `Looks at every master once, and prints beside it what the guard on this machine has
written into [guard] state_dir: which nodes wait, when they rejoin, whether their
last start came up closed. Below are the fences and rejoins of the audit log, by
guards and by people, the latest last.

The guards that run are named, on whatever host and with whatever state directory:
they announce themselves on the nodes. If none runs, nothing opens a node that is
closed, there are no countdowns, and it is said. The memory of a guard on another
machine, or of another user, cannot be read from here: run this command there as that
user, or ask the guard by --url, if it runs with --listen. Exit code 4 when there is
no quorum.`,
		Example: "redlockctl guard status --watch\nredlockctl guard status --url http://127.0.0.1:9622\nredlockctl guard status -o json | jq '.nodes[] | select(.rejoin_ms)'",
		Args:    noArgs,
		RunE: a.run(func(ctx context.Context, _ []string) error {
			if last < 0 {
				return usageError{fmt.Errorf("--last %d is negative", last)}
			}
			cfg, err := a.load()
			if err != nil {
				return err
			}
			return a.pictures(ctx, cfg, &again, app.Aim{Nodes: true}, func(s *monitor.Snapshot) error {
				told, err := ask(ctx, cfg, addr)
				if err != nil {
					return err
				}
				guards := guardsOf(cfg, s, told)
				history, err := fenceHistory(cfg, last)
				if err != nil {
					return err
				}
				columns := view.GuardColumns(guards.Running != nil && !*guards.Running)
				nodes, err := sorted(&as, columns, guards.Nodes)
				if err != nil {
					return err
				}
				printed, err := a.document(func() document {
					doc := guardPageJSON{ClusterDoc: view.DocOfCluster(s), guardsJSON: guards, History: []auditEntryJSON{}}
					for _, e := range history {
						doc.History = append(doc.History, auditDoc(e))
					}
					return doc
				})
				if err != nil {
					return err
				}
				if printed {
					return unavailable(s)
				}
				if a.output != "csv" {
					a.printGuards(app.GuardsOf(cfg, s), told, guards)
				}
				if err := list(a, &as, a.context(s), columns, nodes, func(n view.GuardDoc) any { return n }); err != nil {
					return err
				}
				if a.output != "csv" {
					a.printHistory(len(guards.Guards) > 0 && slices.ContainsFunc(nodes, guards.unknown), history)
				}
				return unavailable(s)
			})
		}),
	}))
	cmd.Flags().IntVar(&last, "last", 20, "how many lines of the audit log")
	cmd.Flags().StringVar(&addr, "url", "", "ask the guard that listens there too, such as http://127.0.0.1:9622")
	return cmd
}

// fenceHistory are the latest lines of the audit log that are about fences of
// this cluster.
func fenceHistory(cfg *config.Config, last int) (kept []audit.Entry, err error) {
	if cfg.Audit.Path == "" || last == 0 {
		return nil, nil
	}
	err = audit.Read(cfg.Audit.Path, func(e audit.Entry) error {
		// Intents are followed by what came of them.
		if e.Cluster == cfg.Cluster.Name && strings.HasPrefix(e.Act, "node ") && e.Phase != audit.Intent {
			if kept = append(kept, e); len(kept) > 2*last {
				kept = slices.Delete(kept, 0, len(kept)-last)
			}
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return kept[max(0, len(kept)-last):], err
}

func (a *commandLine) printGuards(seen app.Guards, told *metrics.Told, g guardsJSON) {
	w := a.out
	switch {
	case g.Memory == "none" && len(seen.All) > 0:
		fmt.Fprintf(w, "guard: D is %s by this configuration\n", time.Duration(g.DelayMs)*time.Millisecond)
	case g.Memory == "there":
		fmt.Fprintf(w, "guard: D is %s, memory in %s\n", time.Duration(g.DelayMs)*time.Millisecond, g.StateDir)
	case g.Memory == "none":
		fmt.Fprintf(w, "guard: D is %s; nothing is remembered in %s\n", time.Duration(g.DelayMs)*time.Millisecond, g.StateDir)
	default:
		fmt.Fprintf(w, "guard: D is %s; %s\n", time.Duration(g.DelayMs)*time.Millisecond, g.Error)
	}
	for _, line := range seen.Lines() {
		fmt.Fprintln(w, line)
	}
	if told != nil {
		fmt.Fprintf(w, "guard: asked %s, D %s\n", safetext.New(told.ID[:min(6, len(told.ID))]), told.Delay)
		if told.Sick != "" {
			fmt.Fprintf(w, "the guard is stuck: %s\n", a.cut(safetext.Escape(told.Sick), 200))
		}
	} else if none := seen.Missing(); none != "" {
		fmt.Fprintln(w, safetext.Escape(none))
	}
	if g.Outlook != nil {
		fmt.Fprintf(w, "%s\n", g.Outlook)
	}
	fmt.Fprintln(w)
}

// unknown reports whether only a guard elsewhere knows when a node rejoins.
func (g guardsJSON) unknown(n view.GuardDoc) bool {
	return n.RejoinMs == nil && !n.Held && n.State == monitor.NodeFenced.String() && (g.Running == nil || *g.Running)
}

// printHistory prints what became of fences; ask: when nodes rejoin is known elsewhere.
func (a *commandLine) printHistory(ask bool, history []audit.Entry) {
	if ask {
		fmt.Fprintln(a.out, "\nWhen they rejoin is known to the guard: run this command on its host, as its user, or\nask it by --url http://HOST:PORT, if it runs with --listen.")
	}
	if len(history) == 0 {
		return
	}
	fmt.Fprintln(a.out)
	t := view.NewTable("TIME", "ACTOR", "NODE", "WHAT", "WHY", "DETAIL")
	for _, e := range history {
		what := plain(e.Act)
		if e.Phase == audit.Failed {
			what = view.Cell{Text: what.Text + ", failed", Tone: view.Warn}
		}
		t.Add(view.Cell{Text: view.Moment(e.Time)}, view.Cell{Text: a.cut(safetext.Escape(e.Actor), 24)}, plain(e.Target), what,
			view.Cell{Text: a.cut(safetext.Escape(e.Reason), 60)}, view.Cell{Text: a.cut(safetext.Escape(e.Detail), 60)})
	}
	printTable(a.out, t, a.color())
}
