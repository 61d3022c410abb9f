package cli

import (
	"context"
	"fmt"
	"log/slog"

	"redlockctl/cli/app"
	"redlockctl/cli/exit"
	"redlockctl/monitor"
	"redlockctl/tui"
)

// console is the program without a command: the screen on the configured masters, with
// plain as lines for a screen reader, or, without a terminal, the status as text.
func (a *commandLine) console(ctx context.Context, guard app.GuardMode, where listening, plain bool) error {
	cfg, err := a.load()
	if err != nil {
		return err
	}
	if plain {
		if err := a.tableOnly("redlockctl watch -o jsonl prints events"); err != nil {
			return err
		}
	} else if !a.InTTY || !a.OutTTY {
		if where.addr != "" {
			return exit.Usagef("--listen is for the console, which needs a terminal; without one use redlockctl guard --listen")
		}
		if err := a.tableOnly("use redlockctl status, nodes or locks with -o json"); err != nil {
			return err
		}
		s, err := a.look(ctx, cfg, app.Aim{Findings: true})
		if err != nil {
			return err
		}
		if err := a.printStatus(s, app.GuardsOf(cfg, s).Doc(nil).Guard(s)); err != nil {
			return err
		}
		fmt.Fprintln(a.Out)
		a.printLocks(s, matching(s, monitor.Filter{}))
		a.Note("no terminal, so no console; redlockctl --help names the commands")
		return a.incomplete(s)
	}
	if guard == app.GuardAlways && cfg.Cluster.ReadOnly {
		return exit.Usagef("--guard: a guard fences nodes, and this cluster is read-only")
	}
	set, _, err := a.loadAll()
	if err != nil {
		return err
	}
	served, err := where.listen()
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	clusters := &app.Clusters{Set: set, Guard: guard, Metrics: served, Context: ctx}
	defer clusters.Close()
	defer served.Start(serving, slog.New(slog.DiscardHandler))() // the screen has the terminal
	defer stop()
	shown, err := clusters.Open(ctx, cfg.Cluster.Name)
	if err != nil {
		return err
	}
	if plain {
		return a.plainConsole(ctx, shown)
	}
	opt := tui.Options{Cluster: shown}
	opt.Clusters, opt.NoColor, opt.FPS = clusters, !cfg.TUI.Color, cfg.TUI.FPS
	opt = themed(opt, cfg.TUI)
	return a.screen(ctx, opt)
}
