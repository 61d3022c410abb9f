package redlock

import (
	"context"
	crand "crypto/rand"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// newToken draws the name of one grant: 18 random bytes, and two with a note to
// those who wait for the resource, as 27 characters; the package documentation
// says why so many are enough. It names one attempt: a retry draws anew, since a
// release of the attempt before it that comes late would otherwise delete its
// copies.
func newToken(n note) string {
	var b [tokenBytes]byte
	_, _ = crand.Read(b[:]) // never fails
	b[tokenBytes-2], b[tokenBytes-1] = n.serial, n.waited
	return base64.RawURLEncoding.EncodeToString(b[:])
}

const (
	tokenBytes = 20
	tokenChars = 27 // in base64url
)

// note is what a token tells of the wait for it; see [lookout]. Of another's
// token that looks like one of ours it is two numbers that mean nothing, which
// costs somebody a little time at most.
type note struct {
	serial uint8 // of the grant: one more than that of the holder before
	waited uint8 // how often the lock changed hands meanwhile; unwaited: not known
}

const unwaited = 255

// noteOf reads the note in a token.
func noteOf(token string) note {
	var b [tokenBytes]byte
	token, _, _ = strings.Cut(token, ownerMark)
	if len(token) != tokenChars {
		return note{waited: unwaited}
	}
	if _, err := base64.RawURLEncoding.Decode(b[:], []byte(token)); err != nil {
		return note{waited: unwaited}
	}
	return note{b[tokenBytes-2], b[tokenBytes-1]}
}

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

// AcquireWith is [Client.Acquire] with settings of its own.
func (c *Client) AcquireWith(ctx context.Context, resource string, opt AcquireOptions) (*Lock, error) {
	const op = "acquire"
	ttl, fenced := opt.TTL.Truncate(time.Millisecond), opt.Fenced
	if resource == "" {
		return nil, &Error{Op: op, Resource: resource, Kind: ErrInvalid, detail: "the name of the resource is empty"}
	}
	if err := c.checkTTL(op, resource, ttl); err != nil {
		return nil, err
	}
	if err := c.enter(op, resource); err != nil {
		return nil, err
	}
	defer c.ops.Done()
	if err := c.warm.wait(ctx, c.closing, c.opt); err != nil {
		return nil, c.endedBy(ctx, op, resource, err, nil)
	}
	spot := spot{client: c, resource: resource, opt: c.opt.with(opt)}
	spot.attempts = max(spot.opt.Retries, 0)
	if spot.attempts < UntilContextEnds {
		spot.attempts++ // the first is not a retry
	}
	defer spot.leave()
	var last *Error
	for made := 1; spot.next(ctx, last); made++ {
		run, err := c.try(ctx, false, func() *run {
			return c.attempt(ctx, resource, c.token(spot.note()), ttl, Terms{}, fenced)
		})
		if err != nil {
			spot.err = err
			break
		}
		if run.verdict() == VerdictGranted {
			lock := run.lock()
			if !fenced {
				spot.granted = true
				return lock, nil
			}
			if lock.fencing, run.unfenced = run.draw(); run.unfenced == nil {
				spot.granted = true
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
	case spot.err != nil:
		given := &Error{Nodes: c.blank()}
		if last != nil {
			given = last
		}
		made := given.Attempts
		given = c.endedBy(ctx, op, resource, spot.err, given.Nodes).(*Error)
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

// run is an [Attempt] that is driven over the streams of a client: the answers
// step it as they come, and whoever waits for it is woken once, by the verdict.
type run struct {
	client          *Client
	resource, token string
	over            atomic.Bool   // failed: what was not sent yet need not be
	reads           *numbers      // of fencing; nil where none are wanted
	unfenced        error         // why it was granted in vain: it got no fencing token
	slept           time.Duration // what the client's suspended said before the start
	decided         chan struct{} // has room for one

	mu      sync.Mutex
	machine *Attempt
	next    Send // what the verdict asks to be sent
	results []NodeResult
	copies  []remnant
	left    int           // nodes that have not answered
	all     chan struct{} // closed when there are none
}

// attempt drives an [Attempt] of which terms says whether it extends, and not
// after when, to its verdict. There must be room for its call, see [gate].
func (c *Client) attempt(ctx context.Context, resource, token string, ttl time.Duration, terms Terms, fenced bool) *run {
	r := &run{
		client: c, resource: resource, token: token, results: c.blank(),
		copies: make([]remnant, len(c.nodes)), decided: make(chan struct{}, 1),
		left: len(c.nodes), all: make(chan struct{}),
	}
	terms.N, terms.TTL, terms.Drift, terms.Wait = len(c.nodes), ttl, c.opt.Drift(ttl), c.opt.wait(ttl)
	r.slept = c.suspended()
	terms.Start = time.Now()
	machine, send := Begin(terms)
	r.machine = machine
	deadline := machine.Deadline()
	proto := call{key: resource, token: token, ttl: ttl, notAfter: deadline, over: &r.over, to: r, queued: terms.Start, admitted: true}
	switch send {
	case SendSet:
		proto.op, proto.numbered = opSet, fenced
		if fenced {
			r.reads = newNumbers(len(c.nodes), c.Quorum())
		}
		c.send(proto)
	case SendExtend:
		proto.op = opExtend
		c.send(proto)
	default:
		c.gate.leave()
		return r
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	for waiting := true; waiting; {
		select {
		case <-r.decided:
			waiting = false
		case <-timer.C:
			// A step ahead of its deadline, by the grain of the clock, decides nothing.
			if !r.step(func(m *Attempt) (Send, Verdict) { return m.Tick(r.awake(time.Now())) }) {
				timer.Reset(max(time.Until(deadline), time.Millisecond))
			}
		case <-ctx.Done():
			r.step((*Attempt).Cancel)
		case <-c.closing:
			r.step((*Attempt).Cancel)
		}
	}
	if r.verdict() != VerdictGranted {
		r.over.Store(true)
	}
	if r.next == SendRelease { // final since the verdict
		r.giveUp()
	}
	return r
}

// lateMost is how many attempts in a row may fail because this process was late.
const lateMost = 20

// try waits for room and makes an attempt, and once more when it was this process
// that was too late for its node timeout, and not the nodes.
func (c *Client) try(ctx context.Context, urgent bool, attempt func() *run) (*run, error) {
	for late := 0; ; late++ {
		if err := c.gate.enter(ctx, urgent, c.closing); err != nil {
			return nil, err
		}
		if r := attempt(); late == lateMost || !r.late(ctx) {
			return r, nil
		}
	}
}

// late reports whether the attempt had no quorum only because answers were not read
// by its deadline that nodes gave all the same. What they will have answered, or that
// they hang, their streams know as soon as this process has the time to look.
func (r *run) late(ctx context.Context) bool {
	// A short TTL leaves no time for this. A sleep of the machine is no lack of time.
	if r.machine.terms.Wait < r.client.opt.NodeTimeout || sleptSince(r.slept, r.client.suspended) > 0 || !r.onlyLate(true) {
		return false
	}
	timer := time.NewTimer(takeWindow)
	defer timer.Stop()
	select {
	case <-r.all:
	case <-timer.C:
	case <-ctx.Done():
	case <-r.client.closing:
	}
	return r.onlyLate(false)
}

// onlyLate reports whether there was no quorum, and would have been an answer from
// one without those nodes that have answered since, or whose request this process did
// not send in time; with maybe also those that may be about to answer.
func (r *run) onlyLate(maybe bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.machine.Verdict() != VerdictNoQuorum {
		return false
	}
	failed := 0
	for i, m := range r.copies {
		s := r.machine.Status(i)
		well := r.client.streams[i].room.well.Load()
		switch {
		case s == StatusOK, s == StatusHeld, s == StatusAbsent, s == StatusUnanswered:
		case s != StatusSlow: // it failed
			failed++
		case m.heard && answered(NodeResult{Status: m.said.status}): // since
		case well && m.heard && !m.sent: // it was not asked in time
		case well && !m.heard && maybe:
		default:
			failed++
		}
	}
	return failed <= len(r.copies)-Quorum(len(r.copies))
}

// giveUp releases what the attempt may have left, on each node behind its SET, and
// does not wait for it. It is not held up for want of room either: what does not
// find any is owed.
func (r *run) giveUp() {
	r.over.Store(true)
	copies, _ := r.remnants()
	ask := releaseOf(r.resource, r.token, copies)
	ask.neverSent = r.neverSent
	r.client.send(ask)
}

// releaseOf is the release of copies of which this is known.
func releaseOf(resource, token string, copies []remnant) call {
	c := call{op: opRelease, key: resource, token: token, clean: make([]bool, len(copies))}
	known := true
	for i, m := range copies {
		known = known && m.heard && !m.unknown
		c.clean[i] = m.heard && !m.unknown && m.until.IsZero()
		if m.until.After(c.until) {
			c.until = m.until
		}
	}
	if !known {
		c.until = time.Time{}
	}
	return c
}

// step steps the machine, and tells if the verdict is there.
func (r *run) step(f func(*Attempt) (Send, Verdict)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stepLocked(f)
}

func (r *run) stepLocked(f func(*Attempt) (Send, Verdict)) bool {
	if r.machine.Verdict() != VerdictPending {
		return true
	}
	send, verdict := f(r.machine)
	if verdict == VerdictPending {
		return false
	}
	r.next = send
	r.decided <- struct{}{}
	return true
}

// answered gives the answer of a node to the machine, and keeps what it says.
// Answers also come after the verdict: they tell what copies there are.
func (r *run) answered(a answer) {
	status := a.Status
	if wrongType(a.NodeResult) {
		status = StatusHeld
	}
	r.mu.Lock()
	if r.machine.Verdict() == VerdictPending {
		r.client.keep(r.results, a)
		at := r.awake(a.at)
		r.stepLocked(func(m *Attempt) (Send, Verdict) { return m.Answer(a.node, status, at) })
	}
	r.copies[a.node].learn(a, r.machine.terms)
	if r.left--; r.left == 0 && r.all != nil {
		close(r.all)
	}
	r.mu.Unlock()
	if r.reads != nil {
		r.counted(a)
	}
}

// awake is the time by which the attempt is judged: t, and for how long the machine
// has slept since the start. A grant that spans a sleep would come later than it
// seems, later perhaps than the bound on which early rejoin rests.
func (r *run) awake(t time.Time) time.Time { return t.Add(sleptSince(r.slept, r.client.suspended)) }

func (r *run) verdict() Verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.machine.Verdict()
}

// neverSent reports whether it is known that nothing was sent to a node.
func (r *run) neverSent(node int) bool {
	m := r.remnant(node)
	return m.heard && !m.sent
}

// remnants is what is known of the copies by now, and whether that is all.
func (r *run) remnants() (copies []remnant, all bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.copies), !slices.ContainsFunc(r.copies, func(m remnant) bool { return !m.heard })
}

// remnant is what is known of the copy on a node by now.
func (r *run) remnant(node int) remnant {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.copies[node]
}

func (r *run) lock() *Lock {
	return &Lock{
		client: r.client, resource: r.resource, token: r.token, ttl: r.machine.terms.TTL,
		until: r.machine.Until(), slept: r.slept, results: r.results, runs: []*run{r},
		copies: make([]remnant, len(r.copies)),
	}
}

// failure is the error for a verdict other than granted.
func (r *run) failure(ctx context.Context, op string) *Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := &Error{Op: op, Resource: r.resource, Nodes: r.results, Attempts: 1}
	for i := range e.Nodes {
		if e.Nodes[i].Status == StatusUnanswered && r.machine.Status(i) == StatusSlow {
			e.Nodes[i].Status = StatusSlow
		}
		if !r.machine.terms.Extend {
			e.Nodes[i].MayLiveUntil = r.copies[i].until
		}
	}
	switch r.machine.Verdict() {
	case VerdictGranted:
		e.Kind, e.why = ErrNoQuorum, r.unfenced
		if errors.Is(r.unfenced, ErrExpired) {
			e.Kind = ErrExpired
		}
	case VerdictContended:
		e.Kind = ErrContended
	case VerdictNotHeld:
		e.Kind = ErrNotHeld
	case VerdictNoQuorum:
		e.Kind = ErrNoQuorum
	case VerdictExpired:
		e.Kind = ErrExpired
	case VerdictCancelled:
		if ctx.Err() == nil {
			e.Kind = ErrClosed
			break
		}
		e.Kind, e.ended = context.Cause(ctx), ctx.Err()
	}
	return e
}

// remnant is what is known of the copy that a request may have left on a node.
type remnant struct {
	heard   bool      // the request was answered, or has failed
	sent    bool      // it may have reached the node
	until   time.Time // the latest end that a known copy can have; zero: none known
	unknown bool      // a copy may be there, or still come, of which no end is known
	// where is the last incarnation in which a copy may have been, vague that there
	// may have been one in an incarnation that is not known. See [Copies].
	where string
	vague bool
	said  said // of the last answer
}

// said is what is remembered of an answer: there are many of these.
type said struct {
	status      Status
	incarnation string
	at          time.Time
}

// learn takes in what became of a SET or an extension.
func (m *remnant) learn(a answer, t Terms) {
	m.heard = true
	m.sent = m.sent || a.sent
	m.said = said{a.Status, a.incarnation, a.at}
	if a.Status == StatusOK || a.sent && !answered(a.NodeResult) {
		m.where, m.vague = a.incarnation, a.incarnation == ""
	}
	switch {
	case a.Status == StatusOK:
		// The node began to count between sending and answering, on a clock that may
		// be slower than ours by the drift allowance.
		m.until = a.at.Add(t.TTL + t.Drift)
	case a.sent && (!answered(a.NodeResult) || errors.Is(a.Err, errBadReply)):
		m.unknown = true
	}
}

// merge takes in what is known of another request to the same node.
func (m *remnant) merge(o remnant) {
	if o.until.After(m.until) {
		m.until = o.until
	}
	m.unknown = m.unknown || o.unknown || !o.heard
	switch { // o is the later one
	case !o.heard:
		m.vague = true
	case o.where != "" || o.vague:
		m.where, m.vague = o.where, o.vague
	}
	m.heard = true
	m.sent = m.sent || o.sent || !o.heard
}
