package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	"redlockctl/base/crash"
	"redlockctl/internal/config"
	"redlockctl/internal/metrics"
	"redlockctl/internal/view"
	"redlockctl/monitor/observe"
	"redlockctl/tui"
)

// Clusters opens one cluster after the other for the screen: the one before is closed
// when the next is there.
type Clusters struct {
	Set     *config.Set
	Guard   GuardMode
	Metrics *metrics.Metrics // nil: none
	Context context.Context  // of the screen: a cluster lives as long, not as its opening

	mu   sync.Mutex
	open *Session
}

// Names are those of the configuration.
func (c *Clusters) Names() []string { return c.Set.Names() }

// Open opens a cluster and closes the one before. If it cannot be opened, the
// one before stays.
func (c *Clusters) Open(_ context.Context, name string) (tui.Cluster, error) {
	cfg, err := c.Set.Choose(name)
	if err != nil {
		return tui.Cluster{}, err
	}
	s, err := SpecOf(cfg)
	if err != nil {
		return tui.Cluster{}, err
	}
	ses, err := OpenSession(c.Context, s, c.Guard, c.Metrics)
	if err != nil {
		return tui.Cluster{}, fmt.Errorf("cluster %s: %w", name, err)
	}
	c.mu.Lock()
	before := c.open
	c.open = ses
	c.mu.Unlock()
	if before != nil {
		before.Close()
		ses.show() // the one before may have been of the same name
	}
	return ses.Screen(), nil
}

// Watch looks at all clusters until ctx ends, each with connections of its own.
func (c *Clusters) Watch(ctx context.Context) (rows func() []view.ClusterRow) {
	f := NewFleet(c.Set)
	crash.Go(func() { f.Run(ctx) })
	return f.Rows
}

// Close closes the cluster that is open.
func (c *Clusters) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open != nil {
		c.open.Close()
		c.open = nil
	}
}

// With many clusters, each is read less often than one alone.
const (
	fleetProbe = time.Second
	fleetScan  = 30 * time.Second // if the node reports its changes
)

// Fleet looks at all clusters of a configuration at the same time. What is wrong
// with one of them is a row of its own, and stops no other.
type Fleet struct {
	rows     []view.ClusterRow
	monitors []*observe.Monitor // of the rows; nil: it cannot be looked at
}

// NewFleet makes a fleet; nothing is contacted before Run. The clusters share the
// memory that one cluster alone may take.
func NewFleet(set *config.Set) *Fleet {
	f := &Fleet{}
	for _, cfg := range set.Clusters {
		row := view.ClusterRow{Name: cfg.Cluster.Name, Delay: cfg.Guard.Delay}
		mon, err := fleetMonitor(cfg, len(set.Clusters))
		if err != nil {
			row.Err = err.Error()
		}
		f.rows, f.monitors = append(f.rows, row), append(f.monitors, mon)
	}
	return f
}

func fleetMonitor(cfg *config.Config, of int) (*observe.Monitor, error) {
	s, err := SpecOf(cfg)
	if err != nil {
		return nil, err
	}
	opt := s.Monitor
	if opt.MaxMemory == 0 {
		opt.MaxMemory = observe.DefaultMaxMemory()
	}
	opt.MaxMemory = max(opt.MaxMemory/int64(of), 1<<20)
	opt.ProbeEvery, opt.InfoEvery, opt.ScanEvery = max(opt.ProbeEvery, fleetProbe), max(opt.InfoEvery, fleetProbe), max(opt.ScanEvery, fleetScan)
	opt.EventsKept, opt.Warnings = 1, true
	return newMonitor(s.Nodes, opt)
}

// Run looks at all clusters until ctx ends.
func (f *Fleet) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, mon := range f.monitors {
		if mon != nil {
			wg.Go(crash.Safe(func() { mon.Run(ctx) }))
		}
	}
}

// Decided waits until all clusters are known, see [observe.Monitor.Decided], for at most that long;
// 0: without a limit. Only the end of ctx is an error.
func (f *Fleet) Decided(ctx context.Context, most time.Duration) error {
	bounded, cancel := bound(ctx, most)
	defer cancel()
	for _, mon := range f.monitors {
		if mon != nil {
			_ = mon.Decided(bounded)
		}
	}
	return ctx.Err()
}

// Rows are the clusters as they are known now, in the order of the configuration.
func (f *Fleet) Rows() []view.ClusterRow {
	rows := make([]view.ClusterRow, len(f.rows))
	for i, row := range f.rows {
		if f.monitors[i] != nil {
			row.Snap = f.monitors[i].Snapshot()
		}
		rows[i] = row
	}
	return rows
}
