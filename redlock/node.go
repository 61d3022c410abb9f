package redlock

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"redlockctl/server/resp"
)

// Node is one of the N independent masters: a name, and how to reach it. A Node holds
// no connection; every part of the program opens its own clients from it, so that a
// slow scan never delays a lock.
type Node struct {
	name   string
	opt    any          // a *redis.Options that is never changed, see options
	budget *resp.Budget // nil: the default
	conn   string       // the name of its connections; "": none
	user   string       // see FencedBy; "": none
}

// NewNode describes a master. It uses the address, network, dialer, credentials,
// database, TLS and protocol of opt; [Connect] sets retries and timeouts as the
// algorithm needs them. It fails if the name or the address is empty.
func NewNode(name string, opt *redis.Options) (*Node, error) {
	if name == "" {
		return nil, errors.New("a node needs a name")
	}
	if opt == nil || opt.Addr == "" {
		return nil, fmt.Errorf("node %s: address is empty", quote(name))
	}
	own := *opt
	return &Node{name: name, opt: &own}, nil
}

// options returns how to reach a node. Neither the fields nor the methods of [Node] name
// types of go-redis: each package that sees a Node would compile all of its commands again.
func options(n *Node) *redis.Options { return n.opt.(*redis.Options) }

// NodeOf describes the master that an existing client of go-redis is connected to. It
// takes over how to reach it and to log in: address, dialer, TLS, credentials and
// database. It does not use the client's connections: a lock needs requests in order,
// no retries and short timeouts, which [Connect] sets. Close the client whenever you
// like. It fails for a client of Sentinel: what a failover promotes is not the master
// that granted the locks.
func NodeOf(name string, client *redis.Client) (*Node, error) {
	if client == nil {
		return nil, fmt.Errorf("node %s: the client is nil", quote(name))
	}
	opt := *client.Options()
	if opt.Addr == failoverAddr {
		return nil, fmt.Errorf("node %s: a client of Sentinel is no single master", quote(name))
	}
	return NewNode(name, &opt)
}

// failoverAddr is the address in the options of a Sentinel client of go-redis.
const failoverAddr = "FailoverClient"

// Name is the operator's word for the node.
func (n *Node) Name() string { return n.name }

// Addr is host:port, or the path of a unix socket.
func (n *Node) Addr() string { return options(n).Addr }

// Anonymous returns the same node without credentials.
func (n *Node) Anonymous() *Node {
	m, opt := *n, *options(n)
	opt.Username, opt.Password = "", ""
	opt.CredentialsProvider, opt.CredentialsProviderContext, opt.StreamingCredentialsProvider = nil, nil, nil
	m.opt = &opt
	return &m
}

// FencedBy returns the same node if its fence removes the right to write from this user, that of
// the lock clients. The fence does not stop a client that logs in as another user: so a [Client]
// asks the server with each vote and each extension, and counts none from a fenced node.
func (n *Node) FencedBy(user string) *Node {
	m := *n
	m.user = user
	return &m
}

// FenceUser is the user of [Node.FencedBy]; "": none.
func (n *Node) FenceUser() string { return n.user }

// DB is the number of the database that holds the locks.
func (n *Node) DB() int { return options(n).DB }

// ErrNoCertificate is returned when a server ends the connection because it requires a
// client certificate and got none.
var ErrNoCertificate = errors.New("the server asks for a client certificate, and none is configured")

// defaultReply is the default budget of a client, in bytes.
const defaultReply = 1 << 20

// Connect opens a client of a node with at most conns connections that does nothing on its own: it
// never retries (a second SET is a second vote, and NOREPLICAS is an answer) and never
// dials twice. timeout bounds dialling and every read and write, and so does the
// context's deadline. After a timeout the connection is closed, so that a late reply is
// never read as the answer to another command. Replies are checked before the client
// library parses them, see [resp.Budget].
func Connect(n *Node, conns int, timeout time.Duration, with ...func(*redis.Options)) *redis.Client {
	opt := *options(n)
	opt.MaxRetries = -1
	opt.DialerRetries = 1
	opt.DialTimeout = timeout
	opt.ReadTimeout = timeout
	opt.WriteTimeout = timeout
	opt.PoolTimeout = timeout
	opt.ContextTimeoutEnabled = true
	opt.PoolSize = conns
	opt.PipelinePoolSize = -1 // pipelines share the connections, and so keep the order
	opt.MinIdleConns = 0
	opt.ConnMaxIdleTime = -1
	opt.ConnMaxLifetime = 0
	opt.MaxActiveConns = 0
	opt.Limiter = nil // it could refuse a release
	opt.DisableIdentity = true
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	for _, f := range with {
		f(&opt)
	}
	var uncertified atomic.Bool // the server requires a certificate, and there is none
	explain := func(err error) error {
		if err != nil && uncertified.Load() {
			return fmt.Errorf("%w: %w", ErrNoCertificate, err)
		}
		return err
	}
	if opt.TLSConfig != nil && len(opt.TLSConfig.Certificates) == 0 && opt.TLSConfig.GetClientCertificate == nil {
		opt.TLSConfig = opt.TLSConfig.Clone()
		opt.TLSConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			uncertified.Store(true)
			return &tls.Certificate{}, nil
		}
	}
	dial, budget := opt.Dialer, n.budget
	if dial == nil {
		dial = redis.NewDialer(&opt)
	}
	if budget == nil {
		budget = resp.NewBudget(defaultReply, 0)
	}
	opt.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return failedConn{explain(err)}, nil
		}
		return resp.Check(c, budget, explain), nil
	}
	client := redis.NewClient(&opt)
	if n.conn != "" {
		client.AddHook(greeting{n.conn})
	}
	client.AddHook(boundary{n.name}) // the innermost
	return client
}

// failedConn stands for a connection that could not be opened; every use of it returns
// the reason. Otherwise the client library would log each failed dial to stderr and
// keep dialling in the background.
type failedConn struct{ err error }

func (c failedConn) Read([]byte) (int, error)       { return 0, c.err }
func (c failedConn) Write([]byte) (int, error)      { return 0, c.err }
func (failedConn) Close() error                     { return nil }
func (failedConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (failedConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (failedConn) SetDeadline(time.Time) error      { return nil }
func (failedConn) SetReadDeadline(time.Time) error  { return nil }
func (failedConn) SetWriteDeadline(time.Time) error { return nil }

// ConnectOnce opens a client of a node that dials exactly once. When its connection breaks,
// every later command fails; nothing sent through it can reach a later incarnation of
// the server. The guard uses it to fence and to rejoin on the connection that read the
// run_id. For the lock core it proves that two requests used the same connection.
func ConnectOnce(n *Node, timeout time.Duration, with ...func(*redis.Options)) *redis.Client {
	dialed := make(chan struct{}, 1)
	once := func(opt *redis.Options) {
		dial := opt.Dialer
		opt.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			select {
			case dialed <- struct{}{}:
			default:
				return nil, errSpent
			}
			if dial == nil {
				dial = redis.NewDialer(opt)
			}
			return dial(ctx, network, addr)
		}
	}
	return Connect(n, 1, timeout, append(with[:len(with):len(with)], once)...)
}

// Within returns the same node with another budget for its clients.
func (n *Node) Within(b *resp.Budget) *Node {
	m := *n
	m.budget = b
	return &m
}

// Named returns the same node with a name for its connections, which CLIENT LIST shows
// to operators. Blanks and bytes other than printable ASCII, which a server refuses,
// become "-"; 128 bytes are kept. The name travels in the greeting (HELLO … SETNAME):
// it costs no round trip and needs no right. A server before 6.0 does not get it.
func (n *Node) Named(name string) *Node {
	m := *n
	m.conn = printableASCII(name, mostName)
	return &m
}

// mostName is the longest name of a connection, in bytes.
const mostName = 128
