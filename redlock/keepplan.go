package redlock

import (
	"errors"
	"time"

	"redlockctl/redlock/attempt"
)

// KeeperState says whether a kept lock is held.
type KeeperState uint8

const (
	// Held is a lock whose last extension was confirmed, or that has not needed one
	// yet.
	Held KeeperState = iota
	// Uncertain is a lock whose extension has failed. It is held until [Keeper.Until],
	// and perhaps longer: the extension is tried again until then. See [Keeper.Err] for
	// the cause.
	Uncertain
	// Lost is a lock that must not be relied on any more: its validity has ended, or
	// the token holds no quorum. It stays Lost.
	Lost
	// Released is a lock that was released by [Keeper.Release].
	Released
)

// String is the state in one lower-case word.
func (s KeeperState) String() string {
	return [...]string{"held", "uncertain", "lost", "released"}[s]
}

const (
	// keepJitter is the random part of a pause.
	keepJitter = 0.2
	// keepRetries divides the usual pause before a failed extension is tried again;
	// keepRetryMax bounds it.
	keepRetries  = 10
	keepRetryMax = time.Second
	// keepHurry divides the usual pause while a copy is missing or does not count yet.
	keepHurry = 3
	// keepLook is the longest time between two readings of the clock: timers do not run
	// while the machine is suspended.
	keepLook = time.Second
)

// keepPlan makes the decisions of a [Keeper], as a pure step machine: no clock, no
// goroutine, no randomness. Its driver asks next what to do, does it, passes the
// outcome of an extension to extended or failed, and asks again. expire may be called
// at any time. Each call passes the current time.
type keepPlan struct {
	resource   string
	ttl        time.Duration // of an extension
	allowance  time.Duration // drift allowance
	every      time.Duration
	extensions int // the limit; 0: none

	state   KeeperState
	until   time.Time // the end of validity
	due     time.Time // of the next extension; zero: there will be none
	made    int       // extensions
	gone    bool      // a copy disappeared since the last extension began
	stopped bool
	err     error // why it is uncertain or lost
}

// keepAction is what the driver does next.
type keepAction uint8

const (
	keepWait   keepAction = iota // ask again at the returned time
	keepExtend                   // extend, and pass on the outcome
	keepEnd                      // nothing more to do
)

// ended reports whether the state is final.
func (k *keepPlan) ended() bool { return k.state == Lost || k.state == Released }

// expire ends the plan if the validity has ended.
func (k *keepPlan) expire(now time.Time) {
	if !k.ended() && !now.Before(k.until) {
		k.lose(ErrExpired, k.err)
	}
}

// next is what to do now.
func (k *keepPlan) next(now time.Time) (keepAction, time.Time) {
	k.expire(now)
	switch {
	case k.ended(), k.stopped:
		return keepEnd, time.Time{}
	case !k.due.IsZero() && (k.gone || !now.Before(k.due)):
		k.gone = false
		return keepExtend, k.until
	}
	wake := now.Add(keepLook)
	if k.until.Before(wake) {
		wake = k.until
	}
	if !k.due.IsZero() && k.due.Before(wake) {
		wake = k.due
	}
	return keepWait, wake
}

// extended records an extension that a quorum confirmed, and the new end of validity.
// random is uniform in [0, 1).
func (k *keepPlan) extended(now, until time.Time, random float64) {
	if k.expire(now); k.ended() {
		return // it came too late: the state stays Lost or Released
	}
	if until.After(k.until) {
		k.until = until
	}
	k.made++
	k.state, k.err = Held, nil
	k.plan(random)
	if soonest := now.Add(k.every / keepRetries); k.due.Before(soonest) {
		k.due = soonest // the extension gained next to nothing
	}
	if k.extensions > 0 && k.made >= k.extensions {
		k.due = time.Time{}
	}
}

// plan schedules the next extension; like the validity, its time counts from the start
// of the last one.
func (k *keepPlan) plan(random float64) {
	pause := time.Duration(float64(k.every) * (1 - keepJitter*random))
	k.due = k.until.Add(k.allowance - k.ttl + pause)
}

// failed records an extension that failed, and why. random is uniform in [0, 1).
func (k *keepPlan) failed(now time.Time, err error, random float64) {
	if k.expire(now); k.ended() {
		return
	}
	switch {
	case errors.Is(err, ErrNotHeld):
		k.lose(ErrNotHeld, err)
		return
	case errors.Is(err, ErrInvalid), errors.Is(err, ErrClosed):
		k.due = time.Time{} // no further try can succeed
	default:
		// ErrExpired is among these: the new validity was used up; the old one may
		// still run.
		pause := min(k.every/keepRetries, keepRetryMax)
		k.due = now.Add(max(time.Duration(float64(pause)*(1-random/2)), time.Millisecond))
	}
	k.state, k.err = Uncertain, err
}

// hurry brings the next extension forward: a copy that was put back does not count yet,
// or one is still missing.
func (k *keepPlan) hurry(now time.Time) {
	if k.due.IsZero() || k.extensions > 0 {
		return
	}
	if soon := now.Add(max(attempt.SettleTime, k.every/keepHurry)); soon.Before(k.due) {
		k.due = soon
	}
}

// missed records that a copy has disappeared: the next extension finds out what that
// means.
func (k *keepPlan) missed(time.Time) { k.gone = k.extensions == 0 }

// stop ends the extensions.
func (k *keepPlan) stop() { k.stopped = true }

// release records that the lock is about to be released.
func (k *keepPlan) release(now time.Time) {
	k.stopped = true
	if k.expire(now); !k.ended() {
		k.state, k.err = Released, nil
	}
}

// lose ends the plan; last is the error of the last extension.
func (k *keepPlan) lose(kind, last error) {
	lost := &Error{Op: "keep", Resource: k.resource, Kind: lostError{kind: kind}}
	if k.extensions > 0 && k.made >= k.extensions {
		lost.Kind = lostError{kind: kind, after: k.made}
	}
	if e := (*Error)(nil); errors.As(last, &e) {
		lost.Nodes = e.Nodes
	}
	k.state, k.err = Lost, lost
}
