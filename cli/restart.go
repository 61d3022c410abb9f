package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
	var dry, yes bool
	cmd := &cobra.Command{
		Use:   "restart NODE... -- COMMAND [ARG...]",
		Short: "Restart masters one after the other, and lose no lock",
		Long: `For one node after the other: waits until each lock could be extended without its copy
there, drains it (cordoned, until it has no unexpired copy, so that a restart forgets
nothing), runs the command that restarts its server, waits until a
guard has seen its new incarnation start fenced, lets it rejoin, and waits until every lock is
whole again. Then comes the next node.

In the command {name}, {addr} and {host} stand for the node. What it prints is shown, and
is in the audit log.

It begins only while all other nodes serve, a guard watches each, and no danger is open. If another
node goes out before it drains, as by a restart that began at the same moment, it stands back: it
uncordons its node, waits until all others serve, and tries again.
Where something fails, at an interrupt, or when somebody else ends the cordon of the node,
it stops and says how the node is left and how to go on. A node that is out stays cordoned or fenced: nothing is lost, and --resume
begins with it. An interrupt waits for the command that runs, and so does another restart from
this machine: it would have its servers ended by that. Locks that their client extends
and does not put back on a node that has restarted are never whole: the restart
stops after that node and names one.

Without --yes it shows the steps and how long each takes at most, as --dry-run does, and
asks you to type the names; without a terminal it is refused.

Exit code 6 if it must not begin.`,
		Example: `redlockctl restart n1 n2 n3 --reason "upgrade" --yes -- ssh {host} sudo systemctl restart redis-server
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
		return a.restart(ctx, p, args[dash:], dry, yes, asTyped(cmd, "resume"))
	})
	f := cmd.Flags()
	f.StringVar(&p.Reason, "reason", "planned restart", "why, for the audit log")
	f.BoolVar(&p.Resume, "resume", false, "the first node may be out, as a restart before has left it")
	f.BoolVar(&dry, "dry-run", false, "print the steps with their times, and do nothing")
	f.BoolVar(&yes, "yes", false, "do it without being asked")
	f.DurationVar(&p.Most, "timeout", 0, "of each wait (default: so long as it can take, and a minute)")
	return cmd
}

func (a *commandLine) restart(ctx context.Context, p restart.Plan, argv []string, dry, yes bool, options []string) error {
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
		command := restart.Command(argv, cfg.ChildEnv(os.Environ()), a.Bare())
		p.Command = func(ctx context.Context, n *monitor.Node) (string, error) {
			done, err := app.OnlyRestart(ctx, cfg, func() {
				p.Tell("%s: another restart's command still runs on this machine: waiting until it has ended", n.Name)
			})
			if err != nil {
				return "", err
			}
			defer done()
			return command(ctx, n)
		}
		p.Look = func(ctx context.Context) (*monitor.Snapshot, error) {
			return app.Look(ctx, cfg, app.Aim{Nodes: true, Locks: true, Most: app.SettleTime})
		}
		p.Drain = func(ctx context.Context, name string, says func(string)) error {
			d, err := app.Drain(ctx, cfg, name, says)
			if err == nil && !d.Guards {
				err = fmt.Errorf("%w: %s", app.ErrNotDrained, d.Unseen)
			}
			return err
		}
		began := time.Now()
		p.Cordoned = func(ctx context.Context, name string) error { return app.Cordoned(ctx, cfg, name, began) }
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
			if !yes {
				err := a.confirm(ctx, strings.Join(p.Nodes, " "), func(w io.Writer) error { tellRestart(w, s, p, argv); return nil })
				if err != nil {
					return err
				}
			}
			return restart.Run(ctx, mon, op, p)
		})
		var stopped *restart.Error
		switch {
		case errors.As(err, &stopped):
			a.Note("%s", safetext.Printable(howToGoOn(stopped, len(p.Nodes), options, argv)))
		case errors.Is(err, restart.ErrNotReady):
			return fmt.Errorf("%w: %w", operator.ErrRefused, err)
		}
		return err
	})
}

// howToGoOn says how the nodes were left, so many in all, and what can be done.
func howToGoOn(e *restart.Error, nodes int, options, argv []string) string {
	text := "all nodes that were restarted serve"
	switch {
	case e.Out:
		text = e.Node + " is out: it stays cordoned or fenced, and nothing is lost"
	case len(e.Left) == nodes:
		text = "no node was restarted"
	}
	if len(e.Left) > 0 {
		words := append([]string{"redlockctl", "restart"}, e.Left...)
		if e.Out {
			words = append(words, "--resume")
		}
		words = append(append(append(words, options...), "--"), argv...)
		for i := range words {
			words[i] = shellWord(words[i])
		}
		text += ". To go on: " + strings.Join(words, " ")
	}
	if e.Out {
		text += ". To let it serve anyway: redlockctl node uncordon " + e.Node
	}
	return text
}

// asTyped returns the flags of a command that were set, except some, and without passwords.
func asTyped(cmd *cobra.Command, but ...string) (words []string) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		list, several := f.Value.(pflag.SliceValue)
		switch {
		case slices.Contains(but, f.Name):
		case f.Name == "nodes", f.Name == "password-command":
			words = append(words, "--"+f.Name, "...")
		case several:
			for _, v := range list.GetSlice() {
				words = append(words, "--"+f.Name, v)
			}
		case f.Value.Type() == "bool":
			words = append(words, "--"+f.Name)
		default:
			words = append(words, "--"+f.Name, f.Value.String())
		}
	})
	return words
}

// shellWord quotes a word for a shell, if it has to be.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r < 0x80 && (r == '_' || strings.ContainsRune("-./:=@%+,{}", r) || '0' <= r && r <= '9' || 'a' <= r|0x20 && r|0x20 <= 'z')
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// printRestart prints the plan, and fails if it must not begin.
func (a *commandLine) printRestart(s *monitor.Snapshot, p restart.Plan, argv []string) error {
	tellRestart(a.Out, s, p, argv)
	if err := restart.Ready(s, p.Nodes[0], p.Resume); err != nil {
		return exit.Silently(fmt.Errorf("%w: %w", operator.ErrRefused, err))
	}
	return a.Unwritten()
}

// tellRestart prints the plan.
func tellRestart(w io.Writer, s *monitor.Snapshot, p restart.Plan, argv []string) {
	drain, rejoin, whole := restart.Longest(s)
	all := time.Duration(len(p.Nodes)) * (drain + whole)
	for i, name := range p.Nodes {
		n := s.Node(name)
		fmt.Fprintf(w, "%s %s, %s\n", safetext.Escape(name), safetext.Escape(n.Addr), view.Plural(n.Locks, "copy of a lock", "copies of locks"))
		if i > 0 && restart.CopiesMustCount(&s.Cluster) {
			counts := restart.Counts(s)
			all += counts
			fmt.Fprintf(w, "  before   wait until copies that were put back on %s count: %s at most\n", safetext.Escape(p.Nodes[i-1]), view.Span(counts))
		}
		fmt.Fprintf(w, "  needed   wait until each lock could be extended without its copy there: %s at most\n", view.Span(whole))
		fmt.Fprintf(w, "  drain    cordon it, and wait until it has no copy: %s at most\n", view.Span(drain))
		fmt.Fprintf(w, "  command  %s\n", safetext.Printable(strings.Join(restart.Words(argv, n.Name, n.Addr), " ")))
		fmt.Fprintf(w, "  rejoin   started fenced: at once, if its guards have watched it for %s when it is drained; otherwise %s after its start\n", view.Span(rejoin), view.Span(rejoin))
		fmt.Fprintf(w, "  whole    until each lock has all copies, or has ended: %s for locks that are kept or not extended\n", view.Span(whole))
		if err := restart.Ready(s, name, p.Resume && i == 0); err != nil {
			fmt.Fprintf(w, "  now      %s\n", safetext.Printable(err.Error()))
		}
	}
	fmt.Fprintf(w, "all: %s and the commands at most, if each rejoins at once and no lock needs one of them\n", view.Span(all))
}
