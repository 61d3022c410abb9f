package cli

import (
	"context"
	"errors"
	"fmt"

	"redlockctl/tui"
)

// console is the program without a command: the screen on the configured
// masters, or, where there is no terminal, the same as plain text.
func (a *app) console(ctx context.Context, noGuard bool) error {
	cfg, err := a.load()
	if err != nil {
		return err
	}
	if !a.inTTY || !a.outTTY {
		if err := a.tableOnly("use redlockctl status, nodes or locks with -o json"); err != nil {
			return err
		}
		s, err := look(ctx, cfg)
		if err != nil {
			return err
		}
		a.printStatus(a.out, s)
		fmt.Fprintln(a.out)
		a.printLocks(a.out, s, s.Locks)
		fmt.Fprintln(a.errOut, "redlockctl: no terminal, so no console; redlockctl --help names the commands")
		return nil
	}
	s, err := specOf(cfg, !noGuard)
	if err != nil {
		return err
	}
	ses, err := openSession(ctx, s)
	if err != nil {
		return err
	}
	defer ses.close()
	return a.screen(ctx, ses, nil, !cfg.TUI.Color, cfg.TUI.FPS)
}

// screen runs the terminal UI on a session until the person quits.
func (a *app) screen(ctx context.Context, ses *session, lab tui.Lab, noColor bool, fps int) error {
	opt := tui.Options{
		Source: ses.mon, Actions: actions{ses}, Lab: lab, Delay: ses.delay,
		ASCII: a.ascii, NoColor: noColor, FPS: fps, In: a.in, Out: a.out,
	}
	if ses.guard != nil { // a nil *Guard in the interface would not be nil
		opt.Guard = ses.guard
	}
	err := tui.Run(ctx, opt)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // SIGTERM is a way to quit
	}
	return err
}
