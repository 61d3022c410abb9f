package redlock

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/server/resp"
)

// The scripts compare lengths first, so that they never copy a huge value of somebody
// else. They answer 1: done, 0: no such key, -1: another value.

// releaseScript deletes the copy of a token.
const releaseScript = `
local n = redis.call('strlen', KEYS[1])
if n == 0 then return 0 end
if n ~= #ARGV[1] or redis.call('get', KEYS[1]) ~= ARGV[1] then return -1 end
return redis.call('del', KEYS[1])`

// extendScript extends a token's copy. It never creates a copy and never shortens a
// TTL: otherwise a request that was delayed in the network could shorten a longer
// extension that a holder already relies on.
const extendScript = `
local n = redis.call('strlen', KEYS[1])
if n == 0 then return 0 end
if n ~= #ARGV[1] or redis.call('get', KEYS[1]) ~= ARGV[1] then return -1 end
if redis.call('pttl', KEYS[1]) < tonumber(ARGV[2]) then redis.call('pexpire', KEYS[1], ARGV[2]) end
return 1`

// revokeScript replaces a token by a tombstone, and keeps the TTL. A copy without a
// TTL, or with one that no grant has, gets another, so that the tombstone ends.
const revokeScript = `
local n = redis.call('strlen', KEYS[1])
if n == 0 then return 0 end
if n ~= #ARGV[1] or redis.call('get', KEYS[1]) ~= ARGV[1] then return -1 end
local left = redis.call('pttl', KEYS[1])
if left < 0 or left > tonumber(ARGV[4]) then
  redis.call('set', KEYS[1], ARGV[2], 'px', ARGV[3])
else
  redis.call('set', KEYS[1], ARGV[2], 'xx', 'keepttl')
end
return 1`

// takeHashScript deletes a hash whose only field is the holder, and publishes to the
// waiters' channel.
const takeHashScript = `
if redis.call('exists', KEYS[1]) == 0 then return 0 end
if redis.call('hlen', KEYS[1]) ~= 1 or redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return -1 end
redis.call('del', KEYS[1])
redis.call('publish', ARGV[2], '0')
return 1`

// fenceScript writes a fencing token if the node has the lock's own token. It answers
// the counter afterwards, or -1 if the lock is not held here. The counter is a time in
// microseconds, and expires only when its TTL has passed after the node's own clock
// reached that time: so a number from a clock that was ahead survives the correction of
// that clock.
const fenceScript = `
if redis.call('get', KEYS[1]) ~= ARGV[1] then return -1 end
local now = tonumber(redis.call('get', KEYS[2]) or '0') or 0
if now >= tonumber(ARGV[2]) then return now end
local clock = redis.call('time')
local ahead = math.ceil(tonumber(ARGV[2]) / 1000) - (tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000))
redis.call('set', KEYS[2], ARGV[2], 'px', string.format('%.0f', tonumber(ARGV[3]) + math.max(ahead, 0)))
return tonumber(ARGV[2])`

// inspectPrefix is how many bytes of a value are read: tokens are short, but a value
// may have 512 MB.
const inspectPrefix = 256

// redisWire connects to a Redis server.
type redisWire struct {
	node    *Node
	reply   *patience     // to write, and between two parts of a reply
	connect time.Duration // to dial, and for each step of the greeting
}

func (w redisWire) open(ctx context.Context) (link, error) {
	// RESP2 has no pushed messages: the n-th reply answers the n-th request.
	b := newRawConn(w.node, w.connect, protocol(2))
	if err := b.greet(ctx); err != nil {
		_ = b.client.Close()
		return nil, err
	}
	begun := time.Now()
	id, err := b.identify(ctx)
	if err != nil {
		_ = b.client.Close()
		return nil, err
	}
	return &redisLink{client: b.client, conn: b.conn, id: id, trip: time.Since(begun), in: bufio.NewReaderSize(b.conn, 16<<10), reply: w.reply, fence: w.node.asksFence()}, nil
}

// redisLink is a connection to a Redis server.
type redisLink struct {
	client *redis.Client // owns the connection, and does not use it any more
	conn   *observedConn
	id     string // of the server
	in     *bufio.Reader
	out    []byte
	trip   time.Duration // of the last step of the greeting
	reply  *patience
	fence  string // the user of whom is asked whether it is fenced; "": the server refuses us itself

	writeBy time.Time // how long a write may take
}

func (l *redisLink) serverID() string { return l.id }

func (l *redisLink) roundTrip() time.Duration { return l.trip }

func (l *redisLink) close() { _ = l.client.Close(); _ = l.conn.Close() }

func (l *redisLink) abort() { l.conn.abort(); _ = l.client.Close() }

func (l *redisLink) expect(by time.Time) { _ = l.conn.SetReadDeadline(by) }

func (l *redisLink) send(batch []*call) error {
	b := l.out[:0]
	for _, c := range batch {
		if l.asksFence(c) {
			b = appendFence(b, l.fence, c.key)
		}
		b = c.appendTo(b)
	}
	if cap(b) <= 1<<20 {
		l.out = b
	}
	// Between one and two node timeouts: moving the deadline with each write would
	// cost more than the write.
	if now, reply := time.Now(), l.reply.lasts(); now.Add(reply).After(l.writeBy) {
		l.writeBy = now.Add(2 * reply)
		if err := l.conn.SetWriteDeadline(l.writeBy); err != nil {
			return err
		}
	}
	_, err := l.conn.Write(b)
	return err
}

// luaScript is a script and the hash that servers know it by.
type luaScript struct{ text, sha string }

func newScript(text string) luaScript {
	sum := sha1.Sum([]byte(text))
	return luaScript{text, hex.EncodeToString(sum[:])}
}

var (
	releaseLua  = newScript(releaseScript)
	extendLua   = newScript(extendScript)
	revokeLua   = newScript(revokeScript)
	takeHashLua = newScript(takeHashScript)
	fenceLua    = newScript(fenceScript)
)

// replies is how many replies a call gets; the last one is the answer.
func (c *call) replies() int {
	switch {
	case c.op == opInspect:
		return 6
	case c.numbered:
		return 3
	}
	return 1
}

func (c *call) appendTo(b []byte) []byte {
	switch c.op {
	case opSet:
		b = resp.AppendLen(b, 6)
		for _, arg := range [...]string{"SET", c.key, c.token, "NX", "PX"} {
			b = resp.AppendArg(b, arg)
		}
		b = resp.AppendIntArg(b, c.ttl.Milliseconds())
		if c.numbered {
			b = resp.AppendCommand(b, "GET", fencingKey(c.key))
			b = resp.AppendCommand(b, "TIME")
		}
		return b
	case opExtend:
		return c.appendScript(b, extendLua, []string{c.key}, c.token, millis(c.ttl))
	case opRelease:
		return c.appendScript(b, releaseLua, []string{c.key}, c.token)
	case opRevoke:
		return c.appendScript(b, revokeLua, []string{c.key}, c.token, c.value, millis(c.ttl), millis(LongestTTL))
	case opTakeHash:
		return c.appendScript(b, takeHashLua, []string{c.key}, c.token, c.value)
	case opFence:
		return c.appendScript(b, fenceLua, []string{c.key, fencingKey(c.key)}, c.token, c.value, millis(c.ttl))
	case opPing:
		return resp.AppendCommand(b, "PING")
	case opInspect:
		// A transaction and not a script: it works on every version, for users who may
		// not run scripts, and on a fenced node.
		b = resp.AppendCommand(b, "MULTI")
		b = resp.AppendCommand(b, "TYPE", c.key)
		b = resp.AppendCommand(b, "PTTL", c.key)
		b = resp.AppendCommand(b, "STRLEN", c.key)
		b = resp.AppendCommand(b, "GETRANGE", c.key, "0", strconv.Itoa(inspectPrefix-1))
		return resp.AppendCommand(b, "EXEC")
	}
	panic("unknown operation")
}

func (c *call) appendScript(b []byte, s luaScript, keys []string, args ...string) []byte {
	b = resp.AppendLen(b, 3+len(keys)+len(args))
	if c.eval {
		b = resp.AppendArg(resp.AppendArg(b, "EVAL"), s.text)
	} else {
		b = resp.AppendArg(resp.AppendArg(b, "EVALSHA"), s.sha)
	}
	b = resp.AppendArg(b, strconv.Itoa(len(keys)))
	for _, a := range keys {
		b = resp.AppendArg(b, a)
	}
	for _, a := range args {
		b = resp.AppendArg(b, a)
	}
	return b
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

func (l *redisLink) receive(oldest func() *call) (c *call, a answer, err error) {
	defer resp.Contain(&err, "a reply")
	if l.in.Buffered() == 0 {
		if _, err := l.in.Peek(1); err != nil {
			return nil, answer{}, err
		}
	}
	c = oldest()
	if c == nil {
		return nil, answer{}, fmt.Errorf("%w: nothing was asked", resp.ErrBad)
	}
	if l.asksFence(c) {
		v, err := resp.ReadValue(l.in)
		if err != nil {
			return c, answer{}, err
		}
		if refused := readFence(v); refused.Err != nil {
			return l.receiveFenced(c, refused)
		}
	}
	if c.numbered {
		return l.receiveNumbered(c)
	}
	r, err := resp.ReadValue(l.in)
	refused := r
	for n := c.replies(); n > 1 && err == nil; n-- {
		if r, err = resp.ReadValue(l.in); refused.Kind != '-' {
			refused = r
		}
	}
	switch {
	case err != nil:
		return c, answer{}, err
	case refused.Kind != '-':
		return c, c.read(r), nil
	case strings.HasPrefix(refused.Text, "NOSCRIPT") && !c.eval:
		return c, answer{}, errAgain
	}
	// The first of several errors: the last reply of a transaction does not say the
	// cause.
	return c, c.refusal(refused.Text), nil
}

// receiveNumbered reads the reply to a SET, and the replies to the reads of the fencing
// counter after it. If the reads are refused, the vote still counts.
func (l *redisLink) receiveNumbered(c *call) (*call, answer, error) {
	var r [3]resp.Value
	for i := range r {
		var err error
		if r[i], err = resp.ReadValue(l.in); err != nil {
			return c, answer{}, err
		}
	}
	set, counter, clock := r[0], r[1], r[2]
	if set.Kind == '-' {
		return c, c.refusal(set.Text), nil
	}
	a := c.read(set)
	switch n, ok := readCounter(counter, clock); {
	case counter.Kind == '-':
		a.numbers = c.refusedRead(counter.Text)
	case clock.Kind == '-':
		a.numbers = c.refusedRead(clock.Text)
	case !ok:
		a.numbers = readResult{StatusProtocol, fmt.Errorf("%w: no number", resp.ErrBad)}
	default:
		a.number, a.numbers.status = n, StatusOK
	}
	return c, a, nil
}

// read turns the last reply into an answer, if no reply was an error.
func (c *call) read(r resp.Value) answer {
	says := func(s Status) answer { return answer{NodeResult: NodeResult{Status: s}} }
	switch c.op {
	case opSet:
		switch {
		case r.Kind == '_':
			return says(StatusHeld)
		case r.Kind == '+' && r.Text == "OK":
			return says(StatusOK)
		}
	case opPing:
		return says(StatusOK)
	case opExtend, opRelease, opRevoke, opTakeHash:
		switch {
		case r.Kind != ':':
		case r.N == 1:
			return says(StatusOK)
		case r.N == 0:
			return says(StatusAbsent)
		case r.N == -1:
			return says(StatusHeld)
		}
	case opInspect:
		if res, ok := c.readInspect(r); ok {
			return answer{NodeResult: res}
		}
	case opFence:
		switch {
		case r.Kind != ':':
		case r.N < 0: // the lock's token is not there
			return says(StatusAbsent)
		default:
			a := says(StatusOK)
			a.number = uint64(r.N)
			return a
		}
	}
	return answer{NodeResult: NodeResult{Status: StatusProtocol, Err: fmt.Errorf("%w: unexpected %q", resp.ErrBad, r.Kind)}}
}

// readCounter returns the greater of the counter, if it exists, and the node's time in
// microseconds.
func readCounter(counter, clock resp.Value) (uint64, bool) {
	if clock.Kind != '*' || len(clock.Items) != 2 {
		return 0, false
	}
	sec, err := strconv.ParseUint(clock.Items[0].Text, 10, 42)
	usec, err2 := strconv.ParseUint(clock.Items[1].Text, 10, 32)
	if err != nil || err2 != nil {
		return 0, false
	}
	n := sec*1e6 + usec
	switch counter.Kind {
	case '_':
		return n, true
	case '$':
		c, err := strconv.ParseUint(counter.Text, 10, 53)
		return max(n, c), err == nil
	}
	return 0, false
}

func (c *call) readInspect(r resp.Value) (NodeResult, bool) {
	if r.Kind != '*' || len(r.Items) != 4 {
		return NodeResult{}, false
	}
	kind, pttl, length, prefix := r.Items[0], r.Items[1], r.Items[2], r.Items[3]
	switch {
	case kind.Kind == '-':
		return c.refusal(kind.Text).NodeResult, true
	case kind.Kind != '+' || pttl.Kind != ':':
		return NodeResult{}, false
	case kind.Text == "none":
		return NodeResult{Status: StatusAbsent}, true
	}
	res := NodeResult{Type: kind.Text, TTL: time.Duration(min(pttl.N, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond}
	if pttl.N < 0 {
		res.TTL = -1
	}
	if kind.Text != "string" {
		res.Status, res.Err = StatusProtocol, fmt.Errorf("the key holds a %s, not a token", kind.Text)
		return res, true
	}
	res.Status, res.Len, res.Token = StatusHeld, length.N, prefix.Text
	return res, length.Kind == ':' && prefix.Kind == '$'
}

// refusal turns an error of the server into an answer.
func (c *call) refusal(text string) answer {
	err := error(resp.ServerError(text))
	status := StatusProtocol
	switch {
	case deniedInScript(text):
		// The server does not say which right the user lacks.
		status, err = StatusDenied, fmt.Errorf("it needs %s: %w", c.rights(), err)
	case isDenied(err):
		status = StatusDenied
	case c.op != opInspect && says(err, "NOREPLICAS"):
		status = StatusFenced
	}
	return answer{NodeResult: NodeResult{Status: status, Err: err}, there: c.op == opExtend && refusesWrite(text)}
}

// refusesWrite reports whether a server refused the write of the extension's script, which finds
// the copy before that.
func refusesWrite(text string) bool {
	err := resp.ServerError(text)
	switch {
	case says(err, "NOREPLICAS"):
		return true
	case deniedInScript(text): // it tells the line, and not the command
		before, _, _ := strings.Cut(extendScript, "redis.call('pexpire'")
		return strings.Contains(text, fmt.Sprintf("@user_script:%d.", 1+strings.Count(before, "\n")))
	}
	return isDenied(err) && strings.Contains(text, "'pexpire'")
}

func (c *call) refusedRead(text string) readResult {
	a := c.refusal(text)
	return readResult{a.Status, a.Err}
}

// rights are the rights that the script of a call needs.
func (c *call) rights() string {
	switch c.op {
	case opExtend:
		return "strlen, get, pttl and pexpire on the key"
	case opRevoke:
		return "strlen, get, pttl and set on the key"
	case opTakeHash:
		return "exists, hlen, hexists and del on the key, and publish on its channel"
	case opFence:
		return "time, get on the key, and get and set on " + fencingKey(c.key)
	default:
		return "strlen, get and del on the key"
	}
}

// New opens a client; it does not wait for any node. Connections are opened in the
// background at once, and reopened when one is lost. It fails if the options contradict
// each other, if there are no nodes, or if two nodes have the same name.
func New(nodes []*Node, opt Options) (*Client, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if len(nodes) == 0 {
		return nil, fmt.Errorf("%w: no nodes", ErrInvalid)
	}
	seen := make(map[string]bool)
	for _, n := range nodes {
		switch {
		case n == nil:
			return nil, fmt.Errorf("%w: a node is nil", ErrInvalid)
		case seen[n.Name()]:
			return nil, fmt.Errorf("%w: two nodes are named %s", ErrInvalid, quote(n.Name()))
		}
		seen[n.Name()] = true
	}
	return newClient(nodes, opt, func(n *Node, reply *patience) dialer {
		return redisWire{n, reply, opt.ConnectTimeout}
	}, func(n *Node) trackingConn { return newRedisTracking(n, opt.ConnectTimeout) }), nil
}

// fencingPrefix begins the keys of counters.
const fencingPrefix = "redlockctl:fencing:"

func fencingKey(resource string) string { return fencingPrefix + resource }
