package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"redlockctl/base/crash"
	"redlockctl/base/sleep"
	"redlockctl/internal/config"
	"redlockctl/internal/metrics"
	"redlockctl/internal/operator"
	"redlockctl/server/safetext"
)

// Daemon is the restart guard without a screen: of one cluster, or of all that are
// configured, each with its own nodes, state directory and failures.
type Daemon struct {
	// Clusters returns the names of the clusters, at the start and at each SIGHUP. An empty name is
	// the cluster that Load chooses.
	Clusters   func() ([]string, error)
	Load       func(cluster string) (*config.Config, error)
	Log        *slog.Logger
	Listen     func() (*metrics.Metrics, error) // nil metrics: not wanted
	WatchLocks bool                             // for the metrics and the record

	wg      sync.WaitGroup
	metrics func() (*metrics.Metrics, error)

	loading sync.Mutex // Clusters and Load are not called at the same time

	mu     sync.Mutex
	health map[string]health // of the guards, by cluster
	ready  bool
}

// Run guards until ctx ends. With one cluster it ends with the first error. Of several
// each is started again when it fails, while the others go on; it is an error only if
// none can be guarded from the start.
func (d *Daemon) Run(ctx context.Context) error {
	names, err := d.clusters()
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	var served []func()
	defer func() {
		stop()
		for _, wait := range served {
			wait()
		}
	}()
	d.metrics = sync.OnceValues(func() (*metrics.Metrics, error) {
		m, err := d.Listen()
		if err == nil {
			served = append(served, m.Start(serving, d.Log)) // guarding goes on without metrics
		}
		return m, err
	})
	defer tellSystemd(daemon.SdNotifyStopping)
	d.health = map[string]health{}
	if len(names) == 1 {
		return d.clusterGuard(names[0], 1).run(ctx)
	}
	return d.several(ctx, names)
}

func (d *Daemon) several(ctx context.Context, names []string) error {
	var first error
	for _, name := range names {
		if _, err := d.clusterGuard(name, len(names)).plan(); err != nil && first == nil {
			first = fmt.Errorf("cluster %s: %w", safetext.Printable(name), err)
		} else if err == nil {
			first = nil
			break
		}
	}
	if first != nil {
		return first
	}
	if _, err := d.metrics(); err != nil {
		return err
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	defer d.wg.Wait()
	guarded := map[string]bool{}
	for _, name := range names {
		d.health[name] = health{status: "starting"}
	}
	for {
		for _, name := range names {
			if !guarded[name] {
				guarded[name] = true
				d.wg.Go(crash.Safe(func() { d.keep(ctx, name, len(names)) }))
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-hangup:
		}
		next, err := d.clusters()
		if err != nil {
			continue // each cluster says so
		}
		for name := range guarded {
			if !slices.Contains(next, name) {
				d.Log.Warn("no longer configured; it is guarded until a restart of this process", "cluster", safetext.Escape(name))
			}
		}
		names = next
	}
}

// Bounds of the pause before a guard that failed is started again.
const (
	leastPause = time.Second
	mostPause  = 15 * time.Second
)

// keep guards one of several clusters until ctx ends, whatever goes wrong.
func (d *Daemon) keep(ctx context.Context, name string, of int) {
	shown, _ := d.metrics()
	said := ""
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		p := d.clusterGuard(name, of)
		began := time.Now()
		err := p.run(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > mostPause {
			pause = leastPause
		}
		if text := err.Error(); text != said {
			level := slog.LevelError
			if errors.Is(err, operator.ErrReadOnly) {
				level = slog.LevelInfo
			}
			d.Log.Log(ctx, level, "this cluster is not guarded while this error lasts; the others are", "cluster", safetext.Escape(name), "error", safetext.Printable(text))
			said = text
		}
		d.reportHealth(name, health{sick: err, met: true, status: "not guarded"})
		shown.Show(metrics.Cluster{Name: name, Down: err})
		if sleep.For(ctx, pause) != nil {
			return
		}
	}
}

func (d *Daemon) clusters() ([]string, error) {
	d.loading.Lock()
	defer d.loading.Unlock()
	return d.Clusters()
}

func (d *Daemon) load(name string) (*config.Config, error) {
	d.loading.Lock()
	defer d.loading.Unlock()
	return d.Load(name)
}

func (d *Daemon) clusterGuard(name string, of int) *clusterGuard {
	return &clusterGuard{
		load: func() (*config.Config, error) { return d.load(name) }, log: d.Log, listen: d.metrics,
		report: func(h health) { d.reportHealth(name, h) }, watchLocks: d.WatchLocks, share: of,
	}
}

// reportHealth notes the health of a cluster's guard and tells systemd: READY once each guard has
// met its nodes, and WATCHDOG while one of them is well.
func (d *Daemon) reportHealth(name string, h health) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.health[name] = h
	ready, well := true, false
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(d.health)) {
		one := d.health[name]
		ready, well = ready && one.met, well || one.sick == nil
		if line := one.status; len(d.health) > 1 {
			lines = append(lines, name+": "+line)
		} else {
			lines = append(lines, line)
		}
	}
	if ready && !d.ready {
		d.ready = true
		tellSystemd(daemon.SdNotifyReady)
	}
	if well {
		tellSystemd(daemon.SdNotifyWatchdog + "\nSTATUS=" + strings.Join(lines, "; "))
	}
}

// tellSystemd tells systemd, if that is what started us.
func tellSystemd(state string) { _, _ = daemon.SdNotify(false, state) }
