// Package cli is the command line: the console, the demo, and one command for
// each thing that an operator looks at or does. One file per command.
//
// What is asked for goes to standard output, as a plain table or, with
// --output json, as one document of the schema [Schema]. What went wrong goes
// to standard error as a line that begins with "redlockctl: ", and into the
// exit code (see [Exit]). Escape codes are written to terminals only.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"charm.land/fang/v2"
	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"redlockctl/internal/adopt"
	"redlockctl/internal/app"
	"redlockctl/internal/config"
	"redlockctl/internal/safetext"
)

// Main runs the command line with the arguments after the program's name, and
// returns the exit code. The first SIGINT or SIGTERM ends what runs in good
// order; a second one ends the process at once.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, end := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	go func() {
		s := <-signals
		signal.Stop(signals)
		end(interruption{s})
	}()
	// go-redis would write lines of its own to standard error, into the middle of
	// the screen; each failure is an error of a command, or a state of a node.
	redis.SetLogger(noLog{})
	a := &commandLine{
		in: in, out: out, errOut: errOut, getenv: os.Getenv,
		inTTY: isTerminal(in), outTTY: isTerminal(out), errTTY: isTerminal(errOut),
	}
	return int(a.main(ctx, args))
}

func (a *commandLine) main(ctx context.Context, args []string) Exit {
	if !a.outTTY {
		a.out = &remembering{to: a.out}
	}
	a.args = args
	root := a.rootCommand()
	root.SetArgs(append([]string{}, args...)) // nil would mean os.Args
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.errOut)

	var err error
	if a.styledHelp(args) {
		// fang asks the terminal for its background colour, and waits for the
		// answer. That is worth it for a page to read, never for an act or an error.
		err = fang.Execute(ctx, root, fang.WithoutVersion(), fang.WithoutManpage(),
			fang.WithErrorHandler(func(io.Writer, fang.Styles, error) {}))
	} else {
		err = root.ExecuteContext(ctx)
	}
	if err != nil && !a.began {
		err = usageError{err}
	}
	if err != nil && a.began && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		by := errInterrupted
		if cause := context.Cause(ctx); errors.As(cause, new(interruption)) {
			by = cause
		}
		if _, said := resultsOf(err); said == nil {
			err = by
		} else {
			err = fmt.Errorf("%w: %w", by, err) // nodes have something to tell
		}
	}
	a.report(err)
	if lost := a.unwritten(); lost != nil && !errors.Is(err, lost) {
		a.report(lost)
		if err == nil {
			return ExitFailed
		}
	}
	return exitOf(err)
}

// styledHelp reports whether this run is for a page of help on a terminal: what fang is
// for.
func (a *commandLine) styledHelp(args []string) bool {
	if !a.outTTY || a.getenv("NO_COLOR") != "" || slices.Contains(args, "--no-color") {
		return false
	}
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--help") || slices.Contains(args, "-h") || len(args) > 0 && args[0] == "help"
}

// report writes what went wrong to standard error, a line for each problem.
func (a *commandLine) report(err error) {
	if err == nil || errors.Is(err, errSilent) {
		return
	}
	if problems := (adopt.Problems)(nil); errors.As(err, &problems) {
		for _, p := range problems {
			fmt.Fprintf(a.errOut, "redlockctl: %s\n", safetext.Printable(p.Error()))
		}
		return
	}
	var several *config.Error
	if !errors.As(err, &several) {
		fmt.Fprintf(a.errOut, "redlockctl: %s\n", safetext.Printable(err.Error()))
		return
	}
	for _, p := range several.Problems {
		// The advice of a problem may have an example of several lines.
		for i, line := range strings.Split(p.String(), "\n") {
			if i == 0 {
				fmt.Fprintf(a.errOut, "redlockctl: %s\n", safetext.Printable(line))
			} else {
				fmt.Fprintf(a.errOut, "    %s\n", safetext.Printable(strings.TrimLeft(line, "\t")))
			}
		}
	}
}

func (a *commandLine) rootCommand() *cobra.Command {
	var guard, noGuard, plain bool
	var where listening
	root := &cobra.Command{
		Use:   "redlockctl",
		Short: "Operations console for Redis locks held by the Redlock algorithm",
		Long: `redlockctl watches the masters that hold Redlock locks, shows each lock on each
of them, takes and releases locks by hand, and keeps a crashed master out of the
quorum until no lock that it may have forgotten can still be believed in.

Without a command it opens the console on the masters of the configuration,
and runs a restart guard in it unless another guard already watches them: the
header says which one, and its D. Where standard input or output is not a terminal
it prints the nodes and locks as plain text instead. With --plain it goes on in lines
of text, for a screen reader: what changes is printed once, and commands are typed.

The configuration is the first of: --config, $REDLOCKCTL_CONFIG, ./config.toml,
$XDG_CONFIG_HOME/redlockctl/config.toml, /etc/redlockctl/config.toml. With --nodes none
is read.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 contended,
4 no quorum, 5 not the owner, or lost, 6 refused (read-only, not confirmed).`,
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
				return usageError{errors.New("--guard and --no-guard: give one of them")}
			case guard:
				mode = app.GuardAlways
			case noGuard:
				mode = app.GuardNever
			}
			return a.console(ctx, mode, where, plain)
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
	return root
}

// checkGlobals checks the flags that all commands have, before one runs.
func (a *commandLine) checkGlobals(cmd *cobra.Command, _ []string) error {
	if err := runsOn(cmd, runtime.GOOS); err != nil {
		return err
	}
	words := outputsOf(cmd)
	if !slices.Contains(words, a.output) {
		return fmt.Errorf("--output %q: it is %s", a.output, either(words))
	}
	switch a.jsonSchema {
	case "v2":
	case "v1":
		if a.output == "json" || a.output == "jsonl" {
			a.out = &remembering{to: &inV1{to: bareOut(a.out)}}
		}
	default:
		return fmt.Errorf("--json-schema %q: it is v2 or v1", a.jsonSchema)
	}
	if cmd.Root().PersistentFlags().Changed("nodes") && len(a.named.Nodes) == 0 { // an empty variable must not mean another cluster
		return errors.New("--nodes names no master")
	}
	return nil
}

// addFlags adds the flags that all commands have.
func (a *commandLine) addFlags(root *cobra.Command) {
	pf := root.PersistentFlags()
	pf.StringArrayVar(&a.configPaths, "config", nil, "configuration file; several for the clusters of all of them")
	pf.StringVar(&a.cluster, "cluster", "", "which cluster of the configuration, where it has several (also $REDLOCKCTL_CLUSTER); the name of that of --nodes")
	a.nodeFlags(pf)
	pf.StringVarP(&a.output, "output", "o", "table", "what to print: table or json; of some commands also wide, jsonl or csv")
	pf.StringVar(&a.jsonSchema, "json-schema", "v2", "of JSON: v2, or v1 with its older words, for one release")
	pf.BoolVar(&a.readOnly, "read-only", false, "refuse every act that changes anything")
	pf.BoolVar(&a.noColor, "no-color", false, "no colours (also $NO_COLOR)")
	pf.BoolVar(&a.ascii, "ascii", false, "no character beyond ASCII")
	_ = root.RegisterFlagCompletionFunc("output", func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return outputsOf(cmd), cobra.ShellCompDirectiveNoFileComp
	})
	_ = root.RegisterFlagCompletionFunc("cluster", a.completeClusters)
}

// addCommands is the tree of commands.
func (a *commandLine) addCommands(root *cobra.Command) {
	const (
		needsServers = "redis-server processes"
		needsGroups  = "process groups and signals"
		needsOwners  = "a state directory with owner and mode"
	)
	node, guard := a.nodeCommand(), onUnix(a.guardCommand(), needsOwners)
	node.AddCommand(a.waitCommand(), a.bootFenceCommand())
	guard.AddCommand(a.guardStatusCommand())
	root.AddCommand(
		a.demoCommand(), a.initCommand(),
		groupOf("lab", "Real masters on this machine, to try things out on", onUnix(a.labUpCommand(), needsServers), onUnix(a.labDownCommand(), needsServers)),
		groupOf("clusters", "All clusters of the configuration", a.clustersStatusCommand()),
		a.statusCommand(), a.nodesCommand(), a.locksCommand(),
		a.acquireCommand(), a.extendCommand(), a.releaseCommand(), a.forceReleaseCommand(), a.revokeCommand(),
		onUnix(a.superviseCommand(), needsGroups), onUnix(a.runCommand(), needsGroups),
		node, guard,
		groupOf("config", "The configuration", a.configCheckCommand(), a.configACLCommand()),
		groupOf("audit", "The log of what people did with this program", a.auditShowCommand(), a.auditVerifyCommand()),
		a.historyCommand(), a.reportCommand(), a.replayCommand(), a.whoCommand(), a.infoCommand(), a.doctorCommand(), a.watchCommand(), a.simulateCommand(), a.manCommand(), a.versionCommand(),
	)
}

// strict makes cobra's own commands and flags be there already, and the commands
// refuse what is none of their names.
func strict(root *cobra.Command) {
	root.InitDefaultVersionFlag()
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "completion":
			cmd.Args, cmd.RunE = cobra.ArbitraryArgs, group
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
