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
// is of no client, and is never valid.
type Lock struct {
	client          *Client
	resource, token string
	fencing         uint64

	mu       sync.Mutex
	ttl      time.Duration
	until    time.Time     // the machine has not slept since
	slept    time.Duration // this, in all
	results  []NodeResult
	released bool
	lost     bool
	copies   []leftCopy    // what is known to be left on the nodes
	runs     []*attemptRun // of which some nodes have not answered yet
	keeper   *Keeper       // that keeps it; nil: nobody does
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

// TTL is what was asked for, at last.
func (l *Lock) TTL() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ttl
}

// Until is the end of validity, on the monotonic clock: start of the attempt +
// TTL − drift allowance. Nothing must be done in the name of the lock from
// then on. While the machine sleeps that clock stands still on Linux, and those
// of the masters do not: when it has slept, the end is earlier by as much.
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

// Valid reports whether the lock may be relied upon at now: it was not released, no
// extension has found it lost, and its validity runs.
func (l *Lock) Valid(now time.Time) bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.released && !l.lost && now.Before(l.end())
}

// Nodes are the results of the nodes when the lock was decided, by the
// acquisition or by the last extension that succeeded. Nodes that had not
// answered by then are [StatusUnanswered]; their copies may have come later.
func (l *Lock) Nodes() []NodeResult {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.results)
}

// Extend is [Client.Extend] within the validity of this grant: it counts only
// when a quorum has confirmed it before the validity so far has ended, and the
// validity never becomes shorter by it. After [ErrNotHeld] the lock is lost: a
// quorum of nodes cannot be had for this token any more. After [ErrExpired] its
// validity is over. After any other failure the validity is what it was, and
// while it lasts the extension may be tried again.
func (l *Lock) Extend(ctx context.Context, ttl time.Duration) error {
	if err := l.ofClient("extend"); err != nil {
		return err
	}
	_, err := l.extend(ctx, ttl, l.votes())
	return err
}

// votes are the copies of which nodes told in time. Any other may have come behind a
// force-release that found none, and does not count yet.
func (l *Lock) votes() *attempt.Copies {
	copies := new(attempt.Copies)
	copies.Reset(len(l.copies))
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.copies {
		switch m := l.known(i); {
		case m.inTime:
			copies.Voted(i, m.where)
		case m.where != "" || m.vague:
			copies.Unanswered(i, m.where)
		}
	}
	return copies
}

// extend is Extend; copies say which of them count. The run is nil if nothing was
// sent.
func (l *Lock) extend(ctx context.Context, ttl time.Duration, copies *attempt.Copies) (*attemptRun, error) {
	const op = "extend"
	l.mu.Lock()
	until, gone := l.end(), l.released || l.lost
	l.mu.Unlock()
	if gone {
		return nil, &Error{Op: op, Resource: l.resource, Kind: ErrNotHeld}
	}
	r, err := l.client.extend(ctx, l.resource, l.token, ttl, attempt.Terms{NotAfter: until, Copies: copies})
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
		// Meanwhile. The release is behind the extension on every node.
		return r, &Error{Op: op, Resource: l.resource, Kind: ErrNotHeld, Nodes: r.results}
	}
	if u := r.machine.Until(); u.After(l.end()) {
		l.until, l.slept = u, r.slept
	}
	l.ttl, l.results = r.machine.Terms().TTL, r.results
	return r, nil
}

// settle takes in late answers, and forgets the runs that have nothing more to
// tell. l.mu is held.
func (l *Lock) settle() {
	l.runs = slices.DeleteFunc(l.runs, func(r *attemptRun) bool {
		copies, all := r.leftCopies()
		if !all {
			return false
		}
		for i, m := range copies {
			l.copies[i].merge(m)
		}
		return true
	})
}

// Release is [Client.Release], which see for its errors, but reports whether the lock was
// lost before: the error is [ErrLost] then, and [ErrNotHeld] where the nodes say that
// the token held no quorum any more, or [ErrExpired] where the validity had ended and
// the nodes cannot say otherwise. What was done last in its name may have been done
// beside another holder. It returns as soon as
// the token holds no quorum any more: nodes that have not answered by then are
// [StatusUnanswered], and hear of it all the same. The lock is not valid
// any more from its beginning on, whatever becomes of it. MayLiveUntil is set
// where a copy may be left and its end is known; it is zero where a request
// that was never answered may still be on its way.
func (l *Lock) Release(ctx context.Context) ([]NodeResult, error) {
	const op = "release"
	if err := l.ofClient(op); err != nil {
		return nil, err
	}
	if ctx == nil {
		return nil, invalid(op, l.resource, "the context is nil")
	}
	l.mu.Lock()
	keeper := l.keeper
	l.mu.Unlock()
	if keeper != nil { // it says at once that the lock is not held any more
		keeper.update(keeper.machine.release)
		keeper.halt()
	}
	l.mu.Lock()
	again := l.released
	valid := !l.lost && time.Now().Before(l.end())
	l.released = true
	copies := make([]leftCopy, len(l.copies))
	for i := range copies {
		copies[i] = l.known(i)
	}
	for _, r := range l.runs {
		r.over.Store(true) // what was not sent yet need not be
	}
	l.mu.Unlock()
	ask, quorum := releaseOf(l.resource, l.token, copies), l.client.Quorum()
	results, err := l.client.release(ctx, ask, func(results []NodeResult) bool {
		if !l.client.released(results) {
			return false
		}
		deleted, possible, missing := remains(results, copies, ask.clean)
		// Only where there is doubt it takes more answers to tell.
		return valid && !missing || deleted >= quorum || possible < quorum
	})
	if deleted, possible, _ := remains(results, copies, ask.clean); results != nil && !again && deleted < quorum {
		switch {
		case possible < quorum:
			err = l.lostBefore(ErrNotHeld, results, err)
		case !valid:
			err = l.lostBefore(ErrExpired, results, err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle()
	for i := range results {
		if !isClean(results[i]) {
			results[i].MayLiveUntil = l.mayLive(i)
		}
	}
	return results, err
}

// remains counts, by the answers to a release, the copies that were there and
// those that can have been there. missing reports whether one was gone that had been there.
func remains(results []NodeResult, copies []leftCopy, clean []bool) (deleted, possible int, missing bool) {
	for i, r := range results {
		switch {
		case r.Status == StatusOK:
			deleted++
			possible++
		case isClean(r):
			missing = missing || !copies[i].until.IsZero()
		case !clean[i]:
			possible++
		}
	}
	return deleted, possible, missing
}

// lostBefore is the error of a release that comes after the loss of the lock; err is
// what else it failed of.
func (l *Lock) lostBefore(kind error, results []NodeResult, err error) error {
	e := &Error{Op: "release", Resource: l.resource, Kind: lostError{kind: kind}, Nodes: results}
	if errors.Is(err, ErrNoQuorum) {
		e.also = ErrNoQuorum
	}
	return e
}

// mayLive is when the copy on a node ends at the latest, if that is known.
func (l *Lock) mayLive(node int) time.Time {
	m := l.known(node)
	if m.unknown {
		return time.Time{}
	}
	return m.until
}

// known is what is known of the copy on a node; l.mu is held.
func (l *Lock) known(node int) leftCopy {
	m := l.copies[node]
	for _, r := range l.runs {
		m.merge(r.leftCopy(node))
	}
	return m
}

// Extend sets the TTL of a grant anew, by its token: on each node where the
// token is, its copy then lives for at least ttl. A copy that is not there is
// never made anew, and none is shortened.
//
// It is held again only when a quorum had the token. That a quorum of copies
// suffices, without knowing when the grant was made: while a quorum of nodes has
// this token nobody else can hold one, and nobody can get one before the new
// copies expire. It does not say that nobody had one in between: a SET that the
// network held up, or a [Keeper], may make a copy that was not there before. A
// holder that must know asks [Lock.Extend], which is bounded by the validity
// before. The caller must be the holder or act for
// it: an extension does not make an attempt good that has failed, since its
// release is on the way.
//
// It fails with an [*Error] of the kind [ErrNotHeld] when so many nodes do not
// have the token that it cannot hold a quorum, [ErrNoQuorum] when too many did
// not tell, [ErrExpired] when the answers came too late, the cause of ctx's end,
// [ErrInvalid] or [ErrClosed]. There is no retry. Nothing is released: the copies
// belong to a grant that may be valid.
func (c *Client) Extend(ctx context.Context, resource, token string, ttl time.Duration) (*Lock, error) {
	r, err := c.extend(ctx, resource, token, ttl, attempt.Terms{})
	if err != nil {
		return nil, err
	}
	l := r.lock()
	for i := range l.copies {
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
		client: r.client, resource: r.resource, token: r.token, ttl: r.machine.Terms().TTL,
		until: r.machine.Until(), slept: r.slept, results: r.results, runs: []*attemptRun{r},
		copies: make([]leftCopy, len(r.copies)),
	}
}

// FencingToken is the number of this grant: greater than that of every grant
// of the resource that was confirmed before. It is zero for a lock that was not
// acquired by [Client.AcquireFenced].
func (l *Lock) FencingToken() uint64 { return l.fencing }

// Acquire takes the lock, with retries (see [Options]). TTLs are rounded down
// to milliseconds. Who has to wait is woken when the lock is released or its
// time is over, and makes further attempts then; those of one client get it in
// the order in which they came.
//
// It fails with an [*Error] of the kind [ErrContended], [ErrNoQuorum] or
// [ErrExpired] when the last attempt did; of the cause of ctx's end when that
// came first; of [ErrInvalid] or [ErrClosed]. When the deadline of ctx came first,
// the nodes are asked once more, within the node timeout, what was in the way: the
// error is [ErrContended], with the holder, or [ErrNoQuorum] too. Whatever a failed attempt may
// have left on any node is released, also when ctx is over; that goes on in the
// background, and [Client.Close] waits for it.
func (c *Client) Acquire(ctx context.Context, resource string, ttl time.Duration) (*Lock, error) {
	return c.AcquireWith(ctx, resource, AcquireOptions{TTL: ttl})
}

// TryAcquire makes a single attempt; one that was late because this process had no
// time does not count. It fails as [Client.Acquire] does.
func (c *Client) TryAcquire(ctx context.Context, resource string, ttl time.Duration) (*Lock, error) {
	return c.AcquireWith(ctx, resource, AcquireOptions{TTL: ttl, Retries: -1})
}

// AcquireFenced is [Client.Acquire] for a lock with a fencing token (see
// [Lock.FencingToken]). It costs one round trip more, and fails with
// [ErrNoQuorum] when the token could not be written to a quorum.
func (c *Client) AcquireFenced(ctx context.Context, resource string, ttl time.Duration) (*Lock, error) {
	return c.AcquireWith(ctx, resource, AcquireOptions{TTL: ttl, Fenced: true})
}

// AcquireWith is [Client.Acquire] with settings of its own.
func (c *Client) AcquireWith(ctx context.Context, resource string, opt AcquireOptions) (*Lock, error) {
	const op = "acquire"
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

// explain looks what was in the way of an acquisition that its deadline has ended,
// or leaves it with what the attempt before failed of. Who has lost interest is not
// held up.
func (c *Client) explain(ctx context.Context, e, before *Error) {
	if !errors.Is(e.ended, context.DeadlineExceeded) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.opt.NodeTimeout)
	defer cancel()
	n, quorum := len(c.nodes), c.Quorum()
	seen := c.lookUntil(ctx, e.Resource, func(results []NodeResult) bool {
		taken, _ := occupied(results)
		return taken > n-quorum
	})
	for i, was := range e.Nodes {
		// A node that refuses for itself can be read all the same.
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

// occupied counts the nodes on which something stands under the key, and those on
// which nothing does.
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

// identify looks who holds the resource, for the message.
func (c *Client) identify(ctx context.Context, e *Error) {
	for i, r := range c.look(ctx, e.Resource) {
		at := &e.Nodes[i]
		if r.Type != "" && (at.Status == StatusHeld || at.Status == StatusUnanswered) {
			at.Status, at.Token, at.Len, at.Type, at.TTL = StatusHeld, r.Token, r.Len, r.Type, r.TTL
		}
	}
}
