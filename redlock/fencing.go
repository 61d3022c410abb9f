package redlock

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"
)

// A fencing token is a number that grows with each grant of a resource. The
// holder sends it along with whatever it does to the resource, which refuses a
// number lower than the highest it has seen: so it turns away a holder that was
// paused and does not know yet that its lock has ended. It is what Redlock
// lacks by itself.
//
// # How it is drawn
//
// Behind the SET of each node goes a read of the counter that the node keeps
// for the resource, and of the node's clock in microseconds. When the attempt
// is granted, and a quorum of nodes that gave their vote have also told their
// numbers, the token is the greatest of all those numbers plus one. It is then
// written to all nodes, each of which takes it only where the lock's own token
// still is and no higher number stands. With a quorum of those the grant is
// confirmed; without, it is released. That is one round trip more than a lock
// without it.
//
// # Why it grows
//
// Let grant 1 be confirmed before grant 2, with tokens t1 and t2. The nodes W
// that took t1 and the nodes R whose vote and number grant 2 counts are quorums,
// so they share a node x. On x the copy of grant 1 was there when t1 was
// written, and the SET of grant 2 found no copy. If the SET of grant 2 came
// later, then its read, behind it on the same connection, came after t1 was
// written: t2 > t1. If it came earlier, the copy of grant 2 had gone again
// before grant 1 voted on x, so grant 2 had ended or expired before grant 1 was
// confirmed, and was not confirmed after it.
//
// That x must have kept its memory. A node that lost it while the restart guard
// watches votes again only after every grant that it knew of has ended. Two
// things carry the numbers over such a loss. The write goes to all nodes, and
// waits for one more than a quorum where that many answer, so that W and R share
// a second node. And a token is never below the clock of any node in R: tokens
// run with the time, a grant adds one microsecond and takes longer than that, so
// after a loss of the memory of all masters the numbers still grow, as long as
// the clocks of the masters agree better than the time that has passed since
// the last grant before (for a loss of which the guard knows: better than D).
// For the same reason a counter that nobody has used for a day may expire.
//
// Tokens stay below 2^53 until the year 2255, so that every language can hold
// them in a float.

// fencingTTL is how long a counter outlives the last grant of its resource.
const fencingTTL = 24 * time.Hour

// fencingPrefix begins the keys of counters.
const fencingPrefix = "redlockctl:fencing:"

func fencingKey(resource string) string { return fencingPrefix + resource }

// AcquireFenced is [Client.Acquire] for a lock with a fencing token (see
// [Lock.FencingToken]). It costs one round trip more, and fails with
// [ErrNoQuorum] when the token could not be written to a quorum.
func (c *Client) AcquireFenced(ctx context.Context, resource string, ttl time.Duration) (*Lock, error) {
	return c.acquire(ctx, resource, ttl, 1+max(c.opt.Retries, 0), true)
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
	ready  chan struct{}       // has room for one
	need   int                 // numbers that are enough
	counts func(node int) bool // tells if a node's number counts; nil: all do

	mu     sync.Mutex
	ok     []bool
	values []uint64
	left   int
	done   bool
}

func newNumbers(n, need int, counts func(node int) bool) *numbers {
	return &numbers{
		ready: make(chan struct{}, 1), need: need, counts: counts, ok: make([]bool, n), values: make([]uint64, n), left: n,
	}
}

func (f *numbers) answered(a answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left--
	if a.Status == StatusOK && (f.counts == nil || f.counts(a.node)) {
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

// voted tells if the SET on a node was answered with yes, be it after the
// verdict.
func (r *run) voted(node int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.copies[node].voted
}

// askNumbers sends the reads of the fencing numbers behind the SETs of a run.
// On each node the answer to the SET comes first, so that it is known then if
// the number counts.
func (r *run) askNumbers(proto call) {
	r.reads = newNumbers(len(r.client.nodes), r.client.Quorum(), r.voted)
	proto.op, proto.to = opFenceRead, r.reads
	r.client.send(proto)
}

// draw draws and writes the fencing token of a granted run.
func (r *run) draw() (uint64, error) {
	c := r.client
	n, quorum := len(c.nodes), c.Quorum()
	by := time.Now().Add(c.opt.wait(r.machine.terms.TTL))
	ok, values := r.reads.wait(by)
	if count(ok) < quorum {
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
		writes := newNumbers(n, min(n, n-quorum+2), nil)
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
		case !time.Now().Before(r.machine.Until()):
			return 0, ErrExpired
		case taken >= quorum:
			return token, nil
		case highest == token:
			return 0, errFencing
		}
		token = highest
	}
	return 0, errFencing
}
