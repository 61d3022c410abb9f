package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"redlockctl/internal/app"
	"redlockctl/internal/config"
	"redlockctl/internal/safetext"
	"redlockctl/internal/view"
	"redlockctl/monitor"
)

// statusJSON is the document of status.
type statusJSON struct {
	view.ClusterDoc
	Nodes []view.NodeDoc `json:"nodes"`
	Locks map[string]int `json:"locks"` // by state, and "total"
	guardsSeenJSON
	// Where a guard on this machine keeps what it knows, and runs: the node that it
	// opens first, and when there is a quorum again.
	FirstNode    *safetext.Text `json:"first_rejoin_node,omitempty"`
	FirstMs      *int64         `json:"first_rejoin_ms,omitempty"`
	QuorumBackMs *int64         `json:"quorum_back_ms,omitempty"`
}

func (a *commandLine) statusCommand() *cobra.Command {
	var again live
	return again.add(&cobra.Command{
		Use:   "status",
		Short: "The state of the cluster in a few lines",
		Long: `Looks at every master once and prints the verdict, the nodes and a count of the
locks by state. A node that does not answer costs its timeout once. All keys are
read, however long that takes; what --timeout cuts off is said, with exit code 7.
The guards that run are named, with their host and delay D: they announce themselves
on the nodes, wherever they run. Where one on this machine keeps what it knows in
[guard] state_dir, it says which fenced node is back first, and when there is a
quorum again; if no guard runs, that nothing lets them rejoin.

The verdict is the worst that holds: unavailable (no quorum serves), danger (two
clients may hold one lock), degraded (not all masters serve), unprotected (a
restart may give a vote twice: no guard is seen, or a boot fence is not verified),
safe. What is missing is said behind it.

The exit code says whether locks can be taken, not whether they are safe: 0 when a
quorum of the masters serves, 4 when none does. With --watch it is 0. For one by
the verdict use "doctor".`,
		Example: "redlockctl status --watch\nredlockctl status -o jsonl --watch=10s | jq --unbuffered .verdict",
		Args:    noArgs,
		RunE: a.run(func(ctx context.Context, _ []string) error {
			cfg, err := a.load()
			if err != nil {
				return err
			}
			return a.snapshots(ctx, cfg, &again, app.Aim{}, func(s *monitor.Snapshot) error {
				printed, err := a.document(document{"status", statusDoc(cfg, s)})
				if err != nil {
					return err
				}
				if !printed {
					if err := a.printStatus(a.out, s, guardsOf(cfg, s, nil).viewGuard(s)); err != nil {
						return err
					}
					a.printSeen(a.out, app.GuardsOf(cfg, s))
					a.printOutlook(a.out, cfg, s)
				}
				return unavailable(s)
			})
		}),
	})
}

func statusDoc(cfg *config.Config, s *monitor.Snapshot) statusJSON {
	doc := statusJSON{ClusterDoc: view.DocOfCluster(s), Nodes: nodeDocs(s, pointers(s.Nodes)), Locks: view.LockCounts(s), guardsSeenJSON: seenDoc(app.GuardsOf(cfg, s))}
	if o, known := app.OutlookOf(cfg, s); known {
		if o.First != "" {
			doc.FirstNode, doc.FirstMs = safetext.Optional(o.First), view.MSUntil(o.FirstAt, s.At)
		}
		doc.QuorumBackMs = view.MSUntil(o.Until, s.At)
	}
	return doc
}

// printOutlook says what the guard on this machine is waiting for.
func (a *commandLine) printOutlook(w io.Writer, cfg *config.Config, s *monitor.Snapshot) {
	o, known := app.OutlookOf(cfg, s)
	if idle := forsaken(cfg, s); idle != "" {
		fmt.Fprintf(w, "\n%s\n", safetext.Escape(idle))
	}
	switch {
	case !known:
	case !o.Possible():
		fmt.Fprintf(w, "\n%s\n", safetext.Escape(o.Text(s.At)))
	case o.First != "":
		fmt.Fprintf(w, "\nguard: %s rejoins in %s\n", safetext.Escape(o.First), view.Left(o.FirstAt.Sub(s.At)))
	}
}

// forsaken says which closed nodes nobody is known to open; empty where there are
// none, or where a guard runs.
func forsaken(cfg *config.Config, s *monitor.Snapshot) string {
	var closed []string
	for _, n := range s.Nodes {
		if n.State == monitor.NodeFenced {
			closed = append(closed, n.Name)
		}
	}
	if closed == nil {
		return ""
	}
	return app.GuardsOf(cfg, s).Missing(closed...)
}
