package campaign

import (
	"math/rand/v2"
	"sync"
	"time"

	"redlockctl/redlock"
)

// run is a campaign under way.
type run struct {
	Config
	delay   time.Duration
	rand    *rand.Rand
	began   time.Time
	witness Witness
	record  record
	granted chan grant

	masters []master
	nodes   []*redlock.Node
	lock    []*redlock.Client

	programs      []*program // guards or supervisors
	kills, voters int
	watchers      sync.WaitGroup
}

// waits is for how long a master is kept out: D, or a part of it.
func (r *run) waits() time.Duration { return time.Duration(float64(r.delay) * r.DelayShare) }

func (r *run) guardKills() (n int) {
	for _, p := range r.programs {
		n += p.killed()
	}
	return n
}
