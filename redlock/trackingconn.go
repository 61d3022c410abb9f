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

	"redlockctl/server/resp"
)

// redisTracking is the trackingConn of a Redis server: go-redis opens and greets the
// connection, and it is read here, since go-redis delivers pushed messages only while it
// waits for a reply. A server without RESP3, or one that denies tracking, can still be read.
type redisTracking struct {
	node    *Node
	timeout time.Duration // to dial, for each step of the greeting, and for a write

	mu     sync.Mutex
	client *redis.Client // nil: not connected
	conn   net.Conn      // nil: not greeted
	out    []byte
	pings  []bool // of each question without an answer: it is a PING
	ended  bool

	// Of the goroutine that receives:
	in    *bufio.Reader
	later []message // pushed into the midst of an answer
}

func newRedisTracking(n *Node, timeout time.Duration) *redisTracking {
	return &redisTracking{node: n, timeout: timeout}
}

func (t *redisTracking) open(ctx context.Context) (tracking bool, err error) {
	b := newRawConn(t.node, t.timeout, protocol(3))
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
	// A server without RESP3 would accept the tracking but could not report changes.
	out := resp.AppendCommand(nil, "HELLO", "3")
	if _, err := conn.Write(resp.AppendCommand(out, "CLIENT", "TRACKING", "ON")); err != nil {
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
	return hello.Kind == '%' && r.Kind == '+', nil
}

// use makes a connection the current one, unless it has ended.
func (t *redisTracking) use(client *redis.Client, conn net.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.client, t.conn, t.pings = client, conn, nil
	}
	return !t.ended
}

// tokenPrefix is how many bytes of a value are read to distinguish holders.
const tokenPrefix = 64

// ask reads the TTL of the key and the beginning of its value, which may be huge. The
// two reads need not match: a change between them is reported as a change.
func (t *redisTracking) ask(key string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn == nil {
		return errSpent
	}
	t.out = resp.AppendCommand(t.out[:0], "PTTL", key)
	t.out = resp.AppendCommand(t.out, "GETRANGE", key, "0", strconv.Itoa(tokenPrefix-1))
	return t.send(false)
}

func (t *redisTracking) ping() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn == nil {
		return errSpent
	}
	t.out = resp.AppendCommand(t.out[:0], "PING")
	return t.send(true)
}

// send sends a question; t.mu is held.
func (t *redisTracking) send(ping bool) error {
	t.pings = append(t.pings, ping)
	// A few bytes for each of a bounded number of reads: the kernel buffers them at
	// once, whether or not the server reads them.
	if err := t.conn.SetWriteDeadline(time.Now().Add(t.timeout)); err != nil {
		return err
	}
	_, err := t.conn.Write(t.out)
	return err
}

func (t *redisTracking) receive() (_ message, err error) {
	defer resp.Contain(&err, "a change")
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
		if err != nil || t.answersPing() {
			return message{}, err
		}
		value, err := t.reply()
		if err != nil {
			return message{}, err
		}
		return readCopy(left, value), nil
	}
}

// answersPing takes the oldest question, and reports whether it is a PING.
func (t *redisTracking) answersPing() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.pings) == 0 {
		return false
	}
	ping := t.pings[0]
	t.pings = t.pings[1:]
	return ping
}

// reply reads a reply, and keeps messages that were pushed before it for later.
func (t *redisTracking) reply() (resp.Value, error) {
	for {
		kind, err := t.in.Peek(1)
		if err != nil {
			return resp.Value{}, err
		}
		if kind[0] != '>' {
			return resp.ReadValue(t.in)
		}
		m, ok, err := readPush(t.in)
		if err != nil {
			return resp.Value{}, err
		}
		if ok {
			t.later = append(t.later, m)
		}
	}
}

// readCopy makes a message from the replies to PTTL and GETRANGE.
func readCopy(left, value resp.Value) message {
	switch {
	case left.Kind == '-':
		return message{err: resp.ServerError(left.Text)}
	case left.Kind != ':':
		return message{err: resp.ErrBad}
	case left.N == -2:
		return message{}
	}
	m := message{there: true, ttl: -1}
	if left.N >= 0 {
		m.ttl = min(time.Duration(min(left.N, int64(LongestTTL/time.Millisecond)))*time.Millisecond, LongestTTL)
	}
	if value.Kind == '$' {
		m.token = value.Text // only a string has one
	}
	return m
}

// readPush reads a pushed message. It reports whether it is about changed keys.
func readPush(r *bufio.Reader) (message, bool, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return message{}, false, err
	}
	n, err := strconv.Atoi(string(bytes.TrimSpace(line[1:])))
	if err != nil || n < 1 || n > resp.MostItems {
		return message{}, false, fmt.Errorf("%w: %q", resp.ErrBad, line)
	}
	items, left := make([]resp.Value, n), resp.MostBytes
	for i := range items {
		if items[i], err = readPushed(r, &left); err != nil {
			return message{}, false, err
		}
	}
	if n != 2 || items[0].Text != "invalidate" {
		return message{}, false, nil
	}
	m := message{changed: true, all: items[1].Kind == '_'} // all: the database was flushed
	for _, k := range items[1].Items {
		m.keys = append(m.keys, k.Text)
	}
	return m, true, nil
}

// readPushed reads an item of a pushed message, which may be the nil of RESP3.
func readPushed(r *bufio.Reader, left *int) (resp.Value, error) {
	if b, err := r.Peek(3); err == nil && string(b) == "_\r\n" {
		_, err = r.Discard(3)
		return resp.Value{Kind: '_'}, err
	}
	return resp.ReadItem(r, 1, left)
}

func (t *redisTracking) deadline(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn != nil {
		_ = t.conn.SetReadDeadline(at)
	}
}

func (t *redisTracking) close() {
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

func (t *redisTracking) end() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.close()
}
