package cli

import (
	"context"
	"fmt"
	"sync"

	"redlockctl/internal/config"
	"redlockctl/tui"
)

// clusterSwitch opens one cluster after the other for the screen: the one before
// is closed when the next is there.
type clusterSwitch struct {
	set   *config.Set
	guard guardMode
	told  *listening      // nil: no metrics
	ctx   context.Context // of the screen: a cluster lives as long, not as its opening

	mu   sync.Mutex
	open *session
}

// guardMode is whether the console runs a guard.
type guardMode uint8

const (
	guardUnlessSeen guardMode = iota // where no other guard watches
	guardAlways
	guardNever
)

// Names are those of the configuration.
func (c *clusterSwitch) Names() []string { return c.set.Names() }

// Open opens a cluster and closes the one before. If it cannot be opened, the
// one before stays.
func (c *clusterSwitch) Open(_ context.Context, name string) (tui.Cluster, error) {
	cfg, err := c.set.Choose(name)
	if err != nil {
		return tui.Cluster{}, err
	}
	s, err := specOf(cfg, c.guard != guardNever)
	if err != nil {
		return tui.Cluster{}, err
	}
	s.yield, s.told = c.guard == guardUnlessSeen, c.told
	ses, err := openSession(c.ctx, s)
	if err != nil {
		return tui.Cluster{}, fmt.Errorf("cluster %s: %w", name, err)
	}
	c.mu.Lock()
	before := c.open
	c.open = ses
	c.mu.Unlock()
	if before != nil {
		before.close()
		ses.show() // the one before may have had the last word
	}
	return ses.shown(), nil
}

// shown is the session as the screen takes it.
func (s *session) shown() tui.Cluster {
	return tui.Cluster{Source: s.mon, Guard: &s.guard, Actions: actions{s}, Delay: s.delay}
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
