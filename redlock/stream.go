package redlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// operation is what one request asks of one node.
type operation uint8

const (
	opSet operation = iota
	opExtend
	opRelease
	opInspect
)

// call is one request to one node. Its answer comes on a channel that has
// room for it, so that a stream never waits for a caller.
type call struct {
	op         operation
	node       int
	key, token string
	ttl        time.Duration
	notAfter   time.Time     // dropped unsent from then on; zero: never
	over       *atomic.Bool  // dropped unsent once it is true; may be nil
	to         chan<- answer // nil: nobody waits
}

func (c *call) reply(a answer) {
	if c.to != nil {
		a.node = c.node
		c.to <- a
	}
}

// answer is what became of a call.
type answer struct {
	NodeResult
	node int
	at   time.Time
	// sent: the request may have reached the node, so that its effect must be
	// reckoned with.
	sent bool
}

// wire carries calls to a node, in order, on one connection.
type wire interface {
	// open makes sure of a connection on which the node answers.
	open(ctx context.Context) error
	// send sends the calls as one pipeline and returns their answers. A non-nil
	// error says that the connection is of no use any more.
	send(ctx context.Context, batch []*call) ([]answer, error)
	// close ends the connection, at once and for good; it may be called while
	// open or send run.
	close()
}

const (
	queueSize    = 1024 // calls waiting for one node
	queueReserve = 1024 // further room that only releases may use
	batchSize    = 128  // calls in one pipeline
	debtSize     = 1024 // releases kept for a node that does not answer
	breakAfter   = 3    // consecutive failures
	backoffMin   = 100 * time.Millisecond
	backoffMax   = 2 * time.Second
)

var (
	errQueueFull = errors.New("not sent: too many requests wait for this node")
	errTooLate   = errors.New("not sent in time: the requests before it took too long")
	errOver      = errors.New("not sent: the attempt was over")
)

// debt is a release that a node still has to hear of.
type debt struct{ key, token string }

// stream is the way to one node: first in, first out, on one connection, so
// that a SET and the release that follows it arrive in that order. One
// goroutine sends what is queued as a pipeline, waits for the answers and
// takes what was queued meanwhile.
//
// Admission never blocks: a full queue is a failed node. After a few
// consecutive failures the node is skipped, which answers at once, and is
// tried again in the background. Releases that a node did not answer are owed
// to it, and are sent before anything else when it answers again: a SET that a
// hung node finds in its buffer would otherwise stand there for a whole TTL.
// A release compares the token, and a token is never used again, so that it
// does no harm however late.
type stream struct {
	wire    wire
	timeout time.Duration // to open a connection
	ctx     context.Context
	cancel  context.CancelFunc
	wake    chan struct{}
	done    chan struct{} // closed when the worker has ended
	first   func(up bool) // called once, when the first try to connect has ended

	mu     sync.Mutex
	queue  []*call
	owed   []debt
	broken error // why the node is skipped; nil while it is not
	closed bool

	// Of the worker alone:
	up       bool
	failures int    // in a row
	failedAs Status // the last of them
	why      error
	backoff  time.Duration
}

// newStream starts the worker, which opens the connection ahead of the first
// call.
func newStream(w wire, timeout time.Duration, first func(up bool)) *stream {
	s := &stream{
		wire: w, timeout: timeout, first: first, backoff: backoffMin,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	go s.run()
	return s
}

// enqueue puts c behind all calls before it, or answers it as skipped. It
// never blocks.
func (s *stream) enqueue(c *call) {
	if err := s.admit(c); err != nil {
		c.reply(answer{NodeResult: NodeResult{Status: StatusSkipped, Err: err}, at: time.Now()})
		return
	}
	select {
	case s.wake <- struct{}{}:
	default:
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
	case len(s.queue) >= room:
		err = errQueueFull
	default:
		s.queue = append(s.queue, c)
		return nil
	}
	s.owe(c)
	return err
}

// owe keeps a release for later; s.mu is held.
func (s *stream) owe(c *call) {
	if c.op != opRelease {
		return
	}
	if len(s.owed) == debtSize {
		s.owed = s.owed[1:]
	}
	s.owed = append(s.owed, debt{c.key, c.token})
}

// close admits no more calls, gives those that are queued the time grace to be
// answered, and ends the worker.
func (s *stream) close(grace time.Duration) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-s.done:
	case <-timer.C:
	}
	s.cancel()
	s.wire.close()
	<-s.done
}

func (s *stream) run() {
	defer close(s.done)
	s.first(s.open())
	for {
		batch, closed := s.take()
		switch {
		case len(batch) > 0 && s.ctx.Err() == nil:
			s.turn(batch)
		case len(batch) > 0:
			s.fail(batch, StatusSkipped, ErrClosed)
		case closed:
			return
		case s.up:
			<-s.wake
		default:
			s.await()
		}
	}
}

// await waits for work, or tries the node again.
func (s *stream) await() {
	timer := time.NewTimer(s.backoff)
	defer timer.Stop()
	select {
	case <-s.wake:
	case <-timer.C:
		s.backoff = min(2*s.backoff, backoffMax)
		s.open()
	}
}

func (s *stream) take() (batch []*call, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.queue), batchSize)
	if n == len(s.queue) {
		batch, s.queue = s.queue, nil
	} else {
		batch, s.queue = s.queue[:n:n], s.queue[n:]
	}
	return batch, s.closed
}

// turn sends one batch.
func (s *stream) turn(batch []*call) {
	for again := false; ; again = true {
		batch = s.wanted(batch)
		if len(batch) == 0 {
			return
		}
		if !s.up && !s.open() {
			s.fail(batch, s.failedAs, s.why)
			return
		}
		if batch = s.wanted(batch); len(batch) == 0 {
			return
		}
		answers, err := s.wire.send(s.ctx, batch)
		if err != nil {
			s.down(err)
			if errors.Is(err, errSpent) && !again {
				// The server has closed the idle connection; nothing was sent.
				s.failures = 0
				continue
			}
		} else {
			s.failures = 0
		}
		now := time.Now()
		for i, c := range batch {
			answers[i].at = now
			s.settle(c, answers[i])
		}
		s.skip()
		return
	}
}

// open connects, and pays what is owed to the node. It tells if the node can
// be used.
func (s *stream) open() bool {
	ctx, cancel := context.WithTimeout(s.ctx, 2*s.timeout) // to dial, and to be greeted
	err := s.wire.open(ctx)
	cancel()
	if err == nil {
		err = s.pay()
	}
	if err != nil {
		s.down(err)
		s.skip()
		return false
	}
	s.up, s.failures, s.backoff = true, 0, backoffMin
	s.mu.Lock()
	s.broken = nil
	s.mu.Unlock()
	return true
}

// pay sends the releases that are owed, before anything that was queued after
// them.
func (s *stream) pay() error {
	s.mu.Lock()
	owed := s.owed
	s.owed = nil
	s.mu.Unlock()
	for len(owed) > 0 {
		n := min(len(owed), batchSize)
		batch := make([]*call, n)
		for i, d := range owed[:n] {
			batch[i] = &call{op: opRelease, key: d.key, token: d.token}
		}
		owed = owed[n:]
		answers, err := s.wire.send(s.ctx, batch)
		for i, c := range batch {
			s.settle(c, answers[i])
		}
		if err != nil {
			s.mu.Lock()
			for _, d := range owed {
				s.owe(&call{op: opRelease, key: d.key, token: d.token})
			}
			s.mu.Unlock()
			return err
		}
	}
	return nil
}

// down takes note of a failure.
func (s *stream) down(err error) {
	s.up = false
	s.failures++
	s.failedAs, s.why = classifyTransport(err), err
}

// skip stops admission after too many failures, and fails what has been
// admitted.
func (s *stream) skip() {
	if s.failures < breakAfter {
		return
	}
	s.mu.Lock()
	s.broken = fmt.Errorf("not asked after %d failures: %w", s.failures, s.why)
	broken, left := s.broken, s.queue
	s.queue = nil
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

// settle hands out an answer, and keeps a release that the node did not hear
// of.
func (s *stream) settle(c *call, a answer) {
	switch a.Status {
	case StatusDown, StatusSlow, StatusSkipped:
		s.mu.Lock()
		s.owe(c)
		s.mu.Unlock()
	}
	c.reply(a)
}

// wanted drops the calls that are not worth sending any more. Releases are
// always wanted.
func (s *stream) wanted(batch []*call) []*call {
	now, kept := time.Now(), batch[:0]
	for _, c := range batch {
		switch {
		case c.over != nil && c.over.Load():
			c.reply(answer{NodeResult: NodeResult{Status: StatusSkipped, Err: errOver}, at: now})
		case !c.notAfter.IsZero() && !now.Before(c.notAfter):
			c.reply(answer{NodeResult: NodeResult{Status: StatusSlow, Err: errTooLate}, at: now})
		default:
			kept = append(kept, c)
		}
	}
	return kept
}
