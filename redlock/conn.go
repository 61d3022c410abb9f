package redlock

import (
	"errors"
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
	opRevoke   // value: the tombstone; ttl: of a copy whose own is none or above LongestTTL
	opTakeHash // token: the only field of the hash
	opFence    // value: the fencing token; ttl: of the counter, beyond the time that the number stands for
	opPing     // only whether the connection still works
)

// request is what an operation asks of nodes. All calls of the operation share it, and it
// does not change once the first of them is enqueued.
type request struct {
	op         operation
	numbered   bool // of opSet: the fencing counter and the clock are read after it, in the same request
	admitted   bool // it has room; see admission
	key, token string
	value      string
	ttl        time.Duration
	notAfter   time.Time    // dropped unsent from then on; zero: never
	over       *atomic.Bool // dropped unsent once it is true; may be nil
	to         sink         // nil: nobody waits
	queued     time.Time    // when it was handed to the streams

	// Of a release:
	left  []leftState // per node; nil: not known
	until time.Time   // when no copy can be left any more; zero: not known
	// neverSent reports whether the attempt to be released sent a node nothing: then the
	// release is not sent either. May be nil.
	neverSent func(node int) bool
}

// call is a request to one node.
type call struct {
	*request
	node   int
	eval   bool      // send the script as text: the server has lost it
	sentAt time.Time // when it was handed to the connection
}

// bytes estimates the size of the call in the queue and on the wire.
func (c *call) bytes() int { return len(c.key) + len(c.token) + len(c.value) }

// sink takes the answer to a call. It is called once for each call, by the
// goroutines of a stream or within enqueue, and must not block.
type sink interface{ answered(answer) }

func (c *call) answerWith(a answer) {
	if c.to != nil {
		a.node = c.node
		c.to.answered(a)
	}
}

// answer is the outcome of a call.
type answer struct {
	NodeResult
	node   int
	at     time.Time
	number uint64 // of opFence and a numbered opSet: what the node answered
	// numbers is how the reads after a numbered opSet ended.
	numbers readResult
	// sent: the request may have reached the node, and may have had its effect.
	sent bool
	// copied: the node has a copy, although it gives no vote.
	copied bool
	// there: of an extension: the copy is there, and the node refused to write.
	there bool
	// incarnation is the run_id of the server that got the request; "": not known.
	incarnation string
}

// readResult is how a read that follows a request in the same message ended.
type readResult struct {
	status Status
	err    error
}

// link is one connection. One goroutine sends and another receives; expect and
// close may be called by any.
type link interface {
	// send hands the requests to the connection, in order.
	send(batch []*call) error
	// receive waits for a reply and makes it the answer to the oldest unanswered
	// request, which it asks for when the reply is there. After an error the connection
	// is useless.
	receive(oldest func() *call) (*call, answer, error)
	// expect bounds how long receive waits; zero: no bound.
	expect(by time.Time)
	// serverID is the run_id of the server; empty: not known.
	serverID() string
	// close ends the connection and a waiting receive.
	close()
	// abort is close with a reset: the operating system does not resend what the
	// network has lost.
	abort()
}

// errAgain is returned by receive for a request that must be sent again.
var errAgain = errors.New("to be sent again")

// nodeConn is one connection, with the requests on it that are not answered yet.
type nodeConn struct {
	link     link
	patience *patience
	dead     chan struct{} // closed when the connection is useless
	ended    chan struct{} // closed when the reader has ended
	quiet    bool          // it ended while nothing was under way; set before dead is closed

	mu       sync.Mutex
	inFlight []*call // oldest at head
	head     int
	busy     bool      // the reader has taken a call and not finished with it
	served   bool      // a call was answered
	lower    bool      // the node is read-only
	armed    time.Time // until when the reader waits; zero: for ever
	last     bool      // if nothing has come by then, the node is hung
	heard    time.Time // when the last reply came, or the first request since was sent
	behind   time.Time // since when replies have been overdue; zero: they are not
	err      error     // why it is dead
}

// pop takes the oldest call that has no answer; nil if there is none.
func (l *nodeConn) pop() *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.head == len(l.inFlight) {
		return nil
	}
	c := l.inFlight[l.head]
	l.inFlight[l.head] = nil
	l.head++
	l.busy = true
	if l.head == len(l.inFlight) {
		l.inFlight, l.head = l.inFlight[:0], 0
	} else if l.head > 1024 {
		l.inFlight = append(l.inFlight[:0], l.inFlight[l.head:]...)
		l.head = 0
	}
	return c
}

// look is called when the reader has finished with a call whose reply came at now. It
// reports whether the connection is still useful: if replies come but have been overdue
// for long, the node cannot keep up.
func (l *nodeConn) look(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy, l.served, l.last, l.heard = false, true, false, now
	switch {
	case l.head == len(l.inFlight):
		l.behind = time.Time{}
		return true
	case now.Sub(l.inFlight[l.head].sentAt) < l.patience.lasts():
		l.behind = time.Time{}
	case l.behind.IsZero():
		l.behind = now
	case now.Sub(l.behind) > slowMost*l.patience.lasts():
		return false
	}
	l.await()
	return true
}

const (
	// graceParts is the part of the node timeout in which a reply that is there can be
	// read.
	graceParts = 16
	// slowMost is how many node timeouts long replies may be overdue.
	slowMost = 10
)

// await lets the reader wait for the node timeout, counted from the last reply, or from
// the first request after it: a node that keeps answering does not hang. If nothing was
// read by then, this process may have been late and have the reply in its buffers. So
// the reader wakes a little earlier and reads once more; see hung. l.mu is held.
func (l *nodeConn) await() {
	by := l.heard.Add(l.patience.lasts() - l.patience.lasts()/graceParts)
	// Moving the deadline with each reply would cost more than the reply.
	if l.armed.IsZero() || l.armed.Before(by.Add(-l.patience.lasts()/4)) {
		l.arm(by)
	}
}

// arm sets the deadline of the reader; zero: none. l.mu is held.
func (l *nodeConn) arm(by time.Time) {
	l.armed = by
	l.link.expect(by)
}

// hung is called when nothing has come by the deadline, and reports whether the node
// hangs. If not, it sets another deadline.
func (l *nodeConn) hung(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	grace, by := l.patience.lasts()/graceParts, l.heard.Add(l.patience.lasts())
	switch {
	case l.head == len(l.inFlight):
		l.last = false
		l.arm(time.Time{})
	case l.last:
		return true
	case now.Before(by.Add(-grace)):
		l.arm(by.Add(-grace))
	default:
		l.last = true
		if soonest := now.Add(grace / 2); by.Before(soonest) {
			by = soonest
		}
		l.arm(by)
	}
	return false
}

// isQuiet reports whether nothing has been asked or heard for that long.
func (l *nodeConn) isQuiet(d time.Duration, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.head == len(l.inFlight) && now.Sub(l.heard) >= d
}

// idle reports whether nothing is under way.
func (l *nodeConn) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.head == len(l.inFlight) && !l.busy
}

// end marks the connection as useless; the first reason given is kept.
func (l *nodeConn) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
}

func (l *nodeConn) cause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// rest takes all unanswered calls.
func (l *nodeConn) rest() []*call {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := l.inFlight[l.head:]
	l.inFlight, l.head = nil, 0
	return rest
}
