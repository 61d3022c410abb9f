package redlock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// isClean reports whether a release left no copy of the token on this node.
func isClean(r *NodeResult) bool {
	switch r.Status {
	case StatusOK, StatusAbsent, StatusHeld:
		return true
	}
	return wrongType(r)
}

// isReply reports whether an error is one that the server sent.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// says reports whether a server's error is of this kind. Servers before 7.0 wrap the
// error of a command inside a script in a sentence.
func says(err error, kind string) bool {
	text := err.Error()
	return strings.HasPrefix(text, kind+" ") || strings.Contains(text, ": -"+kind+" ") || strings.Contains(text, ": "+kind+" ")
}

// isReadOnly reports whether the node answered that it is a replica, or has become one.
func isReadOnly(r *NodeResult) bool {
	return r.Status == StatusProtocol && r.Err != nil && says(r.Err, "READONLY")
}

// wrongType reports whether the key holds something other than a string, and so not the
// token.
func wrongType(r *NodeResult) bool {
	return r.Status == StatusProtocol && r.Err != nil && says(r.Err, "WRONGTYPE")
}

// isDenied reports whether a server refused because the user lacks a right.
func isDenied(err error) bool {
	return says(err, "NOPERM") || says(err, "NOAUTH") || says(err, "WRONGPASS")
}

// deniedInScript reports whether a server refused a command or a key of a script
// because the user lacks a right. Only Redis 7.2 and later name the command.
func deniedInScript(text string) bool {
	return strings.Contains(text, "The user executing the script can't ")
}

// classifyTransport is the status for a failure to get any reply.
func classifyTransport(err error) Status {
	var timeout net.Error
	switch {
	case errors.As(err, new(sameServerError)):
		return StatusProtocol
	case unsent(err):
		return StatusDown
	case isReply(err): // to the greeting
		if isDenied(err) {
			return StatusDenied
		}
		return StatusProtocol
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return StatusSlow
	default:
		return StatusDown
	}
}

// unsent reports whether an error says that there was no connection to send on.
func unsent(err error) bool {
	var op *net.OpError
	return errors.Is(err, errSpent) || errors.As(err, &op) && op.Op == "dial"
}

// errSpent is the error of a [ConnectOnce] client after its connection has
// ended.
var errSpent = errors.New("the connection of this client has ended")

// sameServerError is returned for a node whose server is also another node.
type sameServerError struct{ other string }

func (e sameServerError) Error() string {
	return fmt.Sprintf("refused: it is the same server as %s, by another address", quote(e.other))
}
