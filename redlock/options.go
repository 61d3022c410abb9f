package redlock

import (
	"context"
	"math"
	"time"
)

// Options are the settings of the lock algorithm. The zero value of a field
// means its default.
type Options struct {
	// NodeTimeout is how long one node may take to answer in one attempt, so that a
	// dead node does not delay the others. It must be a small part of the TTL: at most
	// a tenth of the TTL is used. Zero, the default, follows the measured round trips, as
	// TCP's retransmission timeout does: at least 50 ms, and about one and a half round
	// trips to nodes that are far.
	NodeTimeout time.Duration
	// ConnectTimeout is how long dialling a node may take, and as long again its
	// greeting (TLS, login). Attempts do not wait for it, since connections are opened
	// in advance; only the first operation of a client does. Default 2 s.
	ConnectTimeout time.Duration
	// DriftFactor and DriftMargin make the drift allowance, TTL × factor +
	// margin, by which validity is shortened: clocks of client and masters may
	// differ in rate by the factor, and a Redis expiry is exact to about a
	// millisecond. Default 0.01 and 2 ms.
	DriftFactor float64
	DriftMargin time.Duration
	// Retries is how many pauses follow a failed first attempt, each with an attempt at
	// its end; negative means none. A waiter that is woken within a pause, because the
	// lock looks free, makes an extra attempt that is not counted. So Retries and
	// RetryDelay say how long to wait for a lock that others hold: 0.5 to 1 s by
	// default. [UntilContextEnds] waits for as long as the context lasts. Default 3.
	Retries int
	// RetryDelay is the base of these pauses: the k-th lasts for a random time in [d/2,
	// d], d = RetryDelay × 1.5^(k-1), at most 8 × RetryDelay, so that clients that have
	// collided do not collide again. Pauses matter to a waiter that no node can wake:
	// tracking is denied, RESP3 is not known, the node is down. A pause is not shortened
	// when too few nodes answer. Shorter pauses cost the nodes more; with longer ones a
	// free lock stays unused for longer. Default 200 ms.
	RetryDelay time.Duration
	// Owner follows the random part of each token, so that people see who holds a lock:
	// at most 36 bytes of printable ASCII without blanks. Everybody who can read the
	// lock sees it. Default none.
	Owner string
	// Observe is the one hook for logs, metrics and traces. It is called when an operation
	// begins, with the caller's context, and the function that it returns when the operation
	// has ended, with its error (an [*Error]) or nil. op is what [Error] calls it: "acquire",
	// "extend", "release", "inspect", "revoke" or "force-release". A [Keeper]'s extensions are
	// observed too. Both run in the goroutine of the operation and must not block. Default none.
	Observe func(ctx context.Context, op, resource string) (ended func(err error))
}

// UntilContextEnds, as [Options.Retries], never gives up before the context ends.
const UntilContextEnds = math.MaxInt

// AcquireOptions are the settings of one acquisition. The zero value of a field
// means that of the client.
type AcquireOptions struct {
	// TTL is how long the lock is acquired for; it must be set.
	TTL time.Duration
	// Retries and RetryDelay are as in [Options].
	Retries    int
	RetryDelay time.Duration
	// Fenced makes the lock one with a fencing token, see [Client.AcquireFenced].
	Fenced bool
}

// with returns the options of one acquisition.
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

// pause is how long to wait before this attempt (the second is 2). random is uniform in
// [0, 1), so that clients that have collided do not collide again.
func (o Options) pause(attempt int, random float64) time.Duration {
	d := float64(o.RetryDelay)
	for k := 2; k < attempt && d < 8*float64(o.RetryDelay); k++ {
		d *= 1.5
	}
	d = min(d, 8*float64(o.RetryDelay))
	return time.Duration(d/2 + d/2*random)
}

const (
	// LongestTTL is the longest TTL of a grant. A copy with a longer one is treated as one
	// without TTL.
	LongestTTL = 10 * 365 * 24 * time.Hour

	// The pause before a reconnection grows from the first to the second.
	backoffMin = 100 * time.Millisecond
	backoffMax = 2 * time.Second
)
