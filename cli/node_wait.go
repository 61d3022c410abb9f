package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/cli/app"
	"redlockctl/cli/exit"
	"redlockctl/cli/flags"
	"redlockctl/cli/printer"
	"redlockctl/internal/config"
	"redlockctl/server/safetext"
)

func (a *commandLine) waitCommand() *cobra.Command {
	var timeout time.Duration
	var before bool
	cmd := &cobra.Command{
		Use:   "wait NAME...",
		Short: "Wait until masters serve, or until one may be started",
		Long: `Waits until each of the nodes serves. Nothing is changed. If no guard runs that could let
a node rejoin, standard error says so at once, and the wait goes on: a guard may be
started. If --timeout, which is for all nodes together, expires first, the exit code is 1
and standard error says what is missing.

With --before-start it waits for the delay D while the server is down, so that the
votes of the last incarnation have expired when the server starts. This is for a
server that cannot start fenced (fence = "none"); it needs no rights on the server.
Run it in front of each start, after the old process has ended: as ExecStartPre= of
systemd, with a TimeoutStartSec= longer than D, or in the entrypoint of a container.
It is refused if something answers at the address.`,
		Example: `redlockctl node wait n2 --timeout 1m
ExecStartPre=+/usr/bin/redlockctl node wait n2 --before-start
redlockctl node wait n1 --before-start --nodes 127.0.0.1:6379 --max-ttl 30s && exec redis-server redis.conf`,
		Args:              flags.SeveralNames("node"),
		ValidArgsFunction: a.completeNodes,
		RunE: a.run(func(ctx context.Context, args []string) error {
			args, err := flags.Names(args, a.In)
			if err != nil {
				return err
			}
			cfg, err := a.load()
			if err != nil {
				return err
			}
			if before && len(args) > 1 {
				return exit.Usagef("--before-start is for one node, which is about to be started")
			}
			if err := app.CheckNodes(cfg, args...); err != nil {
				return err
			}
			if before {
				return a.waitBeforeStart(ctx, cfg, args[0], timeout)
			}
			return a.waitServing(ctx, cfg, args, timeout)
		}),
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up after this time; 0 is never")
	cmd.Flags().BoolVar(&before, "before-start", false, "wait for D from now, before the server is started")
	return cmd
}

// waitServing waits for nodes to serve, one after the other; timeout is for all together.
func (a *commandLine) waitServing(ctx context.Context, cfg *config.Config, names []string, timeout time.Duration) error {
	bounded := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	w, unguarded := app.NewWaiter(bounded, cfg, names)
	if unguarded != "" {
		a.Note("%s, or \"redlockctl node rejoin --now\" is called", safetext.Printable(unguarded))
	}
	all := actsJSON{Act: "node wait"}
	for _, name := range names {
		done := a.Progress("waiting for " + name + " to serve")
		err := w.Serves(bounded, name)
		done()
		if err := cmp.Or(ctx.Err(), err); err != nil {
			return err
		}
		if a.Output == "table" || len(names) == 1 {
			if err := a.printWaited(name, "serves"); err != nil {
				return err
			}
			continue
		}
		line, err := printer.Encoded("node act", nodeActJSON{Node: safetext.New(name), Done: "serves"})
		if err != nil {
			return err
		}
		all.Done, all.Results = all.Done+1, append(all.Results, line)
	}
	if all.Results == nil {
		return nil
	}
	return a.JSON("acts", all)
}

func (a *commandLine) waitBeforeStart(ctx context.Context, cfg *config.Config, name string, timeout time.Duration) error {
	if timeout > 0 && timeout < cfg.Guard.Delay {
		return exit.Usagef("--timeout %s is shorter than the delay %s", timeout, cfg.Guard.Delay)
	}
	err := app.WaitBeforeStart(ctx, cfg, name, func(delay time.Duration) func() {
		a.Note("%s may start in %s", safetext.Escape(name), delay)
		return a.ProgressFor("waiting for the votes of its last incarnation to expire", delay)
	})
	if err != nil {
		return err
	}
	return a.printWaited(name, "may start")
}

func (a *commandLine) printWaited(name, done string) error {
	if a.Output != "table" {
		return a.JSON("node act", nodeActJSON{Node: safetext.New(name), Done: done})
	}
	fmt.Fprintf(a.Out, "%s %s\n", safetext.Escape(name), done)
	return nil
}
