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
	// Every is how long after an extension the next one is due; each time it is shortened by a
	// random part of up to a fifth, so that clients that began together do not stay together.
	// Shorter: more time to try again when an extension fails, and a lock that was revoked or
	// force-released is noticed sooner; longer: less to send. More than half of the validity
	// counts as half. Default a third of the TTL.
	Every time.Duration
	// MaxExtensions is how many extensions are made at most; then the validity ends,
	// and the lock is lost. Without a limit, a holder that hangs but keeps extending
	// keeps all others out for ever. Default 0: no limit.
	MaxExtensions int
	// Context is the parent of [Keeper.Context]. When it ends, that one ends too;
	// the lock is kept all the same, for whatever is being wound up under it, until
	// [Keeper.Stop] or [Keeper.Release]. Default [context.Background].
	Context context.Context
	// Repaired is called with the names of nodes on which a missing copy was put back.
	// It runs in a goroutine of its own, one call at a time.
	Repaired func(nodes []string)
	// AllAnswers has [Keeper.Release] wait for the answers of all nodes, at most for the node
	// timeout, to tell what each of them did. Default: it waits until the lock is released.
	AllAnswers bool
}

// Keeper extends a lock for as long as it is needed, and tells its holder whether it is
// still held. A copy that was lost in a restart of its node, or expired while the node was
// fenced, is put back when the node serves again, so that a lock survives a restart of all
// masters one by one; see the package documentation. It costs one goroutine and a timer. Its methods may be called
// by many goroutines.
//
// The validity is measured on the monotonic clock, which advances while the process is
// stopped. On Linux it does not advance while the machine is suspended, but the
// masters' clocks do. So the keeper also reads CLOCK_BOOTTIME there, and counts the
// time of a suspension. [Keeper.State], [Keeper.Until], and Err and Done of
// [Keeper.Context] read the clocks before they answer: a holder that was stopped and
// asks before it acts gets the truth at once. A holder that only waits for Done is
// woken by a timer, at the end of validity, or within a second after a suspension. A
// paused virtual machine, and suspensions on other systems than Linux, are not noticed.
//
// Where nodes report changes (CLIENT TRACKING), a copy that others delete or replace is
// noticed at once: the keeper extends the lock then, and the lock is lost if no quorum
// has it. With [KeepOptions.MaxExtensions] that waits for the next extension.
type Keeper struct {
	lock    *Lock
	answers bool // see [KeepOptions]
	repairs *repairs
	ctx     context.Context
	cancel  context.CancelCauseFunc // of ctx
	halt    context.CancelFunc      // of the goroutine, and of its extension
	done    chan struct{}           // closed when the goroutine has ended
	changes chan KeeperState
	hint    chan struct{} // a copy has disappeared

	mu      sync.Mutex
	machine keepPlan
	slept   time.Duration // suspended time, before the validity was known
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
		lock: l, answers: opt.AllAnswers, slept: l.client.suspended(), // before Until
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

// keptBy reports whether k may keep the lock: no other keeper does.
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
// Its Err and Done read the clock themselves. A derived context only follows its Done.
func (k *Keeper) Context() context.Context { return keptContext{k.ctx, k} }

// keptContext is a context that checks its keeper first.
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

// State reports whether the lock is held now.
func (k *Keeper) State() KeeperState {
	k.look()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.machine.state
}

// Until is the end of validity as it is known now: the lock must not be relied on after
// it, unless it was extended before. It is not later than [Lock.Until], and earlier
// after the machine has slept.
func (k *Keeper) Until() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.machine.until.Add(-k.asleep())
}

// Err is why the lock is [Uncertain] (the error of the last extension) or [Lost] (see
// [ErrLost]); otherwise nil.
func (k *Keeper) Err() error {
	k.look()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.machine.err
}

// Changes returns a channel of the new states. It never delays the keeper: a slow
// reader misses states, but not the latest one. The first state is not sent. The
// channel is closed after [Lost] or [Released].
func (k *Keeper) Changes() <-chan KeeperState { return k.changes }

// Stop ends the extensions, and with them the keeper's goroutine, for which it waits.
// An extension under way is cancelled. The lock stays held until its validity ends, and
// [Keeper.State] stays correct until then.
func (k *Keeper) Stop() {
	k.update(func(time.Time) { k.machine.stop() })
	k.halt()
	<-k.done
}

// Release ends [Keeper.Context], ends the extensions as [Keeper.Stop] does, and
// releases the lock; see [Lock.Release], and [KeepOptions].AllAnswers. A lost lock is released too, since copies of
// it may be left, and the error says that it was lost.
func (k *Keeper) Release(ctx context.Context) ([]NodeResult, error) {
	k.update(k.machine.release)
	k.halt()
	<-k.done
	return k.lock.release(ctx, k.answers)
}

// look checks whether the validity has ended.
func (k *Keeper) look() { k.update(k.machine.expire) }

// now is the time at which the machine decides: the monotonic clock plus the suspended
// time since the validity began. k.mu is held.
func (k *Keeper) now() time.Time { return time.Now().Add(k.asleep()) }

func (k *Keeper) asleep() time.Duration { return sleptSince(k.slept, k.lock.client.suspended) }

// update steps the machine and reports the new state.
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
	// Whoever sees the end also ends the context: a reader may come here before the
	// goroutine that caused the end. No mutex is held, since others may depend on the
	// context.
	switch after {
	case Lost:
		k.cancel(cause)
		k.halt()
	case Released:
		k.cancel(nil)
	}
}

// missed is called when a copy has disappeared or was replaced.
func (k *Keeper) missed() {
	k.update(k.machine.missed)
	poke(k.hint)
}

// run carries out the machine's decisions, one at a time.
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

// extend makes one extension. It does not delay the end of validity: a timer cancels it
// then.
func (k *Keeper) extend(halted context.Context) {
	slept := k.lock.client.suspended() // before the first request, as the validity is counted
	r, err := k.lock.extend(halted, k.machine.ttl, k.repairs.known())
	until := k.lock.Until()
	k.update(func(now time.Time) {
		switch {
		case err != nil && halted.Err() != nil: // cancelled, which says nothing about the lock
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
	// The extension used some of the validity, and has ended.
	if k.repairs.round(halted, r, err == nil && k.State() == Held, until) {
		k.update(k.machine.hurry)
	}
}

// Do runs work under a lock: it acquires the lock as [Client.AcquireWith] does, keeps
// it ([Lock.Keep]) while work runs, and releases it, even if work panics. The context
// of work ends with ctx, and when the lock is lost, with [ErrLost] as its cause. Work
// should return then; Do waits for it.
//
// If work has not begun, the error is that of the acquisition. Otherwise it is that of
// work, joined with [ErrLost] if the lock was lost before work returned. A release that
// does not reach enough nodes is not an error: the copies that it leaves expire.
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

// repairs puts back the copies of a kept lock. Only the keeper's goroutine uses it.
type repairs struct {
	lock    *Lock
	tell    func(nodes []string)
	telling chan struct{} // closed when the last call of tell has returned; nil: none was made
	copies  *attempt.Copies
}

// known returns what is known of the copies, by which an extension counts. The outcome
// of the acquisition is read late, when every request has been answered.
func (p *repairs) known() *attempt.Copies {
	if p.copies == nil {
		p.copies = p.lock.votes()
	}
	return p.copies
}

// round records the answers to an extension and, if it was granted, puts missing copies
// back before the validity ends. It reports whether there is more to do soon. It waits for
// at most two node timeouts, and not after halted.
func (p *repairs) round(halted context.Context, r *attemptRun, granted bool, until time.Time) (more bool) {
	c := p.lock.client
	timer := time.NewTimer(time.Until(r.machine.Deadline()))
	defer timer.Stop()
	select {
	case <-r.complete():
	case <-timer.C:
	case <-halted.Done():
		return false
	}
	copies, _ := r.leftCopies()
	for i, m := range copies {
		switch {
		case m.said.there:
			p.copies.Refused(i, m.said.incarnation)
		case m.heard:
			p.copies.Extended(i, m.said.status, m.said.incarnation, m.said.at)
		default:
			p.copies.Extended(i, StatusSlow, "", time.Time{})
		}
		switch {
		case m.said.status == StatusOK:
			p.copies.Ends(i, r.machine.Until())
		case !m.heard, m.sent && !m.said.status.Answered():
			p.copies.Ends(i, time.Time{})
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
		p.learn(asked.wait(time.Now().Add(c.nodeTimeout()*3/2), halted.Done()), to, r)
	}
	return p.copies.Settling()
}

// send asks nodes that have no key to take the copy. In the stream it comes before any
// later release. It returns nil if it asks no node.
func (p *repairs) send(to []int, r *attemptRun, until time.Time) *replies {
	l, c := p.lock, p.lock.client
	by := time.Now().Add(c.nodeTimeout())
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
		l.settled()[i].sent = true // it needs a release
		set := request{op: opSet, key: l.resource, token: l.token, ttl: r.machine.Terms().TTL, notAfter: by, to: asked}
		c.streams[i].enqueue(&call{request: &set, node: i})
		if l.fencing > 0 {
			// The counter was lost with the copy. The script writes only where the copy
			// is.
			fence := request{op: opFence, key: l.resource, token: l.token, value: strconv.FormatUint(l.fencing, 10), ttl: fencingTTL, notAfter: by}
			c.streams[i].enqueue(&call{request: &fence, node: i})
		}
	}
	return asked
}

// learn records the outcome.
func (p *repairs) learn(said []answer, to []int, r *attemptRun) {
	var done []string
	p.lock.mu.Lock()
	for _, i := range to {
		a := said[i]
		if a.at.IsZero() { // not answered
			a.Status, a.sent, a.at = StatusSlow, true, time.Now()
		}
		p.copies.Repaired(i, a.Status, a.sent, a.incarnation, a.at)
		if terms := r.machine.Terms(); a.Status == StatusOK {
			p.copies.Ends(i, a.at.Add(terms.TTL-terms.Drift))
		}
		p.lock.settled()[i].learn(a, r.machine.Terms())
		if a.Status == StatusOK {
			done = append(done, p.lock.client.nodes[i].Name())
		}
	}
	p.lock.mu.Unlock()
	if p.tell != nil && len(done) > 0 {
		before, ended := p.telling, make(chan struct{})
		p.telling = ended
		crash.Go(func() { // if tell stops the keeper, it waits for this goroutine
			if before != nil {
				<-before
			}
			p.tell(done)
			close(ended)
		})
	}
}

// InOrder returns the names, each once, in the order in which several locks are
// acquired. Clients that all acquire in this order cannot deadlock.
func InOrder(resources []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(resources)))
}

// DoAll is [Client.Do] under several locks: all of them, or none. They are acquired one
// at a time in the order of [InOrder], so that two callers cannot deadlock, each is kept
// from the moment that it is acquired, and they are released in reverse order. The
// context of work ends when the first of them is lost. locks are in the order of
// resources. The [Error] names the lock that could not be acquired; then no lock is
// held.
//
// A caller holds the first locks while it waits for the next: use few names.
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
