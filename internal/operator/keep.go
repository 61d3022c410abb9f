package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"redlockctl/base/crash"
	"redlockctl/internal/audit"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/server/safetext"
)

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
	Terms() Terms
	// Release ends the extensions and releases the lock. Where that cannot be logged
	// beforehand, nothing is sent, and the lock is kept on.
	Release(ctx context.Context) ([]redlock.NodeResult, error)
	// Stop ends the extensions; the lock expires by itself.
	Stop()
}

// Terms are who keeps a lock, since when, until when and why.
type Terms struct {
	By     string // as in the audit log: user@host
	Since  time.Time
	End    time.Time // it is released then; zero: when somebody releases it
	Reason string    // as it was typed; may be empty
}

// KeptLock is a [Kept] with its grant and its changes, see [redlock.Keeper].
type KeptLock struct {
	keeper
	lock    *redlock.Lock
	o       *Operator
	foreign bool // acquired elsewhere: not ours to release
	terms   Terms
}

// Terms implements [Kept].
func (k *KeptLock) Terms() Terms { return k.terms }

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

// keptFor is the same of one that is kept for a time; 0: until somebody ends it.
func keptFor(span time.Duration) string {
	if span == 0 {
		return keptText
	}
	return "kept for " + span.String() + ": extended until then, unless it is released before"
}

// Keep is [Operator.AcquireWith] for a lock that is extended until it is released: by its
// holder, or when the time for which it is kept is over. What becomes of it is noted, see
// [Options].
func (o *Operator) Keep(ctx context.Context, resource string, ttl time.Duration, opt AcquireOptions) (Kept, error) {
	k, err := o.KeepWith(ctx, resource, ttl, opt, redlock.KeepOptions{})
	if err != nil {
		return nil, err // a nil *KeptLock in the interface would not be nil
	}
	crash.Go(k.attend)
	return k, nil
}

// releaseTime bounds the release of a lock whose time is over.
const releaseTime = 15 * time.Second

// attend notes the changes of a lock that is kept, and releases it when its time is over.
// Where that fails it is extended no more: nobody asked for it beyond that time.
func (k *KeptLock) attend() {
	var over <-chan time.Time
	if !k.terms.End.IsZero() {
		t := time.NewTimer(time.Until(k.terms.End))
		defer t.Stop()
		over = t.C
	}
	for {
		select {
		case s, more := <-k.Changes():
			if !more {
				return
			}
			k.note(s)
		case <-over:
			ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
			defer cancel()
			if _, err := k.Release(ctx); err != nil {
				k.Stop()
				k.o.note(monitor.Event{Level: monitor.LevelAlarm, Key: safetext.New(k.Resource())},
					k.Resource()+", kept here, is extended no more: its time is over, and its release failed: "+err.Error())
			}
			return
		}
	}
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

// KeepWith is [Operator.Keep] with options; the caller takes the changes, see
// [KeptLock.Hold].
func (o *Operator) KeepWith(ctx context.Context, resource string, ttl time.Duration, opt AcquireOptions, keep redlock.KeepOptions) (*KeptLock, error) {
	if opt.For < 0 {
		return nil, fmt.Errorf("%w: the time to keep it, %s, is negative", redlock.ErrInvalid, opt.For)
	}
	lock, err := o.acquireWith(ctx, resource, ttl, opt, keptFor(opt.For))
	if err != nil {
		return nil, err
	}
	k, err := o.keep(lock, keep)
	if err != nil {
		_, left := o.Release(context.WithoutCancel(ctx), resource, lock.Token())
		return nil, errors.Join(err, left)
	}
	return &KeptLock{keeper: k, lock: lock, o: o, terms: o.terms(opt)}, nil
}

func (o *Operator) terms(opt AcquireOptions) Terms {
	t := Terms{By: o.opt.Actor, Since: time.Now(), Reason: opt.Reason}
	if opt.For > 0 {
		t.End = t.Since.Add(opt.For)
	}
	return t
}

// KeepAll is [Operator.KeepWith] of several locks in the order of [redlock.InOrder]: all
// or none. They are extended from the moment that each was acquired. keep has the options
// of each.
func (o *Operator) KeepAll(ctx context.Context, resources []string, ttl time.Duration, opt AcquireOptions, keep func(resource string) redlock.KeepOptions) (all []*KeptLock, err error) {
	for _, name := range redlock.InOrder(resources) {
		k, err := o.KeepWith(ctx, name, ttl, opt, keep(name))
		if err == nil {
			all = append(all, k)
			continue
		}
		if left := ReleaseAll(ctx, all); left != nil {
			err = fmt.Errorf("%w; %w", err, left)
		}
		return nil, err
	}
	return all, nil
}

// ReleaseAll releases locks that are kept, the last first, also when ctx has ended.
func ReleaseAll(ctx context.Context, all []*KeptLock) (err error) {
	for _, k := range slices.Backward(all) {
		if _, one := k.Release(context.WithoutCancel(ctx)); one != nil {
			k.Stop()
			err = errors.Join(err, one)
		}
	}
	return err
}

// ExtendToKeep is [Operator.Extend] of a grant that is extended on, for span (0: until it is stopped); the log says so.
// Where only the log failed, the lock is there beside the error.
func (o *Operator) ExtendToKeep(ctx context.Context, resource, token string, ttl, span time.Duration, keep redlock.KeepOptions) (*KeptLock, error) {
	lock, err := o.extend(ctx, resource, token, ttl, keptFor(span))
	if lock == nil {
		return nil, err
	}
	k, bad := o.keep(lock, keep)
	if bad != nil {
		return nil, errors.Join(err, bad)
	}
	return &KeptLock{keeper: k, lock: lock, o: o, foreign: true, terms: o.terms(AcquireOptions{For: span})}, err
}

// Hold waits while the lock is extended, until ctx ends, its time is over or it is lost,
// and tells each change. Then a lock that was acquired is released, and one that was acquired
// elsewhere is left to expire. It returns what became of the lock: released, held, or
// lost, which is an error.
func (k *KeptLock) Hold(ctx context.Context, tell func(redlock.KeeperState, error)) (redlock.KeeperState, error) {
	if !k.terms.End.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, k.terms.End)
		defer cancel()
	}
	for ctx.Err() == nil && k.State() != redlock.Lost {
		select {
		case <-ctx.Done():
		case s, more := <-k.Changes():
			if more {
				tell(s, k.Err())
			}
		}
	}
	switch {
	case k.State() == redlock.Lost:
		k.Stop()
		return redlock.Lost, fmt.Errorf("\"%s\": %w: %w", safetext.Escape(k.Resource()), redlock.ErrNotHeld, cmp.Or(k.Err(), redlock.ErrExpired))
	case k.foreign:
		k.Stop()
		return redlock.Held, nil
	}
	if _, err := k.Release(context.WithoutCancel(ctx)); err != nil {
		return redlock.Held, err
	}
	return redlock.Released, nil
}

// Release implements [Kept].
func (k *KeptLock) Release(ctx context.Context) ([]redlock.NodeResult, error) {
	why := ""
	if end := k.terms.End; !end.IsZero() && !time.Now().Before(end) {
		why = "its time has ended"
	}
	a, err := k.o.begin(audit.Record{Act: "release", Target: k.Resource(), TokenSHA: audit.TokenSHA(k.Token()), Detail: why})
	if err != nil {
		return nil, err
	}
	results, err := k.keeper.Release(ctx)
	return results, a.end(summary(results), err)
}

// HoldAll holds locks that belong together: they end with the first that is lost, in the reverse
// of the order in which they were acquired. hold holds one until its context ends.
func HoldAll(ctx context.Context, kept []*KeptLock, hold func(context.Context, *KeptLock) error) error {
	if len(kept) == 1 {
		return hold(ctx, kept[0])
	}
	together, end := context.WithCancel(ctx)
	defer end()
	var after func(i int) error
	after = func(i int) error {
		if i == len(kept) {
			<-together.Done()
			return nil
		}
		own, stop := context.WithCancel(context.WithoutCancel(ctx))
		held := make(chan error, 1)
		crash.Go(func() { held <- hold(own, kept[i]); end() })
		inner := after(i + 1)
		stop()
		return errors.Join(inner, <-held)
	}
	return after(0)
}
