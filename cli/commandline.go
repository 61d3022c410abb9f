package cli

import (
	"context"
	"os"
	"strings"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"redlockctl/cli/exit"
	"redlockctl/cli/printer"
	"redlockctl/cli/progress"
	"redlockctl/internal/config"
	"redlockctl/internal/operator"
)

// commandLine is one run of the command line: its streams and its global flags.
type commandLine struct {
	*printer.Printer
	*progress.Teller
	args []string // after the program's name

	configPaths []string
	named       config.Flags // the nodes, if flags name them
	askPassword bool
	password    string // as it was typed
	cluster     string
	readOnly    bool

	environ []string // of the process, as os.Environ has it
	// nodesBy, outputBy and asciiBy are the variables of the environment that say these; empty: none.
	nodesBy, outputBy, asciiBy string
	toldUnknown                bool

	// began is set when a command's own code starts: an earlier error is a usage error.
	began bool
	what  string // the command: "acquire", "node cordon"; "console" without one

	hangup chan os.Signal // SIGHUP on it ends the command; nil: the default holds
}

func newCommandLine(p *printer.Printer) *commandLine {
	return &commandLine{Printer: p, Teller: progress.New(p)}
}

// noLog is a logger for go-redis that drops everything.
type noLog struct{}

func (noLog) Printf(context.Context, string, ...any) {}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(f.Fd())
}

// widthOf returns how many cells a line of a terminal has; 0: it is not known.
func widthOf(stream any) int {
	f, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	w, _, err := term.GetSize(f.Fd())
	if err != nil {
		return 0
	}
	return w
}

// run wraps the code of a command: its errors are not usage errors, and SIGHUP ends it in good order.
func (a *commandLine) run(f func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return a.runThroughHangUps(func(ctx context.Context, args []string) error {
		a.endAtHangUp()
		return f(ctx, args)
	})
}

// runThroughHangUps is run for a command to which SIGHUP means something else.
func (a *commandLine) runThroughHangUps(f func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.began = true
		if _, a.what, _ = strings.Cut(cmd.CommandPath(), " "); a.what == "" {
			a.what = "console"
		}
		return f(cmd.Context(), args)
	}
}

// tableOnly refuses --output json for a command that prints no document.
func (a *commandLine) tableOnly(instead string) error {
	switch {
	case a.Output == "json" && a.outputBy == "":
		return exit.Usagef("-o json is not supported by this command; %s", instead)
	case a.Output == "json":
		a.Unconvert()
	}
	return nil
}

// mayAct refuses a read-only run early, before any question or connection. The check
// that counts is in [operator.Operator], where commands are sent.
func mayAct(cfg *config.Config) error {
	if cfg.Cluster.ReadOnly {
		return operator.ErrReadOnly
	}
	return nil
}

// mayActAnywhere is [mayAct] without a configuration: it checks the command line and the
// environment.
func (a *commandLine) mayActAnywhere() error {
	switch strings.ToLower(a.Getenv("REDLOCKCTL_READ_ONLY")) {
	case "", "0", "false", "no":
		if !a.readOnly {
			return nil
		}
	}
	return operator.ErrReadOnly
}
