package operator

import (
	"context"
	"time"

	"redlockctl/internal/audit"
	"redlockctl/redlock"
)

// keeper is what an operator needs of *[redlock.Keeper].
type keeper interface {
	State() redlock.KeeperState
	Until() time.Time
	Err() error
	Changes() <-chan redlock.KeeperState
	Stop()
	Release(ctx context.Context) ([]redlock.NodeResult, error)
}

func keepLock(l *redlock.Lock, opt redlock.KeepOptions) keeper { return l.Keep(opt) }

// Kept is a lock that was acquired by hand and is extended until it is released
// or stopped: one of the two must be called. The log has its acquisition and its
// release; what is sent in between belongs to them. See [redlock.Keeper] for
// State, Until, Err, Changes and Stop.
type Kept struct {
	keeper
	lock *redlock.Lock
	o    *Operator
}

// Lock is the grant.
func (k *Kept) Lock() *redlock.Lock { return k.lock }

// Resource is what is locked.
func (k *Kept) Resource() string { return k.lock.Resource() }

// Token names the grant.
func (k *Kept) Token() string { return k.lock.Token() }

// Nodes are the results of the nodes when the lock was granted or last extended.
func (k *Kept) Nodes() []redlock.NodeResult { return k.lock.Nodes() }

// keptText is what the log says of a grant that does not expire with its TTL.
const keptText = "kept: extended until it is interrupted or released"

// KeepOptions of [Operator.KeepWith].
type KeepOptions struct {
	Fencing bool // draw a fencing token too
	redlock.KeepOptions
}

// Keep is [Operator.Acquire] for a lock that is extended until it is released.
func (o *Operator) Keep(ctx context.Context, resource string, ttl time.Duration) (*Kept, error) {
	return o.KeepWith(ctx, resource, ttl, KeepOptions{})
}

// KeepWith is [Operator.Keep] with options.
func (o *Operator) KeepWith(ctx context.Context, resource string, ttl time.Duration, opt KeepOptions) (*Kept, error) {
	do := o.locks.Acquire
	if opt.Fencing {
		do = o.locks.AcquireFenced
	}
	lock, err := o.acquire(ctx, resource, ttl, keptText, do)
	if err != nil {
		return nil, err
	}
	return &Kept{o.keep(lock, opt.KeepOptions), lock, o}, nil
}

// ExtendToKeep is [Operator.Extend] of a grant that the caller goes on extending;
// the log says so.
func (o *Operator) ExtendToKeep(ctx context.Context, resource, token string, ttl time.Duration) (*redlock.Lock, error) {
	return o.extend(ctx, resource, token, ttl, keptText)
}

// Release ends the extensions and releases the lock. Where that cannot be
// logged beforehand, nothing is done, and the lock is kept on.
func (k *Kept) Release(ctx context.Context) ([]redlock.NodeResult, error) {
	a, err := k.o.begin(audit.Record{Act: "release", Target: target(k.Resource()), TokenSHA: audit.TokenSHA(k.Token())})
	if err != nil {
		return nil, err
	}
	results, err := k.keeper.Release(ctx)
	return results, a.end(summary(results), err)
}
