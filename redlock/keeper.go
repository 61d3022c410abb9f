package redlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// ErrLost is the cause of the end of [Keeper.Context] when the lock was lost
// while it was kept. The error that wraps it is an [*Error], and also
// [ErrNotHeld] when the nodes said that the token holds no quorum any more, or
// [ErrExpired] when the validity ended before an extension was confirmed.
var ErrLost = errors.New("lost")

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
	// Lost is a lock that must not be relied on any more: its validity is over, or
	// the token holds no quorum. It never becomes anything else.
	Lost
	// Released is a lock that was given back by [Keeper.Release].
	Released
)

// String is the state in one lower-case word.
func (s KeeperState) String() string {
	return [...]string{"held", "uncertain", "lost", "released"}[s]
}

// KeepOptions are the settings of a [Keeper]. The zero value of a field means
// its default.
type KeepOptions struct {
	// TTL is what each extension asks for. Default the TTL that the lock has.
	TTL time.Duration
	// Every is how long after an extension the next one is due; each time up to a
	// fifth of it is taken away by chance, so that clients that began together do
	// not stay together. Shorter: more time to try again when an extension fails,
	// and a lock that was taken away is noticed sooner; longer: less to send. More
	// than half of the validity counts as half. Default a third of the TTL.
	Every time.Duration
	// MaxExtensions is how many extensions are made at most; then the validity
	// runs out, and the lock is lost. A holder that hangs and goes on extending
	// keeps all others out for ever. Default 0: no limit.
	MaxExtensions int
	// Context is the parent of [Keeper.Context]. When it ends, that one ends too;
	// the lock is kept all the same, for whatever is being wound up under it, until
	// [Keeper.Stop] or [Keeper.Release]. Default [context.Background].
	Context context.Context
	// Repaired is told the names of nodes on which a copy that was missing was put
	// back. It is called by the keeper's goroutine, and must not block.
	Repaired func(nodes []string)
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

// keeping is what a [Keeper] decides, as a pure step machine: no clock, no
// goroutine, no randomness. Its driver asks next what to do, carries it out,
// tells the outcome of an extension to extended or failed, and asks again;
// expire may be called at any time, also meanwhile. Each says what time it is.
type keeping struct {
	resource   string
	ttl        time.Duration // of an extension
	allowance  time.Duration // by which its validity is shorter
	every      time.Duration
	extensions int // the limit; 0: none

	state   KeeperState
	until   time.Time // the end of validity
	due     time.Time // of the next extension; zero: there will be none
	made    int       // extensions
	stopped bool
	err     error // why it is uncertain or lost
}

// keepAct is what a driver has to do next.
type keepAct uint8

const (
	keepWait   keepAct = iota // ask again at the time that comes with it
	keepExtend                // extend, and tell the outcome
	keepEnd                   // nothing any more
)

// ended tells if the state is final.
func (k *keeping) ended() bool { return k.state == Lost || k.state == Released }

// expire notices the end of validity.
func (k *keeping) expire(now time.Time) {
	if !k.ended() && !now.Before(k.until) {
		k.lose(ErrExpired, k.err)
	}
}

// next is what to do now.
func (k *keeping) next(now time.Time) (keepAct, time.Time) {
	k.expire(now)
	switch {
	case k.ended(), k.stopped:
		return keepEnd, time.Time{}
	case !k.due.IsZero() && !now.Before(k.due):
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
func (k *keeping) extended(now, until time.Time, random float64) {
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
func (k *keeping) plan(random float64) {
	pause := time.Duration(float64(k.every) * (1 - keepJitter*random))
	k.due = k.until.Add(k.allowance - k.ttl + pause)
}

// failed is told of an extension that failed, and why. random is uniform in
// [0, 1).
func (k *keeping) failed(now time.Time, err error, random float64) {
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
func (k *keeping) hurry(now time.Time) {
	if k.due.IsZero() || k.extensions > 0 {
		return
	}
	if soon := now.Add(max(SettleTime, k.every/keepHurry)); soon.Before(k.due) {
		k.due = soon
	}
}

// stop ends the extensions.
func (k *keeping) stop() { k.stopped = true }

// release is told that the lock is about to be given back.
func (k *keeping) release(now time.Time) {
	k.stopped = true
	if k.expire(now); !k.ended() {
		k.state, k.err = Released, nil
	}
}

// lose ends it; last is what the last extension failed of.
func (k *keeping) lose(kind, last error) {
	lost := &Error{Op: "keep", Resource: k.resource, Kind: lostError{kind: kind}}
	if k.extensions > 0 && k.made >= k.extensions {
		lost.Kind = lostError{kind: kind, after: k.made}
	}
	if e := (*Error)(nil); errors.As(last, &e) {
		lost.Nodes = e.Nodes
	}
	k.state, k.err = Lost, lost
}

// lostError is ErrLost, of a kind.
type lostError struct {
	kind  error
	after int // so many extensions, which are the limit; 0: there is none
}

func (e lostError) Unwrap() []error { return []error{ErrLost, e.kind} }

func (e lostError) Error() string {
	if e.after > 0 {
		return fmt.Sprintf("%s: %s after %d extensions, the limit", ErrLost, e.kind, e.after)
	}
	return fmt.Sprintf("%s: %s", ErrLost, e.kind)
}

// Keeper extends a lock for as long as it is needed, and tells its holder how
// it stands. A copy that went with the restart of its node it puts back when the
// node serves again, so that a lock outlives a restart of all masters one by one;
// see the package documentation. It costs one goroutine and a timer. Its methods
// may be called by many goroutines.
//
// The validity is measured on the monotonic clock, which goes on while the
// process is stopped. On Linux it does not go on while the machine sleeps, but
// the masters' clocks do; there the keeper also compares it with
// CLOCK_BOOTTIME, and a sleep counts as time that has passed. What a keeper is
// asked ([Keeper.State], [Keeper.Until], Err and Done of [Keeper.Context]) it
// answers after a look at the clocks, so that a holder that was stopped and asks
// before it acts is told the truth at once. A holder that only waits for Done is
// told by a timer, at the end of validity, or within a second after a sleep of
// the machine. The pause of a virtual machine, and sleeps on other systems than
// Linux, are not noticed.
type Keeper struct {
	lock    *Lock
	repairs *repairs
	ctx     context.Context
	cancel  context.CancelCauseFunc // of ctx
	halt    context.CancelFunc      // of the goroutine, and of its extension
	done    chan struct{}           // closed when the goroutine has ended
	changes chan KeeperState

	mu      sync.Mutex
	machine keeping
	slept   time.Duration // by the machine, before the validity was known
	timer   *time.Timer   // for the end of validity
}

// Keep begins to extend the lock, and does so until [Keeper.Stop],
// [Keeper.Release] or the loss of the lock; one of the two must be called. Only
// one keeper should keep a lock, and nobody else should extend or release it
// meanwhile. A lock that is not valid any more is [Lost] from the beginning.
func (l *Lock) Keep(opt KeepOptions) *Keeper {
	if opt.TTL == 0 {
		opt.TTL = l.TTL()
	}
	if opt.Every <= 0 {
		opt.Every = opt.TTL / 3
	}
	if opt.Context == nil {
		opt.Context = context.Background()
	}
	k := &Keeper{
		lock: l, slept: l.client.suspended(), // before Until
		repairs: &repairs{lock: l, tell: opt.Repaired},
		done:    make(chan struct{}), changes: make(chan KeeperState, 1),
		machine: keeping{
			resource: l.Resource(), ttl: opt.TTL, allowance: l.client.opt.Drift(opt.TTL),
			extensions: opt.MaxExtensions, until: l.Until(),
		},
	}
	k.machine.every = max(0, min(opt.Every, (k.machine.ttl-k.machine.allowance)/2))
	k.machine.plan(rand.Float64())
	k.ctx, k.cancel = context.WithCancelCause(opt.Context)
	var halted context.Context
	halted, k.halt = context.WithCancel(context.Background())
	k.update(func(now time.Time) {
		k.timer = time.AfterFunc(k.machine.until.Sub(now), k.look)
		if now.Before(k.machine.until) && !l.Valid(now) {
			k.machine.lose(ErrNotHeld, nil)
		} else if err := l.client.checkTTL("keep", l.Resource(), opt.TTL); err != nil {
			k.machine.failed(now, err, 0)
		}
	})
	go k.run(halted)
	return k
}

// Context ends when the lock is lost, no later than at the end of validity,
// with [ErrLost] as a cause; with the keeper's release, before the first node is
// told, with [context.Canceled] as its cause; and with [KeepOptions.Context]. It
// has no deadline, since the end of validity moves with each extension.
//
// Its Err and Done look at the clock themselves. A context that is derived from
// it is told by its Done.
func (k *Keeper) Context() context.Context { return keptContext{k.ctx, k} }

// keptContext is a context that asks its keeper first.
type keptContext struct {
	context.Context
	keeper *Keeper
}

func (c keptContext) Err() error {
	c.keeper.look()
	return c.Context.Err()
}

func (c keptContext) Done() <-chan struct{} {
	c.keeper.look()
	return c.Context.Done()
}

// State is how the lock stands now.
func (k *Keeper) State() KeeperState {
	k.look()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.machine.state
}

// Until is the end of validity as it is known now: nothing must be done in the
// name of the lock from then on, unless it is extended before. It is not later
// than [Lock.Until], and earlier after the machine has slept.
func (k *Keeper) Until() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.machine.until.Add(-k.asleep())
}

// Err is why the lock is [Uncertain] (what the last extension failed of) or
// [Lost] (see [ErrLost]); else nil.
func (k *Keeper) Err() error {
	k.look()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.machine.err
}

// Changes tells each new state. It never holds the keeper up: who does not
// read in time misses states, but not the latest one. The state with which
// everything began is not told. The channel is closed behind [Lost] or
// [Released].
func (k *Keeper) Changes() <-chan KeeperState { return k.changes }

// Stop ends the extensions, and with them the keeper's goroutine, for which it
// waits. An extension that is under way is given up. The lock stays held, and
// the state goes on telling how it stands, until its validity ends.
func (k *Keeper) Stop() {
	k.update(func(time.Time) { k.machine.stop() })
	k.halt()
	<-k.done
}

// Release ends what is done under [Keeper.Context], ends the extensions as
// [Keeper.Stop] does, and releases the lock, for which see [Lock.Release]. A
// lost lock is released too, since copies of it may be left, and the error says
// that it was lost.
func (k *Keeper) Release(ctx context.Context) ([]NodeResult, error) {
	k.update(k.machine.release)
	k.halt()
	<-k.done
	return k.lock.Release(ctx)
}

// look notices the end of validity.
func (k *Keeper) look() { k.update(k.machine.expire) }

// now is the time by which the machine decides: the monotonic clock, and what it
// has missed since the validity began. k.mu is held.
func (k *Keeper) now() time.Time { return time.Now().Add(k.asleep()) }

func (k *Keeper) asleep() time.Duration { return sleptSince(k.slept, k.lock.client.suspended) }

// update lets the machine take a step, and tells whoever has to know.
func (k *Keeper) update(step func(now time.Time)) {
	k.mu.Lock()
	before := k.machine.state
	now := k.now()
	step(now)
	k.machine.expire(now)
	after, cause := k.machine.state, k.machine.err
	if after != before {
		select {
		case <-k.changes: // nobody has read it, and it is not the latest any more
		default:
		}
		k.changes <- after // has room: only this sends, under k.mu
		if k.machine.ended() {
			close(k.changes)
			k.timer.Stop()
		}
	}
	k.mu.Unlock()
	// Whoever sees the end sees to it that the context has ended: it may come here
	// before the one that brought it about. Nothing is held meanwhile, since others
	// may hang on to the context.
	switch after {
	case Lost:
		k.cancel(cause)
		k.halt()
	case Released:
		k.cancel(nil)
	}
}

// run carries out what the machine decides, one thing after the other.
func (k *Keeper) run(halted context.Context) {
	defer close(k.done)
	for {
		var act keepAct
		var pause time.Duration
		k.update(func(now time.Time) {
			var wake time.Time
			act, wake = k.machine.next(now)
			pause = wake.Sub(now)
		})
		switch act {
		case keepEnd:
			return
		case keepExtend:
			k.extend(halted)
		case keepWait:
			timer := time.NewTimer(pause)
			select {
			case <-timer.C:
			case <-halted.Done():
				timer.Stop()
			}
		}
	}
}

// extend makes one extension. The end of validity does not wait for it: there is
// a timer for that, which gives it up.
func (k *Keeper) extend(halted context.Context) {
	slept := k.lock.client.suspended() // before the first request, as the validity is counted
	r, err := k.lock.extend(halted, k.machine.ttl, k.repairs.known())
	until := k.lock.Until()
	k.update(func(now time.Time) {
		switch {
		case err != nil && halted.Err() != nil: // given up, which says nothing of the lock
		case err != nil:
			k.machine.failed(now, err, rand.Float64())
		default:
			before := k.machine.until
			k.machine.extended(now, until, rand.Float64())
			if k.machine.until.After(before) {
				k.slept = slept
				k.timer.Reset(k.machine.until.Sub(k.now()))
			}
		}
	})
	if r == nil || halted.Err() != nil {
		return
	}
	// The extension took its time from within the validity, and is over.
	if k.repairs.round(halted, r, err == nil && k.State() == Held, until) {
		k.update(k.machine.hurry)
	}
}
