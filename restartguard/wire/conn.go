package wire

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

	"redlockctl/base/boottime"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/fence"
	"redlockctl/server/announce"
	"redlockctl/server/minreplicas"
	"redlockctl/server/resp"
	"redlockctl/server/safetext"
	"redlockctl/server/serverinfo"
)

// errBroken is returned when a connection failed: what was sent through it may
// have been carried out or not, and nothing more may be sent.
var ErrBroken = errors.New("no connection")

// canaryPrefix begins the keys of canary writes.
const canaryPrefix = "redlockctl:canary:"

// nodeConn is one connection to one incarnation of a server. Its client never dials
// again.
type Conn struct {
	Client *redis.Client
	Codec  fence.Codec
	// name is what the connection is called at the server, id what it has
	// there, once it was told, 0 before; met: it was asked.
	Name string
	id   int64
	Met  bool
	// counter: the counter key is read with each look.
	Counter bool
	// peer is the address at its other end.
	peer *atomic.Pointer[netip.AddrPort]
	// budget is what the node may send; crowded: its list of clients is more than
	// that.
	budget  *resp.Budget
	Crowded bool
	// hear: the next look reads what guards announce: heard, or why it cannot.
	Hear  bool
	Heard []announce.Guard
	Deaf  error
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
func (l *Conn) roomFor(reply int) (putBack func()) {
	l.budget.Set(reply, 2*reply)
	return func() { l.budget.Set(guardReply, guardExchange) }
}

// dial makes a connection; it connects with the first command.
func Dial(node *redlock.Node, method restartguard.Method, timeout time.Duration) Conn {
	budget := resp.NewBudget(guardReply, guardExchange)
	peer := new(atomic.Pointer[netip.AddrPort])
	l := Over(nil, method)
	l.budget, l.peer = budget, peer
	l.Client = node.Within(budget).OneConnection(timeout, func(opt *redis.Options) {
		// A pool in which as many dials failed as it has places goes on trying in
		// the background, for a second after it was closed. There is one connection
		// all the same.
		opt.PoolSize = 2
	}, Abrupt, func(opt *redis.Options) {
		dial := opt.Dialer
		opt.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			if err == nil {
				at := AddrOf(c)
				peer.Store(&at)
			}
			return c, err
		}
	})
	return l
}

// over is the connection of a client.
func Over(client *redis.Client, method restartguard.Method) Conn {
	return Conn{Client: client, Codec: fence.Of(method), Name: guardName, budget: resp.NewBudget(guardReply, guardExchange)}
}

// at is the address at the other end; the zero value: it is not known.
func (l Conn) At() netip.AddrPort {
	if l.peer == nil || l.peer.Load() == nil {
		return netip.AddrPort{}
	}
	return *l.peer.Load()
}

func (l Conn) Close() { _ = l.Client.Close() }

// answered reports whether err is nil or the server's own word, so that the
// connection is in order.
func Answered(err error) bool {
	var reply redis.Error
	return err == nil || errors.As(err, &reply)
}

// send sends all commands at once and in order, and waits for the answers. It
// fails with errBroken if one of them has none, or if the server refused the
// connection.
func (l Conn) Send(ctx context.Context, add func(redis.Pipeliner)) error {
	pipe := l.Client.Pipeline()
	add(pipe)
	cmds, err := pipe.Exec(ctx)
	refused := err != nil
	for _, c := range cmds {
		if err := c.Err(); !Answered(err) {
			return fmt.Errorf("%w: %w", ErrBroken, err)
		} else if err != nil {
			refused = false
		}
	}
	if refused {
		// A handshake that the server refuses (a wrong password) leaves the commands
		// without an error, although none was sent.
		return fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return nil
}

// params reads the fence alone.
func (l Conn) Params(ctx context.Context) (minreplicas.Params, error) {
	var params func() (minreplicas.Params, error)
	if err := l.Send(ctx, func(p redis.Pipeliner) { params = l.Codec.Ask(ctx, p) }); err != nil {
		return minreplicas.Params{}, err
	}
	return params()
}

// look reads the node: a Seen, or an error that says why it could not be read.
func (l *Conn) Look(ctx context.Context) (o restartguard.Observation, err error) {
	defer resp.Contain(&err, "a look")
	o = restartguard.Observation{About: restartguard.Seen, Asked: time.Now()}
	clock, err := l.readWallClock(ctx)
	if err != nil {
		return o, err
	}
	o.Clock = clock
	// One section each: a server before 7.0 takes a single name.
	var server, replication, stats, commands, counter *redis.StringCmd
	var id *redis.IntCmd
	var guards *redis.StringSliceCmd
	var params func() (minreplicas.Params, error)
	err = l.Send(ctx, func(p redis.Pipeliner) {
		if !l.Met {
			id = p.ClientID(ctx)
			p.Do(ctx, "CLIENT", "SETNAME", l.Name)
		}
		server = p.Info(ctx, "server")
		replication = p.Info(ctx, "replication")
		stats = p.Info(ctx, "stats")
		commands = p.Info(ctx, "commandstats")
		if l.Counter {
			counter = p.Get(ctx, restartguard.CounterKey)
		}
		if l.Hear {
			guards = p.PubSubChannels(ctx, announce.Pattern)
		}
		params = l.Codec.Ask(ctx, p)
	})
	if err != nil {
		return o, err
	}
	if guards != nil {
		l.Heard, l.Deaf = announce.DecodeAll(guards.Val()), guards.Err()
	}
	if id != nil {
		l.id, l.Met = id.Val(), true // 0 where it is denied
	}
	o.Conn, o.Peer = l.id, l.At()
	for _, c := range []*redis.StringCmd{server, replication, stats, commands} {
		if err := c.Err(); err != nil {
			return o, fmt.Errorf("INFO: %w", err)
		}
	}
	if err := readInfo(&o, server.Val(), replication.Val(), stats.Val(), commands.Val(), l.Codec.Traits().Sets); err != nil {
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
func (l Conn) readWallClock(ctx context.Context) (restartguard.Reading, error) {
	var now *redis.TimeCmd
	sent := boottime.Now()
	if err := l.Send(ctx, func(p redis.Pipeliner) { now = p.Time(ctx) }); err != nil {
		return restartguard.Reading{}, err
	}
	got := boottime.Now()
	if err := now.Err(); err != nil {
		return restartguard.Reading{Denied: IsDenied(err)}, nil
	}
	return restartguard.Reading{Sent: sent, Got: got, Wall: time.Duration(now.Val().UnixNano())}, nil
}

// perform carries out an action and tells its outcome. Its error is errBroken: then
// the outcome is not known, and the connection is of no more use.
func (l *Conn) Perform(ctx context.Context, a restartguard.Action) (o restartguard.Observation, err error) {
	defer resp.Contain(&err, "an action")
	o = restartguard.Observation{RunID: a.RunID, Conn: l.id, Asked: time.Now()}
	if a.Kind == restartguard.Kill {
		return l.kill(ctx, a, o)
	}
	if a.Kind == restartguard.Count {
		return l.count(ctx, o)
	}
	if a.Kind == restartguard.Prove {
		o.About = restartguard.Proving
		canary, after, err := l.Prove(ctx)
		if err != nil {
			return o, err
		}
		var why error
		o.Canary, why = canary()
		o.Err = safetext.Error(why)
		if o.Params, err = after(); err != nil {
			o.Blind, o.Err = true, safetext.Error(err)
		}
		o.Reads = l.Codec.Words(o.Params)
		return o, nil
	}

	o.About = restartguard.Raising
	if a.Kind == restartguard.Remove {
		o.About = restartguard.Removing
	}
	set, err := l.Set(ctx, a.Value, a.SetLag, a.ReadOnly)
	if errors.Is(err, ErrBroken) {
		return o, err
	}
	o.Before, o.Err = set.before, safetext.Error(err)
	l.readBack(&o, set.After, set.Blind)
	return o, nil
}

// readBack takes in what the fence reads, or why it cannot be read.
func (l *Conn) readBack(o *restartguard.Observation, p minreplicas.Params, err error) {
	o.Params, o.Reads, o.Blind = p, l.Codec.Words(p), err != nil
	if o.Err == "" {
		o.Err = safetext.Error(err)
	}
}

// count raises the counter key. A server that refuses it says nothing by that:
// the node may have been closed a moment ago.
func (l Conn) count(ctx context.Context, o restartguard.Observation) (restartguard.Observation, error) {
	o.About = restartguard.Counting
	var counter *redis.IntCmd
	err := l.Send(ctx, func(p redis.Pipeliner) {
		counter = p.Incr(ctx, restartguard.CounterKey)
		p.PExpire(ctx, restartguard.CounterKey, restartguard.CounterTTL)
	})
	if err != nil {
		return o, err
	}
	o.Counter, err = counter.Result()
	o.Counted, o.Err = err == nil, safetext.Error(err)
	return o, nil
}

// set reads the fence, sets it, and reads it back, in one pipeline, so that
// nothing but a command between two of ours comes in between.
func (l Conn) Set(ctx context.Context, value int64, lag, replica bool) (setResult, error) {
	var before, after func() (minreplicas.Params, error)
	var sets []redis.Cmder
	err := l.Send(ctx, func(p redis.Pipeliner) {
		before = l.Codec.Ask(ctx, p)
		sets = l.Codec.Set(ctx, p, value, lag, replica)
		after = l.Codec.Ask(ctx, p)
	})
	if err != nil {
		return setResult{}, err
	}
	var r setResult
	r.before, _ = before()
	r.After, r.Blind = after()
	for _, c := range sets {
		if err := c.Err(); err != nil {
			return r, fmt.Errorf("%s SET: %w", l.Codec.Traits().Command, err)
		}
	}
	return r, nil
}

// prove tries a write, and reads the fence after it.
func (l Conn) Prove(ctx context.Context) (canary func() (restartguard.Canary, error), after func() (minreplicas.Params, error), err error) {
	err = l.Send(ctx, func(p redis.Pipeliner) {
		canary = l.Codec.Canary(ctx, p, canaryPrefix+rand.Text())
		after = l.Codec.Ask(ctx, p)
	})
	return canary, after, err
}

// guardName is what guards call their connections (CLIENT SETNAME); behind it and
// a colon stands the guard's own id, if it has a state directory.
const guardName = "redlockctl:guard"

// kill ends connections, and reads the fence after it. Ids of connections begin
// anew with each incarnation of a server: it is sent on the connection that has read
// the run_id.
func (l *Conn) kill(ctx context.Context, a restartguard.Action, o restartguard.Observation) (restartguard.Observation, error) {
	o.About, o.Others = restartguard.Killing, a.Others
	var one, list *redis.Cmd
	several := a.All || a.Others
	all := several && l.id != 0 && !l.Crowded // without its id it would end itself
	if a.Conn != 0 || all {
		putBack := l.roomFor(listReply)
		err := l.Send(ctx, func(p redis.Pipeliner) {
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
	case one == nil && (all || several && l.Crowded):
	case one == nil:
		why = append(why, errors.New("the server does not tell CLIENT ID"))
	case one.Err() != nil:
		why = append(why, fmt.Errorf("CLIENT KILL: %w", one.Err()))
	default:
		o.Gone = true // also if there was none any more
	}
	if several && l.Crowded {
		why = append(why, fmt.Errorf("CLIENT LIST is longer than %d MiB", listReply>>20))
	}
	var others []int64
	if list != nil {
		text, err := list.Text()
		if err != nil {
			why = append(why, fmt.Errorf("CLIENT LIST: %w", err))
		} else {
			bears := func(name string) bool { return name == l.Name }
			if a.Others {
				bears = isGuardName
			}
			others, o.Swept = connsNamed(text, bears, l.id), true
		}
	}
	var after func() (minreplicas.Params, error)
	kills := make([]*redis.Cmd, len(others))
	err := l.Send(ctx, func(p redis.Pipeliner) {
		for i, id := range others {
			kills[i] = p.Do(ctx, "CLIENT", "KILL", "ID", id)
		}
		after = l.Codec.Ask(ctx, p)
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
	o.Err = safetext.Error(errors.Join(why...))
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
func Abrupt(opt *redis.Options) {
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

// handTimeout bounds each round of commands, where the context does not end
// sooner.
const HandTimeout = 2 * time.Second

// handError names the node and the kind of failure. The text of a server in it
// is rendered.
func NodeError(node *redlock.Node, err, otherwise error) error {
	kind := otherwise
	switch {
	case IsDenied(err):
		kind = restartguard.ErrDenied
	case errors.Is(err, ErrBroken):
		kind = restartguard.ErrUnreachable
	}
	return fmt.Errorf("node %q: %w: %s", node.Name(), kind, safetext.Error(err))
}

type setResult struct {
	before, After minreplicas.Params
	Blind         error // why after could not be read
}

// addrOf is the address at the other end of a connection; the zero value: it has none.
func AddrOf(c net.Conn) netip.AddrPort {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	at := tcp.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}
