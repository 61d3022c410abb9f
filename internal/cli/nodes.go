package cli

import (
	"context"

	"github.com/spf13/cobra"

	"redlockctl/internal/app"
	"redlockctl/internal/cli/flags"
	"redlockctl/internal/view"
	"redlockctl/monitor"
)

// nodesJSON is the document of nodes.
type nodesJSON struct {
	view.ClusterDoc
	view.GuardsSeenDoc
	Nodes []view.NodeDoc `json:"nodes"`
}

func (a *commandLine) nodesCommand() *cobra.Command {
	var again live
	var as flags.Listing
	return as.Add(again.add(&cobra.Command{
		Use:   "nodes [NAME]",
		Short: "The masters: state, clock, fence, what is wrong",
		Long: `Looks at every master once and prints a row for each. CLOCK is how far the
node's clock is ahead of this machine's, with the bound that the round trip
leaves. FENCE is none, fenced (by a boot fence or a guard), cordoned (by an
operator), or the number of replicas that a write needs there. GUARD is what keeps
the node out of the quorum or lets it in. With -o wide also the drift of the clock,
what is persisted and evicted, clients, memory, run id. --columns chooses columns,
--sort sorts by one; with -o csv the columns are the fields of JSON that say the same.
Below are the guards that announce themselves on the nodes.

With a NAME it prints all that is known of that node, what the guard on this
machine remembers of it, and the findings about it.`,
		Example:           "redlockctl nodes -o wide\nredlockctl nodes n2 --watch",
		Args:              flags.OptionalName("node"),
		ValidArgsFunction: firstArgument(a.completeNodes, cobra.ShellCompDirectiveNoFileComp),
		RunE: a.run(func(ctx context.Context, args []string) error {
			cfg, err := a.load()
			if err != nil {
				return err
			}
			if len(args) > 0 {
				if err := app.CheckNode(cfg, args[0]); err != nil {
					return err
				}
			}
			return a.snapshots(ctx, cfg, &again, app.Aim{}, func(s *monitor.Snapshot) error {
				if len(args) > 0 {
					return a.showNode(cfg, s, args[0])
				}
				nodes, err := flags.Sorted(&as, view.NodeColumns(), view.Rows(s.Nodes))
				if err != nil {
					return err
				}
				guards := app.DocOfGuards(cfg, s, nil)
				printed, err := a.Document("nodes", nodesJSON{ClusterDoc: view.DocOfCluster(s), GuardsSeenDoc: guards.GuardsSeenDoc, Nodes: view.DocsOfNodes(s.At, nodes)})
				if err != nil || printed {
					return err
				}
				if err := a.listNodes(as.Columns, s, nodes, guards.Guard(s)); err != nil || a.Output == "csv" {
					return err
				}
				a.printSeen(app.GuardsOf(cfg, s))
				return nil
			})
		}),
	}))
}
