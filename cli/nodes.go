package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"redlockctl/cli/app"
	"redlockctl/cli/exit"
	"redlockctl/cli/flags"
	"redlockctl/internal/config"
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
	return as.Names(as.Add(again.add(&cobra.Command{
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
			if len(args) > 0 && as.Quiet {
				return exit.Usagef("--quiet is for a list: leave the name out")
			}
			cfg, err := a.load()
			if err != nil {
				return err
			}
			if err := app.CheckNodes(cfg, args...); err != nil {
				return err
			}
			return a.snapshots(ctx, cfg, &again, app.Aim{Findings: len(args) > 0}, func(s *monitor.Snapshot) error {
				if len(args) > 0 {
					return a.showNode(cfg, s, args[0])
				}
				nodes, err := flags.Sorted(&as, view.NodeColumns(), view.Rows(s.Nodes))
				if err != nil {
					return err
				}
				if as.Quiet {
					for _, n := range nodes {
						a.Names(n.Name)
					}
					return nil
				}
				seen := app.GuardsOf(cfg, s)
				guards := seen.Doc(nil)
				printed, err := a.Document("nodes", nodesJSON{ClusterDoc: view.DocOfCluster(s), GuardsSeenDoc: guards.GuardsSeenDoc, Nodes: view.DocsOfNodes(s.At, nodes)})
				if err != nil || printed {
					return err
				}
				if err := a.listNodes(as.Columns, view.NodeColumns(), s, nodes, guards.Guard(s)); err != nil || a.Output == "csv" {
					return err
				}
				a.printSeen(seen)
				return nil
			})
		}),
	}), view.Heads(view.NodeColumns())))
}

// nodePageJSON is the document of nodes NAME.
type nodePageJSON struct {
	view.ClusterDoc
	Node  view.NodeDoc  `json:"node"`
	Guard view.GuardDoc `json:"guard"`
	view.GuardsSeenDoc
	Findings []view.FindingDoc `json:"findings"` // that are about it
}

func (a *commandLine) showNode(cfg *config.Config, s *monitor.Snapshot, name string) error {
	n := s.Node(name)
	seen := app.GuardsOf(cfg, s)
	guards := seen.Doc(nil)
	guard := guards.Nodes[slices.IndexFunc(guards.Nodes, func(g view.GuardDoc) bool { return g.Name.Raw() == name })]
	about := slices.DeleteFunc(view.Rows(s.Findings), func(f *monitor.Finding) bool { return f.Node != name })
	doc := nodePageJSON{ClusterDoc: view.DocOfCluster(s), Node: view.DocOfNode(*n, s.At), Guard: guard, GuardsSeenDoc: guards.GuardsSeenDoc, Findings: view.DocsOfFindings(about, s.At)}
	printed, err := a.Document("node", doc)
	if err == nil && !printed {
		a.printNode(s, n, guards.Guard(s), guard)
		a.printSeen(seen)
		a.printFindings(s, about)
	}
	return err
}

func (a *commandLine) printNode(s *monitor.Snapshot, n *monitor.Node, guard view.Guard, own view.GuardDoc) {
	ctx := a.ViewContext(s)
	ctx.Guard = guard
	state := ctx.NodeState(n.State)
	fmt.Fprintf(a.Out, "%s %s: %s%s\n", ctx.Name(n.Name), ctx.Whole(n.Addr), a.Paint(state.Text, state.Tone), view.NodeSince(ctx, n))
	a.Facts(view.NodeFacts(ctx, n))
	if own.Incarnations > 0 {
		a.Facts([]view.Fact{{Label: "Guard", Text: "has seen " + view.Plural(own.Incarnations, "incarnation")}})
	}
}
