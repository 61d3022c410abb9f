package redlock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"redlockctl/base/crash"
)

// dialer connects to a node.
type dialer interface {
	// open connects, and checks that the node answers.
	open(ctx context.Context) (link, error)
}

const (
	queueSize    = 4 * windowMost // calls waiting for one node, more than are admitted
	queueReserve = 1024           // more room, only for releases
	batchSize    = 256            // calls in one write
	batchBytes   = 256 << 10      // of their names and tokens: a large write delays all others
	queueBytes   = 16 << 20       // of the names and tokens of calls that wait for one node
	flightSize   = 4096           // calls sent and not answered
	owedSize     = 8192           // releases kept for a node that does not accept them
	owedAtOnce   = 64             // of those, sent at one time
	breakAfter   = 3              // consecutive failures

	// pingEvery is how long a connection may be idle before it is tried: a NAT may have
	// dropped it without a word, and the next attempt would lose that node.
	pingEvery = 2 * time.Second
)

var (
	errQueueFull = errors.New("not sent: too many requests wait for this node")
	errTooLate   = errors.New("not sent in time: the requests before it took too long")
	errOver      = errors.New("not sent: the attempt had ended")
	errSlow      = fmt.Errorf("its answers come too late: %w", os.ErrDeadlineExceeded)
)

// hooks are the callbacks of a stream to its client; each may be nil.
type hooks struct {
	first func(up bool)         // when the first try to connect has ended, once
	freed func()                // there may be room
	claim func(id string) error // which server is connected; an error refuses it. Before it connects: ""
}

// stream sends requests to one node, first in, first out, on one connection. One
// goroutine writes all queued requests at once and does not wait; another reads the
// replies and matches them by their order. A stream never blocks its callers: a full
// queue is a failed node. The connection is reset if the node hangs, or says that it is
// read-only. After a few failures without an answer in between, the node is skipped,
// and tried again in the background.
//
// Releases that a node did not answer, had no room for, or refused for now are owed to
// it. They are sent first when it answers again; to a node that refused, one at a time.
// They do no harm however late: they compare the token, which is never used again.
type stream struct {
	dialer    dialer
	patience  *patience     // the time for a node to answer a request
	connect   time.Duration // to open a connection
	ctx       context.Context
	cancel    context.CancelFunc
	wake      chan struct{}
	done      chan struct{} // closed when the writer has ended
	hooks     hooks
	window    *window
	owedCount atomic.Int32 // owed, also read without mu

	mu       sync.Mutex
	queue    []*call
	bytes    int     // of the queue
	spare    []*call // of the writer: the previous queue, to reuse
	owed     []owedRelease
	refused  int       // how often the node has refused a release, since it took one
	owedFrom time.Time // when it may be sent one again
	broken   error     // why the node is skipped; nil while it is not
	closed   bool

	// Used by the writer only:
	conn     *nodeConn // nil: not connected
	failures int       // in a row
	failedAs Status
	why      error
	backoff  time.Duration
	pings    *time.Ticker
}

func newStream(w dialer, reply *patience, connect time.Duration, h hooks) *stream {
	s := &stream{
		dialer: w, patience: reply, connect: connect, hooks: h, backoff: backoffMin, window: newWindow(reply),
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// start starts the writer, which opens the connection ahead of the first call.
func (s *stream) start() *stream {
	crash.Go(s.run)
	return s
}

// enqueue appends c to the queue, or answers it as skipped. It never blocks.
func (s *stream) enqueue(c *call) {
	if !c.admitted {
		s.window.used.Add(1)
	}
	if err := s.admit(c); err != nil {
		s.hand(c, answer{NodeResult: NodeResult{Status: StatusSkipped, Err: err}, at: time.Now()})
		return
	}
	poke(s.wake)
}

// hand passes on the answer to a call with which the stream has finished.
func (s *stream) hand(c *call, a answer) {
	s.window.give()
	if s.owedCount.Load() > 0 && s.window.well.Load() {
		poke(s.wake) // there may be room for them
	}
	c.answerWith(a)
	s.freed()
}

// freed reports to the client that there may be room, or that nobody has to wait for
// this node.
func (s *stream) freed() {
	if s.hooks.freed != nil {
		s.hooks.freed()
	}
}

func (s *stream) admit(c *call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	room := queueSize
	if c.op == opRelease {
		room += queueReserve
	}
	var err error
	switch {
	case s.closed:
		return ErrClosed
	case s.broken != nil:
		err = s.broken
	case len(s.queue) >= room, s.bytes >= queueBytes && c.op != opRelease:
		err = errQueueFull
	default:
		s.push(c)
		return nil
	}
	s.owe(c)
	return err
}

// push appends a call to the queue; s.mu is held.
func (s *stream) push(c *call) {
	s.queue = append(s.queue, c)
	s.bytes += c.bytes()
}

// close accepts no more calls, waits up to grace for the answers to the queued and sent
// ones, and ends the goroutines.
func (s *stream) close(grace time.Duration) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	poke(s.wake)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-s.done:
	case <-timer.C:
		s.cancel()
		<-s.done
	}
	s.cancel()
}

func (s *stream) run() {
	defer close(s.done)
	s.pings = time.NewTicker(pingEvery)
	defer s.pings.Stop()
	up := s.open()
	if s.hooks.first != nil {
		s.hooks.first(up)
	}
	for {
		if s.conn != nil {
			select {
			case <-s.conn.dead:
				s.lose()
			default:
			}
		}
		batch, closed := s.take()
		switch {
		case len(batch) > 0 && s.ctx.Err() == nil:
			s.turn(batch)
			clear(batch)
		case len(batch) > 0:
			s.fail(batch, StatusSkipped, ErrClosed)
		case closed && s.idle():
			s.hangUp()
			return
		case s.conn != nil:
			s.watch(closed)
		default:
			s.await()
		}
	}
}

// watch waits for work, or for the end of the connection.
func (s *stream) watch(closed bool) {
	var answered, due <-chan time.Time
	if closed { // wait for the last answers
		answered = time.After(time.Millisecond)
	} else if s.owedCount.Load() > 0 {
		s.mu.Lock()
		if s.refused > 0 {
			timer := time.NewTimer(time.Until(s.owedFrom))
			defer timer.Stop()
			due = timer.C
		}
		s.mu.Unlock()
	}
	select {
	case <-s.wake:
		// Goroutines that are about to send go first, so that one write serves all of
		// them.
		runtime.Gosched()
	case <-s.conn.dead:
	case <-answered:
	case <-due:
	case now := <-s.pings.C:
		if !closed && s.conn.isQuiet(pingEvery/2, now) {
			s.enqueue(&call{request: &request{op: opPing}})
		}
	case <-s.ctx.Done():
		s.conn.link.close()
		<-s.conn.dead
	}
}

// await waits for work, or tries the node again.
func (s *stream) await() {
	timer := time.NewTimer(s.backoff)
	defer timer.Stop()
	select {
	case <-s.wake:
	case <-s.ctx.Done():
	case <-timer.C:
		s.backoff = min(2*s.backoff, backoffMax)
		s.open()
	}
}

// take returns the queued calls to the writer, which owns them until it takes the next.
func (s *stream) take() (batch []*call, closed bool) {
	if s.owedCount.Load() > 0 {
		defer s.freed() // some are no longer needed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.owed) > 0 && s.conn != nil && s.ctx.Err() == nil {
		s.sendOwed(min(owedAtOnce, int(s.window.most.Load()-s.window.used.Load())), time.Now())
	}
	if len(s.queue) <= batchSize && s.bytes <= batchBytes {
		batch, s.queue, s.bytes = s.queue, s.spare[:0], 0
		s.spare = batch
		return batch, s.closed
	}
	n := 0
	for size := 0; n < len(s.queue) && n < batchSize; n++ {
		if size += s.queue[n].bytes(); n > 0 && size > batchBytes {
			break
		}
		s.bytes -= s.queue[n].bytes()
	}
	batch = s.queue[:n:n]
	s.queue = append([]*call(nil), s.queue[n:]...)
	return batch, s.closed
}

// turn writes one batch.
func (s *stream) turn(batch []*call) {
	if batch = s.wanted(batch); len(batch) == 0 {
		return
	}
	if s.conn == nil {
		if !s.open() {
			s.fail(batch, s.failedAs, s.why)
			return
		}
		if batch = s.wanted(batch); len(batch) == 0 {
			return
		}
	}
	if !s.send(batch) {
		// The connection had ended before: nothing was written on it.
		s.lose()
		if !s.open() {
			s.fail(batch, s.failedAs, s.why)
		} else if batch = s.wanted(batch); !s.send(batch) {
			s.fail(batch, StatusDown, s.conn.cause())
		}
	}
}

// send writes the calls, or returns false if the connection had ended before. For a
// call that was written, the reader decides the outcome, even if the write failed.
func (s *stream) send(batch []*call) bool {
	l := s.conn
	now := time.Now()
	l.mu.Lock()
	if l.err != nil {
		l.mu.Unlock()
		return false
	}
	if l.head == len(l.inFlight) {
		l.heard, l.last = now, false
		l.await()
	}
	for _, c := range batch {
		c.sentAt = now
	}
	l.inFlight = append(l.inFlight, batch...)
	full := len(l.inFlight)-l.head > flightSize
	l.mu.Unlock()
	if err := l.link.send(batch); err != nil {
		l.end(err)
		s.abort(l) // the reader answers what was under way
	}
	if full { // only if a node answers more slowly than it is asked
		select {
		case <-l.dead:
		case <-time.After(l.patience.lasts()):
		}
	}
	return true
}

// listen reads replies until the connection ends, and then answers all that
// was under way.
func (s *stream) listen(l *nodeConn) {
	defer close(l.ended)
	oldest := l.pop // a method value allocates: make it once
	for {
		c, a, err := l.link.receive(oldest)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && c == nil && !l.hung(time.Now()):
		case errors.Is(err, errAgain):
			s.again(c)
			_ = l.look(time.Now())
		case err != nil:
			s.bury(l, c, err)
			return
		default:
			a.at, a.sent, a.incarnation = time.Now(), true, l.link.serverID()
			asked := c.queued
			if asked.IsZero() {
				asked = c.sentAt
			}
			s.window.answered(a.at.Sub(asked), a.at)
			s.patience.took(a.at.Sub(c.sentAt))
			s.settle(c, a)
			if isReadOnly(&a.NodeResult) {
				l.lower = true
				s.bury(l, nil, a.Err)
				return
			}
			if !l.look(a.at) {
				s.bury(l, nil, errSlow)
				return
			}
		}
	}
}

// bury ends a useless connection and answers the calls under way on it: c, which may be
// nil, and the later ones.
func (s *stream) bury(l *nodeConn, c *call, err error) {
	l.end(err)
	s.abort(l)
	s.window.end()
	s.freed()
	now := time.Now()
	left := l.rest()
	if c != nil {
		left = append([]*call{c}, left...)
	}
	why := l.cause()
	l.quiet = len(left) == 0 && !l.lower
	for _, c := range left {
		s.settle(c, answer{NodeResult: NodeResult{Status: classifyTransport(why), Err: why}, at: now, sent: true, incarnation: l.link.serverID()})
	}
	close(l.dead)
}

// again queues a call once more that the server could not run because it lacked the
// script.
func (s *stream) again(c *call) {
	c.eval = true
	s.mu.Lock()
	s.push(c)
	s.mu.Unlock()
	poke(s.wake)
}

// idle reports whether nothing is under way.
func (s *stream) idle() bool { return s.conn == nil || s.conn.idle() }

// abort ends a connection that has failed. When the stream is being closed there is no
// other, and the requests on this one should still arrive, in order.
func (s *stream) abort(l *nodeConn) {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		l.link.close()
		return
	}
	l.link.abort()
}

// lose records that a connection has ended. If nothing was under way, the node has not
// failed: servers close idle connections.
func (s *stream) lose() {
	l := s.conn
	<-l.ended
	s.conn = nil
	if l.served && !l.lower {
		s.failures, s.backoff = 0, backoffMin
	}
	if l.quiet {
		return
	}
	s.down(l.cause())
	s.skip()
}

// hangUp ends the connection for good.
func (s *stream) hangUp() {
	if s.conn == nil {
		return
	}
	s.conn.link.close()
	<-s.conn.ended
	s.conn = nil
}

// open connects, and sends the releases that are owed to the node. It reports whether the node can
// be used.
func (s *stream) open() bool {
	ctx, cancel := context.WithTimeout(s.ctx, 2*s.connect) // to dial, and for the greeting
	s.claim("")
	link, err := s.dialer.open(ctx)
	cancel()
	if err == nil {
		if err = s.claim(link.serverID()); err != nil {
			link.close()
		}
	}
	if err != nil {
		s.down(err)
		s.skip()
		return false
	}
	if l, ok := link.(interface{ roundTrip() time.Duration }); ok {
		s.patience.took(l.roundTrip())
	}
	s.conn = &nodeConn{link: link, patience: s.patience, dead: make(chan struct{}), ended: make(chan struct{})}
	s.failures = min(s.failures, breakAfter-1) // one more failure if it only greets
	s.mu.Lock()
	s.broken = nil
	s.refused = 0
	s.window.begin()
	queue := s.queue
	s.queue = nil
	s.sendOwed(windowFirst, time.Now())
	s.queue = append(s.queue, queue...)
	s.mu.Unlock()
	conn := s.conn
	crash.Go(func() { s.listen(conn) })
	return true
}

// claim reports to the client which server this stream goes to.
func (s *stream) claim(id string) error {
	if s.hooks.claim == nil {
		return nil
	}
	return s.hooks.claim(id)
}

// down records a failure.
func (s *stream) down(err error) {
	s.failures++
	s.failedAs, s.why = classifyTransport(err), err
}

// skip admits no more calls after too many failures, and fails the queued ones.
func (s *stream) skip() {
	if s.failures < breakAfter {
		return
	}
	s.window.end()
	s.mu.Lock()
	s.broken = fmt.Errorf("not asked after %d failures: %w", s.failures, s.why)
	broken, left := s.broken, s.queue
	s.queue, s.bytes = nil, 0
	s.mu.Unlock()
	s.fail(left, StatusSkipped, broken)
}

// fail answers calls that were not sent.
func (s *stream) fail(calls []*call, status Status, err error) {
	now := time.Now()
	for _, c := range calls {
		s.settle(c, answer{NodeResult: NodeResult{Status: status, Err: err}, at: now})
	}
}

// settle passes on an answer, and keeps a release that the node did not receive, or
// refused for now.
func (s *stream) settle(c *call, a answer) {
	if c.op == opRelease {
		s.mu.Lock()
		switch {
		case !a.sent || !a.Status.Answered():
			s.owe(c)
		case !isClean(&a.NodeResult):
			s.refused++
			s.owedFrom = a.at.Add(s.owedPause())
			s.owe(c)
		case s.refused > 0:
			s.refused = 0
			s.countOwed()
		}
		s.mu.Unlock()
	}
	s.hand(c, a)
}

// wanted drops the calls that are no longer needed. A release is always needed, unless
// its SET was never sent.
func (s *stream) wanted(batch []*call) []*call {
	now, kept := time.Now(), batch[:0]
	for _, c := range batch {
		switch {
		case c.over != nil && c.over.Load(), c.neverSent != nil && c.neverSent(c.node):
			s.hand(c, answer{NodeResult: NodeResult{Status: StatusSkipped, Err: errOver}, at: now})
		case !c.notAfter.IsZero() && !now.Before(c.notAfter):
			s.hand(c, answer{NodeResult: NodeResult{Status: StatusSlow, Err: errTooLate}, at: now})
		default:
			kept = append(kept, c)
		}
	}
	return kept
}
