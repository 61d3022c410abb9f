package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"redlockctl/base/crash"
	"redlockctl/internal/config"
	"redlockctl/internal/metrics"
	"redlockctl/internal/operator"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/memory"
	"redlockctl/restartguard/watch"
	"redlockctl/server/safetext"
)

// clusterGuard is the guard of one cluster in a [Daemon].
type clusterGuard struct {
	load       func() (*config.Config, error) // at the start, and at each SIGHUP
	log        *slog.Logger
	listen     func() (*metrics.Metrics, error) // nil metrics: not wanted
	report     func(health)                     // called about once a second
	watchLocks bool                             // for the metrics and the record
	share      int                              // how many clusters share the memory of this process

	recording atomic.Pointer[noted] // what the events of the guard go into; nil: not yet
	memory    *memory.Store
	events    *guardEvents
	metrics   *metrics.Metrics
	first     guardPlan // its state directory and its audit log stay
}

// health is how the guard of a cluster is.
type health struct {
	met    bool   // every node
	sick   error  // it hangs
	status string // one line
}

// guardPlan is what a configuration wants from a daemon.
type guardPlan struct {
	Spec
	stateDir string
}

// plan loads the configuration and checks that a guard can run with it. It contacts nothing.
func (d *clusterGuard) plan() (guardPlan, error) {
	cfg, err := d.load()
	if err != nil {
		return guardPlan{}, err
	}
	if err := cfg.Guardable(); err != nil && !cfg.Cluster.ReadOnly {
		return guardPlan{}, ConfigError{err}
	}
	s, err := SpecOf(cfg)
	switch {
	case err != nil:
		return guardPlan{}, err
	case s.ReadOnly:
		return guardPlan{}, operator.ErrReadOnly
	case len(s.Guarded) == 0:
		return guardPlan{}, ConfigError{errors.New(`there is nothing to guard: the fence of every node is "none"`)}
	case cfg.Guard.StateDir == "":
		return guardPlan{}, ConfigError{errors.New("[guard] state_dir is missing, and neither XDG_STATE_HOME nor HOME gives a default; name a directory")}
	}
	if _, err := watch.New(s.Guarded, s.Guard); err != nil {
		return guardPlan{}, ConfigError{err}
	}
	return guardPlan{Spec: s, stateDir: cfg.Guard.StateDir}, nil
}

// run runs guards until ctx ends, one after the other as the configuration changes.
func (d *clusterGuard) run(ctx context.Context) error {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)

	plan, err := d.plan()
	if err != nil {
		return err
	}
	d.first = plan
	d.log = d.log.With("cluster", safetext.Escape(plan.Monitor.ClusterName))
	if d.memory, err = memory.Open(plan.stateDir); errors.Is(err, memory.ErrInUse) {
		return fmt.Errorf("%w: %w; give this one a [guard] state_dir of its own, or end the other", operator.ErrRefused, err)
	} else if err != nil {
		return err
	}
	defer d.memory.Close()
	if err := d.memory.Damaged(); err != nil {
		d.log.Warn("nothing is remembered: fenced nodes wait for all of D", "error", safetext.Printable(err.Error()))
	}
	if err := d.memory.Full(); err != nil {
		d.log.Error("the disk is full: the guard works, but until there is room, what it learns is lost when it ends", "error", safetext.Printable(err.Error()))
	}
	if d.metrics, err = d.listen(); err != nil {
		return err
	}
	d.events = newGuardEvents(plan.Audit, d.tell)
	defer d.events.record.Close()
	guard, err := d.next(plan, nil)
	if err != nil {
		return ConfigError{err}
	}
	d.started("guard started", guard, plan)
	for {
		next, err := d.guardUntil(ctx, guard, plan, hangup)
		if err != nil || next == nil {
			return err
		}
		plan = *next
		// The plan was checked while the former guard still ran, so it cannot fail now.
		if guard, err = d.next(plan, guard); err != nil {
			return err
		}
		d.started("configuration reloaded", guard, plan)
	}
}

func (d *clusterGuard) next(p guardPlan, former *watch.Guard) (*watch.Guard, error) {
	p.Guard.Memory = d.memory
	return d.events.newGuard(p.Spec, former)
}

func (d *clusterGuard) tell(e restartguard.Event) {
	if into := d.recording.Load(); into != nil {
		(*into).Note(eventOf(e))
	}
	level := slog.LevelInfo
	if e.Alarm {
		level = slog.LevelWarn
	}
	args := []any{"kind", safetext.Escape(e.Kind)}
	if e.Node != "" {
		args = append([]any{"node", safetext.Escape(e.Node)}, args...)
	}
	d.log.Log(context.Background(), level, safetext.Printable(e.Text), args...)
}

func (d *clusterGuard) started(what string, g *watch.Guard, p guardPlan) {
	d.log.Info(what, "n", len(p.Nodes), "quorum", redlock.Quorum(len(p.Nodes)),
		"max_ttl", p.Monitor.MaxTTL, "delay", p.Guard.Delay, "state_dir", safetext.Escape(d.first.stateDir), "id", g.ID())
}

// guardUntil runs one guard until ctx ends, or until there is a new configuration, which it
// returns. In both cases the guard has ended.
func (d *clusterGuard) guardUntil(ctx context.Context, guard *watch.Guard, plan guardPlan, hangup <-chan os.Signal) (*guardPlan, error) {
	run, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	crash.Go(func() { ended <- guard.Run(run) })
	defer d.watch(run, guard, plan)()
	defer stop()

	tick := time.NewTicker(healthEvery())
	defer tick.Stop()
	sick, was := false, ""
	for {
		select {
		case err := <-ended:
			if err == nil && ctx.Err() == nil {
				err = errors.New("the guard ended by itself")
			}
			if err != nil {
				return nil, fmt.Errorf("guard: %w", err)
			}
			d.log.Info("guard stopped; fenced nodes stay fenced")
			return nil, nil
		case <-tick.C:
			err := guard.Healthy()
			status := guardStatus(guard)
			d.report(health{guard.Met(), err, status})
			if status != was {
				d.log.Debug("status", "nodes", status)
				was = status
			}
			if err != nil && !sick {
				d.log.Error("the guard hangs", "error", safetext.Printable(err.Error()))
			}
			sick = err != nil
		case <-hangup:
			next, err := d.reload(plan)
			if err != nil {
				d.log.Error("the new configuration is refused; the old one stays", "error", safetext.Printable(err.Error()))
				continue
			}
			stop()
			if err := <-ended; err != nil {
				return nil, err
			}
			if ctx.Err() != nil {
				d.log.Info("guard stopped; fenced nodes stay fenced")
				return nil, nil
			}
			return &next, nil
		}
	}
}

// watch gives a new guard to the metrics and the record, and watches the locks for them if that is
// wanted, until ctx ends; wait returns when all of it has ended. Guarding never depends on this: if
// watching fails or takes too much memory, it stops.
func (d *clusterGuard) watch(ctx context.Context, guard *watch.Guard, plan guardPlan) (wait func()) {
	about := metrics.Cluster{Name: plan.Monitor.ClusterName, Guard: guard}
	d.metrics.Show(about)
	var wg sync.WaitGroup
	if !d.watchLocks && !plan.Notify.On() { // a verdict needs the locks
		about.Export, about.Record = d.record(ctx, &wg, plan, &guardSource{guard: guard, about: monitor.Cluster{
			Name: plan.Monitor.ClusterName, N: len(plan.Nodes), Quorum: redlock.Quorum(len(plan.Nodes)), MaxTTL: plan.Monitor.MaxTTL,
		}}, guard)
		d.metrics.Show(about)
		return wg.Wait
	}
	plan.Monitor.Patient = true
	if plan.Monitor.MaxMemory == 0 {
		plan.Monitor.MaxMemory = observe.DefaultMaxMemory() / 2 / int64(d.share) // a guard is not alone on its machine
	}
	mon, err := newMonitor(plan.Nodes, plan.Monitor)
	if err != nil {
		d.log.Error("the locks cannot be watched; the guard continues", "error", safetext.Printable(err.Error()))
		return func() {}
	}
	mon.Guarded(func() monitor.GuardView { return guardView(guard) })
	wg.Go(crash.Safe(func() {
		seen := bootSights(ctx, plan.Spec, boots{})
		mon.Booted(seen.sights)
		followBoots(ctx, plan.Spec, mon, seen)
	}))
	wg.Go(crash.Safe(func() { vouch(ctx, mon, guard) }))
	about.Export, about.Record = d.record(ctx, &wg, plan, mon, guard)
	if r := about.Record; r != nil {
		mon.Recorded(r.Problem)
	}
	notified(ctx, &wg, plan.Notify, mon)
	with := about
	with.Monitor = mon
	d.metrics.Show(with)
	wg.Go(crash.Safe(func() {
		most := int64(d.share)*plan.Monitor.MaxMemory + guardMemory
		if errors.Is(withinMemory(ctx, most, usedMemory, mon.Run), errTooMuchMemory) {
			d.metrics.Show(about)
			d.log.Error("watching the locks takes too much memory and is given up; the guard continues", "max_memory", plan.Monitor.MaxMemory)
		}
	}))
	return wg.Wait
}

func (d *clusterGuard) record(ctx context.Context, wg *sync.WaitGroup, plan guardPlan, from noted, guard *watch.Guard) (export metrics.Export, recorder metrics.Recorder) {
	d.recording.Store(&from)
	if r := recorded(ctx, wg, plan.Record, from, "guard", guard.Status, d.log); r != nil { // a nil *Recorder in the interface would not be nil
		recorder = r
	}
	recordRemovals(ctx, wg, plan.Audit, plan.Monitor.ClusterName, from)
	return exported(ctx, wg, plan.Audit, plan.Monitor.ClusterName, plan.Version, from), recorder
}

func (d *clusterGuard) reload(old guardPlan) (guardPlan, error) {
	next, err := d.plan()
	if err != nil {
		return next, err
	}
	if next.stateDir != d.first.stateDir {
		d.log.Warn("state_dir is changed by a restart of the guard only", "state_dir", safetext.Escape(d.first.stateDir))
	}
	if next.Audit != d.first.Audit {
		d.log.Warn("the path of the audit log is changed by a restart of the guard only", "path", safetext.Escape(d.first.Audit))
	}
	there := map[string]string{}
	for _, n := range next.Nodes {
		there[n.Name()] = n.Addr()
	}
	for _, n := range old.Nodes {
		if there[n.Name()] != n.Addr() {
			d.log.Warn("no longer watched; if it is fenced, it stays so", "node", safetext.Escape(n.Name()), "addr", safetext.Escape(n.Addr()))
		}
	}
	return next, nil
}

// guardStatus returns the guard in one line: how many nodes are in which phase, and the outlook if
// there is no quorum.
func guardStatus(g *watch.Guard) string {
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
		line += ": " + o.Text()
	}
	return line
}

func healthEvery() time.Duration {
	if watchdog, err := daemon.SdWatchdogEnabled(false); err == nil && watchdog > 0 {
		return min(time.Second, watchdog/3)
	}
	return time.Second
}
