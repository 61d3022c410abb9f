package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"redlockctl/cli/app"
	"redlockctl/cli/flags"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/server/safetext"
)

// statusJSON is the document of status.
type statusJSON struct {
	view.ClusterDoc
	Nodes []view.NodeDoc `json:"nodes"`
	Locks map[string]int `json:"locks"` // by state, and "total"
	view.GuardsSeenDoc
	view.OutlookDoc // where a guard on this machine keeps what it knows, and runs
	// LeftToDo says in one line what is left to do for protection against restarts; missing: nothing.
	LeftToDo *safetext.Text `json:"left_to_do,omitempty"`
	// NotRecorded is why nothing is recorded on this machine although a guard runs; missing: it is recorded, or nothing is to be.
	NotRecorded *safetext.Text `json:"not_recorded,omitempty"`
}

func (a *commandLine) statusCommand() *cobra.Command {
	var again live
	return again.add(&cobra.Command{
		Use:   "status",
		Short: "The state of the cluster in a few lines",
		Long: `Looks at every master once and prints the verdict, the nodes and a count of the
locks by state. A node that does not answer costs its timeout once, and where something
is wrong it looks for two seconds, to count all warnings that "doctor" has. All keys are
read, however long that takes; what --timeout cuts off is said, with exit code 7.
The guards that run are named, with their host and delay D: they announce themselves
on the nodes, wherever they run. Where one on this machine keeps what it knows in
[guard] state_dir, it says which fenced node is back first, and when there is a
quorum again; if no guard runs, that nothing lets them rejoin.

The verdict is the worst that holds: unavailable (no quorum serves), danger (two
clients may hold one lock), degraded (not all masters serve), unprotected (a
restart may give a vote twice: no guard is seen, a node started unfenced, or it is
not known how one would start),
safe. The line also says what is missing, and the last line what is left to do for
protection against restarts, in the words of "init".

The exit code says whether locks can be taken, not whether they are safe: 0 when a
quorum of the masters serves, 4 when none does. With --watch it is 0. For one by
the verdict use "doctor".`,
		Example: "redlockctl status --watch\nredlockctl status -o jsonl --watch=10s | jq --unbuffered .verdict",
		Args:    flags.NoArgs,
		RunE: a.run(func(ctx context.Context, _ []string) error {
			cfg, err := a.load()
			if err != nil {
				return err
			}
			return a.snapshots(ctx, cfg, &again, app.Aim{Findings: true}, func(s *monitor.Snapshot) error {
				seen := app.GuardsOf(cfg, s)
				guards := seen.Doc(nil)
				printed, err := a.Document("status", statusJSON{
					view.DocOfCluster(s), view.DocsOfNodes(s.At, view.Rows(s.Nodes)), view.LockCounts(s), guards.GuardsSeenDoc, guards.OutlookDoc, safetext.Optional(view.LeftToDoOf(s).Text()), safetext.Optional(notRecorded(s)),
				})
				if err == nil && !printed {
					err = a.printStatus(s, guards.Guard(s))
				}
				if err != nil {
					return err
				}
				if !printed {
					a.printSeen(seen)
					a.printOutlook(seen, s)
					if why := notRecorded(s); why != "" {
						fmt.Fprintf(a.Out, "\nnothing is recorded: %s\n", safetext.Escape(why))
					}
					a.printLeft(view.LeftToDoOf(s))
				}
				return unavailable(s)
			})
		}),
	})
}

// notRecorded returns the evidence of the finding record-fails; "": there is none.
func notRecorded(s *monitor.Snapshot) string {
	for i := range s.Findings {
		if f := &s.Findings[i]; f.ID == "record-fails" {
			return f.Evidence.Raw()
		}
	}
	return ""
}

func (a *commandLine) printOutlook(seen app.Guards, s *monitor.Snapshot) {
	if idle := seen.Forsaken(); idle != "" {
		fmt.Fprintf(a.Out, "\n%s\n", safetext.Escape(idle))
	}
	switch o, known := seen.Outlook(); {
	case !known:
	case !o.Possible():
		fmt.Fprintf(a.Out, "\n%s\n", safetext.Escape(o.Text()))
	case o.First != "":
		fmt.Fprintf(a.Out, "\nguard: %s rejoins in %s\n", safetext.Escape(o.First), view.Left(o.FirstAt.Sub(s.At)))
	}
}
