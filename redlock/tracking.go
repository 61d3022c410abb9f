package redlock

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// tap is a connection over which a node tells of keys: what is there now, when
// asked, and once for each answer that it is not so any more (CLIENT TRACKING).
// open and hear are called by one goroutine, the others by any.
type tap interface {
	// open connects, and tells if the node will tell of changes.
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
	lines    map[string]listener // by key
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
	return &ear{hearing: h, node: node, tap: t, wake: make(chan struct{}, 1), lines: make(map[string]listener)}
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
	e.lines[l.key()] = l
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
	delete(e.lines, l.key())
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

// ask reads the key of a line. It tells if it could.
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

// resume rests after a failure. It tells if there is anything more to do.
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
	for _, l := range e.lines {
		lines = append(lines, l)
	}
	e.mu.Unlock()
	for _, l := range lines {
		what(l)
	}
}

// next takes in one message. It tells if the connection goes on.
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
			l := e.lines[k]
			e.mu.Unlock()
			if l != nil {
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

// redisTap is a tap on a Redis server: a connection that go-redis has opened
// and greeted, and that is read here, since go-redis hands out pushed messages
// only while it waits for a reply. A server that knows no RESP3 or denies
// tracking can still be asked.
type redisTap struct {
	node    *Node
	timeout time.Duration // to dial, for each step of the greeting, and for a write

	mu     sync.Mutex
	client *redis.Client // nil: not connected
	conn   net.Conn      // nil: not greeted
	out    []byte
	ended  bool

	// Of the goroutine that hears:
	in    *bufio.Reader
	later []message // pushed into the midst of an answer
}

func newRedisTap(n *Node, timeout time.Duration) *redisTap {
	return &redisTap{node: n, timeout: timeout}
}

func (t *redisTap) open(ctx context.Context) (tracking bool, err error) {
	b := borrow(t.node, 3, t.timeout)
	if !t.use(b.client, nil) {
		return false, errors.Join(ErrClosed, b.client.Close())
	}
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	if err := b.greet(ctx); err != nil {
		return false, err
	}
	conn := b.conn
	if err := conn.SetDeadline(time.Now().Add(t.timeout)); err != nil {
		return false, err
	}
	// A server that knows no RESP3, or denies it, would accept the tracking all the
	// same, and have no way to tell of anything.
	out := appendCommand(nil, "HELLO", "3")
	if _, err := conn.Write(appendCommand(out, "CLIENT", "TRACKING", "ON")); err != nil {
		return false, err
	}
	t.in, t.later = bufio.NewReader(conn), nil
	hello, err := t.reply()
	if err != nil {
		return false, err
	}
	r, err := t.reply()
	if err != nil {
		return false, err
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return false, err
	}
	if !t.use(b.client, conn) {
		return false, ErrClosed
	}
	return hello.kind == '%' && r.kind == '+', nil
}

// use makes a connection the current one, unless the tap has ended.
func (t *redisTap) use(client *redis.Client, conn net.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.client, t.conn = client, conn
	}
	return !t.ended
}

// tokenPrefix is how much of a value is read, to tell one holder from another.
const tokenPrefix = 64

// ask reads what is left of the key and a little of its value, which may be
// huge. That both belong together does not matter: what has changed between
// them is told as a change.
func (t *redisTap) ask(key string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn == nil {
		return errSpent
	}
	t.out = appendCommand(t.out[:0], "PTTL", key)
	t.out = appendCommand(t.out, "GETRANGE", key, "0", strconv.Itoa(tokenPrefix-1))
	// A few bytes for each of a bounded number of questions: the kernel takes them
	// at once, whether the server reads them or not.
	if err := t.conn.SetWriteDeadline(time.Now().Add(t.timeout)); err != nil {
		return err
	}
	_, err := t.conn.Write(t.out)
	return err
}

func (t *redisTap) hear() (message, error) {
	if len(t.later) > 0 {
		m := t.later[0]
		t.later = t.later[1:]
		return m, nil
	}
	for {
		if kind, err := t.in.Peek(1); err != nil {
			return message{}, err
		} else if kind[0] == '>' {
			m, ok, err := readPush(t.in)
			if ok || err != nil {
				return m, err
			}
			continue
		}
		left, err := t.reply()
		if err != nil {
			return message{}, err
		}
		value, err := t.reply()
		if err != nil {
			return message{}, err
		}
		return readSight(left, value), nil
	}
}

// reply reads a reply, and keeps for later what is pushed ahead of it.
func (t *redisTap) reply() (reply, error) {
	for {
		kind, err := t.in.Peek(1)
		if err != nil {
			return reply{}, err
		}
		if kind[0] != '>' {
			return readReply(t.in, 0)
		}
		m, ok, err := readPush(t.in)
		if err != nil {
			return reply{}, err
		}
		if ok {
			t.later = append(t.later, m)
		}
	}
}

// readSight makes a message of the replies to PTTL and GETRANGE.
func readSight(left, value reply) message {
	switch {
	case left.kind == '-':
		return message{err: ServerError(left.text)}
	case left.kind != ':':
		return message{err: errBadReply}
	case left.n == -2:
		return message{}
	}
	m := message{there: true, ttl: -1}
	if left.n >= 0 {
		m.ttl = min(time.Duration(min(left.n, int64(maxTTL/time.Millisecond)))*time.Millisecond, maxTTL)
	}
	if value.kind == '$' {
		m.token = value.text // something that is no string has none
	}
	return m
}

// readPush reads a message that is no reply. It tells if it is about keys that
// have changed.
func readPush(r *bufio.Reader) (message, bool, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return message{}, false, err
	}
	n, err := strconv.Atoi(string(bytes.TrimSpace(line[1:])))
	if err != nil || n < 1 || n > maxItems {
		return message{}, false, fmt.Errorf("%w: %q", errBadReply, line)
	}
	items, left := make([]reply, n), lockReply
	for i := range items {
		if items[i], err = readPushed(r, &left); err != nil {
			return message{}, false, err
		}
	}
	if n != 2 || items[0].text != "invalidate" {
		return message{}, false, nil
	}
	m := message{changed: true, all: items[1].kind == '_'} // all: the database was flushed
	for _, k := range items[1].items {
		m.keys = append(m.keys, k.text)
	}
	return m, true, nil
}

// readPushed reads an item of a pushed message, which may be the nil of RESP3.
func readPushed(r *bufio.Reader, left *int) (reply, error) {
	if b, err := r.Peek(3); err == nil && string(b) == "_\r\n" {
		_, err = r.Discard(3)
		return reply{kind: '_'}, err
	}
	return readValue(r, 1, left)
}

func (t *redisTap) deadline(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn != nil {
		_ = t.conn.SetReadDeadline(at)
	}
}

func (t *redisTap) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.client != nil {
		_ = t.client.Close()
	}
	if t.conn != nil {
		_ = t.conn.Close()
	}
	t.client, t.conn = nil, nil
}

func (t *redisTap) end() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.close()
}
