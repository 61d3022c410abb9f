package cli

import (
	"context"

	"github.com/spf13/cobra"

	"redlockctl/cli/app"
	"redlockctl/cli/exit"
	"redlockctl/cli/flags"
	"redlockctl/internal/config"
)

func (a *commandLine) guardCommand() *cobra.Command {
	var where listening
	var locks, all bool
	var about flags.Log
	cmd := &cobra.Command{
		Use:   "guard",
		Short: "Run the restart guard without a screen",
		Long: `Watches every master. A master that restarted or lost its locks in another way stays
fenced for the delay D after it was first seen again, until every lock that it may have
forgotten has expired. Then it rejoins. A master whose fence is "none" is only watched.
Each event is a line on standard error.

It runs until SIGINT or SIGTERM, and leaves fences in place when it exits. If it was
started in a terminal, it also ends with that, unless under nohup. SIGHUP reloads the
configuration; if the new one is invalid, the old one stays. A reload never shortens a
running wait.

What it must not forget is kept in [guard] state_dir, which one guard at a time
may use (exit code 6). Each fence and rejoin goes into the audit log too, as
done by guard@HOST/ID; it never waits for that: where the log cannot be written, it
says so, goes on, and writes the lines when it can. Several guards with directories
of their own may watch one cluster. systemd is told READY, STOPPING and, if it asks,
WATCHDOG.

With --all-clusters it guards all clusters of the configuration, each with its own
state_dir and connections. What is wrong with one stops no other: its guard is started
again and again. A cluster that is added is guarded after SIGHUP. If the process ends, all
guards end: "redlockctl-guard@NAME.service" gives each cluster a process of its own.

With --listen it answers /metrics (Prometheus), /healthz (is the guard stuck?)
and /readyz (has it met all nodes?) at that address and nowhere else. Without
--web-config there is no TLS and no password: keep it on loopback then. With
--watch-locks too it reads the locks and the clocks of the masters as the console
does, for the metrics of those.`,
		Example: `redlockctl guard --log-format json
redlockctl guard --listen 127.0.0.1:9622 --watch-locks
redlockctl guard --all-clusters`,
		Args: flags.NoArgs,
		RunE: a.runThroughHangUps(func(ctx context.Context, _ []string) error {
			if err := a.tableOnly("the guard writes a log to standard error, with --log-format json as JSON"); err != nil {
				return err
			}
			log, err := about.Logger(a.Err)
			if err != nil {
				return err
			}
			d := &app.Daemon{
				Clusters: func() ([]string, error) { return []string{""}, nil }, Load: func(cluster string) (*config.Config, error) { return a.loadCluster(cluster, config.Options{}) },
				Listen: where.listen, Log: log, WatchLocks: locks,
			}
			if all && a.cluster != "" {
				return exit.Usagef("--all-clusters and --cluster: give one of them")
			}
			if all {
				d.Clusters = a.clusterNames
			}
			ctx, stop := untilTerminalGone(ctx, func() { log.Info("its terminal is gone: the guard ends") })
			defer stop()
			return d.Run(ctx)
		}),
	}
	where.add(cmd)
	cmd.Flags().BoolVar(&locks, "watch-locks", false, "read locks and clocks of the masters, for the record and the metrics")
	cmd.Flags().BoolVar(&all, "all-clusters", false, "guard all clusters of the configuration; one that fails stops no other")
	about.Add(cmd)
	return cmd
}
