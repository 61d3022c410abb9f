package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"redlockctl/cli/app"
	"redlockctl/cli/exit"
	"redlockctl/cli/flags"
	"redlockctl/internal/config"
	"redlockctl/internal/operator"
	"redlockctl/monitor"
	"redlockctl/restartguard/oneshot"
	"redlockctl/server/safetext"
)

func (a *commandLine) nodeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "node", Short: "Cordon a master, let it rejoin, or wait for it; make it start fenced", RunE: flags.Group, Args: cobra.ArbitraryArgs}
	cmd.AddCommand(a.nodeActCommand(nodeCordon), a.nodeActCommand(nodeUncordon), a.drainCommand(), a.rejoinable(a.nodeActCommand(nodeRejoin)))
	return cmd
}

var nodeCordon = nodeAct{
	verb: "cordon", done: "cordoned", did: "cordoned",
	short: "Keep a master out until it is uncordoned",
	long: `Cordons the node: it refuses writes and has no vote until "node uncordon". No guard
lets it rejoin, and a guard cordons it again after a restart of the server. The command
returns when a guard has written that down; if no guard watches the node, it says so,
and a restart forgets the cordon. The copies that the node has stay readable and expire.`,
	cordon: true,
	run:    (*operator.Operator).Cordon,
}

var nodeUncordon = nodeAct{
	verb: "uncordon", done: "uncordoned", did: "uncordoned",
	short: "End a cordon: the guards let the node rejoin",
	long: `Ends a cordon, and nothing else: the guards let the node rejoin when it may vote. That is
at once if it has lost no locks; if it restarted, before or while it was cordoned, it is
D after that. Without a guard it stays fenced until one is started, or until "node rejoin
--now". A node that is fenced and not cordoned is refused.`,
	run: (*operator.Operator).Uncordon,
}

var nodeRejoin = nodeAct{
	verb: "rejoin", done: "serving", did: "serving",
	short: "Let a master rejoin by hand, early",
	long: `Removes the fence of a node at once, whoever fenced or cordoned it; --now confirms
that. Before its delay ends that may give two clients the same lock: the node may
have forgotten votes that clients still rely on. A guard lets it rejoin when that is
safe.`,
	run: (*operator.Operator).RejoinNow,
}

// nodeAct describes one of the commands cordon, uncordon and rejoin.
type nodeAct struct {
	verb, short, long string
	done, did         string // for JSON and for people
	cordon            bool   // a guard has to remember it
	run               func(op *operator.Operator, ctx context.Context, node, reason string) error
}

func (a *commandLine) nodeActCommand(act nodeAct) *cobra.Command {
	var reason string
	var yes, dryRun bool
	cmd := &cobra.Command{
		Use:   act.verb + " NAME...",
		Short: act.short,
		Long: act.long + `

Without --yes it shows the effect and asks you to type the name; without a terminal the
action is refused with exit code 6. Intent and outcome are written to the audit log.
Names are processed one at a time; a failure does not stop the rest. - reads them from
standard input, one a line.`,
		Example:           fmt.Sprintf(`redlockctl node %s n2 --reason "kernel update" --yes`, act.verb),
		Args:              flags.SeveralNames("node"),
		ValidArgsFunction: a.completeNodes,
		RunE: a.run(func(ctx context.Context, args []string) error {
			args, err := flags.Names(args, a.In)
			if err != nil {
				return err
			}
			check := func(cfg *config.Config, _ *app.Spec) error { return app.CheckNodes(cfg, args...) }
			in := a.act
			if dryRun {
				in = a.plan
			}
			return in(check, func(cfg *config.Config, op *operator.Operator) error {
				do := func(ctx context.Context, name string) outcome {
					if dryRun {
						return a.planNode(ctx, act, cfg, op, name)
					}
					return a.actOnNode(ctx, act, cfg, op, name, reason, yes)
				}
				if len(args) > 1 {
					return a.oneByOne(ctx, "node "+act.verb, args, yes || dryRun, do)
				}
				o := do(ctx, args[0])
				if o.err != nil {
					return o.err
				}
				return a.tell(o)
			})
		}),
	}
	flags.Outputs(cmd, "table", "json", "jsonl")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit log")
	cmd.Flags().BoolVar(&yes, "yes", false, "do it without being asked")
	_ = cmd.MarkFlagRequired("reason")
	dryRunFlag(cmd, &dryRun)
	return cmd
}

// actOnNode cordons a node or lets it serve, after its name was confirmed if that is
// required.
func (a *commandLine) actOnNode(ctx context.Context, act nodeAct, cfg *config.Config, op *operator.Operator, name, reason string, yes bool) outcome {
	o := outcome{did: act.did, name: name}
	already := outcome{did: "already " + act.done + ", nothing done:", name: name, node: &nodeActJSON{Node: safetext.New(name), Done: act.done, Already: true}}
	if op.Already(ctx, name, act.cordon) {
		// Nothing is done, so nothing is logged.
		if by := app.CordonedBy(cfg, name); act.cordon && by != "" {
			a.Note("%s: cordoned %s", safetext.Escape(name), by)
		}
		return already
	}
	if !yes {
		o.err = a.confirm(ctx, name, func(w io.Writer) error {
			s, err := a.look(ctx, cfg, app.Aim{})
			if err != nil {
				return err
			}
			a.tellNode(w, act, cfg, s, s.Node(name))
			return nil
		})
		if o.err != nil {
			return o
		}
	} else if act.cordon {
		a.warn(ctx, act, cfg, name)
	}
	done := a.Progress("node " + act.verb + " " + name)
	o.err = act.run(op, ctx, name, reason)
	done()
	if errors.Is(o.err, oneshot.ErrNotCordoned) {
		if op.Already(ctx, name, act.cordon) {
			return already // somebody else did it meanwhile
		}
		o.err = fmt.Errorf("%w; %s", o.err, app.WhenServes(ctx, cfg, name))
	}
	if o.err != nil {
		return o
	}
	o.node = &nodeActJSON{Node: safetext.New(name), Done: act.done}
	if act.cordon {
		o.node.GuardRunning = app.GuardAt(ctx, cfg, name)
	}
	switch act.verb {
	case nodeUncordon.verb:
		o.node.Then = app.WhenServes(ctx, cfg, name)
	case nodeRejoin.verb:
		o.node.Then = app.UntilTwoHolders(ctx, cfg, name)
	}
	return o
}

// warn says what an action on a node risks that is done without being asked. It delays it for
// [app.SettleTime] at most, and then says that not all locks are read.
func (a *commandLine) warn(ctx context.Context, act nodeAct, cfg *config.Config, name string) {
	s, err := a.look(ctx, cfg, app.Aim{Locks: true, Most: app.SettleTime})
	if err != nil {
		a.Note("%s: what the others do is not seen: %s", safetext.Escape(name), safetext.Printable(err.Error()))
		return
	}
	for _, f := range a.nodeFacts(act, cfg, s, s.Node(name)) {
		if f.Label == "Risk" {
			a.Note("%s: risk: %s", safetext.Escape(name), f.Text)
		}
	}
}

// rejoinable adds --now and --new-cluster to node rejoin.
func (a *commandLine) rejoinable(cmd *cobra.Command) *cobra.Command {
	var fresh, now bool
	one, oneArgs := cmd.RunE, cmd.Args
	cmd.Use = "rejoin --now NAME... | --new-cluster"
	cmd.Example = `redlockctl node rejoin --now n2 --reason "its guard is gone, D has passed" --yes`
	cmd.Long += `

--new-cluster lets the nodes of a new, never used cluster serve without waiting for D. It
asks you to type the cluster's name, or needs --cluster NAME with --yes. It is refused,
and you must wait for D, unless every node answers, is a fenced master that has not
served since it started, and has no key that matches the lock patterns; and a guard
announces itself on each node, and no guard has seen any of them serve or restart. So
start the guards first.`
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if fresh {
			return flags.NoArgs(cmd, args)
		}
		return oneArgs(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case fresh && cmd.Flags().Changed("dry-run"):
			return exit.Usagef("--new-cluster has no --dry-run: without --yes it shows what it does, and asks")
		case fresh && now:
			return exit.Usagef("--now and --new-cluster: give one of them")
		case !fresh && !now:
			return exit.Usagef("node rejoin removes the fence early: --now confirms that; a guard lets the node rejoin when it is safe")
		case !fresh:
			return one(cmd, args)
		}
		return a.run(func(ctx context.Context, _ []string) error {
			reason, _ := cmd.Flags().GetString("reason")
			yes, _ := cmd.Flags().GetBool("yes")
			return a.startNewCluster(ctx, reason, yes)
		})(cmd, args)
	}
	cmd.Flags().BoolVar(&now, "now", false, "early, whoever fenced it")
	cmd.Flags().BoolVar(&fresh, "new-cluster", false, "let all nodes of a cluster serve that was never in use")
	return cmd
}

// newClusterJSON is the document of node rejoin --new-cluster.
type newClusterJSON struct {
	Cluster safetext.Text   `json:"cluster"`
	Serving []safetext.Text `json:"rejoined"`
}

func (a *commandLine) startNewCluster(ctx context.Context, reason string, yes bool) error {
	return a.act(func(cfg *config.Config, _ *app.Spec) error {
		if err := cfg.Guardable(); err != nil {
			return exit.Usage(err)
		}
		if yes && a.cluster != cfg.Cluster.Name {
			return fmt.Errorf("%w: --yes needs --cluster %q, the name of the cluster in %s", exit.ErrNotConfirmed, cfg.Cluster.Name, cfg.Path)
		}
		return nil
	}, func(cfg *config.Config, op *operator.Operator) error {
		memory, err := app.Remembered(cfg)
		if err != nil {
			return fmt.Errorf("%w: it cannot be told that this is a new cluster: %w", operator.ErrRefused, err)
		}
		asked, err := op.CheckNewCluster(ctx, memory, cfg.Cluster.LockPatterns, cfg.Guard.Delay, false)
		if err != nil {
			return err
		}
		if !yes {
			err := a.confirm(ctx, cfg.Cluster.Name, func(w io.Writer) error {
				names := make([]string, len(asked))
				for i, g := range asked {
					names[i] = monitor.GuardName(g)
				}
				fmt.Fprintln(w, wrapped(fmt.Sprintf("Cluster %s: %s will vote at once.", safetext.Escape(cfg.Cluster.Name), strings.Join(app.NodeNames(cfg), ", "))))
				fmt.Fprintln(w, wrapped("Checked: each is a fenced master that has not served since it started and has no lock; no node served or restarted since these guards know the cluster: "+strings.Join(names, ", ")+"."))
				fmt.Fprintln(w, wrapped(fmt.Sprintf("Not known: what was before that. If a node was in use, and lost its data less than %s ago, it may give away locks that are still held: TWO HOLDERS.", cfg.Guard.Delay)))
				return nil
			})
			if err != nil {
				return err
			}
			if _, err = op.CheckNewCluster(ctx, memory, cfg.Cluster.LockPatterns, cfg.Guard.Delay, true); err != nil {
				return err // it took its time
			}
		}
		doc := newClusterJSON{Cluster: safetext.New(cfg.Cluster.Name)}
		step, b := a.ProgressOf("rejoining", len(cfg.Nodes))
		defer b.End()
		for i, name := range app.NodeNames(cfg) {
			step(i)
			if err := op.RejoinNow(ctx, name, "new cluster: "+reason); err != nil {
				return err
			}
			doc.Serving = append(doc.Serving, safetext.New(name))
		}
		b.End()
		if printed, err := a.Document("new cluster", doc); printed {
			return err
		}
		fmt.Fprintf(a.Out, "serving %s\n", strings.Join(app.NodeNames(cfg), " "))
		return nil
	})
}
