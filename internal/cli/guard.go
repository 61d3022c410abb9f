package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"redlockctl/internal/config"
	"redlockctl/internal/metrics"
	"redlockctl/internal/operator"
	"redlockctl/internal/safetext"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/restartguard"
)

func (a *commandLine) guardCommand() *cobra.Command {
	var format, addr string
	var locks bool
	cmd := &cobra.Command{
		Use:   "guard",
		Short: "Run the restart guard without a screen",
		Long: `Watches every master. One that has restarted, or has lost its locks in another
way, may have forgotten votes: it stays closed until no lock that it may have
forgotten can still be believed in (the delay D after it was first seen again),
and is opened then. A master whose fence is "none" is only watched. Each event
is a line on standard error.

It runs until SIGINT or SIGTERM, and opens no node on its way out. SIGHUP reads
the configuration again; one that is invalid is refused, and the old one stays. A
node that waits never waits for less because of it.

What it must not forget is kept in [guard] state_dir, which one guard at a time
may use (exit code 6). What closes and opens nodes goes into the audit log too, as
done by guard@HOST/ID; it never waits for that: where the log cannot be written, it
says so, goes on, and writes the lines when it can. Several guards with directories of their own may watch one
cluster. systemd is told READY, STOPPING and, if it asks, WATCHDOG.

With --listen it answers /metrics (Prometheus), /healthz (does the guard get on?)
and /readyz (has it met all nodes?) at that address and nowhere else. There is no
password: keep it on loopback, or behind something that has one. With --watch-locks
too it reads the locks and the clocks of the masters as the console does, for the
metrics of those.`,
		Example: `redlockctl guard --log-format json
redlockctl guard --listen 127.0.0.1:9622 --watch-locks`,
		Args: noArgs,
		RunE: a.run(func(ctx context.Context, _ []string) error {
			if err := a.tableOnly("the guard writes a log to standard error, with --log-format json as JSON"); err != nil {
				return err
			}
			log, err := a.guardLog(format)
			if err != nil {
				return err
			}
			if locks && addr == "" {
				return usageError{errors.New("--watch-locks is for the metrics: give --listen too")}
			}
			return a.guard(ctx, log, addr, locks)
		}),
	}
	cmd.AddCommand(a.guardStatusCommand())
	cmd.Flags().StringVar(&addr, "listen", "", listenUsage)
	cmd.Flags().BoolVar(&locks, "watch-locks", false, "read locks and clocks of the masters, for the metrics")
	cmd.Flags().StringVar(&format, "log-format", "text", "form of the log: text or json")
	_ = cmd.RegisterFlagCompletionFunc("log-format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *commandLine) guardLog(format string) (*slog.Logger, error) {
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(a.errOut, nil)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(a.errOut, nil)), nil
	}
	return nil, usageError{fmt.Errorf("--log-format %q: it is text or json", format)}
}

// guardPlan is what a configuration asks of a guard.
type guardPlan struct {
	spec
	stateDir string
}

// methodsOf are how the nodes of a configuration are closed, by name.
func methodsOf(cfg *config.Config) map[string]restartguard.Method {
	methods := make(map[string]restartguard.Method, len(cfg.Nodes))
	for _, n := range cfg.Nodes {
		methods[n.Name] = n.Method()
	}
	return methods
}

// fencesOf are the words for how nodes are fenced.
func fencesOf(cfg *config.Config) map[string]string {
	fences := make(map[string]string, len(cfg.Nodes))
	for _, n := range cfg.Nodes {
		fences[n.Name] = n.Method().Kind.String()
	}
	return fences
}

// planGuard loads the configuration and checks that a guard can run by it;
// nothing is contacted.
func (a *commandLine) planGuard() (guardPlan, error) {
	cfg, err := a.load()
	if err != nil {
		return guardPlan{}, err
	}
	if err := mayAct(cfg); err != nil {
		return guardPlan{}, err
	}
	if err := cfg.Guardable(); err != nil {
		return guardPlan{}, usageError{err}
	}
	s, err := specOf(cfg, true)
	if err != nil {
		return guardPlan{}, err
	}
	if len(s.guarded) == 0 {
		return guardPlan{}, configError{errors.New(`there is nothing to guard: the fence of every node is "none"`)}
	}
	if cfg.Guard.StateDir == "" {
		return guardPlan{}, configError{errors.New("[guard] state_dir is missing, and neither XDG_STATE_HOME nor HOME gives a default; name a directory")}
	}
	if _, err := restartguard.New(s.guarded, s.guard); err != nil {
		return guardPlan{}, configError{err}
	}
	return guardPlan{spec: s, stateDir: cfg.Guard.StateDir}, nil
}

// guard runs the daemon until ctx ends. It tells metrics at addr, if that is not
// empty; those of the locks too, if they are to be watched.
func (a *commandLine) guard(ctx context.Context, log *slog.Logger, addr string, locks bool) error {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)

	plan, err := a.planGuard()
	if err != nil {
		return err
	}
	memory, err := restartguard.OpenMemory(plan.stateDir)
	if errors.Is(err, restartguard.ErrInUse) {
		return fmt.Errorf("%w: %w; give this one a [guard] state_dir of its own, or end the other", operator.ErrRefused, err)
	} else if err != nil {
		return err
	}
	defer memory.Close()
	if err := memory.Damaged(); err != nil {
		log.Warn("nothing is remembered: closed nodes wait for all of D", "error", printable(err.Error()))
	}
	if err := memory.Full(); err != nil {
		log.Error("the disk is full: the guard guards, but what it learns is forgotten at its end until there is room", "error", printable(err.Error()))
	}
	told, err := listen(addr)
	if err != nil {
		return err
	}
	lazy := &lazyLog{path: plan.audit}
	defer lazy.close()
	record := newRecorder(lazy.write, func(err error) {
		if err == nil {
			log.Info("the audit log can be written again")
			return
		}
		log.Error("the audit log cannot be written; the guard goes on", "error", printable(err.Error()))
	})
	defer record.close()
	d := &guardDaemon{app: a, log: log, memory: memory, dir: plan.stateDir, audit: plan.audit, record: record, told: told, locks: locks}
	guard, err := d.next(plan, nil)
	if err != nil {
		return configError{err}
	}
	d.started("guard started", guard, plan)
	serving, stop := context.WithCancel(ctx)
	defer told.serve(serving, log)() // to guard is what it is here for: it goes on without
	defer stop()
	for {
		next, err := d.life(ctx, guard, plan, hangup)
		if err != nil || next == nil {
			return err
		}
		plan = *next
		// It was checked while the former guard still ran, so that it cannot fail now.
		if guard, err = d.next(plan, guard); err != nil {
			return err
		}
		d.started("configuration reloaded", guard, plan)
	}
}

// guardDaemon is what stays the same over a change of the configuration.
type guardDaemon struct {
	app    *commandLine
	log    *slog.Logger
	memory *restartguard.Memory
	dir    string
	audit  string // path of the log
	record *recorder
	ready  bool
	told   *listening // nil: no metrics
	locks  bool       // are watched, for the metrics
}

// next is the guard of a plan: the first, or the successor of the former one.
func (d *guardDaemon) next(p guardPlan, former *restartguard.Guard) (*restartguard.Guard, error) {
	p.guard.Memory = d.memory
	return newGuard(p.spec, former, d.record, d.tell)
}

// tell logs an event of the guard.
func (d *guardDaemon) tell(e restartguard.Event, alarm bool) {
	level := slog.LevelInfo
	if alarm {
		level = slog.LevelWarn
	}
	args := []any{"kind", safetext.Escape(e.Kind)}
	if e.Node != "" {
		args = append([]any{"node", safetext.Escape(e.Node)}, args...)
	}
	d.log.Log(context.Background(), level, printable(e.Text), args...)
}

func (d *guardDaemon) started(what string, g *restartguard.Guard, p guardPlan) {
	d.log.Info(what, "cluster", safetext.Escape(p.monitor.ClusterName), "n", len(p.nodes), "quorum", redlock.Quorum(len(p.nodes)),
		"max_ttl", p.monitor.MaxTTL, "delay", p.guard.Delay, "state_dir", safetext.Escape(d.dir), "id", g.ID())
}

// life runs one guard until ctx ends, or until there is another configuration,
// which it returns. Either way the guard has ended.
func (d *guardDaemon) life(ctx context.Context, guard *restartguard.Guard, plan guardPlan, hangup <-chan os.Signal) (*guardPlan, error) {
	run, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- guard.Run(run) }()
	defer d.watch(run, guard, plan)()
	defer stop()

	every := time.Second
	if watchdog, err := daemon.SdWatchdogEnabled(false); err == nil && watchdog > 0 {
		every = min(every, watchdog/3)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	sick := false
	for {
		select {
		case err := <-ended:
			if err == nil && ctx.Err() == nil {
				err = errors.New("the guard ended by itself")
			}
			notify(daemon.SdNotifyStopping)
			if err != nil {
				return nil, fmt.Errorf("guard: %w", err)
			}
			d.log.Info("guard stopped; closed nodes stay closed")
			return nil, nil
		case <-tick.C:
			if !d.ready && guard.Met() {
				d.ready = true
				notify(daemon.SdNotifyReady)
			}
			err := guard.Healthy()
			if err == nil {
				notify(daemon.SdNotifyWatchdog + "\nSTATUS=" + guardStatus(guard))
			} else if !sick {
				d.log.Error("the guard hangs", "error", printable(err.Error()))
			}
			sick = err != nil
		case <-hangup:
			next, err := d.reload(plan)
			if err != nil {
				d.log.Error("the new configuration is refused; the old one stays", "error", printable(err.Error()))
				continue
			}
			stop()
			if err := <-ended; err != nil {
				return nil, err
			}
			if ctx.Err() != nil {
				notify(daemon.SdNotifyStopping)
				d.log.Info("guard stopped; closed nodes stay closed")
				return nil, nil
			}
			return &next, nil
		}
	}
}

// watch tells the metrics of a new life of the guard, and watches the locks for
// them if that is wanted, until ctx ends; wait returns when that is over. Guarding
// never depends on it: when watching fails or takes too much memory it is given up.
func (d *guardDaemon) watch(ctx context.Context, guard *restartguard.Guard, plan guardPlan) (wait func()) {
	alone := metrics.Cluster{Name: plan.monitor.ClusterName, Guard: guard}
	if d.told == nil || !d.locks {
		d.told.show(alone)
		return func() {}
	}
	plan.monitor.Patient = true
	if plan.monitor.MaxMemory == 0 {
		plan.monitor.MaxMemory = monitor.DefaultMaxMemory() / 2 // a guard is not alone on its machine
	}
	mon, err := monitor.New(plan.nodes, plan.monitor)
	if err != nil {
		d.log.Error("the locks cannot be watched; the guard goes on", "error", printable(err.Error()))
		d.told.show(alone)
		return func() {}
	}
	mon.Guarded(func() monitor.GuardSight { return sightOf(guard) })
	with := alone
	with.Monitor = mon
	d.told.show(with)
	done := make(chan struct{})
	go func() {
		defer close(done)
		most := plan.monitor.MaxMemory + guardMemory
		if errors.Is(withinMemory(ctx, most, usedMemory, mon.Run), errTooMuchMemory) {
			d.told.show(alone)
			d.log.Error("watching the locks takes too much memory and is given up; the guard goes on", "max_memory", plan.monitor.MaxMemory)
		}
	}()
	return func() { <-done }
}

// reload reads the configuration again.
func (d *guardDaemon) reload(old guardPlan) (guardPlan, error) {
	next, err := d.app.planGuard()
	if err != nil {
		return next, err
	}
	if next.stateDir != d.dir {
		d.log.Warn("state_dir is changed by a restart of the guard only", "state_dir", safetext.Escape(d.dir))
	}
	if next.audit != d.audit {
		d.log.Warn("the path of the audit log is changed by a restart of the guard only", "path", safetext.Escape(d.audit))
	}
	there := map[string]string{}
	for _, n := range next.nodes {
		there[n.Name()] = n.Addr()
	}
	for _, n := range old.nodes {
		if there[n.Name()] != n.Addr() {
			d.log.Warn("no longer watched; if it is closed, it stays so", "node", safetext.Escape(n.Name()), "addr", safetext.Escape(n.Addr()))
		}
	}
	return next, nil
}

// notify tells systemd, if that is what started us.
func notify(state string) { _, _ = daemon.SdNotify(false, state) }

// guardStatus is the guard in one line: how many nodes are in which phase, and
// the outlook where there is no quorum.
func guardStatus(g *restartguard.Guard) string {
	var count [restartguard.PhaseUnreachable + 1]int
	for _, s := range g.Status() {
		count[s.Phase]++
	}
	var parts []string
	for p, n := range count {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, restartguard.Phase(p)))
		}
	}
	line := strings.Join(parts, ", ")
	if o := g.Outlook(); !o.Possible() && g.Met() {
		line += ": " + o.Text(time.Now())
	}
	return line
}
