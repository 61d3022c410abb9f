package redlock

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"
)

// trackingConn is a connection over which a node tells of keys: what is there now, when
// asked, and once for each answer that it no longer holds (CLIENT TRACKING).
// open and receive are called by one goroutine, the others by any.
type trackingConn interface {
	// open connects, and reports whether the node will tell of changes.
	open(ctx context.Context) (tracking bool, err error)
	// ask reads a key. It does not wait for the answer, nor for anything else.
	ask(key string) error
	// receive waits for the next message. An error says that the connection is of no
	// use any more, except for a timeout.
	receive() (message, error)
	// deadline bounds receive, also one that waits already; zero: no bound.
	deadline(time.Time)
	// close ends the connection; it may be opened again, until end is called.
	close()
	// end closes for good, and also ends an open that is under way.
	end()
}

// message is what a tracking connection receives.
type message struct {
	changed bool // not an answer: keys have changed
	all     bool // any key may have
	keys    []string
	// An answer, in the order of the questions:
	there bool
	token string
	ttl   time.Duration // negative: none
	err   error         // the server refuses
}

// listener is told what trackers receive of a key. It is called with nothing held.
type listener interface {
	key() string
	up(node int)      // the node can be asked
	down(node int)    // it cannot, or the answer is lost
	changed(node int) // the key is not what was read
	// read is the answer to a question; armed: the next change will be told.
	read(node int, m message, armed bool, now time.Time)
}

// trackerShared is what the trackers of a client have in common.
type trackerShared struct {
	connect time.Duration       // to open a connection, and for an answer
	took    func(time.Duration) // is told how long a read took
	ended   chan struct{}       // closed at the end
	wg      sync.WaitGroup      // the goroutines
}

// tracker listens to one node, as long as somebody waits for something there, and
// a little longer.
type tracker struct {
	*trackerShared
	node int
	conn trackingConn
	wake chan struct{} // ends a rest when nobody listens any more

	mu        sync.Mutex
	state     trackerState
	tracking  bool
	listeners map[string][]listener // by key
	asked     []request
	idle      bool      // since nobody waits: the deadline is for closing
	rest      time.Time // no connection is tried before
	backoff   time.Duration
}

type request struct {
	listener listener
	at       time.Time
}

type trackerState uint8

const (
	trackerClosed  trackerState = iota // no goroutine
	trackerOpening                     // connecting
	trackerUp
	trackerResting // the node could not be listened to; tried again later
)

const (
	trackerIdle     = 2 * time.Second // that a connection is kept when nobody waits
	trackerRequests = 4096            // under way; more are not asked
)

func newTracker(h *trackerShared, node int, t trackingConn) *tracker {
	return &tracker{trackerShared: h, node: node, conn: t, wake: make(chan struct{}, 1), listeners: make(map[string][]listener)}
}

func (e *tracker) tracks() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state == trackerUp && e.tracking
}

// attach begins to tell a listener what is received.
func (e *tracker) attach(l listener) trackerState {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.listeners[l.key()] = append(e.listeners[l.key()], l)
	switch e.state {
	case trackerClosed:
		e.state = trackerOpening
		if time.Now().Before(e.rest) {
			e.state = trackerResting
		}
		e.wg.Go(e.run)
	case trackerUp:
		if e.idle {
			e.idle = false
			e.limit()
		}
	}
	return e.state
}

// detach ends it.
func (e *tracker) detach(l listener) {
	e.mu.Lock()
	defer e.mu.Unlock()
	left := slices.DeleteFunc(slices.Clone(e.listeners[l.key()]), func(o listener) bool { return o == l })
	if e.listeners[l.key()] = left; len(left) == 0 {
		delete(e.listeners, l.key())
	}
	if len(e.listeners) > 0 {
		return
	}
	switch e.state {
	case trackerUp:
		e.idle = true
		e.limit()
	case trackerResting:
		select {
		case e.wake <- struct{}{}:
		default:
		}
	}
}

// limit sets the deadline of the connection; e.mu is held.
func (e *tracker) limit() {
	switch {
	case len(e.asked) > 0:
		e.conn.deadline(e.asked[0].at.Add(e.connect))
	case e.idle:
		e.conn.deadline(time.Now().Add(trackerIdle))
	default:
		e.conn.deadline(time.Time{})
	}
}

// ask reads the key of a listener. It reports whether it could.
func (e *tracker) ask(l listener) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state != trackerUp || len(e.asked) >= trackerRequests {
		return false
	}
	if e.conn.ask(l.key()) != nil {
		return false // receive will fail too
	}
	e.asked = append(e.asked, request{l, time.Now()})
	if len(e.asked) == 1 {
		e.limit()
	}
	return true
}

func (e *tracker) close() {
	e.conn.end()
}

// run listens until nobody has waited for a while.
func (e *tracker) run() {
	for e.resume() && e.open() {
		for e.next() {
		}
		e.conn.close()
	}
}

// resume rests after a failure. It reports whether there is anything more to do.
func (e *tracker) resume() bool {
	e.mu.Lock()
	rest := time.Until(e.rest)
	e.mu.Unlock()
	if rest > 0 {
		timer := time.NewTimer(rest)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-e.wake:
		case <-e.ended:
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-e.ended:
		e.state = trackerClosed
		return false
	default:
	}
	if len(e.listeners) == 0 {
		e.state = trackerClosed
		return false
	}
	e.state = trackerOpening
	return true
}

// open connects. It is false only when the client has ended.
func (e *tracker) open() bool {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 2*e.connect)
		tracking, err := e.conn.open(ctx)
		cancel()
		if err == nil {
			e.mu.Lock()
			e.state, e.tracking, e.asked, e.backoff = trackerUp, tracking, nil, 0
			e.idle = len(e.listeners) == 0
			e.limit()
			e.mu.Unlock()
			e.notify(func(l listener) { l.up(e.node) })
			return true
		}
		e.fail()
		if !e.resume() {
			return false
		}
	}
}

// fail takes note that the node cannot be listened to for now.
func (e *tracker) fail() {
	e.mu.Lock()
	e.backoff = min(max(2*e.backoff, backoffMin), backoffMax)
	e.rest = time.Now().Add(e.backoff)
	e.state, e.asked = trackerResting, nil
	e.mu.Unlock()
	e.notify(func(l listener) { l.down(e.node) })
}

// notify tells all listeners.
func (e *tracker) notify(what func(listener)) {
	e.mu.Lock()
	all := make([]listener, 0, len(e.listeners))
	for _, of := range e.listeners {
		all = append(all, of...)
	}
	e.mu.Unlock()
	for _, l := range all {
		what(l)
	}
}

// next takes in one message. It reports whether the connection goes on.
func (e *tracker) next() bool {
	msg, err := e.conn.receive()
	now := time.Now()
	if err != nil {
		e.mu.Lock()
		if isTimeout(err) && len(e.asked) == 0 {
			idle := e.idle // else somebody has come just in time
			e.mu.Unlock()
			return !idle
		}
		e.mu.Unlock()
		e.fail()
		return false
	}
	if msg.changed {
		if msg.all {
			e.notify(func(l listener) { l.changed(e.node) })
			return true
		}
		for _, k := range msg.keys {
			e.mu.Lock()
			of := slices.Clone(e.listeners[k])
			e.mu.Unlock()
			for _, l := range of {
				l.changed(e.node)
			}
		}
		return true
	}
	e.mu.Lock()
	if len(e.asked) == 0 {
		e.mu.Unlock()
		e.fail() // an answer to nothing
		return false
	}
	q := e.asked[0]
	e.asked = e.asked[1:]
	e.limit()
	armed := e.tracking
	e.mu.Unlock()
	if msg.err != nil {
		q.listener.down(e.node)
		return true
	}
	e.took(now.Sub(q.at))
	q.listener.read(e.node, msg, armed, now)
	return true
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
