package action

import (
	"context"
	"redlockctl/internal/operator"
	"redlockctl/internal/who"
	"redlockctl/redlock"
	"redlockctl/server/safetext"
	"time"
)

// Actions are the operator's actions. Each call blocks until the action is done. A removal
// compares the token again on each node.
type Actions interface {
	ReadOnly() bool
	AcquireWith(ctx context.Context, resource string, ttl time.Duration, opt operator.AcquireOptions) (*redlock.Lock, error)
	// Keep is Acquire for a lock that is extended until it is released or a time has passed.
	Keep(ctx context.Context, resource string, ttl time.Duration, opt operator.AcquireOptions) (Kept, error)
	// Extend extends a grant. It returns the lock together with an error if the extension
	// was made but could not be logged.
	Extend(ctx context.Context, resource, token string, ttl time.Duration) (*redlock.Lock, error)
	Release(ctx context.Context, resource, token string) ([]redlock.NodeResult, error)
	// Remove force-releases or revokes all keys of a lock, and reports each.
	Remove(ctx context.Context, r operator.Removal) operator.Outcome
	// Who watches a lock for up to a minute and says who holds it; known is an earlier
	// answer or nil.
	Who(ctx context.Context, resource string, known *who.Answer) (*who.Answer, error)
	Cordon(ctx context.Context, node, reason string) error
	Drain(ctx context.Context, node, reason string) error
	Uncordon(ctx context.Context, node, reason string) error
	RejoinNow(ctx context.Context, node, reason string) error
}

// Kept is a lock that is extended until it is released.
type Kept = operator.Kept

// Parting says what happened at the end to the locks that were acquired on the screen.
type Parting struct {
	Released []safetext.Text // at quitting
	Left     []Left
}

// Left is a lock that was acquired on the screen and still held at quitting.
type Left struct {
	Key   safetext.Text
	Until time.Time // the end of its validity; nothing extends it
}

// Lab is what a demo adds: masters that can be crashed, stopped or misled.
type Lab interface {
	// Cannot says why this lab lacks an action ("stop", "skew", "flush"); empty if it does not.
	Cannot(action string) string
	// Do runs one of [LabActions] on a node: "crash" (it comes back empty a moment later),
	// "stop" as SIGSTOP does, "continue", or "flush".
	Do(action, node string) error
	// SkewNode moves the node's wall clock by this much.
	SkewNode(name string, by time.Duration) error
}
