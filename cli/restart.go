package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/cli/app"
	"redlockctl/cli/exit"
	"redlockctl/cli/flags"
	"redlockctl/internal/config"
	"redlockctl/internal/operator"
	"redlockctl/internal/restart"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/server/safetext"
)

func (a *commandLine) restartCommand() *cobra.Command {
	var p restart.Plan
	var dry bool
	cmd := &cobra.Command{
		Use:   "restart NODE... -- COMMAND [ARG...]",
		Short: "Restart masters one after the other, and lose no lock",
		Long: `For one node after the other: drains it (cordoned, until it has no unexpired copy, so that
a restart forgets nothing), runs the command that restarts its server, waits until a
guard has seen its new incarnation start fenced, lets it rejoin, and waits until every lock is
whole again. Then comes the next node.

In the command {name}, {addr} and {host} stand for the node. What it prints is shown, and
is in the audit log.

It begins only while all other nodes serve, a guard watches each, and no danger is open.
Where something fails, or at an interrupt, it stops and says how the node is left and
how to go on. Such a node stays cordoned or fenced: nothing is lost, and --resume
begins with it. An interrupt waits for the command that runs. Locks that their client extends
and does not put back on a node that has restarted are never whole: the restart
stops after that node and names one.

--dry-run prints the steps and how long each takes at most.

Exit code 6 if it must not begin.`,
		Example: `redlockctl restart n1 n2 n3 --reason "upgrade" -- ssh {host} sudo systemctl restart redis-server
redlockctl restart n1 n2 n3 --dry-run -- ssh {host} sudo systemctl restart redis-server`,
		ValidArgsFunction: a.completeNodes,
		Args: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			if dash < 0 || dash == len(args) || args[dash] == "" {
				return fmt.Errorf("%s: the command is missing: %s NODE... -- COMMAND", cmd.CommandPath(), cmd.CommandPath())
			}
			return flags.SeveralNames("node")(cmd, args[:dash])
		},
	}
	cmd.RunE = a.run(func(ctx context.Context, args []string) error {
		dash := cmd.ArgsLenAtDash()
		p.Nodes = args[:dash]
		return a.restart(ctx, p, args[dash:], dry)
	})
	f := cmd.Flags()
	f.StringVar(&p.Reason, "reason", "planned restart", "why, for the audit log")
	f.BoolVar(&p.Resume, "resume", false, "the first node may be out, as a restart before has left it")
	f.BoolVar(&dry, "dry-run", false, "print the steps with their times, and do nothing")
	f.DurationVar(&p.Most, "timeout", 0, "of each wait (default: so long as it can take, and a minute)")
	return cmd
}

func (a *commandLine) restart(ctx context.Context, p restart.Plan, argv []string, dry bool) error {
	if err := a.tableOnly("what is printed is the command's"); err != nil {
		return err
	}
	check := func(cfg *config.Config, _ *app.Spec) error { return app.CheckNodes(cfg, p.Nodes...) }
	return a.act(check, func(cfg *config.Config, op *operator.Operator) error {
		if !dry {
			if err := executable(argv[0]); err != nil {
				return err
			}
		}
		p.Command = restart.Command(argv, cfg.ChildEnv(os.Environ()), a.Bare())
		p.Drain = func(ctx context.Context, name string, says func(string)) error {
			d, err := app.Drain(ctx, cfg, name, says)
			if err == nil && !d.Guards {
				err = fmt.Errorf("%w: %s", app.ErrNotDrained, d.Unseen)
			}
			return err
		}
		p.Tell = func(format string, args ...any) { a.Note("%s", safetext.Printable(fmt.Sprintf(format, args...))) }
		of := app.Aim{}
		err := app.Watch(ctx, cfg, of, func(mon *observe.Monitor) error {
			s, err := app.Decided(ctx, mon, of)
			if err != nil {
				return err
			}
			if dry {
				return a.printRestart(s, p, argv)
			}
			return restart.Run(ctx, mon, op, p)
		})
		var stopped *restart.Error
		switch {
		case errors.As(err, &stopped):
			a.Note("%s", safetext.Printable(howToGoOn(stopped, argv)))
		case errors.Is(err, restart.ErrNotReady):
			return fmt.Errorf("%w: %w", operator.ErrRefused, err)
		}
		return err
	})
}

// howToGoOn says how a node was left, and what can be done.
func howToGoOn(e *restart.Error, argv []string) string {
	text := "all nodes that were restarted serve"
	if e.Out {
		text = e.Node + " is out: it stays cordoned or fenced, and nothing is lost"
	}
	if len(e.Left) > 0 {
		resume := ""
		if e.Out {
			resume = " --resume"
		}
		text += ". To go on: redlockctl restart " + strings.Join(e.Left, " ") + resume + " -- " + strings.Join(argv, " ")
	}
	if e.Out {
		text += ". To let it serve anyway: redlockctl node uncordon " + e.Node
	}
	return text
}

// printRestart prints the plan.
func (a *commandLine) printRestart(s *monitor.Snapshot, p restart.Plan, argv []string) error {
	drain, rejoin, whole := restart.Longest(s)
	for i, name := range p.Nodes {
		n := s.Node(name)
		fmt.Fprintf(a.Out, "%s %s, %s\n", safetext.Escape(name), safetext.Escape(n.Addr), view.Plural(n.Locks, "copy of a lock", "copies of locks"))
		fmt.Fprintf(a.Out, "  drain    cordon it, and wait until it has no copy: %s at most\n", view.Span(drain))
		fmt.Fprintf(a.Out, "  command  %s\n", safetext.Printable(strings.Join(restart.Words(argv, n.Name, n.Addr), " ")))
		fmt.Fprintf(a.Out, "  rejoin   started fenced: at once; otherwise %s after its start\n", view.Span(rejoin))
		fmt.Fprintf(a.Out, "  whole    until each lock has all copies, or has ended: %s for locks that are kept or not extended\n", view.Span(whole))
		if err := restart.Ready(s, name, p.Resume && i == 0); err != nil {
			fmt.Fprintf(a.Out, "  now      %s\n", safetext.Printable(err.Error()))
		}
	}
	fmt.Fprintf(a.Out, "all: %s and the commands at most, if each starts fenced\n", view.Span(time.Duration(len(p.Nodes))*(drain+whole)))
	if err := restart.Ready(s, p.Nodes[0], p.Resume); err != nil {
		return exit.Silently(fmt.Errorf("%w: %w", operator.ErrRefused, err))
	}
	return a.Unwritten()
}
