package restartguard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/redlock"
	"redlockctl/server/announce"
	"redlockctl/server/resp"
	"redlockctl/server/serverinfo"
)

// errBroken is returned when a connection failed: what was sent through it may
// have been carried out or not, and nothing more may be sent.
var errBroken = errors.New("no connection")

// canaryPrefix begins the keys of canary writes.
const canaryPrefix = "redlockctl:canary:"

// nodeConn is one connection to one incarnation of a server. Its client never dials
// again.
type nodeConn struct {
	client *redis.Client
	codec  codec
	// name is what the connection is called at the server, id what it has
	// there, once it was told, 0 before; met: it was asked.
	name string
	id   int64
	met  bool
	// counter: the counter key is read with each look.
	counter bool
	// peer is the address at its other end.
	peer *atomic.Pointer[netip.AddrPort]
	// budget is what the node may send; crowded: its list of clients is more than
	// that.
	budget  *resp.Budget
	crowded bool
	// hear: the next look reads what guards announce: heard, or why it cannot.
	hear  bool
	heard []announce.Guard
	deaf  error
}

// What a node may send to a guard, in bytes, see [resp.Budget]: a section of
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
func (l *nodeConn) roomFor(reply int) (putBack func()) {
	l.budget.Set(reply, 2*reply)
	return func() { l.budget.Set(guardReply, guardExchange) }
}

// dial makes a connection; it connects with the first command.
func dial(node *redlock.Node, codec codec, timeout time.Duration) nodeConn {
	budget := resp.NewBudget(guardReply, guardExchange)
	peer := new(atomic.Pointer[netip.AddrPort])
	return nodeConn{codec: codec, name: guardName, budget: budget, peer: peer, client: node.Within(budget).OneConnection(timeout, func(opt *redis.Options) {
		// A pool in which as many dials failed as it has places goes on trying in
		// the background, for a second after it was closed. There is one connection
		// all the same.
		opt.PoolSize = 2
	}, abrupt, func(opt *redis.Options) {
		dial := opt.Dialer
		opt.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			if err == nil {
				at := addrOf(c)
				peer.Store(&at)
			}
			return c, err
		}
	})}
}

// at is the address at the other end; the zero value: it is not known.
func (l nodeConn) at() netip.AddrPort {
	if l.peer == nil || l.peer.Load() == nil {
		return netip.AddrPort{}
	}
	return *l.peer.Load()
}

func (l nodeConn) close() { _ = l.client.Close() }

// answered reports whether err is nil or the server's own word, so that the
// connection is in order.
func answered(err error) bool {
	var reply redis.Error
	return err == nil || errors.As(err, &reply)
}

// send sends all commands at once and in order, and waits for the answers. It
// fails with errBroken if one of them has none, or if the server refused the
// connection.
func (l nodeConn) send(ctx context.Context, add func(redis.Pipeliner)) error {
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
func (l nodeConn) params(ctx context.Context) (Params, error) {
	var params func() (Params, error)
	if err := l.send(ctx, func(p redis.Pipeliner) { params = l.codec.ask(ctx, p) }); err != nil {
		return Params{}, err
	}
	return params()
}

// look reads the node: a Seen, or an error that says why it could not be read.
func (l *nodeConn) look(ctx context.Context) (o Observation, err error) {
	defer resp.Contain(&err, "a look")
	o = Observation{About: Seen, Asked: time.Now()}
	clock, err := l.readWallClock(ctx)
	if err != nil {
		return o, err
	}
	o.Clock = clock
	// One section each: a server before 7.0 takes a single name.
	var server, replication, stats, commands, counter *redis.StringCmd
	var id *redis.IntCmd
	var guards *redis.StringSliceCmd
	var params func() (Params, error)
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
		params = l.codec.ask(ctx, p)
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
	o.Conn, o.Peer = l.id, l.at()
	for _, c := range []*redis.StringCmd{server, replication, stats, commands} {
		if err := c.Err(); err != nil {
			return o, fmt.Errorf("INFO: %w", err)
		}
	}
	if err := o.read(server.Val(), replication.Val(), stats.Val(), commands.Val(), l.codec.traits().sets); err != nil {
		return o, err
	}
	if counter != nil {
		o.Counter, err = counter.Int64()
		o.Counted = err == nil || errors.Is(err, redis.Nil)
	}
	p, err := params()
	l.readBack(&o, p, err)
	o.Lacking = lacksReplicas(replication.Val(), o.Params, o.Reads == "" && !o.Blind)
	return o, nil
}

// readWallClock reads the node's wall clock, in a round trip of its own: the shorter it
// is, the more it says. A server that does not let us has no clock for us, which is told.
func (l nodeConn) readWallClock(ctx context.Context) (Reading, error) {
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

// perform carries out an action and tells its outcome. Its error is errBroken: then
// the outcome is not known, and the connection is of no more use.
func (l *nodeConn) perform(ctx context.Context, a Action) (o Observation, err error) {
	defer resp.Contain(&err, "an action")
	o = Observation{RunID: a.RunID, Conn: l.id, Asked: time.Now()}
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
		if o.Params, err = after(); err != nil {
			o.Blind, o.Err = true, show(err)
		}
		o.Reads = l.codec.words(o.Params)
		return o, nil
	}

	o.About = Raising
	if a.Kind == Remove {
		o.About = Removing
	}
	set, err := l.set(ctx, a.Value, a.SetLag, a.ReadOnly)
	if errors.Is(err, errBroken) {
		return o, err
	}
	o.Before, o.Err = set.before, show(err)
	l.readBack(&o, set.after, set.blind)
	return o, nil
}

// readBack takes in what the fence reads, or why it cannot be read.
func (l *nodeConn) readBack(o *Observation, p Params, err error) {
	o.Params, o.Reads, o.Blind = p, l.codec.words(p), err != nil
	if o.Err == "" {
		o.Err = show(err)
	}
}

// count raises the counter key. A server that refuses it says nothing by that:
// the node may have been closed a moment ago.
func (l nodeConn) count(ctx context.Context, o Observation) (Observation, error) {
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

// set reads the fence, sets it, and reads it back, in one pipeline, so that
// nothing but a command between two of ours comes in between.
func (l nodeConn) set(ctx context.Context, value int64, lag, replica bool) (setResult, error) {
	var before, after func() (Params, error)
	var sets []redis.Cmder
	err := l.send(ctx, func(p redis.Pipeliner) {
		before = l.codec.ask(ctx, p)
		sets = l.codec.set(ctx, p, value, lag, replica)
		after = l.codec.ask(ctx, p)
	})
	if err != nil {
		return setResult{}, err
	}
	var r setResult
	r.before, _ = before()
	r.after, r.blind = after()
	for _, c := range sets {
		if err := c.Err(); err != nil {
			return r, fmt.Errorf("%s SET: %w", l.codec.traits().command, err)
		}
	}
	return r, nil
}

// prove tries a write, and reads the fence after it.
func (l nodeConn) prove(ctx context.Context) (canary func() (Canary, error), after func() (Params, error), err error) {
	err = l.send(ctx, func(p redis.Pipeliner) {
		canary = l.codec.canary(ctx, p, canaryPrefix+rand.Text())
		after = l.codec.ask(ctx, p)
	})
	return canary, after, err
}

// guardName is what guards call their connections (CLIENT SETNAME); behind it and
// a colon stands the guard's own id, if it has a state directory.
const guardName = "redlockctl:guard"

// kill ends connections, and reads the fence after it. Ids of connections begin
// anew with each incarnation of a server: it is sent on the connection that has read
// the run_id.
func (l *nodeConn) kill(ctx context.Context, a Action, o Observation) (Observation, error) {
	o.About, o.Others = Killing, a.Others
	var one, list *redis.Cmd
	several := a.All || a.Others
	all := several && l.id != 0 && !l.crowded // without its id it would end itself
	if a.Conn != 0 || all {
		putBack := l.roomFor(listReply)
		err := l.send(ctx, func(p redis.Pipeliner) {
			if a.Conn != 0 {
				one = p.Do(ctx, "CLIENT", "KILL", "ID", a.Conn)
			}
			if all {
				list = p.Do(ctx, "CLIENT", "LIST")
			}
		})
		putBack()
		if err != nil {
			return o, err
		}
	}
	var why []error
	switch {
	case one == nil && (all || several && l.crowded):
	case one == nil:
		why = append(why, errors.New("the server does not tell CLIENT ID"))
	case one.Err() != nil:
		why = append(why, fmt.Errorf("CLIENT KILL: %w", one.Err()))
	default:
		o.Gone = true // also if there was none any more
	}
	if several && l.crowded {
		why = append(why, fmt.Errorf("CLIENT LIST is longer than %d MiB", listReply>>20))
	}
	var others []int64
	if list != nil {
		text, err := list.Text()
		if err != nil {
			why = append(why, fmt.Errorf("CLIENT LIST: %w", err))
		} else {
			bears := func(name string) bool { return name == l.name }
			if a.Others {
				bears = isGuardName
			}
			others, o.Swept = connsNamed(text, bears, l.id), true
		}
	}
	var after func() (Params, error)
	kills := make([]*redis.Cmd, len(others))
	err := l.send(ctx, func(p redis.Pipeliner) {
		for i, id := range others {
			kills[i] = p.Do(ctx, "CLIENT", "KILL", "ID", id)
		}
		after = l.codec.ask(ctx, p)
	})
	if err != nil {
		return o, err
	}
	for _, c := range kills {
		if c.Err() != nil {
			o.Swept = false
			why = append(why, fmt.Errorf("CLIENT KILL: %w", c.Err()))
		}
	}
	o.Err = show(errors.Join(why...))
	p, err := after()
	l.readBack(&o, p, err)
	return o, nil
}

// isGuardName reports whether a connection of that name is a guard's.
func isGuardName(name string) bool {
	return name == guardName || strings.HasPrefix(name, guardName+":")
}

// connsNamed are the ids in an answer to CLIENT LIST of connections whose name is
// asked for, but for one's own.
func connsNamed(list string, bears func(name string) bool, own int64) (ids []int64) {
	for client := range serverinfo.Clients(list) {
		var id int64
		asked := false
		for field, v := range client {
			switch field {
			case "id":
				id, _ = strconv.ParseInt(v, 10, 64)
			case "name":
				asked = asked || bears(v)
			}
		}
		if asked && id > 0 && id != own {
			ids = append(ids, id)
		}
	}
	return ids
}

// abrupt makes the end of a connection, also by the death of this process, a
// reset: the kernel drops what it has not delivered yet, which it would go on
// sending for minutes otherwise.
func abrupt(opt *redis.Options) {
	dial := opt.Dialer
	if dial == nil {
		dial = redis.NewDialer(opt)
	}
	opt.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		below := c
		if tls, ok := c.(interface{ NetConn() net.Conn }); ok {
			below = tls.NetConn()
		}
		if tcp, ok := below.(interface{ SetLinger(sec int) error }); ok {
			_ = tcp.SetLinger(0) // a belt only
		}
		return c, nil
	}
}

// Errors of [Cordon] and [RejoinNow]; all are wrapped, test with errors.Is.
var (
	// ErrUnreachable is returned when the node does not answer. What was sent may
	// have been carried out or not: look again.
	ErrUnreachable = errors.New("node does not answer")
	// ErrDenied is returned when the node does not let us: wrong password, or no
	// right to CONFIG or INFO.
	ErrDenied = errors.New("node does not allow it")
	// ErrNotFenced is returned by Cordon when the fence does not hold: it reads back
	// otherwise, or a canary write got through.
	ErrNotFenced = errors.New("node is not fenced")
	// ErrNotCordoned is returned by Uncordon when the node is not cordoned.
	ErrNotCordoned = errors.New("node is not cordoned")
	// ErrNotServing is returned by RejoinNow when the node still refuses writes.
	ErrNotServing = errors.New("node does not serve")
)

// handTimeout bounds each round of commands, where the context does not end
// sooner.
const handTimeout = 2 * time.Second

// handError names the node and the kind of failure. The text of a server in it
// is rendered.
func handError(node *redlock.Node, err, otherwise error) error {
	kind := otherwise
	switch {
	case isDenied(err):
		kind = ErrDenied
	case errors.Is(err, errBroken):
		kind = ErrUnreachable
	}
	return fmt.Errorf("node %q: %w: %s", node.Name(), kind, show(err))
}

type setResult struct {
	before, after Params
	blind         error // why after could not be read
}

// maxActions bounds what follows one look, whatever a server answers.
const maxActions = 8
