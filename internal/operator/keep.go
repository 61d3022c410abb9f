package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"redlockctl/base/crash"
	"redlockctl/internal/audit"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/server/safetext"
)

// Kept is a lock that an operator acquired. It is extended until Release or Stop, and one
// of the two must be called. The audit log has the acquisition and the release or loss, not the
// extensions.
type Kept interface {
	Resource() string
	Token() string
	Nodes() []redlock.NodeResult // of the grant
	State() redlock.KeeperState
	Until() time.Time // end of validity, as known now
	Err() error       // why it is uncertain or lost
	Terms() Terms
	// Release ends the extensions and releases the lock. If the release cannot be logged
	// first, nothing is sent and the lock stays kept.
	Release(ctx context.Context) ([]redlock.NodeResult, error)
	// Stop ends the extensions; the lock expires by itself.
	Stop()
}

// Terms says who keeps a lock, since when, until when and why.
type Terms struct {
	By     string // as in the audit log: user@host
	Since  time.Time
	End    time.Time // when the lock is released; zero: when somebody releases it
	Reason string    // as typed; may be empty
}

// KeptLock implements [Kept] with its grant and its state changes, see [redlock.Keeper].
type KeptLock struct {
	keeper
	lock    *redlock.Lock
	o       *Operator
	foreign bool // acquired elsewhere: not ours to release
	terms   Terms
	stop    sync.Once
}

// Terms implements [Kept].
func (k *KeptLock) Terms() Terms { return k.terms }

// Lock returns the grant.
func (k *KeptLock) Lock() *redlock.Lock { return k.lock }

// Resource returns the name of the locked resource.
func (k *KeptLock) Resource() string { return k.lock.Resource() }

// Token returns the token of the grant.
func (k *KeptLock) Token() string { return k.lock.Token() }

// Nodes returns each node's result of the grant or of the last extension.
func (k *KeptLock) Nodes() []redlock.NodeResult { return k.lock.Nodes() }

// keptText is the detail in the log of a lock that is extended until somebody ends it.
const keptText = "kept: extended until it is interrupted or released"

// keptFor returns that detail for a lock kept for span; 0: until somebody ends it.
func keptFor(span time.Duration) string {
	if span == 0 {
		return keptText
	}
	return "kept for " + span.String() + ": extended until then, unless it is released before"
}

// Keep is [Operator.AcquireWith] for a lock that is extended until its holder releases it
// or until opt.For has passed. Changes are reported to [Options].Note.
func (o *Operator) Keep(ctx context.Context, resource string, ttl time.Duration, opt AcquireOptions) (Kept, error) {
	k, err := o.KeepWith(ctx, resource, ttl, opt, redlock.KeepOptions{})
	if err != nil {
		return nil, err // a nil *KeptLock in the interface would not be nil
	}
	crash.Go(k.attend)
	return k, nil
}

// releaseTime is the timeout for releasing a lock at the end of its terms.
const releaseTime = 15 * time.Second

// attend notes the changes of a kept lock and releases it at the end of its terms. If
// that release fails, the extensions stop: nobody asked for the lock beyond that time.
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
				if k.State() == redlock.Lost {
					k.giveUp(context.Background())
				}
				return
			}
			k.note(s)
		case <-over:
			ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
			defer cancel()
			if _, err := k.Release(ctx); err != nil {
				k.Stop()
				k.o.note(monitor.Event{Level: monitor.LevelAlarm, Key: safetext.New(k.Resource())},
					k.Resource()+", kept here, is no longer extended: it has expired, and its release failed: "+err.Error())
			}
			return
		}
	}
}

// Loss is when a kept lock was lost.
type Loss struct {
	At   time.Time     // the end of its validity, or when it was known to be lost before that
	Late time.Duration // how long after that it was noticed, as the process was stopped or the machine slept
}

// LossOf returns when a lock whose validity ended at until, and which was seen to be lost at now, was
// lost.
func LossOf(until, now time.Time) Loss {
	// By the difference: the wall clock of until does not count the time that the machine slept.
	late := max(0, now.Sub(until))
	return Loss{now.Add(-late), late}
}

// noticeable is the least delay of noticing a loss that a message mentions.
const noticeable = time.Second

// Noticed says after the time of the loss how long after it the loss was noticed; "": at once.
func (l Loss) Noticed() string {
	if l.Late <= noticeable {
		return ""
	}
	return ", noticed " + l.Late.Round(100*time.Millisecond).String() + " after its validity had ended"
}

// note reports a change for the worse and the end of the lock.
func (k *KeptLock) note(s redlock.KeeperState) {
	e := monitor.Event{Level: monitor.LevelNotice, Key: safetext.New(k.Resource())}
	text := k.Resource() + ", kept here, is " + s.String()
	switch s {
	case redlock.Released:
		return // noted as an action
	case redlock.Uncertain, redlock.Lost:
		e.Level = monitor.LevelAlarm
		if s == redlock.Lost {
			text += LossOf(k.Until(), time.Now()).Noticed()
		}
		if err := k.Err(); err != nil {
			text += ": " + err.Error()
		}
	}
	k.o.note(e, text)
}

// KeepWith is [Operator.Keep] with options. The caller reads the changes, see
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

// KeepAll is [Operator.KeepWith] for several locks in the order of [redlock.InOrder]: all
// or none. Each is extended from the moment it is acquired. keep returns the options of
// each.
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

// ReleaseAll releases kept locks, the last first, even after ctx has ended.
func ReleaseAll(ctx context.Context, all []*KeptLock) (err error) {
	for _, k := range slices.Backward(all) {
		if _, one := k.Release(context.WithoutCancel(ctx)); one != nil {
			k.Stop()
			err = errors.Join(err, one)
		}
	}
	return err
}

// ExtendToKeep is [Operator.Extend] of a grant that is then kept for span (0: until it is
// stopped); the log says so. If only the log failed, it returns the lock and the error.
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

// Hold waits until ctx ends, the terms end or the lock is lost, and calls tell with each
// change. Then it releases a lock that was acquired here, what is left of a lost one too; a
// lock acquired elsewhere is left to expire. It returns the final state: released, held, or lost, which is an error.
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
		k.giveUp(context.WithoutCancel(ctx))
		return redlock.Lost, cmp.Or(k.Err(), fmt.Errorf("\"%s\": %w", safetext.Escape(k.Resource()), redlock.ErrExpired))
	case k.foreign:
		k.Stop()
		return redlock.Held, nil
	}
	if _, err := k.Release(context.WithoutCancel(ctx)); err != nil {
		return redlock.Held, err
	}
	return redlock.Released, nil
}

// giveUp ends a lock that was lost, and releases the copies that are left of one that was acquired here: they
// would only keep others out.
func (k *KeptLock) giveUp(ctx context.Context) {
	k.Stop()
	if !k.foreign {
		_, _ = k.o.Release(ctx, k.Resource(), k.Token())
	}
}

// Stop implements [Kept]. The audit log has until when the lock stays held, if it is, or why
// it was lost.
func (k *KeptLock) Stop() {
	k.stop.Do(func() {
		state := k.State()
		k.keeper.Stop()
		switch {
		case state == redlock.Released:
			return
		case state == redlock.Lost && k.o.opt.Log != nil:
			lost := k.o.act(audit.Record{Act: "keep", Target: k.Resource(), TokenSHA: audit.TokenSHA(k.Token())})
			_ = lost.write(audit.Failed, "lock lost: "+logText(cmp.Or(k.Err(), redlock.ErrExpired))+lossText(LossOf(k.Until(), time.Now())))
			return
		}
		a, err := k.o.begin(audit.Record{Act: "stop keeping", Target: k.Resource(), TokenSHA: audit.TokenSHA(k.Token()),
			Detail: "extended no longer, not released: held until " + k.Until().UTC().Format(time.RFC3339)})
		if err == nil {
			_ = a.end("", nil)
		}
	})
}

// lossText says for the log when a lock was lost, if that was noticed late.
func lossText(l Loss) string {
	if l.Noticed() == "" {
		return ""
	}
	return "; its validity ended at " + l.At.UTC().Format(time.RFC3339) + l.Noticed()
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

// HoldAll holds locks that belong together. When the first is lost, all end, in the
// reverse order of their acquisition. hold holds one lock until its context ends.
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
