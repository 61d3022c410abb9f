package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/signal"
	"syscall"

	"redlockctl/internal/app"
	"redlockctl/internal/metrics"
	"redlockctl/internal/safetext"
	"redlockctl/monitor"
	"redlockctl/tui"
)

// console is the program without a command: the screen on the configured
// masters, or, where there is no terminal, the same as plain text.
func (a *commandLine) console(ctx context.Context, guard app.GuardMode, addr string) error {
	cfg, err := a.load()
	if err != nil {
		return err
	}
	if !a.inTTY || !a.outTTY {
		if addr != "" {
			return usageError{errors.New("--listen is for the console, which needs a terminal; without one use redlockctl guard --listen")}
		}
		if err := a.tableOnly("use redlockctl status, nodes or locks with -o json"); err != nil {
			return err
		}
		s, err := a.look(ctx, cfg, app.Aim{})
		if err != nil {
			return err
		}
		if err := a.printStatus(a.out, s, guardsOf(cfg, s, nil).view(s)); err != nil {
			return err
		}
		fmt.Fprintln(a.out)
		a.printLocks(s, matching(s, monitor.Filter{}))
		fmt.Fprintln(a.errOut, "redlockctl: no terminal, so no console; redlockctl --help names the commands")
		return a.incomplete(s)
	}
	if guard == app.GuardAlways && cfg.Cluster.ReadOnly {
		return usageError{errors.New("--guard: a guard fences nodes, and this cluster is read-only")}
	}
	set, _, err := a.loadAll()
	if err != nil {
		return err
	}
	told, err := listen(addr)
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	clusters := &app.Clusters{Set: set, Guard: guard, Metrics: told, Context: ctx}
	defer clusters.Close()
	defer told.Serve(serving, slog.New(slog.DiscardHandler))() // the screen has the terminal
	defer stop()
	shown, err := clusters.Open(ctx, cfg.Cluster.Name)
	if err != nil {
		return err
	}
	opt := screenOf(shown)
	opt.Clusters, opt.NoColor, opt.FPS = clusters, !cfg.TUI.Color, cfg.TUI.FPS
	return a.screen(ctx, opt)
}

// screenOf are the options of a screen on a cluster.
func screenOf(c tui.Cluster) tui.Options {
	return tui.Options{Source: c.Source, Guard: c.Guard, Actions: c.Actions, Delay: c.Delay}
}

// screen runs the terminal UI until the person quits, or a signal comes: SIGHUP
// too, which a terminal that is closed sends.
func (a *commandLine) screen(ctx context.Context, opt tui.Options) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
	defer stop()
	opt.ASCII, opt.In, opt.Out = a.ascii, a.in, a.out
	opt = app.OnMachine(opt, a.getenv)
	opt.Tell = a.tellLeft
	err := tui.Run(ctx, opt)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // SIGTERM is a way to quit
	}
	return err
}

// tellLeft says which locks outlive the screen on which they were acquired.
func (a *commandLine) tellLeft(left []tui.Left) {
	for _, l := range left {
		fmt.Fprintf(a.errOut, "redlockctl: %s stays locked until %s; nothing extends it any more\n", safetext.Escape(l.Key.Raw()), l.Until.Format("15:04:05"))
	}
}

const listenUsage = "tell Prometheus and health checks at this address, such as 127.0.0.1:9622"

// listen begins to listen for those who ask for metrics; an empty address is none.
func listen(addr string) (*app.Metrics, error) {
	v := build()
	m, err := app.Listen(addr, metrics.Build{Version: v.Version, Go: v.Go, Revision: v.Revision})
	if errors.Is(err, metrics.ErrAddress) {
		return nil, usageError{fmt.Errorf("--listen %w", err)}
	} else if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	return m, nil
}
