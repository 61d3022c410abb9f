package redlock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
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

// redisWire is a wire to a Redis server: one connection at a time, dialled
// only by open, so that what is sent after a failure never goes out on a
// connection that nobody knows of.
type redisWire struct {
	node           *Node
	timeout        time.Duration // of one pipeline
	connectTimeout time.Duration // to dial
	release        *redis.Script
	extend         *redis.Script

	mu     sync.Mutex    // close may come from another goroutine
	client *redis.Client // nil: not connected
	closed bool
}

func newRedisWire(n *Node, timeout, connectTimeout time.Duration) *redisWire {
	return &redisWire{
		node: n, timeout: timeout, connectTimeout: connectTimeout,
		release: redis.NewScript(releaseScript), extend: redis.NewScript(extendScript),
	}
}

func (w *redisWire) open(ctx context.Context) error {
	w.drop()
	var greeted atomic.Bool
	client := w.node.OneLife(w.connectTimeout, func(opt *redis.Options) {
		// RESP2 has no messages out of turn: the n-th reply is that of the n-th request.
		opt.Protocol = 2
		// With one, go-redis would go on dialling in the background after a failure.
		opt.PoolSize = 2
		then := opt.OnConnect
		opt.OnConnect = func(ctx context.Context, cn *redis.Conn) error {
			greeted.Store(true)
			if then == nil {
				return nil
			}
			return then(ctx, cn)
		}
	})
	if !w.use(client) {
		return errors.Join(ErrClosed, client.Close())
	}
	// Any reply will do after the greeting: a server that says LOADING or NOPERM
	// is there.
	if err := client.Ping(ctx).Err(); err != nil && !(greeted.Load() && isReply(err)) {
		w.drop()
		return err
	}
	return nil
}

// use makes client the current one, unless the wire is closed.
func (w *redisWire) use(client *redis.Client) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.client = client
	}
	return !w.closed
}

func (w *redisWire) drop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.client != nil {
		_ = w.client.Close()
		w.client = nil
	}
}

func (w *redisWire) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.drop()
}

func (w *redisWire) send(ctx context.Context, batch []*call) ([]answer, error) {
	answers := make([]answer, len(batch))
	w.mu.Lock()
	client := w.client
	w.mu.Unlock()
	if client == nil {
		for i := range answers {
			answers[i] = answer{NodeResult: NodeResult{Status: StatusDown, Err: errSpent}}
		}
		return answers, errSpent
	}
	err := w.exec(ctx, client, batch, answers, false)
	if err == nil {
		// A server that has lost its scripts gets them anew before anything else.
		var again []*call
		var at []int
		for i, a := range answers {
			if a.Err != nil && redis.HasErrorPrefix(a.Err, "NOSCRIPT") {
				again, at = append(again, batch[i]), append(at, i)
			}
		}
		if len(again) > 0 {
			second := make([]answer, len(again))
			err = w.exec(ctx, client, again, second, true)
			for k, i := range at {
				answers[i] = second[k]
			}
		}
	}
	if err != nil {
		w.drop()
	}
	return answers, err
}

// exec sends one pipeline; with eval, scripts go as text and not as their hash.
func (w *redisWire) exec(ctx context.Context, client *redis.Client, batch []*call, answers []answer, eval bool) error {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	pipe := client.Pipeline()
	cmds := make([]*redis.Cmd, len(batch)) // the one whose reply decides
	for i, c := range batch {
		switch c.op {
		case opSet:
			cmds[i] = pipe.Do(ctx, "set", c.key, c.token, "nx", "px", c.ttl.Milliseconds())
		case opExtend:
			cmds[i] = script(ctx, pipe, w.extend, eval, c.key, c.token, c.ttl.Milliseconds())
		case opRelease:
			cmds[i] = script(ctx, pipe, w.release, eval, c.key, c.token)
		case opInspect:
			// A transaction, and no script: it works on every version, for users
			// without the right to scripts, and on a fenced node.
			pipe.Do(ctx, "multi")
			pipe.Do(ctx, "type", c.key)
			pipe.Do(ctx, "pttl", c.key)
			pipe.Do(ctx, "strlen", c.key)
			pipe.Do(ctx, "getrange", c.key, 0, inspectPrefix-1)
			cmds[i] = pipe.Do(ctx, "exec")
		}
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	var broken error
	for i, c := range batch {
		err := cmds[i].Err()
		if err != nil && !errors.Is(err, redis.Nil) && !isReply(err) {
			broken = err
			answers[i] = answer{NodeResult: NodeResult{Status: classifyTransport(err), Err: err}, sent: !unsent(err)}
			continue
		}
		answers[i] = answer{NodeResult: c.read(cmds[i]), sent: true}
	}
	return broken
}

func script(ctx context.Context, pipe redis.Pipeliner, s *redis.Script, eval bool, key string, args ...any) *redis.Cmd {
	if eval {
		return s.Eval(ctx, pipe, []string{key}, args...)
	}
	return s.EvalSha(ctx, pipe, []string{key}, args...)
}

// read makes a result of a reply.
func (c *call) read(cmd *redis.Cmd) NodeResult {
	val, err := cmd.Result()
	switch {
	case c.op == opSet && errors.Is(err, redis.Nil):
		return NodeResult{Status: StatusHeld}
	case err != nil:
		return NodeResult{Status: c.classifyReply(err), Err: err}
	}
	switch c.op {
	case opSet:
		if val == "OK" {
			return NodeResult{Status: StatusOK}
		}
	case opExtend, opRelease:
		switch val {
		case int64(1):
			return NodeResult{Status: StatusOK}
		case int64(0):
			return NodeResult{Status: StatusAbsent}
		case int64(-1):
			return NodeResult{Status: StatusHeld}
		}
	case opInspect:
		if r, ok := readInspect(val); ok {
			return r
		}
	}
	return NodeResult{Status: StatusProtocol, Err: fmt.Errorf("unexpected reply of type %T", val)}
}

func readInspect(val any) (NodeResult, bool) {
	v, ok := val.([]any)
	if !ok || len(v) != 4 {
		return NodeResult{}, false
	}
	if err, ok := v[0].(error); ok {
		return NodeResult{Status: StatusProtocol, Err: err}, true
	}
	kind, ok := v[0].(string)
	pttl, ok2 := v[1].(int64)
	if !ok || !ok2 {
		return NodeResult{}, false
	}
	if kind == "none" {
		return NodeResult{Status: StatusAbsent}, true
	}
	r := NodeResult{Type: kind, TTL: time.Duration(pttl) * time.Millisecond}
	if pttl < 0 {
		r.TTL = -1
	}
	if kind != "string" {
		r.Status, r.Err = StatusProtocol, fmt.Errorf("the key holds a %s, not a token", kind)
		return r, true
	}
	r.Len, ok = v[2].(int64)
	r.Token, ok2 = v[3].(string)
	r.Status = StatusHeld
	return r, ok && ok2
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
