package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/server/safetext"
)

// ErrBroken is returned when a connection failed: the server may have carried out what was sent
// through it or not, and nothing more may be sent.
var ErrBroken = errors.New("no connection")

// Answered reports whether err is nil or the server's answer, so that the connection still works.
func Answered(err error) bool {
	var reply redis.Error
	return err == nil || errors.As(err, &reply)
}

// HandTimeout bounds each round of commands of a command-line action, if the context does not end
// earlier.
const HandTimeout = 2 * time.Second

// NodeError names the node and the kind of failure. A server's text in it is safe to print.
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

// IsDenied reports whether the server refuses: no right, wrong password, its protected mode, or a
// renamed command.
func IsDenied(err error) bool {
	for _, p := range []string{"NOPERM", "NOAUTH", "WRONGPASS", "DENIED", "unknown command", "invalid password"} {
		if redis.HasErrorPrefix(err, p) {
			return true
		}
	}
	return redis.IsPermissionError(err) || redis.IsAuthError(err)
}

// dialError is a failure to connect, as opposed to one of a connection.
type dialError struct{ err error }

func (e dialError) Error() string { return e.err.Error() }
func (e dialError) Unwrap() error { return e.err }

// AbsentOf returns how a node is absent that failed with err, as the monitor calls it: see
// [restartguard.AbsentSlow]; empty: it is down, or it answers.
func AbsentOf(err error) string {
	var failed dialError
	var timeout net.Error
	switch {
	case errors.As(err, &failed):
		return ""
	case redis.HasErrorPrefix(err, "LOADING"):
		return restartguard.AbsentLoading
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout(), redis.HasErrorPrefix(err, "BUSY"):
		return restartguard.AbsentSlow
	}
	return ""
}

// IsRefused reports whether nothing listens at the address.
func IsRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
