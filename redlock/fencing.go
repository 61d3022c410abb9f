package redlock

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"
)

// How fencing tokens are drawn, and why they grow, is in the package
// documentation.

// fencingTTL is how long a counter outlives the moment at which its node's clock
// has passed the number.
const fencingTTL = 24 * time.Hour

// fencingPrefix begins the keys of counters.
const fencingPrefix = "redlockctl:fencing:"

func fencingKey(resource string) string { return fencingPrefix + resource }

// AcquireFenced is [Client.Acquire] for a lock with a fencing token (see
// [Lock.FencingToken]). It costs one round trip more, and fails with
// [ErrNoQuorum] when the token could not be written to a quorum.
func (c *Client) AcquireFenced(ctx context.Context, resource string, ttl time.Duration) (*Lock, error) {
	return c.AcquireWith(ctx, resource, AcquireOptions{TTL: ttl, Fenced: true})
}

// FencingToken is the number of this grant: greater than that of every grant
// of the resource that was confirmed before. It is zero for a lock that was not
// acquired by [Client.AcquireFenced].
func (l *Lock) FencingToken() uint64 { return l.fencing }

// errFencing is why an attempt failed that had its votes.
var errFencing = errors.New("the fencing token could not be written to a quorum")

// numbers collects what nodes answer to the reading or writing of fencing
// numbers.
type numbers struct {
	ready chan struct{} // has room for one
	need  int           // numbers that are enough

	mu      sync.Mutex // a leaf: see the package's order of locks in client.go
	ok      []bool
	values  []uint64
	results []NodeResult
	left    int
	done    bool
}

func newNumbers(n, need int) *numbers {
	return &numbers{
		ready: make(chan struct{}, 1), need: need, left: n,
		ok: make([]bool, n), values: make([]uint64, n), results: make([]NodeResult, n),
	}
}

func (f *numbers) answered(a answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left--
	if !f.done {
		f.results[a.node] = a.NodeResult
	}
	if a.Status == StatusOK {
		f.ok[a.node], f.values[a.node] = true, a.number
	}
	if yes := count(f.ok); !f.done && (yes >= f.need || f.left == 0) {
		f.done = true
		f.ready <- struct{}{}
	}
}

// wait waits until enough nodes have answered yes, all have answered, or by.
// Of each node it tells if it did, and its number.
func (f *numbers) wait(by time.Time) (ok []bool, values []uint64) {
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

func count(b []bool) int {
	n := 0
	for _, x := range b {
		if x {
			n++
		}
	}
	return n
}

// blame puts what nodes answered to the reading or writing of numbers in the
// place of the yes that they gave to the lock.
func (r *run) blame(f *numbers) {
	f.mu.Lock()
	answers := slices.Clone(f.results)
	f.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, said := range answers {
		at := &r.results[i]
		switch {
		case at.Status != StatusOK || said.Status == StatusOK:
		case said.Status == StatusUnanswered:
			at.Status = StatusSlow
		default:
			at.Status, at.Err = said.Status, said.Err
		}
	}
}

// counted takes in the number that a node read behind its SET, be it after the
// verdict. It counts with a vote only.
func (r *run) counted(a answer) {
	if a.Status == StatusOK {
		a.NodeResult = a.numbers
	}
	r.reads.answered(a)
}

// draw draws and writes the fencing token of a granted run.
func (r *run) draw() (uint64, error) {
	c := r.client
	n, quorum := len(c.nodes), c.Quorum()
	by := time.Now().Add(c.opt.wait(r.machine.terms.TTL))
	ok, values := r.reads.wait(by)
	if count(ok) < quorum {
		r.blame(r.reads)
		return 0, errFencing
	}
	var token uint64
	for i, v := range values {
		if ok[i] {
			token = max(token, v)
		}
	}
	// A node may know a higher number that none of these knew: of a grant that was
	// never confirmed. Then the token is drawn above that.
	for range 3 {
		token++
		writes := newNumbers(n, min(n, n-quorum+2))
		c.send(call{
			op: opFence, key: r.resource, token: r.token, value: strconv.FormatUint(token, 10), ttl: fencingTTL,
			notAfter: by, to: writes,
		})
		ok, values := writes.wait(by)
		taken, highest := 0, token
		for i, v := range values {
			if ok[i] && v == token {
				taken++
			}
			highest = max(highest, v)
		}
		switch {
		case !time.Now().Add(sleptSince(r.slept, c.suspended)).Before(r.machine.Until()):
			return 0, ErrExpired
		case taken >= quorum:
			return token, nil
		case highest == token:
			r.blame(writes)
			return 0, errFencing
		}
		token = highest
	}
	return 0, errFencing
}
