package app

import (
	"context"
	"fmt"
	"sync"

	"redlockctl/internal/config"
	"redlockctl/internal/metrics"
	"redlockctl/internal/view"
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
	go f.Run(ctx)
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
