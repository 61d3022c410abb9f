package redlock

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"redlockctl/base/crash"
	"redlockctl/redlock/attempt"
)

// KeepOptions are the settings of a [Keeper]. The zero value of a field means
// its default.
type KeepOptions struct {
	// TTL is what each extension asks for. Default the TTL that the lock has.
	TTL time.Duration
	// Every is how long after an extension the next one is due; each time up to a
	// fifth of it is taken away by chance, so that clients that began together do
	// not stay together. Shorter: more time to try again when an extension fails,
	// and a lock that was revoked or force-released is noticed sooner; longer: less to send. More
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
	// back. It is called in a goroutine of its own, one call after the other.
	Repaired func(nodes []string)
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
//
// Where nodes tell of changes (CLIENT TRACKING), a copy that is deleted or taken by
// others is noticed at once: the lock is extended then, and is lost if no quorum has
// it any more. With [KeepOptions.MaxExtensions] that waits for the next extension.
type Keeper struct {
	lock    *Lock
	repairs *repairs
	ctx     context.Context
	cancel  context.CancelCauseFunc // of ctx
	halt    context.CancelFunc      // of the goroutine, and of its extension
	done    chan struct{}           // closed when the goroutine has ended
	changes chan KeeperState
	hint    chan struct{} // a copy is gone

	mu      sync.Mutex
	machine keepPlan
	slept   time.Duration // by the machine, before the validity was known
	timer   *time.Timer   // for the end of validity
}

// Keep begins to extend the lock, and does so until [Keeper.Stop],
// [Keeper.Release] or the loss of the lock; one of the two must be called. Nobody else should
// extend the lock meanwhile; [Lock.Release] ends the keeper. A lock that is not valid any more is
// [Lost] from the beginning. Keep fails with [ErrInvalid] if the TTL leaves no validity or is out
// of range, if another option is negative, or while another keeper keeps the lock.
func (l *Lock) Keep(opt KeepOptions) (*Keeper, error) {
	const op = "keep"
	if err := l.ofClient(op); err != nil {
		return nil, err
	}
	if opt.TTL == 0 {
		opt.TTL = l.TTL()
	}
	switch err := l.client.checkTTL(op, l.resource, opt.TTL); {
	case err != nil:
		return nil, err
	case opt.Every < 0:
		return nil, invalid(op, l.resource, "the pause between extensions is negative")
	case opt.MaxExtensions < 0:
		return nil, invalid(op, l.resource, "the number of extensions is negative")
	case opt.Every == 0:
		opt.Every = opt.TTL / 3
	}
	if opt.Context == nil {
		opt.Context = context.Background()
	}
	k := &Keeper{
		lock: l, slept: l.client.suspended(), // before Until
		repairs: &repairs{lock: l, tell: opt.Repaired},
		done:    make(chan struct{}), changes: make(chan KeeperState, 1), hint: make(chan struct{}, 1),
		machine: keepPlan{
			resource: l.Resource(), ttl: opt.TTL, allowance: l.client.opt.Drift(opt.TTL),
			extensions: opt.MaxExtensions, until: l.Until(),
		},
	}
	k.machine.every = max(0, min(opt.Every, (k.machine.ttl-k.machine.allowance)/2))
	k.machine.plan(rand.Float64())
	k.ctx, k.cancel = context.WithCancelCause(opt.Context)
	var halted context.Context
	halted, k.halt = context.WithCancel(context.Background())
	kept := false
	k.update(func(now time.Time) {
		k.timer = time.AfterFunc(k.machine.until.Sub(now), k.look)
		if kept = !l.keptBy(k); kept {
			k.timer.Stop()
			return
		}
		if now.Before(k.machine.until) && !l.Valid(now) {
			k.machine.lose(ErrNotHeld, nil)
		}
	})
	if kept {
		k.halt()
		k.cancel(nil)
		return nil, invalid(op, l.resource, "another keeper keeps the lock")
	}
	crash.Go(func() { k.run(halted) })
	return k, nil
}

// keptBy reports whether k may keep the lock: nobody else does.
func (l *Lock) keptBy(k *Keeper) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keeper != nil {
		return false
	}
	l.keeper = k
	return true
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

// missed is told that a copy is gone, or another's.
func (k *Keeper) missed() {
	k.update(k.machine.missed)
	poke(k.hint)
}

// run carries out what the machine decides, one thing after the other.
func (k *Keeper) run(halted context.Context) {
	defer close(k.done)
	defer func() {
		k.lock.mu.Lock()
		defer k.lock.mu.Unlock()
		k.lock.keeper = nil // another may keep it
	}()
	watch := k.lock.client.watchCopies(k.lock.Resource(), k.lock.Token(), k.missed)
	defer watch.end()
	for {
		var action keepAction
		var pause time.Duration
		k.update(func(now time.Time) {
			var wake time.Time
			action, wake = k.machine.next(now)
			pause = wake.Sub(now)
		})
		switch action {
		case keepEnd:
			return
		case keepExtend:
			k.extend(halted)
		case keepWait:
			timer := time.NewTimer(pause)
			select {
			case <-timer.C:
			case <-k.hint:
				timer.Stop()
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

// Do does work under a lock: it acquires it as [Client.AcquireWith] does, keeps it
// ([Lock.Keep]) while work runs, and releases it, also when work panics. The context
// that work gets ends with ctx, and when the lock is lost, with [ErrLost] as its
// cause; work should return then, which Do waits for.
//
// The error is that of the acquisition, when work has not begun; else that of work,
// joined with one that is [ErrLost] if the lock was lost before work had returned. A
// release that does not reach enough nodes is no error of the work: what it leaves
// ends with the TTL.
func (c *Client) Do(ctx context.Context, resource string, opt AcquireOptions, work func(ctx context.Context, lock *Lock) error) (err error) {
	if work == nil {
		return invalid("acquire", resource, "there is no work")
	}
	lock, err := c.AcquireWith(ctx, resource, opt)
	if err != nil {
		return err
	}
	keeper, err := lock.Keep(KeepOptions{Context: ctx})
	if err != nil {
		_, rerr := lock.Release(ctx)
		return errors.Join(err, rerr)
	}
	defer func() {
		lost := error(nil)
		if keeper.State() == Lost {
			lost = keeper.Err()
		}
		if _, rerr := keeper.Release(ctx); lost == nil && errors.Is(rerr, ErrLost) {
			lost = rerr
		}
		if lost != nil {
			err = errors.Join(err, lost)
		}
	}()
	return work(keeper.Context(), lock)
}

// repairs puts back the copies of a lock that is kept. It is of one goroutine, that
// of the keeper.
type repairs struct {
	lock   *Lock
	tell   func(nodes []string)
	told   chan struct{} // closed when the last call of tell has returned; nil: there was none
	copies *attempt.Copies
}

// known is what is known of the copies, by which an extension counts. What became of
// the acquisition is looked at late, when all that was sent has been answered.
func (p *repairs) known() *attempt.Copies {
	if p.copies == nil {
		p.copies = p.lock.votes()
	}
	return p.copies
}

// round takes in the answers to an extension and, if it was granted, puts back the
// copies that are missing, before the end of validity. It reports whether there is more to
// do soon. It waits no longer than two node timeouts, and not beyond halted.
func (p *repairs) round(halted context.Context, r *attemptRun, granted bool, until time.Time) (more bool) {
	c := p.lock.client
	timer := time.NewTimer(time.Until(r.machine.Deadline()))
	defer timer.Stop()
	select {
	case <-r.all:
	case <-timer.C:
	case <-halted.Done():
		return false
	}
	copies, _ := r.leftCopies()
	for i, m := range copies {
		if m.heard {
			p.copies.Extended(i, m.said.status, m.said.incarnation, m.said.at)
		}
	}
	if !granted {
		return false
	}
	p.copies.Confirmed(r.machine.Terms().Start)
	var to []int
	for i := range c.nodes {
		if p.copies.Missing(i) {
			to = append(to, i)
		}
	}
	if asked := p.send(to, r, until); asked != nil {
		p.learn(asked.wait(time.Now().Add(c.opt.NodeTimeout+c.opt.NodeTimeout/2), halted.Done()), to, r)
	}
	return p.copies.Settling()
}

// send asks nodes to take the copy, where nothing stands in its place. It is queued
// before a release that comes later, on the same stream. It returns nil if it asks none.
func (p *repairs) send(to []int, r *attemptRun, until time.Time) *replies {
	l, c := p.lock, p.lock.client
	by := time.Now().Add(c.opt.NodeTimeout)
	if until.Before(by) {
		by = until
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(to) == 0 || l.released || l.lost || !time.Now().Before(l.end()) {
		return nil
	}
	asked := newReplies(len(c.nodes), len(to), len(to))
	for _, i := range to {
		l.copies[i].sent = true // a release has to go there
		set := &call{op: opSet, node: i, key: l.resource, token: l.token, ttl: r.machine.Terms().TTL, notAfter: by, to: asked}
		c.streams[i].enqueue(set)
		if l.fencing > 0 {
			// The counter went with the copy. The script writes where the copy is.
			c.streams[i].enqueue(&call{
				op: opFence, node: i, key: l.resource, token: l.token, value: strconv.FormatUint(l.fencing, 10), ttl: fencingTTL, notAfter: by,
			})
		}
	}
	return asked
}

// learn takes in what became of it.
func (p *repairs) learn(said []answer, to []int, r *attemptRun) {
	var done []string
	p.lock.mu.Lock()
	for _, i := range to {
		a := said[i]
		if a.at.IsZero() { // not heard of
			a.Status, a.sent, a.at = StatusSlow, true, time.Now()
		}
		p.copies.Repaired(i, a.Status, a.sent, a.incarnation, a.at)
		p.lock.copies[i].learn(a, r.machine.Terms())
		if a.Status == StatusOK {
			done = append(done, p.lock.client.nodes[i].Name())
		}
	}
	p.lock.mu.Unlock()
	if p.tell != nil && len(done) > 0 {
		before, ended := p.told, make(chan struct{})
		p.told = ended
		crash.Go(func() { // who stops the keeper in it waits for this goroutine
			if before != nil {
				<-before
			}
			p.tell(done)
			close(ended)
		})
	}
}

// InOrder are names in the order in which several locks are acquired, each once:
// whoever acquires in this order waits for nobody who waits for him.
func InOrder(resources []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(resources)))
}

// DoAll is [Client.Do] under several locks: all of them, or none. They are acquired one
// after the other in the order of [InOrder], so that two callers that name the same in
// another order do not wait for each other for ever, are kept from the moment that each
// was acquired, and are released in reverse. The context of work ends when the first of
// them is lost. locks are in the order of resources. What cannot be acquired is named by
// the [Error]; then no lock is held any more.
//
// A caller waits for a lock while it holds those before it: keep the names few.
func (c *Client) DoAll(ctx context.Context, resources []string, opt AcquireOptions, work func(ctx context.Context, locks []*Lock) error) error {
	switch {
	case len(resources) == 0:
		return invalid("acquire", "", "no resource is named")
	case work == nil:
		return invalid("acquire", resources[0], "there is no work")
	}
	held := make(map[string]*Lock, len(resources))
	var next func(ctx context.Context, left []string) error
	next = func(ctx context.Context, left []string) error {
		if len(left) > 0 {
			return c.Do(ctx, left[0], opt, func(ctx context.Context, l *Lock) error {
				held[left[0]] = l
				return next(ctx, left[1:])
			})
		}
		locks := make([]*Lock, len(resources))
		for i, name := range resources {
			locks[i] = held[name]
		}
		return work(ctx, locks)
	}
	return next(ctx, InOrder(resources))
}
