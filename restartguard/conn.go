package restartguard

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/announce"
	"redlockctl/internal/minreplicas"
	"redlockctl/internal/safetext"
	"redlockctl/redlock"
)

// errBroken is returned when a connection failed: what was sent through it may
// have been carried out or not, and nothing more may be sent.
var errBroken = errors.New("no connection")

// conn is one connection to one incarnation of a server. Its client never dials
// again.
type conn struct {
	client *redis.Client
	method Method
	// name is what the connection is called at the server, id what it has
	// there, once it was told, 0 before; met: it was asked.
	name string
	id   int64
	met  bool
	// counter: the counter key is read with each look.
	counter bool
	// budget is what the node may send; crowded: its list of clients is more than
	// that.
	budget  *redlock.Budget
	crowded bool
	// hear: the next look reads what guards announce: heard, or why it cannot.
	hear  bool
	heard []announce.Guard
	deaf  error
}

// What a node may send to a guard, in bytes, see [redlock.Budget]: a section of
// INFO is the most that a look asks for, and commandstats is long where all
// commands were used. The list of clients is asked for once, and a page of SCAN
// for early rejoin.
const (
	guardReply    = 128 << 10
	guardExchange = 512 << 10
	listReply     = 16 << 20
	scanReply     = 2 << 20
)

// roomFor lets the next reply be longer, until the budget is put back.
func (l *conn) roomFor(reply int) (putBack func()) {
	l.budget.Set(reply, 2*reply)
	return func() { l.budget.Set(guardReply, guardExchange) }
}

// dial makes a connection; it connects with the first command.
func dial(node *redlock.Node, method Method, timeout time.Duration) conn {
	budget := redlock.NewBudget(guardReply, guardExchange)
	return conn{method: method, name: guardName, budget: budget, client: node.Within(budget).OneConnection(timeout, func(opt *redis.Options) {
		// A pool in which as many dials failed as it has places goes on trying in
		// the background, for a second after it was closed. There is one connection
		// all the same.
		opt.PoolSize = 2
	}, abrupt)}
}

func (l conn) close() { _ = l.client.Close() }

// answered reports whether err is nil or the server's own word, so that the
// connection is in order.
func answered(err error) bool {
	var reply redis.Error
	return err == nil || errors.As(err, &reply)
}

// send sends all commands at once and in order, and waits for the answers. It
// fails with errBroken if one of them has none, or if the server refused the
// connection.
func (l conn) send(ctx context.Context, add func(redis.Pipeliner)) error {
	pipe := l.client.Pipeline()
	add(pipe)
	cmds, err := pipe.Exec(ctx)
	refused := err != nil
	for _, c := range cmds {
		if err := c.Err(); !answered(err) {
			return fmt.Errorf("%w: %w", errBroken, err)
		} else if err != nil {
			refused = false
		}
	}
	if refused {
		// A handshake that the server refuses (a wrong password) leaves the commands
		// without an error, although none was sent.
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	return nil
}

// params reads the fence alone.
func (l conn) params(ctx context.Context) (Params, error) {
	var params reading
	if err := l.send(ctx, func(p redis.Pipeliner) { params = l.method.ask(ctx, p) }); err != nil {
		return Params{}, err
	}
	return params.result()
}

// look reads the node: a Seen, or an error that says why it could not be read.
func (l *conn) look(ctx context.Context) (Observation, error) {
	o := Observation{About: Seen, Asked: time.Now()}
	clock, err := l.clock(ctx)
	if err != nil {
		return o, err
	}
	o.Clock = clock
	// One section each: a server before 7.0 takes a single name.
	var server, replication, stats, commands, counter *redis.StringCmd
	var id *redis.IntCmd
	var guards *redis.StringSliceCmd
	var params reading
	err = l.send(ctx, func(p redis.Pipeliner) {
		if !l.met {
			id = p.ClientID(ctx)
			p.Do(ctx, "CLIENT", "SETNAME", l.name)
		}
		server = p.Info(ctx, "server")
		replication = p.Info(ctx, "replication")
		stats = p.Info(ctx, "stats")
		commands = p.Info(ctx, "commandstats")
		if l.counter {
			counter = p.Get(ctx, CounterKey)
		}
		if l.hear {
			guards = p.PubSubChannels(ctx, announce.Pattern)
		}
		params = l.method.ask(ctx, p)
	})
	if err != nil {
		return o, err
	}
	if guards != nil {
		l.heard, l.deaf = announce.DecodeAll(guards.Val()), guards.Err()
	}
	if id != nil {
		l.id, l.met = id.Val(), true // 0 where it is denied
	}
	o.Conn = l.id
	for _, c := range []*redis.StringCmd{server, replication, stats, commands} {
		if err := c.Err(); err != nil {
			return o, fmt.Errorf("INFO: %w", err)
		}
	}
	if err := o.read(server.Val(), replication.Val(), stats.Val(), commands.Val(), l.method.Kind); err != nil {
		return o, err
	}
	if counter != nil {
		o.Counter, err = counter.Int64()
		o.Counted = err == nil || errors.Is(err, redis.Nil)
	}
	if o.Params, err = params.result(); err != nil {
		o.Blind, o.Err = true, show(err)
	}
	o.Reads = l.method.words(o.Params)
	o.Lacking = lacksReplicas(replication.Val(), o.Params, l.method.Kind != ACL && !o.Blind)
	return o, nil
}

// read takes what sections of INFO tell.
func (o *Observation) read(server, replication, stats, commands string, kind MethodKind) error {
	o.RunID = infoField(server, "run_id")
	if !isWord(o.RunID) {
		return errors.New("INFO server tells no run_id")
	}
	o.Role = infoField(replication, "role")
	if !isWord(o.Role) {
		return errors.New("INFO replication tells no role")
	}
	if f := infoField(replication, "master_replid2"); isWord(f) {
		o.Former = f
	}
	o.Commands, _ = strconv.ParseInt(infoField(stats, "total_commands_processed"), 10, 64)
	// A server that does not count evictions has none to tell of.
	o.Evicted, _ = strconv.ParseInt(infoField(stats, "evicted_keys"), 10, 64)
	n, err := commandStats(commands)
	if err != nil {
		return err
	}
	o.Wipes, o.Configured = n.wipes, n.configured
	if kind == ACL {
		o.Configured = n.aclChanged
	}
	return nil
}

// lacksReplicas tells from INFO replication if a node refuses writes because it
// wants more replicas than it has. How many it wants is known if its parameters are;
// else only that it has none is certain to be too few.
func lacksReplicas(info string, p Params, known bool) bool {
	// The field is there only while both parameters are above 0.
	good, err := strconv.ParseInt(infoField(info, "min_slaves_good_slaves"), 10, 64)
	switch {
	case err != nil || known && (p.fenced() || p.cordoned()):
		return false
	case known:
		return !minreplicas.Accepts(p.MinReplicas, p.MaxLag, good)
	}
	return good == 0
}

// clock reads the node's wall clock, in a round trip of its own: the shorter it
// is, the more it says. A server that does not let us has no clock for us, which is told.
func (l conn) clock(ctx context.Context) (Reading, error) {
	var now *redis.TimeCmd
	sent := BootTime()
	if err := l.send(ctx, func(p redis.Pipeliner) { now = p.Time(ctx) }); err != nil {
		return Reading{}, err
	}
	got := BootTime()
	if err := now.Err(); err != nil {
		return Reading{Denied: isDenied(err)}, nil
	}
	return Reading{Sent: sent, Got: got, Wall: time.Duration(now.Val().UnixNano())}, nil
}

// do carries out an action and tells its outcome. Its error is errBroken: then
// the outcome is not known, and the connection is of no more use.
func (l *conn) do(ctx context.Context, a Action) (Observation, error) {
	o := Observation{RunID: a.RunID, Conn: l.id, Asked: time.Now()}
	if a.Kind == Kill {
		return l.kill(ctx, a, o)
	}
	if a.Kind == Count {
		return l.count(ctx, o)
	}
	if a.Kind == Prove {
		o.About = Proving
		canary, after, err := l.prove(ctx)
		if err != nil {
			return o, err
		}
		var why error
		o.Canary, why = canary()
		o.Err = show(why)
		if o.Params, err = after.result(); err != nil {
			o.Blind, o.Err = true, show(err)
		}
		o.Reads = l.method.words(o.Params)
		return o, nil
	}

	o.About = Raising
	if a.Kind == Remove {
		o.About = Removing
	}
	set, err := l.set(ctx, a.Value, a.SetLag)
	if errors.Is(err, errBroken) {
		return o, err
	}
	o.Before, o.Params, o.Err = set.before, set.after, show(err)
	o.Reads = l.method.words(o.Params)
	if set.blind != nil {
		o.Blind = true
		if o.Err == "" {
			o.Err = show(set.blind)
		}
	}
	return o, nil
}

// count raises the counter key. A server that refuses it says nothing by that:
// the node may have been closed a moment ago.
func (l conn) count(ctx context.Context, o Observation) (Observation, error) {
	o.About = Counting
	var counter *redis.IntCmd
	err := l.send(ctx, func(p redis.Pipeliner) {
		counter = p.Incr(ctx, CounterKey)
		p.PExpire(ctx, CounterKey, CounterTTL)
	})
	if err != nil {
		return o, err
	}
	o.Counter, err = counter.Result()
	o.Counted, o.Err = err == nil, show(err)
	return o, nil
}

type setResult struct {
	before, after Params
	blind         error // why after could not be read
}

// set reads the fence, sets it, and reads it back, in one pipeline, so that
// nothing but a command between two of ours comes in between.
func (l conn) set(ctx context.Context, value int64, lag bool) (setResult, error) {
	var before, after reading
	var sets []redis.Cmder
	err := l.send(ctx, func(p redis.Pipeliner) {
		before = l.method.ask(ctx, p)
		sets = l.method.set(ctx, p, value, lag)
		after = l.method.ask(ctx, p)
	})
	if err != nil {
		return setResult{}, err
	}
	var r setResult
	r.before, _ = before.result()
	r.after, r.blind = after.result()
	for _, c := range sets {
		if err := c.Err(); err != nil {
			return r, fmt.Errorf("%s SET: %w", l.method.command(), err)
		}
	}
	return r, nil
}

// prove tries a write, and reads the fence after it.
func (l conn) prove(ctx context.Context) (canary func() (Canary, error), after reading, err error) {
	err = l.send(ctx, func(p redis.Pipeliner) {
		canary = l.method.canary(ctx, p)
		after = l.method.ask(ctx, p)
	})
	return canary, after, err
}

// counts are what INFO commandstats tells of an incarnation.
type counts struct {
	wipes      int64 // how often data were, or may have been, wiped
	configured bool  // parameters were changed
	aclChanged bool  // users were changed
}

// commandStats reads how often data were wiped in this incarnation, and what was
// changed. DEBUG counts as a wipe, since its RELOAD is not counted apart. Before
// 7.0 the counter of CONFIG does not tell SET from GET, so there it is taken to
// be a GET.
func commandStats(info string) (c counts, err error) {
	for line := range strings.Lines(info) {
		name, stats, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "cmdstat_flushall", "cmdstat_flushdb", "cmdstat_swapdb", "cmdstat_debug", "cmdstat_config|set",
			"cmdstat_acl|setuser", "cmdstat_acl|deluser":
		default:
			continue
		}
		calls, _, _ := strings.Cut(strings.TrimPrefix(stats, "calls="), ",")
		n, err := strconv.ParseInt(calls, 10, 64)
		if err != nil || n < 0 {
			return counts{}, fmt.Errorf("INFO commandstats: %s has no count of calls", name)
		}
		switch name {
		case "cmdstat_config|set":
			c.configured = n > 0
		case "cmdstat_acl|setuser", "cmdstat_acl|deluser":
			c.aclChanged = c.aclChanged || n > 0
		default:
			c.wipes += n
		}
	}
	return c, nil
}

func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && k == name {
			return v
		}
	}
	return ""
}

// isWord reports whether s is a short word of ASCII letters and digits, so that it
// can be shown and compared without care.
func isWord(s string) bool {
	for _, r := range s {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// isDenied reports whether the server does not let us: no right, wrong password, its
// protected mode, or a command that is renamed away.
func isDenied(err error) bool {
	for _, p := range []string{"NOPERM", "NOAUTH", "WRONGPASS", "DENIED", "unknown command", "invalid password"} {
		if redis.HasErrorPrefix(err, p) {
			return true
		}
	}
	return redis.IsPermissionError(err) || redis.IsAuthError(err)
}

// isRefused reports whether nobody listens at the address.
func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// show makes an error fit for a screen: it may hold a server's text.
func show(err error) string {
	if err == nil {
		return ""
	}
	return safetext.Escape(err.Error())
}
