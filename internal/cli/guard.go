package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"redlockctl/internal/safetext"
	"redlockctl/redlock"
	"redlockctl/restartguard"
)

func (a *app) guardCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "guard",
		Short: "Run the restart guard without a screen",
		Long: `Watches every master whose fence is not "none". A master that has restarted may
have forgotten votes: it stays closed until no lock that it may have forgotten
can still be believed in (the delay D after it was first seen again), and is
opened then. Each event is a line on standard error.

It runs until SIGINT or SIGTERM, and opens no node on its way out. Several guards
may watch one cluster.`,
		Args: noArgs,
		RunE: a.run(func(ctx context.Context, _ []string) error {
			if err := a.tableOnly("the guard writes a log to standard error"); err != nil {
				return err
			}
			cfg, err := a.load()
			if err != nil {
				return err
			}
			if err := mayAct(cfg); err != nil {
				return err
			}
			s, err := specOf(cfg, true)
			if err != nil {
				return err
			}
			if len(s.guarded) == 0 {
				return configError{errors.New(`there is nothing to guard: the fence of every node is "none"`)}
			}
			log := slog.New(slog.NewTextHandler(a.errOut, nil))
			s.guard.OnEvent = func(e restartguard.Event) {
				level := slog.LevelInfo
				if alarming(e) {
					level = slog.LevelWarn
				}
				log.Log(ctx, level, printable(e.Text), "node", safetext.Escape(e.Node), "kind", safetext.Escape(e.Kind))
			}
			guard, err := restartguard.New(s.guarded, s.guard)
			if err != nil {
				return configError{err}
			}
			log.Info("guard started", "cluster", safetext.Escape(cfg.Cluster.Name), "nodes", len(s.guarded), "n", len(s.nodes),
				"quorum", redlock.Quorum(len(s.nodes)), "max_ttl", cfg.Cluster.MaxTTL, "delay", cfg.Guard.Delay)
			err = guard.Run(ctx)
			if ctx.Err() != nil {
				log.Info("guard stopped; closed nodes stay closed")
				return nil
			}
			return fmt.Errorf("guard: %w", err)
		}),
	}
}
