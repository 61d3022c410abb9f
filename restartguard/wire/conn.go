// Package wire is a guard's connection to one incarnation of a node: it observes the node and
// carries out actions.
package wire

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/redlock"
	"redlockctl/restartguard/fence"
	"redlockctl/server/announce"
	"redlockctl/server/fences"
	"redlockctl/server/resp"
)

// Client is the part of a [redis.Client] that is used. It is not named, because each package that
// sees a Conn would compile all commands of go-redis again.
type Client interface {
	Pipeline() redis.Pipeliner
	TxPipeline() redis.Pipeliner
	io.Closer
}

// Conn is one connection to one incarnation of a server. Its client never reconnects.
type Conn struct {
	Client Client
	Codec  fence.Codec
	// Name is the name of the connection on the server, and id its CLIENT ID, 0 if that is not
	// known. Introduced: both were already asked for or set.
	Name       string
	id         int64
	Introduced bool
	// Counter: Look also reads the counter key.
	Counter bool
	// ManyClients: CLIENT LIST is longer than a guard reads.
	ManyClients bool
	// ReadGuards: Look also reads the announcements of guards into Guards, or why it cannot
	// into GuardsErr.
	ReadGuards bool
	Guards     []announce.Guard
	GuardsErr  error

	peer   *atomic.Pointer[netip.AddrPort] // the address of the server
	budget *resp.Budget                    // what the node may send
}

// What a node may send to a guard, in bytes, see [resp.Budget]. The longest reply to a look is a
// section of INFO: commandstats, if all commands were used. CLIENT LIST is asked for once, and
// pages of SCAN for early rejoin.
const (
	guardReply    = 128 << 10
	guardExchange = 512 << 10
	listReply     = 16 << 20
	scanReply     = 2 << 20
)

// roomFor allows a longer reply, until putBack is called.
func (l *Conn) roomFor(reply int) (putBack func()) {
	l.budget.Set(reply, 2*reply)
	return func() { l.budget.Set(guardReply, guardExchange) }
}

// Dial returns a connection, which connects with its first command.
func Dial(node *redlock.Node, method fences.Method, timeout time.Duration) Conn {
	budget := resp.NewBudget(guardReply, guardExchange)
	peer := new(atomic.Pointer[netip.AddrPort])
	l := Over(nil, method)
	l.budget, l.peer = budget, peer
	l.Client = redlock.ConnectOnce(node.Within(budget), timeout, func(opt *redis.Options) {
		// A pool goes on dialling in the background once as many dials failed as it has
		// places, for a second after it was closed. Only one connection is used.
		opt.PoolSize = 2
	}, abrupt, func(opt *redis.Options) {
		dial := opt.Dialer
		opt.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			if err != nil {
				return nil, dialError{err}
			}
			at := AddrOf(c)
			peer.Store(&at)
			return c, nil
		}
	})
	return l
}

// Over returns the connection of a client.
func Over(client Client, method fences.Method) Conn {
	return Conn{Client: client, Codec: fence.Of(method), Name: guardName, budget: resp.NewBudget(guardReply, guardExchange)}
}

// At returns the address of the server; the zero value: it is not known.
func (l Conn) At() netip.AddrPort {
	if l.peer == nil || l.peer.Load() == nil {
		return netip.AddrPort{}
	}
	return *l.peer.Load()
}

func (l Conn) Close() { _ = l.Client.Close() }

// Send sends all commands at once, in order, and waits for the answers. It fails with ErrBroken if
// one of them has no answer, or if the server refused the connection.
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
		// If the server refuses the handshake (a wrong password), the commands have no
		// error, although none was sent.
		return fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return nil
}

// Open opens a connection that the caller reads and writes, and that ends abruptly.
func Open(ctx context.Context, node *redlock.Node, timeout time.Duration) (net.Conn, error) {
	return redlock.OpenConn(ctx, node, timeout, abrupt)
}

// abrupt makes the kernel reset a connection when it is closed or this process dies. Otherwise the
// kernel would go on sending what it has not delivered yet, for minutes.
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
			_ = tcp.SetLinger(0) // best effort
		}
		return c, nil
	}
}

// AddrOf returns the remote address of a connection; the zero value: it has none.
func AddrOf(c net.Conn) netip.AddrPort {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	at := tcp.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}
