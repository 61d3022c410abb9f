// Package cli is the command line: the console, the demo and the commands, one file per
// command.
//
// Results go to standard output, as a plain table or, with --output json, as a document
// of the schema [printer.Schema]. Errors go to standard error as lines that begin with
// "redlockctl: ", and decide the exit code (see [exit.Code]). Escape codes are written to
// terminals only.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"redlockctl/base/crash"
	"redlockctl/cli/app"
	"redlockctl/cli/exit"
	"redlockctl/cli/flags"
	"redlockctl/cli/printer"
)

// Main runs the command line with the arguments after the program's name, and returns the
// exit code. The first SIGINT, SIGTERM or SIGHUP ends the command in good order; a further
// SIGINT or SIGTERM ends the process at once.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, end := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	hangup := make(chan os.Signal, 1)
	defer signal.Stop(hangup)
	crash.Go(func() {
		var s os.Signal
		select {
		case s = <-signals:
		case s = <-hangup:
		}
		signal.Stop(signals)
		end(exit.Interruption{By: s})
	})
	// go-redis would log to standard error, into the middle of the screen. Each failure is
	// already the error of a command or the state of a node.
	redis.SetLogger(noLog{})
	a := newCommandLine(&printer.Printer{
		In: in, Out: out, Err: errOut, Getenv: os.Getenv,
		InTTY: isTerminal(in), OutTTY: isTerminal(out), ErrTTY: isTerminal(errOut), Width: widthOf(out),
	})
	a.environ, a.hangup = os.Environ(), hangup
	return int(a.main(ctx, args))
}

func (a *commandLine) main(ctx context.Context, args []string) exit.Code {
	a.Remember()
	a.args = args
	root := a.rootCommand()
	root.SetArgs(append([]string{}, args...)) // nil would mean os.Args
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)

	if len(args) > 1 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		if cmd, _, err := root.Find(args[1:]); err == nil {
			fitFlags(cmd)
		}
	}
	err := root.ExecuteContext(ctx)
	if err != nil && !a.began {
		err = exit.Usage(err)
	}
	if err != nil && a.began && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		by := exit.ErrInterrupted
		if cause := context.Cause(ctx); errors.As(cause, new(exit.Interruption)) {
			by = cause
		}
		if _, said := exit.Results(err); said == nil {
			err = by
		} else {
			err = fmt.Errorf("%w: %w", by, err) // nodes have something to tell
		}
	}
	exit.Report(a.Err, err)
	if lost := a.Unwritten(); lost != nil && !errors.Is(err, lost) {
		exit.Report(a.Err, lost)
		if err == nil {
			return exit.Failed
		}
	}
	return exit.Of(err)
}

func (a *commandLine) rootCommand() *cobra.Command {
	var guard, noGuard, plain bool
	var where listening
	root := &cobra.Command{
		Use:   "redlockctl",
		Short: "Operations console for Redis locks held by the Redlock algorithm",
		Long: `redlockctl watches the masters that hold Redlock locks, shows each lock on each
of them, takes and releases locks by hand, and keeps a crashed master out of the
quorum until every lock that it may have forgotten has expired.

Without a command it opens the console on the masters of the configuration,
and runs a restart guard in it unless another guard already watches them: the
header says which one, and its D. Where standard input or output is not a terminal
it prints the nodes and locks as plain text instead. With --plain it goes on in lines
of text, for a screen reader: what changes is printed once, and commands are typed. So
it does where TERM is "dumb" or not set.

The configuration is the first of: --config, $REDLOCKCTL_CONFIG, ./config.toml,
$XDG_CONFIG_HOME/redlockctl/config.toml, /etc/redlockctl/config.toml. With --nodes or
$REDLOCKCTL_NODES none is read.

Exit codes: ` + exit.Help,
		Example: `# five masters in this process, simulated clients, the console on them
redlockctl demo

# five real masters on 127.0.0.1:7001-7005, and a lock on them
redlockctl lab up
redlockctl acquire job:1 --ttl 20s
redlockctl locks`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			hint := ""
			if s := cmd.SuggestionsFor(args[0]); len(s) > 0 {
				hint = fmt.Sprintf(" (did you mean %s?)", strings.Join(s, ", "))
			}
			return fmt.Errorf("unknown command %q%s; see redlockctl --help", args[0], hint)
		},
		PersistentPreRunE: a.checkGlobals,
		RunE: a.run(func(ctx context.Context, _ []string) error {
			mode := app.GuardUnlessSeen
			switch {
			case guard && noGuard:
				return exit.Usagef("--guard and --no-guard: give one of them")
			case guard:
				mode = app.GuardAlways
			case noGuard:
				mode = app.GuardNever
			}
			return a.console(ctx, mode, where, plain || a.plainTerminal())
		}),
	}
	root.SuggestionsMinimumDistance = 2
	root.Version = build().line()
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().BoolVar(&noGuard, "no-guard", false, "run no guard in the console")
	root.Flags().BoolVar(&guard, "guard", false, "run a guard in the console also where another guard watches")
	root.Flags().BoolVar(&plain, "plain", false, "lines for a screen reader: what changes is printed once, as a sentence; q and enter quit")
	where.add(root)
	a.addFlags(root)
	a.addCommands(root)
	strict(root)
	root.SetHelpFunc(a.helpPage)
	return root
}

func (a *commandLine) checkGlobals(cmd *cobra.Command, _ []string) error {
	relaxReason(cmd)
	if err := flags.NoneNegative(cmd); err != nil {
		return err
	}
	if err := a.output(cmd); err != nil {
		return err
	}
	if f := cmd.Flags().Lookup("quiet"); f != nil && f.Changed && a.Output != "table" {
		if a.outputBy == "" {
			return fmt.Errorf("--quiet and --output %s: give one of them", a.Output)
		}
		a.Unconvert()
	}
	if f := cmd.Root().PersistentFlags().Lookup("ascii"); !f.Changed {
		if by, only := asciiOnly(a.Getenv); only {
			a.ASCII, a.asciiBy = true, by
		}
	}
	if err := a.nodesOfEnvironment(cmd); err != nil {
		return err
	}
	if cmd.Root().PersistentFlags().Changed("nodes") && len(a.named.Nodes) == 0 { // an empty variable must not mean another cluster
		return errors.New("--nodes names no master")
	}
	return nil
}

func (a *commandLine) addFlags(root *cobra.Command) {
	pf := root.PersistentFlags()
	pf.StringArrayVar(&a.configPaths, "config", nil, "configuration file; several for the clusters of all of them")
	pf.StringVar(&a.cluster, "cluster", "", "cluster of the configuration, if it has several (also $REDLOCKCTL_CLUSTER); with --nodes, the cluster's name")
	a.nodeFlags(pf)
	pf.StringVarP(&a.Output, "output", "o", "table", "what to print: table, json, yaml or template=TEXT (a template of Go over the JSON); of some commands also wide, jsonl or csv (also $REDLOCKCTL_OUTPUT)")
	pf.BoolVar(&a.readOnly, "read-only", false, "refuse every action that changes anything")
	pf.BoolVar(&a.NoColor, "no-color", false, "no colours (also $NO_COLOR; $CLICOLOR_FORCE=1: colours in a pipe too)")
	pf.BoolVar(&a.ASCII, "ascii", false, "ASCII characters only; by itself where the locale has no others")
	_ = root.RegisterFlagCompletionFunc("output", func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		words := flags.OutputsOf(cmd)
		if i := slices.Index(words, "template=TEXT"); i >= 0 {
			words[i] = "template="
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	})
	_ = root.RegisterFlagCompletionFunc("cluster", a.completeClusters)
}

func (a *commandLine) addCommands(root *cobra.Command) {
	node, guard := a.nodeCommand(), a.guardCommand()
	node.AddCommand(a.waitCommand(), a.bootFenceCommand())
	guard.AddCommand(a.guardStatusCommand(), a.guardForgetCommand())
	for _, group := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{toLook, []*cobra.Command{
			a.statusCommand(), flags.GroupOf("clusters", "All clusters of the configuration", a.clustersStatusCommand()),
			a.nodesCommand(), a.locksCommand(), a.whoCommand(), a.watchCommand(), a.historyCommand(), a.replayCommand(), a.reportCommand(),
			a.doctorCommand(), a.infoCommand(), a.manCommand(), a.schemaCommand(), a.versionCommand(),
		}},
		{toLock, []*cobra.Command{a.acquireCommand(), a.extendCommand(), a.releaseCommand(), a.runCommand(), a.revokeCommand(), a.forceReleaseCommand()}},
		{toGuard, []*cobra.Command{a.initCommand(), guard, a.restartCommand(), node}},
		{toKeep, []*cobra.Command{
			flags.GroupOf("audit", "The log of what people did with this program", a.auditShowCommand(), a.auditVerifyCommand()),
			flags.GroupOf("config", "The configuration", a.configCheckCommand(), a.configACLCommand()),
		}},
		{toTry, []*cobra.Command{a.demoCommand(), flags.GroupOf("lab", "Real masters on this machine, to try things out on", a.labUpCommand(), a.labDownCommand())}},
	} {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title})
		for _, cmd := range group.commands {
			cmd.GroupID = group.title
		}
		root.AddCommand(group.commands...)
	}
	root.AddGroup(&cobra.Group{ID: toShell, Title: toShell})
	root.SetCompletionCommandGroupID(toShell)
	root.SetHelpCommandGroupID(toShell)
}

// strict adds cobra's own commands and flags now, and makes all commands refuse unknown
// names.
func strict(root *cobra.Command) {
	root.InitDefaultVersionFlag()
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "completion":
			cmd.Args, cmd.RunE = cobra.ArbitraryArgs, flags.Group
		case "help":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				found, rest, err := root.Find(args)
				if err == nil && len(rest) > 0 {
					err = fmt.Errorf("%s help: unknown command %q", found.CommandPath(), rest[0])
				}
				return err
			}
		}
	}
}
