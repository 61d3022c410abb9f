package redlock

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// The scripts compare lengths first, so that a huge foreign value under the key
// is never copied. They answer 1: done, 0: no such key, -1: another value.

// releaseScript deletes the copy of a token.
const releaseScript = `
local n = redis.call('strlen', KEYS[1])
if n == 0 then return 0 end
if n ~= #ARGV[1] or redis.call('get', KEYS[1]) ~= ARGV[1] then return -1 end
return redis.call('del', KEYS[1])`

// extendScript sets the TTL of a token's copy anew. It never creates one, and
// never shortens one: a request that was held up in the network would otherwise
// cut down a longer extension that overtook it and that a holder relies on.
const extendScript = `
local n = redis.call('strlen', KEYS[1])
if n == 0 then return 0 end
if n ~= #ARGV[1] or redis.call('get', KEYS[1]) ~= ARGV[1] then return -1 end
if redis.call('pttl', KEYS[1]) < tonumber(ARGV[2]) then redis.call('pexpire', KEYS[1], ARGV[2]) end
return 1`

// inspectPrefix is how much of a value is read: tokens are short, and a value
// under the key may have 512 MB.
const inspectPrefix = 256

// redisWire connects to a Redis server. The client library dials, encrypts,
// authenticates and greets; then the connection is taken from it.
type redisWire struct {
	node    *Node
	reply   time.Duration // to write, and to go on with a reply that has begun
	connect time.Duration // to dial, and for each step of the greeting
}

func (w redisWire) open(ctx context.Context) (link, error) {
	var conn *tappedConn
	client := w.node.OneLife(w.connect, func(opt *redis.Options) {
		// RESP2 has no messages out of turn: the n-th reply is that of the n-th request.
		opt.Protocol = 2
		// With one, go-redis would go on dialling in the background after a failure.
		opt.PoolSize = 2
		dial := opt.Dialer
		opt.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if dial == nil {
				dial = redis.NewDialer(opt)
			}
			c, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			conn = &tappedConn{Conn: c}
			return conn, nil
		}
	})
	err := client.Ping(ctx).Err()
	// To the PING any reply will do: a server that says LOADING or NOPERM is there.
	// One that refused the greeting before it has closed the connection.
	if err != nil && (!isReply(err) || conn == nil || conn.closed.Load()) {
		_ = client.Close()
		return nil, err
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		_ = client.Close()
		return nil, err
	}
	return &redisLink{client: client, conn: conn, in: bufio.NewReaderSize(conn, 16<<10), reply: w.reply}, nil
}

// tappedConn tells if the client library has closed it.
type tappedConn struct {
	net.Conn
	closed atomic.Bool
}

func (c *tappedConn) Close() error {
	c.closed.Store(true)
	return c.Conn.Close()
}

// redisLink is a connection to a Redis server.
type redisLink struct {
	client *redis.Client // owns the connection, and does not use it any more
	conn   net.Conn
	in     *bufio.Reader
	out    []byte
	reply  time.Duration

	writeBy time.Time // how long a write may take
}

func (l *redisLink) close() { _ = l.client.Close(); _ = l.conn.Close() }

func (l *redisLink) expect(by time.Time) { _ = l.conn.SetReadDeadline(by) }

func (l *redisLink) send(batch []*call) error {
	b := l.out[:0]
	for _, c := range batch {
		b = c.appendTo(b)
	}
	if cap(b) <= 1<<20 {
		l.out = b
	}
	// Between one and two node timeouts: moving the deadline with each write would
	// cost more than the write.
	if now := time.Now(); now.Add(l.reply).After(l.writeBy) {
		l.writeBy = now.Add(2 * l.reply)
		if err := l.conn.SetWriteDeadline(l.writeBy); err != nil {
			return err
		}
	}
	_, err := l.conn.Write(b)
	return err
}

var (
	releaseSHA = sha(releaseScript)
	extendSHA  = sha(extendScript)
)

func sha(script string) string {
	sum := sha1.Sum([]byte(script))
	return hex.EncodeToString(sum[:])
}

// inspectReplies is how many replies an inspection has; the last one tells.
const inspectReplies = 6

func (c *call) appendTo(b []byte) []byte {
	switch c.op {
	case opSet:
		return appendCommand(b, "SET", c.key, c.token, "NX", "PX", strconv.FormatInt(c.ttl.Milliseconds(), 10))
	case opExtend:
		cmd, script := c.script(extendScript, extendSHA)
		return appendCommand(b, cmd, script, "1", c.key, c.token, strconv.FormatInt(c.ttl.Milliseconds(), 10))
	case opRelease:
		cmd, script := c.script(releaseScript, releaseSHA)
		return appendCommand(b, cmd, script, "1", c.key, c.token)
	case opInspect:
		// A transaction, and no script: it works on every version, for users
		// without the right to scripts, and on a fenced node.
		b = appendCommand(b, "MULTI")
		b = appendCommand(b, "TYPE", c.key)
		b = appendCommand(b, "PTTL", c.key)
		b = appendCommand(b, "STRLEN", c.key)
		b = appendCommand(b, "GETRANGE", c.key, "0", strconv.Itoa(inspectPrefix-1))
		return appendCommand(b, "EXEC")
	}
	panic("unknown operation")
}

func (c *call) script(text, sha string) (cmd, script string) {
	if c.eval {
		return "EVAL", text
	}
	return "EVALSHA", sha
}

func (l *redisLink) receive(oldest func() *call) (*call, answer, error) {
	if l.in.Buffered() == 0 {
		if _, err := l.in.Peek(1); err != nil {
			return nil, answer{}, err
		}
	}
	c := oldest()
	if c == nil {
		return nil, answer{}, fmt.Errorf("%w: nothing was asked", errBadReply)
	}
	r, err := readReply(l.in, 0)
	if c.op == opInspect {
		for range inspectReplies - 1 {
			if err == nil {
				r, err = readReply(l.in, 0)
			}
		}
	}
	switch {
	case err != nil:
		return c, answer{}, err
	case r.kind == '-' && strings.HasPrefix(r.text, "NOSCRIPT") && !c.eval:
		return c, answer{}, errAgain
	}
	return c, answer{NodeResult: c.read(r)}, nil
}

// read makes a result of a reply.
func (c *call) read(r reply) NodeResult {
	if r.kind == '-' {
		err := ServerError(r.text)
		return NodeResult{Status: c.classifyReply(err), Err: err}
	}
	switch c.op {
	case opSet:
		switch {
		case r.kind == '_':
			return NodeResult{Status: StatusHeld}
		case r.kind == '+' && r.text == "OK":
			return NodeResult{Status: StatusOK}
		}
	case opExtend, opRelease:
		switch {
		case r.kind != ':':
		case r.n == 1:
			return NodeResult{Status: StatusOK}
		case r.n == 0:
			return NodeResult{Status: StatusAbsent}
		case r.n == -1:
			return NodeResult{Status: StatusHeld}
		}
	case opInspect:
		if res, ok := readInspect(r); ok {
			return res
		}
	}
	return NodeResult{Status: StatusProtocol, Err: fmt.Errorf("%w: unexpected %q", errBadReply, r.kind)}
}

func readInspect(r reply) (NodeResult, bool) {
	if r.kind != '*' || len(r.items) != 4 {
		return NodeResult{}, false
	}
	kind, pttl, length, prefix := r.items[0], r.items[1], r.items[2], r.items[3]
	switch {
	case kind.kind == '-':
		return NodeResult{Status: StatusProtocol, Err: ServerError(kind.text)}, true
	case kind.kind != '+' || pttl.kind != ':':
		return NodeResult{}, false
	case kind.text == "none":
		return NodeResult{Status: StatusAbsent}, true
	}
	res := NodeResult{Type: kind.text, TTL: time.Duration(pttl.n) * time.Millisecond}
	if pttl.n < 0 {
		res.TTL = -1
	}
	if kind.text != "string" {
		res.Status, res.Err = StatusProtocol, fmt.Errorf("the key holds a %s, not a token", kind.text)
		return res, true
	}
	res.Status, res.Len, res.Token = StatusHeld, length.n, prefix.text
	return res, length.kind == ':' && prefix.kind == '$'
}

// isReply tells if an error is one that the server sent.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// says tells if a server's error is of this kind. Servers before 7.0 put the
// error of a command inside a script into the middle of a sentence.
func says(err error, kind string) bool {
	text := err.Error()
	return strings.HasPrefix(text, kind+" ") || strings.Contains(text, ": -"+kind+" ") || strings.Contains(text, ": "+kind+" ")
}

// classifyReply is the status for an error that the server sent.
func (c *call) classifyReply(err error) Status {
	if c.op != opInspect && (says(err, "NOREPLICAS") || says(err, "NOPERM")) {
		return StatusFenced
	}
	return StatusProtocol
}

// classifyTransport is the status for a failure to get any reply.
func classifyTransport(err error) Status {
	var timeout net.Error
	switch {
	case unsent(err):
		return StatusDown
	case isReply(err): // to the greeting
		return StatusProtocol
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return StatusSlow
	default:
		return StatusDown
	}
}

// unsent tells of an error that there was no connection to send anything on.
func unsent(err error) bool {
	var op *net.OpError
	return errors.Is(err, errSpent) || errors.As(err, &op) && op.Op == "dial"
}
