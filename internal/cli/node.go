package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/internal/app"
	"redlockctl/internal/config"
	"redlockctl/internal/operator"
	"redlockctl/internal/safetext"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/restartguard"
)

// nodeActJSON is the document of node fence and node open.
type nodeActJSON struct {
	Node safetext.Text `json:"node"`
	Done string        `json:"done"` // fenced or opened
	// Already: it was so before, and nothing was done.
	Already bool `json:"already,omitempty"`
	// Of hold: a guard watches the node, and so remembers the hold; left out: not known.
	GuardRunning *bool `json:"guard_running,omitempty"`
}

func (a *commandLine) nodeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "node", Short: "Close, open or wait for a master; make it come up closed", RunE: group, Args: cobra.ArbitraryArgs}
	cmd.AddCommand(
		a.nodeActCommand(nodeAct{
			verb: "hold", done: "fenced", did: "held", alias: "fence",
			short: "Hold a master closed until it is opened by hand",
			long: `Closes the node: it refuses writes, and its vote is missing in every quorum until
"node open". No guard lifts it, and one that saw it puts it up again after a
restart of the server; before one has seen it, a restart forgets it. The copies
that the node has stay readable and run out.`,
			hold: true,
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
			run: (*operator.Operator).Cordon,
		}),
		a.openable(a.nodeActCommand(nodeAct{
			verb: "open", done: "opened", did: "opened",
			short: "Open a master, whoever closed it",
			long: `Opens the node at once, whoever closed it. Before its delay is over that may give
two clients the same lock: it may have forgotten votes that are still believed
in. A guard opens it by itself when that is safe.`,
			effect: func(w io.Writer, n monitor.Node, _ monitor.Cluster) {
				fmt.Fprintln(w, "It will vote at once. If it lost its data less than the guard's delay ago, it may")
				fmt.Fprintln(w, "give away locks that are still held: TWO HOLDERS. A guard opens it when that is safe.")
			},
			run: (*operator.Operator).RejoinNow,
		})),
		a.waitCommand(), a.bootFenceCommand(),
	)
	return cmd
}

// nodeAct is what fence and open differ in.
type nodeAct struct {
	verb, short, long, alias string
	done, did                string // for JSON and for people
	hold                     bool   // a guard has to remember it
	effect                   func(io.Writer, monitor.Node, monitor.Cluster)
	run                      func(op *operator.Operator, ctx context.Context, node, reason string) error
}

func (a *commandLine) nodeActCommand(act nodeAct) *cobra.Command {
	var reason string
	var yes bool
	cmd := &cobra.Command{
		Use:   act.verb + " NAME...",
		Short: act.short,
		Long: act.long + `

Without --yes the effect is shown and the name must be typed; where nobody can be
asked, the act is refused with exit code 6. Intent and outcome are written to the
audit log. Several names are done one by one, each by itself: one that fails holds
up none of the others.`,
		Example:           fmt.Sprintf(`redlockctl node %s n2 --reason "kernel update" --yes`, act.verb),
		Args:              names("node"),
		ValidArgsFunction: a.completeSeveralNodes,
		RunE: a.run(func(ctx context.Context, args []string) error {
			check := func(cfg *config.Config, _ *app.Spec) error {
				for _, name := range args {
					if err := app.CheckNode(cfg, name); err != nil {
						return err
					}
				}
				return nil
			}
			return a.act(check, func(cfg *config.Config, op *operator.Operator) error {
				do := func(ctx context.Context, name string) outcome {
					return a.actOnNode(ctx, act, cfg, op, name, reason, yes)
				}
				if len(args) > 1 {
					return a.oneByOne(ctx, "node "+act.verb, args, yes, do)
				}
				o := do(ctx, args[0])
				if o.err != nil {
					return o.err
				}
				return a.tell(o)
			})
		}),
	}
	outputs(cmd, "table", "json", "jsonl")
	if act.alias != "" {
		cmd.Aliases = []string{act.alias}
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit log")
	cmd.Flags().BoolVar(&yes, "yes", false, "do it without being asked")
	_ = cmd.MarkFlagRequired("reason")
	return cmd
}

// actOnNode closes or opens one node, after a person has typed its name where
// that is wanted.
func (a *commandLine) actOnNode(ctx context.Context, act nodeAct, cfg *config.Config, op *operator.Operator, name, reason string, yes bool) outcome {
	o := outcome{did: act.did, name: name}
	if op.Already(ctx, name, act.hold) {
		// No act, and so nothing for the log.
		o.did, o.node = "already "+map[bool]string{true: "held", false: "open"}[act.hold]+", nothing done:", &nodeActJSON{Node: text(name), Done: act.done, Already: true}
		return o
	}
	if !yes {
		o.err = a.confirm(ctx, name, func(w io.Writer) error {
			s, err := a.look(ctx, cfg, app.Aim{})
			if err != nil {
				return err
			}
			i := slices.IndexFunc(s.Nodes, func(n monitor.Node) bool { return n.Name == name })
			n := s.Nodes[i]
			fmt.Fprintf(w, "%s %s: now %s, %s\n", safetext.Escape(n.Name), safetext.Escape(n.Addr), n.State, view.Plural(n.Locks, "copy of a lock", "copies of locks"))
			act.effect(w, n, s.Cluster)
			return nil
		})
		if o.err != nil {
			return o
		}
	}
	done := a.progress("node " + act.verb + " " + name)
	o.err = act.run(op, ctx, name, reason)
	done()
	if o.err != nil {
		return o
	}
	o.node = &nodeActJSON{Node: text(name), Done: act.done}
	if act.hold {
		o.node.GuardRunning = a.guardAt(ctx, cfg, name)
	}
	return o
}

// guardAt reports whether a guard runs that watches a node; nil: it is not known.
func (a *commandLine) guardAt(ctx context.Context, cfg *config.Config, name string) *bool {
	runs, _ := app.GuardRuns(cfg)
	if runs {
		return &runs
	}
	s, err := app.Look(ctx, cfg, app.Aim{Nodes: true})
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

// openable adds to node open the case of a cluster that never was in use.
func (a *commandLine) openable(cmd *cobra.Command) *cobra.Command {
	var fresh bool
	one, oneArgs := cmd.RunE, cmd.Args
	cmd.Use = "open NAME... | --new-cluster"
	cmd.Long += `

--new-cluster opens all nodes of a cluster that was never in use, which come up
closed in their very first life, without waiting for D. It wants the name of the
cluster typed, or --cluster NAME with --yes. It is refused, and D must be waited
out, unless every node answers, is a closed master that nobody has opened since
it started, and holds no key under the lock patterns, and no guard has known any
of them to be open or to restart.`
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if fresh {
			return noArgs(cmd, args)
		}
		return oneArgs(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !fresh {
			return one(cmd, args)
		}
		return a.run(func(ctx context.Context, _ []string) error {
			reason, _ := cmd.Flags().GetString("reason")
			yes, _ := cmd.Flags().GetBool("yes")
			return a.openNewCluster(ctx, reason, yes)
		})(cmd, args)
	}
	cmd.Flags().BoolVar(&fresh, "new-cluster", false, "open all nodes of a cluster that was never in use")
	return cmd
}

// openedJSON is the document of node open --new-cluster.
type openedJSON struct {
	Cluster safetext.Text   `json:"cluster"`
	Opened  []safetext.Text `json:"opened"`
}

func (a *commandLine) openNewCluster(ctx context.Context, reason string, yes bool) error {
	return a.act(func(cfg *config.Config, _ *app.Spec) error {
		if err := cfg.Guardable(); err != nil {
			return usageError{err}
		}
		if yes && a.cluster != cfg.Cluster.Name {
			return fmt.Errorf("%w: --yes needs --cluster %q, the name of the cluster in %s", errNotConfirmed, cfg.Cluster.Name, cfg.Path)
		}
		return nil
	}, func(cfg *config.Config, op *operator.Operator) error {
		memory, err := app.Remembered(cfg)
		if err == nil {
			err = op.CheckNewCluster(ctx, memory, cfg.Cluster.LockPatterns)
		} else {
			err = fmt.Errorf("%w: this is no new cluster: %w", operator.ErrRefused, err)
		}
		if err != nil {
			return fmt.Errorf("%w; a guard opens its nodes %s after it has met them", err, cfg.Guard.Delay)
		}
		if !yes {
			err := a.confirm(ctx, cfg.Cluster.Name, func(w io.Writer) error {
				fmt.Fprintf(w, "Cluster %s: %s will vote at once. If one of them was in use before, and lost its\ndata less than %s ago, it may give away locks that are still held: TWO HOLDERS.\n",
					safetext.Escape(cfg.Cluster.Name), strings.Join(app.NodeNames(cfg), ", "), cfg.Guard.Delay)
				return nil
			})
			if err != nil {
				return err
			}
		}
		doc := openedJSON{Cluster: text(cfg.Cluster.Name)}
		step, b := a.progressOf("opening", len(cfg.Nodes))
		defer b.end()
		for i, name := range app.NodeNames(cfg) {
			step(i)
			if err := op.RejoinNow(ctx, name, "new cluster: "+reason); err != nil {
				return err
			}
			doc.Opened = append(doc.Opened, text(name))
		}
		b.end()
		if printed, err := a.document(func() document { return doc }); printed {
			return err
		}
		fmt.Fprintf(a.out, "opened %s\n", strings.Join(app.NodeNames(cfg), " "))
		return nil
	})
}

func (a *commandLine) waitCommand() *cobra.Command {
	var timeout time.Duration
	var before bool
	cmd := &cobra.Command{
		Use:   "wait NAME...",
		Short: "Wait until masters serve, or until one may be started",
		Long: `Waits until each of the nodes answers as a master that is open, and so votes.
Nothing is changed. If no guard runs, so that nothing opens a node, that is said at
once on standard error, and the wait goes on: one may be started. Exit code 1, and
what it is waiting for, when --timeout, which is for all of them, is over before.

With --before-start it waits for the delay D from now, while the server is down,
so that its next life begins after the last one's votes have run out: for
ExecStartPre= of a server that cannot come up closed (fence = "none"). systemd
runs that after the former process has ended. TimeoutStartSec= must be longer than
D. It is refused if something answers at the address.`,
		Example: `redlockctl node wait n2 --timeout 1m
ExecStartPre=/usr/bin/redlockctl node wait n2 --before-start`,
		Args:              names("node"),
		ValidArgsFunction: a.completeSeveralNodes,
		RunE: a.run(func(ctx context.Context, args []string) error {
			cfg, err := a.load()
			if err != nil {
				return err
			}
			switch {
			case timeout < 0:
				return usageError{fmt.Errorf("--timeout %s is negative", timeout)}
			case before && len(args) > 1:
				return usageError{errors.New("--before-start is for one node, which is about to be started")}
			}
			for _, name := range args {
				if err := app.CheckNode(cfg, name); err != nil {
					return err
				}
			}
			wait, done := ctx, "serves"
			if before {
				done = "may start"
			} else if timeout > 0 {
				var cancel context.CancelFunc
				wait, cancel = context.WithTimeout(ctx, timeout)
				defer cancel()
			}
			var seen *app.Guards
			if !before {
				seen = a.tellUnguarded(wait, cfg, args)
			}
			all := actsJSON{Act: "node wait"}
			for _, name := range args {
				node, method, err := app.NodeOf(cfg, name)
				if err != nil {
					return err
				}
				if before {
					err = a.waitBeforeStart(ctx, cfg, node, timeout)
				} else {
					waiting := a.progress("waiting for " + name + " to serve")
					err = restartguard.Wait(wait, node, method)
					waiting()
					if err != nil {
						err = whoOpens(cfg, seen, node, err)
					}
				}
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if err != nil {
					return err
				}
				doc := nodeActJSON{Node: text(name), Done: done}
				switch {
				case a.output == "table":
					fmt.Fprintf(a.out, "%s %s\n", safetext.Escape(name), done)
				case len(args) == 1:
					return printJSON(a.out, doc)
				default:
					line, err := encoded(doc)
					if err != nil {
						return err
					}
					all.Done, all.Results = all.Done+1, append(all.Results, line)
				}
			}
			if a.output == "table" {
				return nil
			}
			return printJSON(a.out, all)
		}),
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up after this time; 0 is never")
	cmd.Flags().BoolVar(&before, "before-start", false, "wait for D from now, before the server is started")
	return cmd
}

// tellUnguarded says on standard error which of the nodes that are to serve nothing
// opens, since no guard runs. It returns what it saw; nil: nothing.
func (a *commandLine) tellUnguarded(ctx context.Context, cfg *config.Config, names []string) *app.Guards {
	s, err := app.Look(ctx, cfg, app.Aim{Nodes: true})
	if err != nil {
		return nil // the wait itself says why
	}
	seen, methods := app.GuardsOf(cfg, s), app.Methods(cfg)
	var waiting []string
	for _, n := range s.Nodes {
		// One that is down may come up fenced; one that is held no guard opens.
		closed := n.State == monitor.NodeFenced || n.State == monitor.NodeDown && methods[n.Name].Kind != restartguard.Advice
		if closed && slices.Contains(names, n.Name) {
			waiting = append(waiting, n.Name)
		}
	}
	if waiting == nil {
		return &seen
	}
	if none := seen.Missing(waiting...); none != "" {
		fmt.Fprintf(a.errOut, "redlockctl: %s, or \"redlockctl node open\" is called\n", safetext.Printable(none))
	}
	return &seen
}

// whoOpens adds to the error of a wait who opens the node: what the guard on this
// machine will do, or that no guard runs.
func whoOpens(cfg *config.Config, seen *app.Guards, node *redlock.Node, err error) error {
	if runs, _ := app.GuardRuns(cfg); runs {
		if memory, _ := app.Remembered(cfg); memory[node.Name()].Wait > 0 {
			return fmt.Errorf("%w; the guard opens it in %s", err, view.Left(memory[node.Name()].Wait))
		}
		return err
	}
	if seen == nil {
		return err
	}
	if none := seen.Missing(node.Name()); none != "" {
		return fmt.Errorf("%w; %s", err, safetext.Printable(none))
	}
	return fmt.Errorf("%w; %s", err, safetext.Printable(strings.Join(seen.Lines(), "; ")))
}

// waitBeforeStart waits for D from a moment at which the former process has
// ended.
func (a *commandLine) waitBeforeStart(ctx context.Context, cfg *config.Config, node *redlock.Node, timeout time.Duration) error {
	if err := restartguard.Unused(ctx, node); err != nil {
		return fmt.Errorf("%w: %w", operator.ErrRefused, err)
	}
	if err := cfg.Guardable(); err != nil {
		return usageError{err}
	}
	from := time.Now()
	if timeout > 0 && timeout < cfg.Guard.Delay {
		return usageError{fmt.Errorf("--timeout %s is shorter than the delay %s", timeout, cfg.Guard.Delay)}
	}
	fmt.Fprintf(a.errOut, "redlockctl: %s may start in %s\n", safetext.Escape(node.Name()), cfg.Guard.Delay)
	defer a.progressFor("waiting for the votes of its last life to run out", cfg.Guard.Delay)()
	t := time.NewTimer(time.Until(from.Add(cfg.Guard.Delay)))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// completeNodes offers the configured nodes to the shell; none is contacted.
func (a *commandLine) completeNodes(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	cfg, err := a.load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return app.NodeNames(cfg), cobra.ShellCompDirectiveNoFileComp
}

// completeSeveralNodes offers nodes for each argument, but those that are there
// already.
func (a *commandLine) completeSeveralNodes(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	offered, how := a.completeNodes(cmd, nil, begun)
	return slices.DeleteFunc(offered, func(name string) bool { return slices.Contains(args, name) }), how
}
