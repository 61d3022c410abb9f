package redlock

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"redlockctl/redlock/attempt"
)

// attemptRun drives an [attempt.Attempt] over the streams of a client: each answer steps it,
// and the waiting caller is woken once, by the verdict.
type attemptRun struct {
	client   *Client
	ask      request
	over     atomic.Bool   // failed: what was not sent yet need not be
	reads    *replies      // the fencing counters; nil if the lock has no fencing token
	unfenced error         // why the grant does not count: it got no fencing token
	short    bool          // the TTL leaves less time than the node timeout
	slept    time.Duration // what the client's suspended said before the start
	decided  chan struct{} // has room for one; gets the verdict, and nothing afterwards

	mu      sync.Mutex
	machine *attempt.Attempt
	next    attempt.Send // what the verdict asks to be sent
	copies  []leftCopy
	errs    []error       // why nodes failed before the verdict; nil: none did
	results []NodeResult  // see nodeResults; nil: nobody has asked yet
	left    int           // nodes that have not answered
	all     chan struct{} // closed when there are none; nil: nobody waits for that
}

// attempt drives an [attempt.Attempt] to its verdict; terms says whether it extends,
// and until when. There must be room for its call, see [admission].
func (c *Client) attempt(ctx context.Context, resource, token string, ttl time.Duration, terms attempt.Terms, fenced bool) *attemptRun {
	r := &attemptRun{client: c, copies: make([]leftCopy, len(c.nodes)), left: len(c.nodes)}
	terms.N, terms.TTL, terms.Drift, terms.Wait = len(c.nodes), ttl, c.opt.Drift(ttl), c.wait(ttl)
	r.short = terms.Wait < c.nodeTimeout()
	r.slept = c.suspended()
	terms.Start = time.Now()
	machine, send := attempt.Begin(terms)
	r.machine = machine
	deadline := machine.Deadline()
	wait := c.startWait(time.Until(deadline))
	defer c.endWait(wait)
	r.decided = wait.ready
	r.ask = request{key: resource, token: token, ttl: ttl, notAfter: deadline, over: &r.over, to: r, queued: terms.Start, admitted: true}
	switch send {
	case attempt.SendSet:
		r.ask.op, r.ask.numbered = opSet, fenced
		if fenced {
			r.reads = newReplies(len(c.nodes), len(c.nodes), c.Quorum())
		}
		c.send(&r.ask)
	case attempt.SendExtend:
		r.ask.op = opExtend
		c.send(&r.ask)
	default:
		c.admission.leave()
		return r
	}
	for waiting := true; waiting; {
		select {
		case <-r.decided:
			waiting = false
		case <-wait.timer.C:
			// A step that is too early, by the resolution of the clock, decides
			// nothing.
			if !r.step(func(m *attempt.Attempt) (attempt.Send, attempt.Verdict) { return m.Tick(r.awake(time.Now())) }) {
				wait.timer.Reset(max(time.Until(deadline), time.Millisecond))
			}
		case <-ctx.Done():
			r.step((*attempt.Attempt).Cancel)
		case <-c.closing:
			r.step((*attempt.Attempt).Cancel)
		}
	}
	if r.verdict() != attempt.VerdictGranted {
		r.over.Store(true)
	}
	if r.next == attempt.SendRelease { // final since the verdict
		r.giveUp()
	}
	return r
}

// lateMost is how many attempts in a row may fail because this process was late.
const lateMost = 20

// try waits for room and makes an attempt. It repeats the attempt if this process, and
// not a node, was too late for the node timeout.
func (c *Client) try(ctx context.Context, urgent bool, attempt func() *attemptRun) (*attemptRun, error) {
	for late := 0; ; late++ {
		if err := c.admission.enter(ctx, urgent, c.closing); err != nil {
			return nil, err
		}
		if r := attempt(); late == lateMost || !r.late(ctx) {
			return r, nil
		}
	}
}

// late reports whether the attempt had no quorum only because this process did not read
// the nodes' answers by the deadline. What they answered, or that they hang, their
// streams know as soon as this process has time to read.
func (r *attemptRun) late(ctx context.Context) bool {
	// A short TTL leaves no time for this. A suspended machine is another matter.
	if r.short || sleptSince(r.slept, r.client.suspended) > 0 || !r.onlyLate(true) {
		return false
	}
	timer := time.NewTimer(takeWindow)
	defer timer.Stop()
	select {
	case <-r.complete():
	case <-timer.C:
	case <-ctx.Done():
	case <-r.client.closing:
	}
	return r.onlyLate(false)
}

// onlyLate reports whether there was no quorum, but would have been one with the nodes
// that have answered since, and those whose request this process did not send in time.
// withPending also includes the nodes that may still answer.
func (r *attemptRun) onlyLate(withPending bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.machine.Verdict() != attempt.VerdictNoQuorum {
		return false
	}
	failed := 0
	for i, m := range r.copies {
		s := r.machine.Status(i)
		well := r.client.streams[i].window.well.Load()
		switch {
		case s == StatusOK, s == StatusHeld, s == StatusAbsent, s == StatusUnanswered:
		case s != StatusSlow: // it failed
			failed++
		case m.heard && m.said.status.Answered(): // since
		case well && m.heard && !m.sent: // it was not asked in time
		case well && !m.heard && withPending:
		default:
			failed++
		}
	}
	return failed <= len(r.copies)-Quorum(len(r.copies))
}

// giveUp releases what the attempt may have left, on each node after its SET, and does
// not wait for it. It does not wait for room either: a release without room is owed.
func (r *attemptRun) giveUp() {
	r.over.Store(true)
	copies, _ := r.leftCopies()
	ask := releaseOf(r.ask.key, r.ask.token, copies)
	ask.neverSent = r.neverSent
	r.client.send(&ask)
}

// step steps the machine, and reports whether the verdict is there.
func (r *attemptRun) step(f func(*attempt.Attempt) (attempt.Send, attempt.Verdict)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stepLocked(f)
}

func (r *attemptRun) stepLocked(f func(*attempt.Attempt) (attempt.Send, attempt.Verdict)) bool {
	if r.machine.Verdict() != attempt.VerdictPending {
		return true
	}
	send, verdict := f(r.machine)
	if verdict == attempt.VerdictPending {
		return false
	}
	r.next = send
	r.decided <- struct{}{}
	return true
}

// answered passes the answer of a node to the machine, and keeps what it says. Answers
// after the verdict matter too: they say which copies exist.
func (r *attemptRun) answered(a answer) {
	status := a.Status
	if wrongType(&a.NodeResult) {
		status = StatusHeld
	}
	r.mu.Lock()
	if r.machine.Verdict() == attempt.VerdictPending {
		r.count(a)
		at := r.awake(a.at)
		r.stepLocked(func(m *attempt.Attempt) (attempt.Send, attempt.Verdict) { return m.Answer(a.node, status, at) })
	}
	r.copies[a.node].learn(a, r.machine.Terms())
	if r.left--; r.left == 0 && r.all != nil {
		close(r.all)
	}
	r.mu.Unlock()
	if r.reads != nil {
		r.counted(a)
	}
}

// count keeps an answer that comes before the verdict for nodeResults; r.mu is held.
func (r *attemptRun) count(a answer) {
	r.copies[a.node].counted = true
	if a.Err == nil {
		return
	}
	if r.errs == nil {
		r.errs = make([]error, len(r.copies))
	}
	r.errs[a.node] = a.Err
}

// nodeResults returns what the nodes had answered by the verdict, which has been given.
func (r *attemptRun) nodeResults() []NodeResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.nodeResultsLocked()
}

func (r *attemptRun) nodeResultsLocked() []NodeResult {
	if r.results != nil {
		return r.results
	}
	r.results = r.client.blank()
	for i, m := range r.copies {
		if !m.counted {
			continue
		}
		r.results[i].Status = m.said.status
		if r.errs != nil {
			r.results[i].Err = r.errs[i]
		}
	}
	return r.results
}

// complete returns a channel that is closed when all nodes have answered.
func (r *attemptRun) complete() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = make(chan struct{})
		if r.left == 0 {
			close(r.all)
		}
	}
	return r.all
}

// counted records the number that a node read after its SET, before or after the
// verdict. It counts only with a vote.
func (r *attemptRun) counted(a answer) {
	if a.Status == StatusOK {
		a.Status, a.Err = a.numbers.status, a.numbers.err
	}
	r.reads.answered(a)
}

// awake is the time at which the attempt is decided: t plus the time for which the
// machine was suspended since the start. A grant across a suspension comes later than
// it seems, perhaps later than the bound on which early rejoin relies.
func (r *attemptRun) awake(t time.Time) time.Time {
	return t.Add(sleptSince(r.slept, r.client.suspended))
}

func (r *attemptRun) verdict() attempt.Verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.machine.Verdict()
}

// neverSent reports whether it is known that nothing was sent to a node.
func (r *attemptRun) neverSent(node int) bool {
	m := r.leftCopy(node)
	return m.heard && !m.sent
}

// leftCopies returns what is known of the copies by now, and whether it is final.
func (r *attemptRun) leftCopies() (copies []leftCopy, all bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.copies), !slices.ContainsFunc(r.copies, func(m leftCopy) bool { return !m.heard })
}

// leftCopy is what is known of the copy on a node by now.
func (r *attemptRun) leftCopy(node int) leftCopy {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.copies[node]
}

// failure is the error for a verdict other than granted.
func (r *attemptRun) failure(ctx context.Context, op string) *Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := &Error{Op: op, Resource: r.ask.key, Nodes: r.nodeResultsLocked(), Attempts: 1}
	for i := range e.Nodes {
		if e.Nodes[i].Status == StatusUnanswered && r.machine.Status(i) == StatusSlow {
			e.Nodes[i].Status = StatusSlow
		}
		if !r.machine.Terms().Extend {
			e.Nodes[i].MayLiveUntil = r.copies[i].until
		}
	}
	if v := r.machine.Verdict(); v == attempt.VerdictNoQuorum || v == attempt.VerdictExpired {
		e.hint = r.client.tooShort(r.machine.Terms().Wait, r.machine.Terms().TTL)
	}
	switch r.machine.Verdict() {
	case attempt.VerdictGranted:
		e.Kind, e.why = ErrNoQuorum, r.unfenced
		if errors.Is(r.unfenced, ErrExpired) {
			e.Kind = ErrExpired
		}
	case attempt.VerdictContended:
		e.Kind = ErrContended
	case attempt.VerdictNotHeld:
		e.Kind = ErrNotHeld
	case attempt.VerdictNoQuorum:
		e.Kind = ErrNoQuorum
	case attempt.VerdictExpired:
		e.Kind = ErrExpired
	case attempt.VerdictCancelled:
		if ctx.Err() == nil {
			e.Kind = ErrClosed
			break
		}
		e.Kind, e.ended = context.Cause(ctx), ctx.Err()
	}
	return e
}

// blame replaces the nodes' yes to the lock by what they answered when the fencing
// token was read or written.
func (r *attemptRun) blame(numbers *replies) {
	numbers.mu.Lock()
	all := slices.Clone(numbers.byNode)
	numbers.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	results := r.nodeResultsLocked()
	for i, said := range all {
		at := &results[i]
		switch {
		case at.Status != StatusOK || said.Status == StatusOK:
		case said.Status == StatusUnanswered:
			at.Status = StatusSlow
		default:
			at.Status, at.Err = said.Status, said.Err
		}
	}
}

// draw draws and writes the fencing token of a granted run.
func (r *attemptRun) draw() (uint64, error) {
	c := r.client
	n, quorum := len(c.nodes), c.Quorum()
	by := time.Now().Add(c.wait(r.machine.Terms().TTL))
	yes, token := 0, uint64(0)
	for _, a := range r.reads.wait(by, nil) {
		if a.Status == StatusOK {
			yes, token = yes+1, max(token, a.number)
		}
	}
	if yes < quorum {
		r.blame(r.reads)
		return 0, errFencing
	}
	// A node outside this quorum may know a higher number, of a grant that was never
	// confirmed. Then the token is drawn above that one.
	for range 3 {
		token++
		writes := newReplies(n, n, min(n, n-quorum+2))
		c.send(&request{
			op: opFence, key: r.ask.key, token: r.ask.token, value: strconv.FormatUint(token, 10), ttl: fencingTTL,
			notAfter: by, to: writes,
		})
		taken, highest := 0, token
		for _, a := range writes.wait(by, nil) {
			if a.Status == StatusOK && a.number == token {
				taken++
			}
			highest = max(highest, a.number)
		}
		switch {
		case !time.Now().Add(sleptSince(r.slept, c.suspended)).Before(r.machine.Until()):
			return 0, ErrExpired
		case taken >= quorum:
			return token, nil
		case highest == token:
			r.blame(writes)
			return 0, errFencing
		}
		token = highest
	}
	return 0, errFencing
}
