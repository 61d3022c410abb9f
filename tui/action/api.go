package action

import (
	"context"
	"redlockctl/internal/operator"
	"redlockctl/internal/safetext"
	"redlockctl/internal/who"
	"redlockctl/redlock"
	"time"
)

// Actions is what an operator may do; each call blocks until it is done. What
// is taken from a holder is compared with the token once more when it is sent.
type Actions interface {
	ReadOnly() bool
	AcquireWith(ctx context.Context, resource string, ttl time.Duration, opt operator.AcquireOptions) (*redlock.Lock, error)
	// Keep is Acquire for a lock that is extended until it is released, or for a time.
	Keep(ctx context.Context, resource string, ttl time.Duration, opt operator.AcquireOptions) (Kept, error)
	// Extend sets the TTL of a grant anew. The lock is there also with an error,
	// where the extension was made and could not be recorded.
	Extend(ctx context.Context, resource, token string, ttl time.Duration) (*redlock.Lock, error)
	Release(ctx context.Context, resource, token string) ([]redlock.NodeResult, error)
	// Remove takes a lock from its holder, all its keys, and tells of each.
	Remove(ctx context.Context, r operator.Removal) operator.Outcome
	// Who watches a lock for up to a minute and says who holds it; known is what was
	// answered before, or nil.
	Who(ctx context.Context, resource string, known *who.Answer) (*who.Answer, error)
	Cordon(ctx context.Context, node, reason string) error
	Uncordon(ctx context.Context, node, reason string) error
	RejoinNow(ctx context.Context, node, reason string) error
}

// Kept is a lock that is extended until it is released.
type Kept = operator.Kept

// Parting is what becomes of the locks that were acquired on the screen, when it ends.
type Parting struct {
	Released []safetext.Text // on quitting
	Left     []Left
}

// Left is a lock that was acquired on the screen and outlives it.
type Left struct {
	Key   safetext.Text
	Until time.Time // the end of its validity: nothing extends it any more
}

// Lab is what a demo adds: masters that can be crashed, stopped or misled.
type Lab interface {
	// Cannot is why an action ("stop", "skew", "flush") cannot be done in
	// this lab; empty: it can.
	Cannot(action string) string
	// Do does one of [LabActions] to a node: "crash" (it comes back empty a moment later),
	// "stop" as SIGSTOP does, "continue", or "flush".
	Do(action, node string) error
	// SkewNode puts the node's wall clock off by this much from what it is.
	SkewNode(name string, by time.Duration) error
}
