package campaign

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"redlockctl/redlock"
)

// grant is a lock that was just taken, and the nodes that gave it.
type grant struct {
	nodes []string
	until time.Time
}

// campaign is one under way.
type campaign struct {
	Config
	rand    *rand.Rand
	began   time.Time
	witness Witness
	record  record
	granted chan grant

	masters []master
	nodes   []*redlock.Node
	lock    []*redlock.Client

	programs      []*program // guards
	kills, voters int
	drained       int // masters that were restarted empty
	cuts          atomic.Int64
	emptying      atomic.Value // the name of the master that is cordoned to be emptied
	watchers      sync.WaitGroup
}

func (r *campaign) guardKills() (n int) {
	for _, p := range r.programs {
		n += p.killed()
	}
	return n
}

// waitKills is how often a server's wait for its start was killed.
func (r *campaign) waitKills() (n int) {
	for _, m := range r.masters {
		if d, ok := m.(*delayed); ok {
			n += d.waitKills
		}
	}
	return n
}
