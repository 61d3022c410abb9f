// Package userfence is a fence that takes the write commands from the ACL user of the lock
// clients: how to ask a server for it, and what the answer means. It needs Redis 7.0. The
// guard, the monitor and the lock algorithm all use it.
package userfence

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"
)

// CordonMark is a key in the rules of a user whose node an operator has cordoned.
const CordonMark = "redlockctl:hold"

// Dryrun returns the command that asks whether user may write key. It changes nothing, and needs
// the right to run acl|dryrun.
func Dryrun(user, key string) []string {
	return []string{"ACL", "DRYRUN", user, "SET", key, "1", "NX", "PX", "1"}
}

// Ask asks whether user may write key.
func Ask(ctx context.Context, p redis.Pipeliner, user, key string) *redis.Cmd {
	command := Dryrun(user, key)
	args := make([]any, len(command))
	for i, arg := range command {
		args[i] = arg
	}
	return p.Do(ctx, args...)
}

// Stops reports whether the answer says that the user may not write at all. Any other answer does
// not: OK, or that the user may not use this key.
func Stops(answer string) bool { return strings.Contains(answer, "permissions to run") }
