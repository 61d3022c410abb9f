package redlock

import (
	"math"
	"time"
)

// Options are the settings of the lock algorithm. The zero value of a field
// means its default.
type Options struct {
	// NodeTimeout bounds what one node may take to answer in one attempt, so that
	// a dead node does not hold up the rest. It must stay a small part of the
	// TTL: at most a tenth of it is used. Default 50 ms.
	NodeTimeout time.Duration
	// ConnectTimeout bounds what dialling a node, and its greeting (TLS, login),
	// may take, each. It costs an attempt nothing, since connections are opened
	// ahead; only the first operation of a client waits for them. Default 500 ms.
	ConnectTimeout time.Duration
	// DriftFactor and DriftMargin make the drift allowance, TTL × factor +
	// margin, by which validity is shortened: clocks of client and masters may
	// differ in rate by the factor, and a Redis expiry is exact to about a
	// millisecond. Default 0.01 and 2 ms.
	DriftFactor float64
	DriftMargin time.Duration
	// Retries is how many pauses follow a failed first attempt, each with an
	// attempt at its end; negative means none. Who is woken within a pause, because
	// the lock looks free, makes an attempt of its own that is not counted, so that
	// Retries and RetryDelay say how long somebody waits for a lock that others
	// hold: with the defaults for 0.5 to 1 s. [UntilContextEnds] waits for as long as
	// the context lasts. Default 3.
	Retries int
	// RetryDelay is the base of these pauses: the k-th lasts for a random time in
	// [d/2, d], d = RetryDelay × 1.5^(k-1), at most 8 × RetryDelay, so that clients
	// that have collided do not do so again. A pause is what is left to a waiter
	// that no node can wake: tracking is denied, RESP3 is not known, the node is down. It
	// is not cut short when too few nodes answer. Shorter pauses cost the nodes more
	// then, longer ones let a free lock stand idle. Default 200 ms.
	RetryDelay time.Duration
	// Owner stands behind the random part of each token, for people who ask who
	// holds a lock: 36 bytes of printable ASCII without blanks at most. Everybody who
	// reads the lock learns it. Default none.
	Owner string
}

// UntilContextEnds, as [Options.Retries], never gives up before the context ends.
const UntilContextEnds = math.MaxInt

// AcquireOptions are the settings of one acquisition. The zero value of a field
// means that of the client.
type AcquireOptions struct {
	// TTL is for how long the lock is taken; it must be set.
	TTL time.Duration
	// Retries and RetryDelay are as in [Options].
	Retries    int
	RetryDelay time.Duration
	// Fenced makes the lock one with a fencing token, see [Client.AcquireFenced].
	Fenced bool
}

// with are the options of one acquisition.
func (o Options) with(a AcquireOptions) Options {
	if a.Retries != 0 {
		o.Retries = a.Retries
	}
	if a.RetryDelay > 0 {
		o.RetryDelay = a.RetryDelay
	}
	return o
}

// Drift is the drift allowance of a TTL: TTL × DriftFactor + DriftMargin.
func (o Options) Drift(ttl time.Duration) time.Duration {
	return time.Duration(float64(ttl)*o.DriftFactor) + o.DriftMargin
}

// pause is how long to wait before attempt number attempt (the second is 2);
// random is uniform in [0, 1), so that clients that collided once do not do so
// again.
func (o Options) pause(attempt int, random float64) time.Duration {
	d := float64(o.RetryDelay)
	for k := 2; k < attempt && d < 8*float64(o.RetryDelay); k++ {
		d *= 1.5
	}
	d = min(d, 8*float64(o.RetryDelay))
	return time.Duration(d/2 + d/2*random)
}

const (
	// LongestTTL is the longest TTL of a grant. A copy with a longer one is as good as one
	// without.
	LongestTTL = 10 * 365 * 24 * time.Hour

	// The pause before a node is connected anew grows between these.
	backoffMin = 100 * time.Millisecond
	backoffMax = 2 * time.Second
)

// wait is how long an attempt waits for any node.
func (o Options) wait(ttl time.Duration) time.Duration { return min(o.NodeTimeout, ttl/10) }
