package operator

import (
	"context"
	"time"

	"redlockctl/internal/audit"
	"redlockctl/internal/safetext"
	"redlockctl/monitor"
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
// release; what is sent in between belongs to them.
type Kept interface {
	Resource() string
	Token() string
	Nodes() []redlock.NodeResult // of the grant
	State() redlock.KeeperState
	Until() time.Time // the end of validity as it is known now
	Err() error       // why it is uncertain or lost
	// Release ends the extensions and releases the lock. Where that cannot be logged
	// beforehand, nothing is sent, and the lock is kept on.
	Release(ctx context.Context) ([]redlock.NodeResult, error)
	// Stop ends the extensions; the lock expires by itself.
	Stop()
}

// KeptLock is a [Kept] with its grant and its changes, see [redlock.Keeper].
type KeptLock struct {
	keeper
	lock *redlock.Lock
	o    *Operator
}

// Lock is the grant.
func (k *KeptLock) Lock() *redlock.Lock { return k.lock }

// Resource is what is locked.
func (k *KeptLock) Resource() string { return k.lock.Resource() }

// Token names the grant.
func (k *KeptLock) Token() string { return k.lock.Token() }

// Nodes are the results of the nodes when the lock was granted or last extended.
func (k *KeptLock) Nodes() []redlock.NodeResult { return k.lock.Nodes() }

// keptText is what the log says of a grant that does not expire with its TTL.
const keptText = "kept: extended until it is interrupted or released"

// KeepOptions of [Operator.KeepWith].
type KeepOptions struct {
	Fencing bool // draw a fencing token too
	redlock.KeepOptions
}

// Keep is [Operator.Acquire] for a lock that is extended until it is released. What
// becomes of it is noted, see [Options].
func (o *Operator) Keep(ctx context.Context, resource string, ttl time.Duration) (Kept, error) {
	k, err := o.KeepWith(ctx, resource, ttl, KeepOptions{})
	if err != nil {
		return nil, err // a nil *KeptLock in the interface would not be nil
	}
	if o.opt.Note != nil {
		go func() {
			for s := range k.Changes() {
				k.note(s)
			}
		}()
	}
	return k, nil
}

// note tells of a change for the worse, and of its end.
func (k *KeptLock) note(s redlock.KeeperState) {
	e := monitor.Event{Level: monitor.LevelNotice, Key: safetext.New(k.Resource())}
	text := k.Resource() + ", kept here, is " + s.String()
	switch s {
	case redlock.Released:
		return // which is noted as an act
	case redlock.Uncertain, redlock.Lost:
		e.Level = monitor.LevelAlarm
		if err := k.Err(); err != nil {
			text += ": " + err.Error()
		}
	}
	k.o.note(e, text)
}

// KeepWith is [Operator.Keep] with options; the caller takes the changes.
func (o *Operator) KeepWith(ctx context.Context, resource string, ttl time.Duration, opt KeepOptions) (*KeptLock, error) {
	do := o.locks.Acquire
	if opt.Fencing {
		do = o.locks.AcquireFenced
	}
	lock, err := o.acquire(ctx, resource, ttl, keptText, do)
	if err != nil {
		return nil, err
	}
	return &KeptLock{o.keep(lock, opt.KeepOptions), lock, o}, nil
}

// ExtendToKeep is [Operator.Extend] of a grant that the caller goes on extending;
// the log says so.
func (o *Operator) ExtendToKeep(ctx context.Context, resource, token string, ttl time.Duration) (*redlock.Lock, error) {
	return o.extend(ctx, resource, token, ttl, keptText)
}

// Release implements [Kept].
func (k *KeptLock) Release(ctx context.Context) ([]redlock.NodeResult, error) {
	a, err := k.o.begin(audit.Record{Act: "release", Target: k.Resource(), TokenSHA: audit.TokenSHA(k.Token())})
	if err != nil {
		return nil, err
	}
	results, err := k.keeper.Release(ctx)
	return results, a.end(summary(results), err)
}
