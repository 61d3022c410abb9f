package app

import (
	"sync"
	"testing"

	"redlockctl/internal/config"
)

// A SIGHUP reads the names of the clusters while the guard of one of them reads its
// own: what reads may keep what it read in a variable that both share.
func TestTheConfigurationIsReadByOneAtATime(t *testing.T) {
	reads := 0 // not guarded: -race tells
	d := &Daemon{
		Clusters: func() ([]string, error) { reads++; return nil, nil },
		Load:     func(string) (*config.Config, error) { reads++; return nil, nil },
	}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { _, _ = d.clusters() })
		wg.Go(func() { _, _ = d.clusterGuard("a", 2).load() })
	}
	wg.Wait()
	if reads != 100 {
		t.Errorf("%d of 100 reads counted: two read at the same time", reads)
	}
}
