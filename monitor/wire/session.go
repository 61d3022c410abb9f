package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/monitor"
	"redlockctl/redlock"
)

// Session is one connection to one incarnation of a server. It ends when the connection
// breaks: a scan from before a restart can never continue after it with a cursor of the
// old incarnation.
type Session struct {
	client   io.Closer
	Conn     Conn
	raw      net.Conn // the underlying connection
	Patience *Patience
	stop     func() bool // detaches it from the context
}

// Conn is the part of a [redis.Conn] that is used. It is not named, because each package that
// sees a Session would compile all commands of go-redis again.
type Conn interface {
	Ping(ctx context.Context) *redis.StatusCmd
	Info(ctx context.Context, sections ...string) *redis.StringCmd
	Time(ctx context.Context) *redis.TimeCmd
	Do(ctx context.Context, args ...any) *redis.Cmd
	Pipelined(ctx context.Context, fill func(redis.Pipeliner) error) ([]redis.Cmder, error)
	TxPipelined(ctx context.Context, fill func(redis.Pipeliner) error) ([]redis.Cmder, error)
	io.Closer
}

// errSessionOver is returned when a session is asked to dial again.
var errSessionOver = errors.New("the connection of this session has ended")

// DialError is a failure to connect, as opposed to a failure of an existing connection.
type DialError struct{ Err error }

func (e DialError) Error() string { return e.Err.Error() }
func (e DialError) Unwrap() error { return e.Err }

// Dial connects to a node. It dials itself, before the client library uses the
// connection: after a failed dial, the library keeps dialling in a goroutine and writes
// to stderr, which is the screen. How long it took counts as a round trip if none is
// known yet.
func Dial(ctx context.Context, node *redlock.Node, patience *Patience, with ...func(*redis.Options)) (*Session, error) {
	var first, raw net.Conn
	var dialErr error
	client := redlock.Connect(node, 1, patience.Setup(), append(with[:len(with):len(with)], func(opt *redis.Options) {
		connect := opt.Dialer
		if connect == nil {
			connect = redis.NewDialer(opt)
		}
		network := opt.Network
		if network == "" {
			network = "tcp"
			if strings.HasPrefix(opt.Addr, "/") {
				network = "unix"
			}
		}
		ctx, cancel := context.WithTimeout(ctx, patience.Setup())
		defer cancel()
		begun := time.Now()
		first, dialErr = connect(ctx, network, opt.Addr)
		if dialErr == nil && !patience.Measured() {
			patience.Took(time.Since(begun))
		}
		raw = first
		opt.Dialer = func(context.Context, string, string) (net.Conn, error) {
			if first == nil {
				return nil, errSessionOver
			}
			conn := first
			first = nil
			return conn, nil
		}
	})...)
	if dialErr != nil {
		_ = client.Close()
		return nil, DialError{dialErr}
	}
	// When ctx ends, pending reads end too.
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	return &Session{client: client, Conn: client.Conn(), raw: raw, Patience: patience, stop: stop}, nil
}

// Close ends the connection.
func (s *Session) Close() {
	s.stop()
	_ = s.Conn.Close()
	_ = s.client.Close()
}

// Pipeline sends the commands queued by fill in one write. It is the caller's who finds
// that the answers are late: they are waited for as long as for a step of the greeting.
// Errors of single commands stay in the commands; it returns only failures of the
// connection.
func (s *Session) Pipeline(ctx context.Context, fill func(redis.Pipeliner)) error {
	ctx, cancel := context.WithTimeout(ctx, s.Patience.Setup())
	defer cancel()
	_, err := s.Conn.Pipelined(ctx, func(p redis.Pipeliner) error { fill(p); return nil })
	if err == nil || (IsAnswer(err) && !isSetup(err)) {
		return nil
	}
	return err
}

// IsAnswer reports whether err is an answer of the server, not a failure to reach it.
func IsAnswer(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer)
}

// isSetup reports whether err comes from setting up the connection (authentication,
// SELECT), so that no command was sent.
func isSetup(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer) && answer.Error() != err.Error()
}

// Says reports whether err is an answer of the server that starts with one of the words.
func Says(err error, words ...string) bool {
	var answer redis.Error
	if !errors.As(err, &answer) {
		return false
	}
	return slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(answer.Error(), w) })
}

// Refused reports whether the server does not know the command, or denies it to this
// user.
func Refused(err error) bool { return Says(err, "NOPERM", "ERR unknown command") }

// StateOf returns the state of a node whose probe failed with err.
func StateOf(err error) monitor.NodeState {
	var failed DialError
	var timeout net.Error
	switch {
	case errors.As(err, &failed):
		return monitor.NodeDown
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return monitor.NodeSlow
	case Says(err, "LOADING"):
		return monitor.NodeLoading
	case Says(err, "BUSY"):
		return monitor.NodeSlow
	case IsAnswer(err):
		return monitor.NodeDenied
	}
	return monitor.NodeDown // the connection broke
}

// ErrLate is the failure of a node that has not answered yet.
var ErrLate error = lateError{}

type lateError struct{}

func (lateError) Error() string   { return "no answer in time" }
func (lateError) Timeout() bool   { return true }
func (lateError) Temporary() bool { return true }

// IsSilence reports whether err says nothing of the node: nothing was heard of it, so the
// line to it may be cut.
func IsSilence(err error) bool {
	var timeout net.Error
	var name *net.DNSError
	switch {
	case IsAnswer(err):
		return false
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout(), errors.As(err, &name):
		return true
	}
	return slices.ContainsFunc([]error{syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENETDOWN, syscall.EHOSTDOWN}, func(e error) bool { return errors.Is(err, e) })
}

// Sentence returns err in words for people.
func Sentence(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.Is(err, io.EOF):
		return "the server closed the connection"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused" + dialled(err)
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the connection was reset"
	}
	if late := net.Error(nil); errors.As(err, &late) && late.Timeout() {
		return "no answer in time" + dialled(err)
	}
	return err.Error()
}

// dialled returns the address of a failed dial.
func dialled(err error) string {
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == "dial" && op.Addr != nil {
		return " at " + op.Addr.String()
	}
	return ""
}
