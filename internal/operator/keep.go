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

func keepLock(l *redlock.Lock) keeper { return l.Keep(redlock.KeepOptions{}) }

// Kept is a lock that was acquired by hand and is extended until it is released
// or stopped: one of the two must be called. The log has its acquisition and its
// release; what is sent in between belongs to them. See [redlock.Keeper] for
// State, Until, Err, Changes and Stop.
type Kept struct {
	keeper
	lock *redlock.Lock
	o    *Operator
}

// Resource is what is locked.
func (k *Kept) Resource() string { return k.lock.Resource() }

// Token names the grant.
func (k *Kept) Token() string { return k.lock.Token() }

// Nodes are the results of the nodes when the lock was granted or last extended.
func (k *Kept) Nodes() []redlock.NodeResult { return k.lock.Nodes() }

// Keep is [Operator.Acquire] for a lock that is extended until it is released.
func (o *Operator) Keep(ctx context.Context, resource string, ttl time.Duration) (*Kept, error) {
	lock, err := o.acquire(ctx, resource, ttl, "extended until it is released", o.locks.Acquire)
	if err != nil {
		return nil, err
	}
	return &Kept{o.keep(lock), lock, o}, nil
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
