package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"redlockctl/internal/config"
	"redlockctl/internal/safetext"
	"redlockctl/monitor"
)

// nodeActJSON is the document of node fence and node open.
type nodeActJSON struct {
	Schema string        `json:"schema"`
	Node   safetext.Text `json:"node"`
	Done   string        `json:"done"` // fenced or opened
}

func (a *app) nodeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "node", Short: "Close or open a master by hand", RunE: group, Args: cobra.ArbitraryArgs}
	cmd.AddCommand(
		a.nodeActCommand(nodeAct{
			verb: "fence", done: "fenced",
			short: "Hold a master closed until it is opened by hand",
			long: `Closes the node: it refuses writes, and its vote is missing in every quorum until
"node open". No guard lifts it. The copies it has stay readable and run out.`,
			effect: func(w io.Writer, n monitor.Node, c monitor.Cluster) {
				serving := c.Serving
				if n.State == monitor.NodeServing {
					serving--
				}
				fmt.Fprintf(w, "It will refuse writes until it is opened by hand; no guard lifts this.\nThen %d of %d nodes serve; a quorum is %d.\n", serving, c.N, c.Quorum)
				if serving < c.Quorum {
					fmt.Fprintln(w, "NOTHING CAN BE LOCKED then, and no lock can be extended.")
				}
			},
			run: func(ctx context.Context, h *hand, node, reason string) error {
				return h.op.FenceNode(ctx, node, reason)
			},
		}),
		a.nodeActCommand(nodeAct{
			verb: "open", done: "opened",
			short: "Open a master, whoever closed it",
			long: `Opens the node at once, whoever closed it. Before its delay is over that may give
two clients the same lock: it may have forgotten votes that are still believed
in. A guard opens it by itself when that is safe.`,
			effect: func(w io.Writer, n monitor.Node, _ monitor.Cluster) {
				fmt.Fprintln(w, "It will vote at once. If it lost its data less than the guard's delay ago, it may")
				fmt.Fprintln(w, "give away locks that are still held: TWO HOLDERS. A guard opens it when that is safe.")
			},
			run: func(ctx context.Context, h *hand, node, reason string) error { return h.op.OpenNode(ctx, node, reason) },
		}),
	)
	return cmd
}

// nodeAct is what fence and open differ in.
type nodeAct struct {
	verb, done, short, long string
	effect                  func(io.Writer, monitor.Node, monitor.Cluster)
	run                     func(ctx context.Context, h *hand, node, reason string) error
}

func (a *app) nodeActCommand(act nodeAct) *cobra.Command {
	var reason string
	var yes bool
	cmd := &cobra.Command{
		Use:   act.verb + " NAME",
		Short: act.short,
		Long: act.long + `

Without --yes the effect is shown and the name must be typed; where nobody can be
asked, the act is refused with exit code 6. Intent and outcome are written to the
audit log.`,
		Example:           fmt.Sprintf(`redlockctl node %s n2 --reason "kernel update" --yes`, act.verb),
		Args:              oneName("node"),
		ValidArgsFunction: a.completeNodes,
		RunE: a.run(func(ctx context.Context, args []string) error {
			name := args[0]
			return a.act(func(cfg *config.Config, _ *spec) error { return known(cfg, name) }, func(cfg *config.Config, h *hand) error {
				if !yes {
					err := a.confirm(ctx, name, func(w io.Writer) error {
						s, err := look(ctx, cfg)
						if err != nil {
							return err
						}
						i := slices.IndexFunc(s.Nodes, func(n monitor.Node) bool { return n.Name == name })
						n := s.Nodes[i]
						fmt.Fprintf(w, "%s %s: now %s, %s\n", safetext.Escape(n.Name), safetext.Escape(n.Addr), n.State, plural(n.Locks, "copy of a lock", "copies of locks"))
						act.effect(w, n, s.Cluster)
						return nil
					})
					if err != nil {
						return err
					}
				}
				if err := act.run(ctx, h, name, reason); err != nil {
					return err
				}
				if a.output == "json" {
					return printJSON(a.out, nodeActJSON{Schema: Schema, Node: text(name), Done: act.done})
				}
				fmt.Fprintf(a.out, "%s %s\n", act.done, safetext.Escape(name))
				return nil
			})
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit log")
	cmd.Flags().BoolVar(&yes, "yes", false, "do it without being asked")
	_ = cmd.MarkFlagRequired("reason")
	return cmd
}

func nodeNames(cfg *config.Config) []string {
	names := make([]string, len(cfg.Nodes))
	for i, n := range cfg.Nodes {
		names[i] = n.Name
	}
	return names
}

// known refuses the name of a node that is not configured.
func known(cfg *config.Config, name string) error {
	if names := nodeNames(cfg); !slices.Contains(names, name) {
		return usageError{fmt.Errorf("there is no node %q; there is %s", name, strings.Join(names, ", "))}
	}
	return nil
}

// completeNodes offers the configured nodes to the shell; none is contacted.
func (a *app) completeNodes(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	cfg, err := a.load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nodeNames(cfg), cobra.ShellCompDirectiveNoFileComp
}
