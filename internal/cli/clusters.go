package cli

import (
	"context"
	"fmt"
	"sync"

	"redlockctl/internal/config"
	"redlockctl/internal/metrics"
	"redlockctl/tui"
)

// clusterSwitch opens one cluster after the other for the screen: the one before
// is closed when the next is there.
type clusterSwitch struct {
	set     *config.Set
	noGuard bool
	told    *listening      // nil: no metrics
	ctx     context.Context // of the screen: a cluster lives as long, not as its opening

	mu   sync.Mutex
	open *session
}

// Names are those of the configuration.
func (c *clusterSwitch) Names() []string { return c.set.Names() }

// Open opens a cluster and closes the one before. If it cannot be opened, the
// one before stays.
func (c *clusterSwitch) Open(_ context.Context, name string) (tui.Cluster, error) {
	cfg, err := c.set.Choose(name)
	if err != nil {
		return tui.Cluster{}, err
	}
	s, err := specOf(cfg, !c.noGuard)
	if err != nil {
		return tui.Cluster{}, err
	}
	ses, err := openSession(c.ctx, s)
	if err != nil {
		return tui.Cluster{}, fmt.Errorf("cluster %s: %w", name, err)
	}
	ses.told = c.told
	about := metrics.Cluster{Name: cfg.Cluster.Name, Monitor: ses.mon}
	if ses.guard != nil {
		about.Guard = ses.guard
	}
	c.told.show(about)
	c.mu.Lock()
	before := c.open
	c.open = ses
	c.mu.Unlock()
	if before != nil {
		before.close()
	}
	return ses.shown(), nil
}

// shown is the session as the screen takes it.
func (s *session) shown() tui.Cluster {
	shown := tui.Cluster{Source: s.mon, Actions: actions{s}, Delay: s.delay}
	if s.guard != nil { // a nil *Guard in the interface would not be nil
		shown.Guard = s.guard
	}
	return shown
}

// close closes the cluster that is open.
func (c *clusterSwitch) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open != nil {
		c.open.close()
		c.open = nil
	}
}
