package redlock

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/server/resp"
	"redlockctl/server/serverinfo"
)

// rawConn is a connection that go-redis dials, encrypts and authenticates, and that is
// then used without it.
type rawConn struct {
	client *redis.Client // owns the connection, and does not use it after greet
	conn   *observedConn // nil: not dialled yet
}

// newRawConn makes a connection that is not dialled yet. timeout applies to dialling,
// and to each step of the greeting. The caller closes the client.
func newRawConn(n *Node, timeout time.Duration, with ...func(*redis.Options)) *rawConn {
	b := &rawConn{}
	b.client = ConnectOnce(n.Within(resp.NewBudget(resp.MostBytes, 0)), timeout, append(with[:len(with):len(with)], func(opt *redis.Options) {
		dial := opt.Dialer
		opt.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if dial == nil {
				dial = redis.NewDialer(opt)
			}
			c, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			b.conn = &observedConn{Conn: c}
			return b.conn, nil
		}
	})...)
	return b
}

// protocol chooses the version of RESP.
func protocol(version int) func(*redis.Options) {
	return func(opt *redis.Options) { opt.Protocol = version }
}

// OpenConn opens a connection to a node that the client library dials, encrypts and authenticates, and that the
// caller then reads and writes. timeout applies to dialling, and to each step of the greeting.
// Replies are not checked: read them with a bound.
func OpenConn(ctx context.Context, n *Node, timeout time.Duration, with ...func(*redis.Options)) (net.Conn, error) {
	c := newRawConn(n, timeout, with...)
	if err := c.greet(ctx); err != nil {
		_ = c.client.Close()
		return nil, err
	}
	return openedConn{c.conn, c.client}, nil
}

// openedConn is a connection that ends with its client.
type openedConn struct {
	net.Conn
	client *redis.Client
}

func (c openedConn) Close() error { return errors.Join(c.client.Close(), c.Conn.Close()) }

// greet connects, and checks that the node answers.
func (c *rawConn) greet(ctx context.Context) error {
	err := c.client.Ping(ctx).Err()
	// Any reply to the PING shows that the server is ready, even NOPERM. A server that
	// refused the greeting has closed the connection.
	if err != nil && (!isReply(err) || c.conn == nil || c.conn.closed.Load() || says(err, "LOADING") || says(err, "BUSY")) {
		return err
	}
	return c.conn.SetDeadline(time.Time{})
}

// identify returns the run_id of the server; empty if the user may not read it, or the
// server has none.
func (c *rawConn) identify(ctx context.Context) (string, error) {
	info, err := c.client.Info(ctx, "server").Result()
	if err != nil && (!isReply(err) || c.conn.closed.Load()) {
		return "", err
	}
	return serverinfo.Field(info, "run_id"), c.conn.SetDeadline(time.Time{})
}

// observedConn reports whether the client library has closed it.
type observedConn struct {
	net.Conn
	closed atomic.Bool
}

func (c *observedConn) Close() error {
	c.closed.Store(true)
	return c.Conn.Close()
}

// abort closes the connection with a reset. Under TLS it sends no close message, for
// which a hung server could block.
func (c *observedConn) abort() {
	c.closed.Store(true)
	below := c.Conn
	if enc, ok := below.(interface{ NetConn() net.Conn }); ok {
		below = enc.NetConn()
	}
	if tcp, ok := below.(interface{ SetLinger(sec int) error }); ok {
		_ = tcp.SetLinger(0) // drop unacknowledged bytes
	}
	_ = below.Close()
}
