package cli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/cli/app"
	"redlockctl/cli/exit"
	"redlockctl/cli/flags"
	"redlockctl/internal/lab"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/tui"
)

// demoOptions are the flags of demo.
type demoOptions struct {
	app.DemoOptions
	stop  time.Duration
	plain bool
}

// Bounds of the demo's max TTL, so that locks end while somebody watches.
const (
	demoMinTTL = time.Second
	demoMaxTTL = 10 * time.Second
)

func (a *commandLine) demoCommand() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Try it out: masters in this process, simulated clients, crashes",
		Long: `Starts masters in this process, lets simulated clients take, extend, fight for and
release locks on them, and opens the console. A master that is crashed, by key or by
--crash-every, loses its copies, starts empty and fenced, and rejoins when the guard
says that it is safe.

With --redis-server the masters are real redis-server processes on free loopback
ports, and are killed for real.

Without a terminal, or with --plain, events are printed as they happen and the
nodes and locks at the end: after --for, or at SIGINT, SIGTERM or SIGHUP.`,
		Example: "redlockctl demo --crash-every 20s\nredlockctl demo --plain --for 8s --crash-every 3s\nredlockctl demo --redis-server redis-server",
		Args:    flags.NoArgs,
		RunE: a.run(func(ctx context.Context, _ []string) error {
			if err := a.tableOnly("the demo prints events and tables"); err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return exit.Usage(err)
			}
			return a.demo(ctx, o)
		}),
	}
	f := cmd.Flags()
	f.IntVar(&o.Nodes, "nodes", 5, "how many masters")
	f.IntVar(&o.Clients, "clients", 12, "how many simulated clients")
	f.DurationVar(&o.CrashEvery, "crash-every", 0, "interval between crashes (0: never)")
	f.DurationVar(&o.MaxTTL, "max-ttl", 0, "longest TTL in use (default: what --crash-every says, within 1s and 10s)")
	f.DurationVar(&o.stop, "for", 0, "end after this time (0: never)")
	f.BoolVar(&o.plain, "plain", false, "lines of text also on a terminal")
	f.BoolVar(&o.NoGuard, "no-guard", false, "no guard: a crashed master stays fenced")
	f.StringVar(&o.RedisServer, "redis-server", "", "use this redis-server, a path or a name in $PATH")
	return cmd
}

// check validates the flags and fills in the max TTL and the server's path.
func (o *demoOptions) check() error {
	switch {
	case o.Nodes < 1 || o.Nodes > lab.MostNodes:
		return fmt.Errorf("--nodes %d is not in 1..%d", o.Nodes, lab.MostNodes)
	case o.CrashEvery > 0 && o.CrashEvery < demoMinTTL:
		return fmt.Errorf("--crash-every %s is too often: %s or more", o.CrashEvery, demoMinTTL)
	case o.MaxTTL > 0 && o.MaxTTL < demoMinTTL:
		return fmt.Errorf("--max-ttl %s is too short: %s or more", o.MaxTTL, demoMinTTL)
	}
	if o.MaxTTL == 0 {
		o.MaxTTL = demoMaxTTL
		if o.CrashEvery > 0 {
			o.MaxTTL = min(o.CrashEvery, demoMaxTTL)
		}
	}
	if o.RedisServer != "" {
		path, err := exec.LookPath(o.RedisServer)
		if err != nil {
			return fmt.Errorf("--redis-server: %w", err)
		}
		o.RedisServer = path
	}
	return nil
}

func (a *commandLine) demo(ctx context.Context, o demoOptions) (err error) {
	o.ReadOnly = a.readOnly
	d, err := app.OpenDemo(ctx, o.DemoOptions)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if _, err := app.Settled(ctx, d.Session.Monitor); err != nil {
		return nil // a signal: nothing has begun
	}
	if o.stop > 0 {
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, o.stop)
		defer end()
	}
	d.Start()
	if o.plain || !a.InTTY || !a.OutTTY || a.plainTerminal() {
		return a.plainDemo(ctx, d, o)
	}
	opt := tui.Options{Cluster: d.Session.Screen()}
	opt.Passing = true
	opt.Tour = o.Nodes > 1 && !o.NoGuard && !a.readOnly
	// The heap is small: collecting it less often costs a few MiB and saves 1 % of a core.
	debug.SetGCPercent(400)
	opt.FPS = 5
	opt.Lab, opt.NoColor = d.Lab(), a.NoColor || a.Getenv("NO_COLOR") != ""
	return a.screen(ctx, opt)
}

func (a *commandLine) plainDemo(ctx context.Context, d *app.Demo, o demoOptions) error {
	ses := d.Session
	fmt.Fprintf(a.Out, "%s, quorum %d, %s, max TTL %s; a master that restarts stays fenced for %s\n",
		view.Plural(o.Nodes, "master"), redlock.Quorum(o.Nodes), view.Plural(o.Clients, "client"), o.MaxTTL, ses.Delay)
	events := &eventPrinter{out: a.Out}
	last := ses.Monitor.Snapshot()
	follow := func(ctx context.Context, enough func() bool) {
		for ctx.Err() == nil && !enough() {
			select {
			case <-ctx.Done():
			case <-ses.Monitor.Changed(last.Version):
				last = ses.Monitor.Snapshot()
				events.print(last.Events)
			}
		}
	}
	follow(ctx, func() bool { return false })
	// Between two locks the table would be empty: wait for a lock.
	if o.Clients > 0 && last.Cluster.Serving >= last.Cluster.Quorum {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), app.SettleTime)
		defer cancel()
		follow(bounded, func() bool {
			for l := range last.Locks.All() {
				if l.Held >= last.Cluster.Quorum {
					return true
				}
			}
			return false
		})
	}
	fmt.Fprintln(a.Out)
	if err := a.listNodes(nil, view.NodeColumns(), last, view.Rows(last.Nodes), view.NewGuard("here", ses.GuardStatus())); err != nil {
		return err
	}
	fmt.Fprintln(a.Out)
	a.printLocks(last, matching(last, monitor.Filter{}))
	n := d.Tally.Counts()
	fmt.Fprintf(a.Out, "\nlocks taken %d, contended %d, extended %d, released %d, left to expire %d, lost %d; attempts that failed otherwise %d\n",
		n.Acquired, n.Contended, n.Extended, n.Released, n.Abandoned, n.Lost, n.Failed)
	return nil
}
