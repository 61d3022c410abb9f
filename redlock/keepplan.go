package redlock

import (
	"errors"
	"time"

	"redlockctl/redlock/attempt"
)

// KeeperState is how a lock that is kept stands.
type KeeperState uint8

const (
	// Held is a lock whose last extension was confirmed, or that did not need one
	// yet.
	Held KeeperState = iota
	// Uncertain is a lock of which an extension has failed: it is held until
	// [Keeper.Until], and may be held longer, since the extension is tried again
	// until then. See [Keeper.Err] for what is in the way.
	Uncertain
	// Lost is a lock that must not be relied on any more: its validity has ended, or
	// the token holds no quorum. It never becomes anything else.
	Lost
	// Released is a lock that was given back by [Keeper.Release].
	Released
)

// String is the state in one lower-case word.
func (s KeeperState) String() string {
	return [...]string{"held", "uncertain", "lost", "released"}[s]
}

const (
	// keepJitter is the part of a pause that chance may take away.
	keepJitter = 0.2
	// keepRetries is how many times sooner than usual a failed extension is tried
	// again, and keepRetryMax how late that is at the latest.
	keepRetries  = 10
	keepRetryMax = time.Second
	// keepHurry is how many times sooner than usual a lock is extended of which a
	// copy is missing or does not count yet.
	keepHurry = 3
	// keepLook is how often a keeper looks at the clock at least: a timer does not
	// run while the machine sleeps.
	keepLook = time.Second
)

// keepPlan is what a [Keeper] decides, as a pure step machine: no clock, no
// goroutine, no randomness. Its driver asks next what to do, carries it out,
// tells the outcome of an extension to extended or failed, and asks again;
// expire may be called at any time, also meanwhile. Each says what time it is.
type keepPlan struct {
	resource   string
	ttl        time.Duration // of an extension
	allowance  time.Duration // by which its validity is shorter
	every      time.Duration
	extensions int // the limit; 0: none

	state   KeeperState
	until   time.Time // the end of validity
	due     time.Time // of the next extension; zero: there will be none
	made    int       // extensions
	gone    bool      // a copy is, since the last extension began
	stopped bool
	err     error // why it is uncertain or lost
}

// keepAction is what a driver has to do next.
type keepAction uint8

const (
	keepWait   keepAction = iota // ask again at the time that comes with it
	keepExtend                   // extend, and tell the outcome
	keepEnd                      // nothing any more
)

// ended reports whether the state is final.
func (k *keepPlan) ended() bool { return k.state == Lost || k.state == Released }

// expire notices the end of validity.
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

// extended is told of an extension that a quorum confirmed, and of the end of
// validity that the lock has since. random is uniform in [0, 1).
func (k *keepPlan) extended(now, until time.Time, random float64) {
	if k.expire(now); k.ended() {
		return // it came too late to be told as held
	}
	if until.After(k.until) {
		k.until = until
	}
	k.made++
	k.state, k.err = Held, nil
	k.plan(random)
	if soonest := now.Add(k.every / keepRetries); k.due.Before(soonest) {
		k.due = soonest // of an extension that gained next to nothing
	}
	if k.extensions > 0 && k.made >= k.extensions {
		k.due = time.Time{}
	}
}

// plan makes an extension due, counted like the validity from before the one
// that it follows.
func (k *keepPlan) plan(random float64) {
	pause := time.Duration(float64(k.every) * (1 - keepJitter*random))
	k.due = k.until.Add(k.allowance - k.ttl + pause)
}

// failed is told of an extension that failed, and why. random is uniform in
// [0, 1).
func (k *keepPlan) failed(now time.Time, err error, random float64) {
	if k.expire(now); k.ended() {
		return
	}
	switch {
	case errors.Is(err, ErrNotHeld):
		k.lose(ErrNotHeld, err)
		return
	case errors.Is(err, ErrInvalid), errors.Is(err, ErrClosed):
		k.due = time.Time{} // no other try can end otherwise
	default:
		// ErrExpired is among these: the new validity was used up, and whether the old
		// one is, its end tells.
		pause := min(k.every/keepRetries, keepRetryMax)
		k.due = now.Add(max(time.Duration(float64(pause)*(1-random/2)), time.Millisecond))
	}
	k.state, k.err = Uncertain, err
}

// hurry brings the next extension forward: a copy was put back that does not count
// yet, or is still to be put back.
func (k *keepPlan) hurry(now time.Time) {
	if k.due.IsZero() || k.extensions > 0 {
		return
	}
	if soon := now.Add(max(attempt.SettleTime, k.every/keepHurry)); soon.Before(k.due) {
		k.due = soon
	}
}

// missed is told that a copy is gone: an extension that begins after that says what it
// means.
func (k *keepPlan) missed(time.Time) { k.gone = k.extensions == 0 }

// stop ends the extensions.
func (k *keepPlan) stop() { k.stopped = true }

// release is told that the lock is about to be given back.
func (k *keepPlan) release(now time.Time) {
	k.stopped = true
	if k.expire(now); !k.ended() {
		k.state, k.err = Released, nil
	}
}

// lose ends it; last is what the last extension failed of.
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
