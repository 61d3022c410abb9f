package redlock

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"redlockctl/base/crash"
)

// trackingConn is a connection on which a node answers reads of keys, and then reports
// once that an answer is no longer true (CLIENT TRACKING). One goroutine calls open and
// receive, any goroutine the others.
type trackingConn interface {
	// open connects, and reports whether the node will report changes.
	open(ctx context.Context) (tracking bool, err error)
	// ask sends a read of a key. It waits for nothing.
	ask(key string) error
	// ping sends a PING, whose answer comes in the order of the questions. It waits for
	// nothing.
	ping() error
	// receive waits for the next message. After an error other than a timeout the
	// connection is useless.
	receive() (message, error)
	// deadline bounds receive, even while it waits; zero: no bound.
	deadline(time.Time)
	// close ends the connection; it may be opened again, until end is called.
	close()
	// end closes for good, and also ends an open that is under way.
	end()
}

// message is a message of a tracking connection.
type message struct {
	changed bool // not an answer: keys have changed
	all     bool // any key may have changed
	keys    []string
	// An answer, in the order of the questions:
	there bool
	token string
	ttl   time.Duration // negative: none
	err   error         // the server refuses
}

// listener is called with what trackers receive about a key. No mutex is held then.
type listener interface {
	key() string
	up(node int)      // the node can be asked
	down(node int)    // it cannot be asked, or the answer is lost
	changed(node int) // the key is not what was read
	// read is the answer to a read; armed: the next change will be reported.
	read(node int, m message, armed bool, now time.Time)
}

// trackerShared is what the trackers of a client have in common.
type trackerShared struct {
	connect time.Duration       // to open a connection, and for an answer
	took    func(time.Duration) // called with how long a read took
	ended   chan struct{}       // closed at the end
	wg      sync.WaitGroup      // the goroutines
}

// tracker listens to one node while somebody waits for a resource, and a little longer.
type tracker struct {
	*trackerShared
	node int
	conn trackingConn
	wake chan struct{} // ends a rest when nobody listens any more

	mu        sync.Mutex
	state     trackerState
	tracking  bool
	listeners map[string][]listener // by key
	asked     []question
	idle      bool      // since nobody waits: the deadline is for closing
	rest      time.Time // no connection is tried before
	backoff   time.Duration
}

type question struct {
	listener listener // nil: a PING
	at       time.Time
}

type trackerState uint8

const (
	trackerClosed  trackerState = iota // no goroutine
	trackerOpening                     // connecting
	trackerUp
	trackerResting // listening failed; tried again later
)

const (
	trackerIdle     = 2 * time.Second // that a connection is kept when nobody waits
	trackerQuiet    = 2 * time.Second // without a word, after which it is tried: a NAT may have dropped it
	trackerRequests = 4096            // under way; more are not asked
)

func newTracker(h *trackerShared, node int, t trackingConn) *tracker {
	return &tracker{trackerShared: h, node: node, conn: t, wake: make(chan struct{}, 1), listeners: make(map[string][]listener)}
}

func (t *tracker) tracks() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state == trackerUp && t.tracking
}

// attach adds a listener for a key.
func (t *tracker) attach(l listener) trackerState {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.listeners[l.key()] = append(t.listeners[l.key()], l)
	switch t.state {
	case trackerClosed:
		t.state = trackerOpening
		if time.Now().Before(t.rest) {
			t.state = trackerResting
		}
		t.wg.Go(crash.Safe(t.run))
	case trackerUp:
		if t.idle {
			t.idle = false
			t.limit()
		}
	}
	return t.state
}

// detach removes it.
func (t *tracker) detach(l listener) {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := slices.DeleteFunc(slices.Clone(t.listeners[l.key()]), func(o listener) bool { return o == l })
	if t.listeners[l.key()] = left; len(left) == 0 {
		delete(t.listeners, l.key())
	}
	if len(t.listeners) > 0 {
		return
	}
	switch t.state {
	case trackerUp:
		t.idle = true
		t.limit()
	case trackerResting:
		poke(t.wake)
	}
}

// limit sets the deadline of the connection; t.mu is held.
func (t *tracker) limit() {
	switch {
	case len(t.asked) > 0:
		t.conn.deadline(t.asked[0].at.Add(t.connect))
	case t.idle:
		t.conn.deadline(time.Now().Add(trackerIdle))
	default:
		t.conn.deadline(time.Now().Add(trackerQuiet))
	}
}

// ask reads the key of a listener. It reports whether it could.
func (t *tracker) ask(l listener) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != trackerUp || len(t.asked) >= trackerRequests {
		return false
	}
	if t.conn.ask(l.key()) != nil {
		return false // receive will fail too
	}
	t.asked = append(t.asked, question{l, time.Now()})
	if len(t.asked) == 1 {
		t.limit()
	}
	return true
}

func (t *tracker) close() {
	t.conn.end()
}

// run listens until there have been no waiters for a while.
func (t *tracker) run() {
	for t.resume() && t.open() {
		for t.next() {
		}
		t.conn.close()
	}
}

// resume rests after a failure. It reports whether there is anything more to do.
func (t *tracker) resume() bool {
	t.mu.Lock()
	rest := time.Until(t.rest)
	t.mu.Unlock()
	if rest > 0 {
		timer := time.NewTimer(rest)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-t.wake:
		case <-t.ended:
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.ended:
		t.state = trackerClosed
		return false
	default:
	}
	if len(t.listeners) == 0 {
		t.state = trackerClosed
		return false
	}
	t.state = trackerOpening
	return true
}

// open connects. It is false only when the client has ended.
func (t *tracker) open() bool {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 2*t.connect)
		tracking, err := t.conn.open(ctx)
		cancel()
		if err == nil {
			t.mu.Lock()
			t.state, t.tracking, t.asked, t.backoff = trackerUp, tracking, nil, 0
			t.idle = len(t.listeners) == 0
			t.limit()
			t.mu.Unlock()
			t.notify(func(l listener) { l.up(t.node) })
			return true
		}
		t.fail()
		if !t.resume() {
			return false
		}
	}
}

// fail records that listening to the node has failed for now.
func (t *tracker) fail() {
	t.mu.Lock()
	t.backoff = min(max(2*t.backoff, backoffMin), backoffMax)
	t.rest = time.Now().Add(t.backoff)
	t.state, t.asked = trackerResting, nil
	t.mu.Unlock()
	t.notify(func(l listener) { l.down(t.node) })
}

// notify tells all listeners.
func (t *tracker) notify(what func(listener)) {
	t.mu.Lock()
	all := make([]listener, 0, len(t.listeners))
	for _, of := range t.listeners {
		all = append(all, of...)
	}
	t.mu.Unlock()
	for _, l := range all {
		what(l)
	}
}

// next handles one message. It reports whether the connection is still useful.
func (t *tracker) next() bool {
	msg, err := t.conn.receive()
	now := time.Now()
	if err != nil {
		t.mu.Lock()
		if isTimeout(err) && len(t.asked) == 0 {
			defer t.mu.Unlock()
			if t.idle {
				return false
			}
			t.asked = append(t.asked, question{nil, now})
			_ = t.conn.ping() // if it fails, receive will too
			t.limit()
			return true
		}
		t.mu.Unlock()
		t.fail()
		return false
	}
	if msg.changed {
		if msg.all {
			t.notify(func(l listener) { l.changed(t.node) })
			return true
		}
		for _, k := range msg.keys {
			t.mu.Lock()
			of := slices.Clone(t.listeners[k])
			t.mu.Unlock()
			for _, l := range of {
				l.changed(t.node)
			}
		}
		return true
	}
	t.mu.Lock()
	if len(t.asked) == 0 {
		t.mu.Unlock()
		t.fail() // an answer to nothing
		return false
	}
	q := t.asked[0]
	t.asked = t.asked[1:]
	t.limit()
	armed := t.tracking
	t.mu.Unlock()
	if q.listener == nil {
		return true // of a PING: the connection works
	}
	if msg.err != nil {
		q.listener.down(t.node)
		return true
	}
	t.took(now.Sub(q.at))
	q.listener.read(t.node, msg, armed, now)
	return true
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
