package redlock

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"
)

// tap is a connection over which a node tells of keys: what is there now, when
// asked, and once for each answer that it is not so any more (CLIENT TRACKING).
// open and hear are called by one goroutine, the others by any.
type tap interface {
	// open connects, and reports whether the node will tell of changes.
	open(ctx context.Context) (tracking bool, err error)
	// ask reads a key. It does not wait for the answer, nor for anything else.
	ask(key string) error
	// hear waits for the next message. An error says that the connection is of no
	// use any more, except for a timeout.
	hear() (message, error)
	// deadline bounds hear, also one that waits already; zero: no bound.
	deadline(time.Time)
	// close ends the connection; a tap may be opened again, until end is called.
	close()
	// end closes for good, and also ends an open that is under way.
	end()
}

// message is what a tap hears.
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

// listener is told what ears hear of a key. It is called with nothing held.
type listener interface {
	key() string
	up(node int)      // the node can be asked
	down(node int)    // it cannot, or the answer is lost
	changed(node int) // the key is not what was read
	// read is the answer to a question; armed: the next change will be told.
	read(node int, m message, armed bool, now time.Time)
}

// hearing is what the ears of a client have in common.
type hearing struct {
	connect time.Duration       // to open a connection, and for an answer
	took    func(time.Duration) // is told how long a read took
	ended   chan struct{}       // closed at the end
	wg      sync.WaitGroup      // the goroutines
}

// ear listens to one node, as long as somebody waits for something there, and
// a little longer.
type ear struct {
	*hearing
	node int
	tap  tap
	wake chan struct{} // ends a rest when there is no line any more

	mu       sync.Mutex
	state    earState
	tracking bool
	lines    map[string][]listener // by key
	asked    []question
	idle     bool      // since nobody waits: the deadline is for closing
	rest     time.Time // no connection is tried before
	backoff  time.Duration
}

type question struct {
	line listener
	at   time.Time
}

type earState uint8

const (
	earClosed  earState = iota // no goroutine
	earOpening                 // connecting
	earUp
	earResting // the node could not be listened to; tried again later
)

const (
	earIdle      = 2 * time.Second // that a connection is kept when nobody waits
	earQuestions = 4096            // under way; more are not asked
)

func newEar(h *hearing, node int, t tap) *ear {
	return &ear{hearing: h, node: node, tap: t, wake: make(chan struct{}, 1), lines: make(map[string][]listener)}
}

func (e *ear) hears() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state == earUp && e.tracking
}

// attach begins to tell a line what is heard.
func (e *ear) attach(l listener) earState {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lines[l.key()] = append(e.lines[l.key()], l)
	switch e.state {
	case earClosed:
		e.state = earOpening
		if time.Now().Before(e.rest) {
			e.state = earResting
		}
		e.wg.Go(e.run)
	case earUp:
		if e.idle {
			e.idle = false
			e.limit()
		}
	}
	return e.state
}

// detach ends it.
func (e *ear) detach(l listener) {
	e.mu.Lock()
	defer e.mu.Unlock()
	left := slices.DeleteFunc(slices.Clone(e.lines[l.key()]), func(o listener) bool { return o == l })
	if e.lines[l.key()] = left; len(left) == 0 {
		delete(e.lines, l.key())
	}
	if len(e.lines) > 0 {
		return
	}
	switch e.state {
	case earUp:
		e.idle = true
		e.limit()
	case earResting:
		select {
		case e.wake <- struct{}{}:
		default:
		}
	}
}

// limit sets the deadline of the tap; e.mu is held.
func (e *ear) limit() {
	switch {
	case len(e.asked) > 0:
		e.tap.deadline(e.asked[0].at.Add(e.connect))
	case e.idle:
		e.tap.deadline(time.Now().Add(earIdle))
	default:
		e.tap.deadline(time.Time{})
	}
}

// ask reads the key of a line. It reports whether it could.
func (e *ear) ask(l listener) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state != earUp || len(e.asked) >= earQuestions {
		return false
	}
	if e.tap.ask(l.key()) != nil {
		return false // hear will fail too
	}
	e.asked = append(e.asked, question{l, time.Now()})
	if len(e.asked) == 1 {
		e.limit()
	}
	return true
}

func (e *ear) close() {
	e.tap.end()
}

// run listens until nobody has waited for a while.
func (e *ear) run() {
	for e.resume() && e.open() {
		for e.next() {
		}
		e.tap.close()
	}
}

// resume rests after a failure. It reports whether there is anything more to do.
func (e *ear) resume() bool {
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
		e.state = earClosed
		return false
	default:
	}
	if len(e.lines) == 0 {
		e.state = earClosed
		return false
	}
	e.state = earOpening
	return true
}

// open connects. It is false only when the watcher has ended.
func (e *ear) open() bool {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 2*e.connect)
		tracking, err := e.tap.open(ctx)
		cancel()
		if err == nil {
			e.mu.Lock()
			e.state, e.tracking, e.asked, e.backoff = earUp, tracking, nil, 0
			e.idle = len(e.lines) == 0
			e.limit()
			e.mu.Unlock()
			e.tell(func(l listener) { l.up(e.node) })
			return true
		}
		e.fail()
		if !e.resume() {
			return false
		}
	}
}

// fail takes note that the node cannot be listened to for now.
func (e *ear) fail() {
	e.mu.Lock()
	e.backoff = min(max(2*e.backoff, backoffMin), backoffMax)
	e.rest = time.Now().Add(e.backoff)
	e.state, e.asked = earResting, nil
	e.mu.Unlock()
	e.tell(func(l listener) { l.down(e.node) })
}

// tell tells all lines.
func (e *ear) tell(what func(listener)) {
	e.mu.Lock()
	lines := make([]listener, 0, len(e.lines))
	for _, of := range e.lines {
		lines = append(lines, of...)
	}
	e.mu.Unlock()
	for _, l := range lines {
		what(l)
	}
}

// next takes in one message. It reports whether the connection goes on.
func (e *ear) next() bool {
	msg, err := e.tap.hear()
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
			e.tell(func(l listener) { l.changed(e.node) })
			return true
		}
		for _, k := range msg.keys {
			e.mu.Lock()
			of := slices.Clone(e.lines[k])
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
		q.line.down(e.node)
		return true
	}
	e.took(now.Sub(q.at))
	q.line.read(e.node, msg, armed, now)
	return true
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
