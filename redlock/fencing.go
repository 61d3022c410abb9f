package redlock

import (
	"errors"
	"sync"
	"time"
)

// How fencing tokens are drawn, and why they grow, is in the package
// documentation.

// fencingTTL is how long a counter outlives the moment at which its node's clock
// has passed the number.
const fencingTTL = 24 * time.Hour

// errFencing is why an attempt failed that had its votes.
var errFencing = errors.New("the fencing token could not be written to a quorum")

// fencingNumbers collects what nodes answer to the reading or writing of fencing
// numbers.
type fencingNumbers struct {
	ready chan struct{} // has room for one
	need  int           // numbers that are enough

	mu      sync.Mutex // a leaf: see the package's order of locks in client.go
	ok      []bool
	values  []uint64
	results []NodeResult
	left    int
	done    bool
}

func newNumbers(n, need int) *fencingNumbers {
	return &fencingNumbers{
		ready: make(chan struct{}, 1), need: need, left: n,
		ok: make([]bool, n), values: make([]uint64, n), results: make([]NodeResult, n),
	}
}

func (f *fencingNumbers) answered(a answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left--
	if !f.done {
		f.results[a.node] = a.NodeResult
	}
	if a.Status == StatusOK {
		f.ok[a.node], f.values[a.node] = true, a.number
	}
	if yes := countTrue(f.ok); !f.done && (yes >= f.need || f.left == 0) {
		f.done = true
		f.ready <- struct{}{}
	}
}

// wait waits until enough nodes have answered yes, all have answered, or by.
// Of each node it reports whether it did, and its number.
func (f *fencingNumbers) wait(by time.Time) (ok []bool, values []uint64) {
	timer := time.NewTimer(time.Until(by))
	defer timer.Stop()
	select {
	case <-f.ready:
	case <-timer.C:
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = true
	return append([]bool(nil), f.ok...), append([]uint64(nil), f.values...)
}

func countTrue(b []bool) int {
	n := 0
	for _, x := range b {
		if x {
			n++
		}
	}
	return n
}
