package redlock

import (
	"errors"
	"fmt"

	"redlockctl/server/resp"
	"redlockctl/server/userfence"
)

// errUserFenced is why a node gives no vote when its lock clients' user is fenced.
var errUserFenced = errors.New("fenced: the lock clients' user may not write there")

// asksFence is the user that a fence of the node stops, if we log in as another user; "": the
// server itself refuses us.
func (n *Node) asksFence() string {
	if n.user == options(n).Username {
		return ""
	}
	return n.user
}

// asksFence reports whether a call also asks for the fence. The answer comes on the same
// connection, and so from the same incarnation.
func (l *redisLink) asksFence(c *call) bool {
	return l.fence != "" && (c.op == opSet || c.op == opExtend)
}

// appendFence asks whether the user may acquire the lock. The command after it runs in any case: a
// copy on a fenced node gives no vote, and is released like any other.
func appendFence(b []byte, user, key string) []byte {
	return resp.AppendCommand(b, userfence.Dryrun(user, key)...)
}

// readFence returns why the vote does not count; Err is nil if it counts.
func readFence(v resp.Value) NodeResult {
	switch {
	case v.Kind == '-':
		err := fmt.Errorf("whether it is fenced cannot be read; it needs acl|dryrun: %w", resp.ServerError(v.Text))
		return NodeResult{Status: StatusDenied, Err: err}
	case userfence.Stops(v.Text):
		return NodeResult{Status: StatusFenced, Err: errUserFenced}
	}
	return NodeResult{}
}

// receiveFenced reads the remaining replies to a call whose answer is already known.
func (l *redisLink) receiveFenced(c *call, refused NodeResult) (*call, answer, error) {
	a := answer{NodeResult: refused}
	for i := range c.replies() {
		v, err := resp.ReadValue(l.in)
		if err != nil {
			return c, answer{}, err
		}
		a.copied = a.copied || i == 0 && v.Kind != '-' && c.read(v).Status == StatusOK
	}
	return c, a, nil
}
