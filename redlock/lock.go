package redlock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"redlockctl/redlock/attempt"
)

// Lock is one grant. Its methods may be called by many goroutines. The zero Lock
// belongs to no client and is never valid.
type Lock struct {
	client          *Client
	resource, token string
	fencing         uint64

	mu       sync.Mutex
	ttl      time.Duration
	until    time.Time     // correct while the machine was not suspended longer than slept
	slept    time.Duration // suspended time so far, in all
	granted  *attemptRun   // that the validity is of
	released bool
	lost     bool
	copies   []leftCopy    // what earlier runs are known to have left on the nodes; nil: there were none
	runs     []*attemptRun // the later ones
	keeper   *Keeper       // nil: none keeps it
}

// ofClient is the error of an operation on a lock that no client made.
func (l *Lock) ofClient(op string) error {
	if l == nil || l.client == nil {
		return invalid(op, "", "the lock was not acquired from a client")
	}
	return nil
}

// Resource is what is locked.
func (l *Lock) Resource() string { return l.resource }

// Token names the grant.
func (l *Lock) Token() string { return l.token }

// TTL is the TTL of the acquisition, or of the last extension.
func (l *Lock) TTL() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ttl
}

// Until is the end of validity, on the monotonic clock: start of the attempt + TTL −
// drift allowance. The lock must not be relied on after it. On Linux this clock does
// not advance while the machine is suspended, but the masters' clocks do: a suspension
// makes the end earlier by as much.
func (l *Lock) Until() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end()
}

// end is Until; l.mu is held.
func (l *Lock) end() time.Time {
	if l.client == nil {
		return l.until
	}
	return l.until.Add(-sleptSince(l.slept, l.client.suspended))
}

// Valid reports whether the lock may be relied on at now: it was not released, no
// extension has found it lost, and its validity has not ended.
func (l *Lock) Valid(now time.Time) bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.released && !l.lost && now.Before(l.end())
}

// Nodes returns the result of each node when the acquisition, or the last successful
// extension, was decided. Nodes that had not answered by then are [StatusUnanswered];
// their copies may have arrived later.
func (l *Lock) Nodes() []NodeResult {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.granted == nil {
		return nil
	}
	return slices.Clone(l.granted.nodeResults())
}

// Extend is [Client.Extend] within the validity of this grant: it counts only if a
// quorum confirms it before the present validity ends, and it never shortens the
// validity. After [ErrNotHeld] the lock is lost: this token can never reach a quorum
// again. After [ErrExpired] its validity has ended. After any other failure the
// validity is unchanged, and until it ends the extension may be tried again.
func (l *Lock) Extend(ctx context.Context, ttl time.Duration) error {
	if err := l.ofClient("extend"); err != nil {
		return err
	}
	_, err := l.extend(ctx, ttl, l.votes())
	return err
}

// votes returns the copies that nodes confirmed in time. Any other may have arrived
// after a force-release that found none, and does not count yet.
func (l *Lock) votes() *attempt.Copies {
	copies := new(attempt.Copies)
	copies.Reset(len(l.client.nodes))
	l.mu.Lock()
	defer l.mu.Unlock()
	ends := func(m leftCopy) time.Time {
		if l.copies == nil && len(l.runs) == 1 { // nothing but the grant
			return l.runs[0].machine.Until()
		}
		return m.until // later, which is safe
	}
	for i := range l.client.nodes {
		switch m := l.known(i); {
		case m.inTime:
			copies.Voted(i, m.where)
			copies.Ends(i, ends(m))
		case m.where != "" || m.vague:
			copies.Unanswered(i, m.where)
		}
	}
	return copies
}

// extend is Extend; copies says which copies count. The run is nil if nothing was sent.
func (l *Lock) extend(ctx context.Context, ttl time.Duration, copies *attempt.Copies) (r *attemptRun, err error) {
	const op = "extend"
	defer l.client.observe(ctx, op, l.resource)(&err)
	l.mu.Lock()
	until, gone := l.end(), l.released || l.lost
	l.mu.Unlock()
	if gone {
		return nil, &Error{Op: op, Resource: l.resource, Kind: ErrNotHeld}
	}
	r, err = l.client.extend(ctx, l.resource, l.token, ttl, attempt.Terms{NotAfter: until, Copies: copies})
	if r == nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs = append(l.runs, r)
	l.settle()
	switch {
	case err != nil:
		l.lost = l.lost || errors.Is(err, ErrNotHeld)
		return r, err
	case l.released || l.lost:
		// Released meanwhile: the release follows the extension on every node.
		return r, &Error{Op: op, Resource: l.resource, Kind: ErrNotHeld, Nodes: r.nodeResults()}
	}
	if u := r.machine.Until(); u.After(l.end()) {
		l.until, l.slept = u, r.slept
	}
	l.ttl, l.granted = r.machine.Terms().TTL, r
	return r, nil
}

// settle records late answers, and forgets the runs that are complete. l.mu is held.
func (l *Lock) settle() {
	l.runs = slices.DeleteFunc(l.runs, func(r *attemptRun) bool {
		copies, all := r.leftCopies()
		if !all {
			return false
		}
		for i, m := range copies {
			l.settled()[i].merge(m)
		}
		return true
	})
}

// settled returns what earlier runs have left, to be changed; l.mu is held.
func (l *Lock) settled() []leftCopy {
	if l.copies == nil {
		l.copies = make([]leftCopy, len(l.client.nodes))
	}
	return l.copies
}

// Release is [Client.Release] of this lock; see there for its errors. It also reports
// whether the lock had been lost: the error is then [ErrLost], and [ErrNotHeld] if the
// nodes say that the token had lost its quorum, or [ErrExpired] if the validity had ended
// and the nodes do not disprove it. Another client may have held the lock meanwhile.
// Release returns as soon as the token has no quorum: nodes that have not answered by
// then are [StatusUnanswered], and get the release later. The lock is invalid as soon as
// Release begins, even if it fails. MayLiveUntil is set where a copy may be left and its
// end is known; it is zero where a request that was never answered may still arrive.
func (l *Lock) Release(ctx context.Context) ([]NodeResult, error) { return l.release(ctx, false) }

// release is Release; all has it wait for all nodes.
func (l *Lock) release(ctx context.Context, all bool) (results []NodeResult, err error) {
	const op = "release"
	if err := l.ofClient(op); err != nil {
		return nil, err
	}
	if ctx == nil {
		return nil, invalid(op, l.resource, "the context is nil")
	}
	defer l.client.observe(ctx, op, l.resource)(&err)
	l.mu.Lock()
	keeper := l.keeper
	l.mu.Unlock()
	if keeper != nil { // its holder learns at once that the lock is released
		keeper.update(keeper.machine.release)
		keeper.halt()
	}
	l.mu.Lock()
	again := l.released
	valid := !l.lost && time.Now().Before(l.end())
	l.released = true
	copies := make([]leftCopy, 0, 8)
	for i := range l.client.nodes {
		copies = append(copies, l.known(i))
	}
	for _, r := range l.runs {
		r.over.Store(true) // unsent requests are dropped
	}
	l.mu.Unlock()
	ask, quorum := releaseOf(l.resource, l.token, copies), l.client.Quorum()
	left := ask.left
	results, err = l.client.release(ctx, ask, func(results []NodeResult) bool {
		if all || !l.client.released(results) {
			return false
		}
		deleted, possible, missing := remains(results, left)
		// More answers are needed only in case of doubt.
		return valid && !missing || deleted >= quorum || possible < quorum
	})
	if deleted, possible, _ := remains(results, left); results != nil && !again && deleted < quorum {
		switch {
		case possible < quorum:
			err = l.lostBefore(ErrNotHeld, results, err)
		case !valid:
			err = l.lostBefore(ErrExpired, results, err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range results {
		if !isClean(&results[i]) {
			results[i].MayLiveUntil = l.mayLive(i)
		}
	}
	return results, err
}

// remains counts, by the answers to a release, the copies that existed and those that may
// have existed. missing reports whether a known copy had disappeared.
func remains(results []NodeResult, left []leftState) (deleted, possible int, missing bool) {
	for i := range results {
		switch r := &results[i]; {
		case r.Status == StatusOK:
			deleted++
			possible++
		case isClean(r):
			missing = missing || left[i] == leftCopied
		case left[i] != leftNothing:
			possible++
		}
	}
	return deleted, possible, missing
}

// lostBefore is the error of a release after the lock was lost; err is a further cause.
func (l *Lock) lostBefore(kind error, results []NodeResult, err error) error {
	e := &Error{Op: "release", Resource: l.resource, Kind: lostError{kind: kind}, Nodes: results}
	if errors.Is(err, ErrNoQuorum) {
		e.also = ErrNoQuorum
	}
	return e
}

// mayLive is the latest time at which the copy on a node expires, if that is known.
func (l *Lock) mayLive(node int) time.Time {
	m := l.known(node)
	if m.unknown {
		return time.Time{}
	}
	return m.until
}

// known returns what is known of the copy on a node; l.mu is held.
func (l *Lock) known(node int) leftCopy {
	var m leftCopy
	if l.copies != nil {
		m = l.copies[node]
	}
	for _, r := range l.runs {
		m.merge(r.leftCopy(node))
	}
	return m
}

// Extend extends a grant by its token: each node that has the token keeps its copy for
// at least ttl. It never creates a missing copy and never shortens a TTL.
//
// The lock is held again only if a quorum had the token. A quorum of copies is enough,
// whenever the grant was made: while a quorum of nodes has this token no other client
// can hold the lock, and none can get it before the new copies expire. But another
// client may have held it in between: a SET that was delayed in the network, or a
// [Keeper], may have created a copy that was not there before. A holder that must know
// uses [Lock.Extend], which is bounded by the present validity. The caller must be the
// holder or act for it: an extension does not revive a failed attempt, whose release is
// under way.
//
// It fails with an [*Error] of the kind [ErrNotHeld] when so many nodes lack the token
// that it cannot have a quorum, [ErrNoQuorum] when too many did not answer,
// [ErrExpired] when the answers came too late, the cause of ctx's end, [ErrInvalid] or
// [ErrClosed]. There is no retry. Nothing is released: the copies belong to a grant
// that may be valid.
func (c *Client) Extend(ctx context.Context, resource, token string, ttl time.Duration) (_ *Lock, err error) {
	defer c.observe(ctx, "extend", resource)(&err)
	r, err := c.extend(ctx, resource, token, ttl, attempt.Terms{})
	if err != nil {
		return nil, err
	}
	l := r.lock()
	for i := range l.settled() {
		l.copies[i].unknown = true // its TTL may have been longer than this one
		l.copies[i].sent = true    // by whoever acquired it
		l.copies[i].vague = true
	}
	return l, nil
}

func (c *Client) extend(ctx context.Context, resource, token string, ttl time.Duration, terms attempt.Terms) (*attemptRun, error) {
	const op = "extend"
	ttl = ttl.Truncate(time.Millisecond)
	if err := checkNames(op, resource, token); err != nil {
		return nil, err
	}
	if err := c.checkTTL(op, resource, ttl); err != nil {
		return nil, err
	}
	if err := c.enterConnected(ctx, op, resource); err != nil {
		return nil, err
	}
	defer c.ops.Done()
	terms.Extend = true
	r, err := c.try(ctx, true, func() *attemptRun { return c.attempt(ctx, resource, token, ttl, terms, false) })
	if err != nil {
		return nil, c.endedBy(ctx, op, resource, err, nil)
	}
	if r.verdict() != attempt.VerdictGranted {
		return r, r.failure(ctx, op)
	}
	return r, nil
}

func (r *attemptRun) lock() *Lock {
	return &Lock{
		client: r.client, resource: r.ask.key, token: r.ask.token, ttl: r.machine.Terms().TTL,
		until: r.machine.Until(), slept: r.slept, granted: r, runs: []*attemptRun{r},
	}
}

// FencingToken is the number of this grant: greater than that of every grant
// of the resource that was confirmed before. It is zero for a lock that was not
// acquired by [Client.AcquireFenced].
func (l *Lock) FencingToken() uint64 { return l.fencing }

// Acquire acquires the lock, with retries (see [Options]). TTLs are rounded down to
// milliseconds. A waiting caller is woken when the lock is released or its TTL ends,
// and tries again then. The waiters of one client get the lock in the order in which
// they came.
//
// It fails with an [*Error] of the kind [ErrContended], [ErrNoQuorum] or [ErrExpired], as the
// last attempt did; of the cause of ctx's end if that came first; of [ErrInvalid] or
// [ErrClosed]. If the deadline of ctx came first, the nodes are asked once more, within the
// node timeout, why: the error is then also [ErrContended], with the holder, or [ErrNoQuorum].
// The copies that a failed attempt may have left are released, even after the end of ctx, in
// the background; [Client.Close] waits for that.
func (c *Client) Acquire(ctx context.Context, resource string, ttl time.Duration) (*Lock, error) {
	return c.AcquireWith(ctx, resource, AcquireOptions{TTL: ttl})
}

// TryAcquire makes a single attempt; it is repeated if this process had no time to read
// the answers. It fails as [Client.Acquire] does.
func (c *Client) TryAcquire(ctx context.Context, resource string, ttl time.Duration) (*Lock, error) {
	return c.AcquireWith(ctx, resource, AcquireOptions{TTL: ttl, Retries: -1})
}

// AcquireFenced is [Client.Acquire] for a lock with a fencing token (see
// [Lock.FencingToken]). It costs one more round trip, and fails with [ErrNoQuorum] if
// the token could not be written to a quorum.
func (c *Client) AcquireFenced(ctx context.Context, resource string, ttl time.Duration) (*Lock, error) {
	return c.AcquireWith(ctx, resource, AcquireOptions{TTL: ttl, Fenced: true})
}

// AcquireWith is [Client.Acquire] with settings of its own.
func (c *Client) AcquireWith(ctx context.Context, resource string, opt AcquireOptions) (_ *Lock, err error) {
	const op = "acquire"
	defer c.observe(ctx, op, resource)(&err)
	ttl, fenced := opt.TTL.Truncate(time.Millisecond), opt.Fenced
	if err := checkResource(op, resource); err != nil {
		return nil, err
	}
	if err := c.checkTTL(op, resource, ttl); err != nil {
		return nil, err
	}
	if err := c.enterConnected(ctx, op, resource); err != nil {
		return nil, err
	}
	defer c.ops.Done()
	loop := retryLoop{client: c, resource: resource, opt: c.opt.with(opt)}
	loop.attempts = max(loop.opt.Retries, 0)
	if loop.attempts < UntilContextEnds {
		loop.attempts++ // the first is not a retry
	}
	defer loop.leave()
	var last *Error
	for made := 1; loop.next(ctx, last); made++ {
		run, err := c.try(ctx, false, func() *attemptRun {
			return c.attempt(ctx, resource, c.token(loop.note()), ttl, attempt.Terms{}, fenced)
		})
		if err != nil {
			loop.err = err
			break
		}
		if run.verdict() == attempt.VerdictGranted {
			lock := run.lock()
			if !fenced {
				loop.granted = true
				return lock, nil
			}
			if lock.fencing, run.unfenced = run.draw(); run.unfenced == nil {
				loop.granted = true
				return lock, nil
			}
			run.giveUp()
		}
		last = run.failure(ctx, op)
		last.Attempts = made
		if last.ended != nil || errors.Is(last.Kind, ErrClosed) {
			c.explain(ctx, last, nil)
			return nil, last
		}
	}
	switch {
	case loop.err != nil:
		given := &Error{Nodes: c.blank()}
		if last != nil {
			given = last
		}
		made := given.Attempts
		given = c.endedBy(ctx, op, resource, loop.err, given.Nodes).(*Error)
		given.Attempts = made
		c.explain(ctx, given, last)
		return nil, given
	case errors.Is(last.Kind, ErrContended):
		c.identify(ctx, last)
	}
	return nil, last
}

// explain finds out why an acquisition did not succeed before its deadline, or uses the
// error of the attempt before. It does nothing for a cancelled context.
func (c *Client) explain(ctx context.Context, e, before *Error) {
	if !errors.Is(e.ended, context.DeadlineExceeded) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.nodeTimeout())
	defer cancel()
	n, quorum := len(c.nodes), c.Quorum()
	seen := c.lookUntil(ctx, e.Resource, func(results []NodeResult) bool {
		taken, _ := occupied(results)
		return taken > n-quorum
	})
	for i, was := range e.Nodes {
		// A node that refuses votes can still be read.
		if was.Status == StatusFenced || was.Status == StatusDenied || seen[i].Status == StatusUnanswered {
			seen[i] = was
		}
		seen[i].MayLiveUntil = was.MayLiveUntil
	}
	e.Nodes = seen
	switch taken, free := occupied(seen); {
	case taken > n-quorum:
		e.also = ErrContended
	case taken+free < quorum:
		e.also = ErrNoQuorum
	case before != nil && (errors.Is(before.Kind, ErrContended) || errors.Is(before.Kind, ErrNoQuorum)):
		e.also = before.Kind
	}
}

// occupied counts the nodes that have the key, and those that do not.
func occupied(results []NodeResult) (taken, free int) {
	for _, r := range results {
		switch {
		case r.Type != "", r.Status == StatusHeld:
			taken++
		case r.Status == StatusAbsent:
			free++
		}
	}
	return taken, free
}

// identify finds out who holds the resource, for the message.
func (c *Client) identify(ctx context.Context, e *Error) {
	for i, r := range c.look(ctx, e.Resource) {
		at := &e.Nodes[i]
		if r.Type != "" && (at.Status == StatusHeld || at.Status == StatusUnanswered) {
			at.Status, at.Token, at.Len, at.Type, at.TTL = StatusHeld, r.Token, r.Len, r.Type, r.TTL
		}
	}
}
