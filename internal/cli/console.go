package cli

import (
	"context"
	"errors"
	"fmt"

	"redlockctl/monitor"
	"redlockctl/tui"
)

// console is the program without a command: the screen on the configured
// masters, or, where there is no terminal, the same as plain text.
func (a *app) console(ctx context.Context, noGuard bool, addr string) error {
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
		s, err := look(ctx, cfg)
		if err != nil {
			return err
		}
		a.printStatus(a.out, s)
		fmt.Fprintln(a.out)
		a.printLocks(a.out, s, matching(s, monitor.Filter{}))
		fmt.Fprintln(a.errOut, "redlockctl: no terminal, so no console; redlockctl --help names the commands")
		return nil
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
	clusters := &clusterSwitch{set: set, noGuard: noGuard, told: told, ctx: ctx}
	defer clusters.close()
	defer told.serve(serving, func(error) {})() // the screen has the terminal
	defer stop()
	shown, err := clusters.Open(ctx, cfg.Cluster.Name)
	if err != nil {
		return err
	}
	return a.screen(ctx, tui.Options{
		Source: shown.Source, Guard: shown.Guard, Actions: shown.Actions, Delay: shown.Delay, Clusters: clusters,
		NoColor: !cfg.TUI.Color, FPS: cfg.TUI.FPS,
	})
}

// screen runs the terminal UI until the person quits.
func (a *app) screen(ctx context.Context, opt tui.Options) error {
	opt.ASCII, opt.In, opt.Out = a.ascii, a.in, a.out
	opt = a.remembering(opt)
	err := tui.Run(ctx, opt)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // SIGTERM is a way to quit
	}
	return err
}
