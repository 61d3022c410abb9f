// Package fence sets, reads and tries the fence of a node: each method is a file.
package fence

import (
	"context"

	"github.com/redis/go-redis/v9"

	"redlockctl/restartguard"
	"redlockctl/server/fences"
	"redlockctl/server/minreplicas"
)

// Codec sets, reads and tries a fence by one method.
type Codec interface {
	// Ask reads the fence. With any method the answer is in terms of min-replicas-to-write: 0,
	// FenceUp, FenceCordon, or another number, which is no fence.
	Ask(context.Context, redis.Pipeliner) func() (minreplicas.Params, error)
	// Set sets the fence to a value. lag: the server has min-replicas-max-lag 0. readOnly:
	// as a replica the server refuses writes from now on, if the fence does not stop these.
	Set(ctx context.Context, p redis.Pipeliner, value int64, lag, readOnly bool) []redis.Cmder
	// Canary tries to write a key that nobody else uses, and leaves nothing behind.
	Canary(ctx context.Context, p redis.Pipeliner, key string) func() (restartguard.Canary, error)
	// Words returns the fence in words; "" if the numbers are the server's own.
	Words(minreplicas.Params) string
	Traits() traits
}

// Traits are the commands and errors of a method.
type traits struct {
	Command string // by which the fence is set
	Refusal string // the error by which a server refuses a write behind the fence
	// Sets are the commands in commandstats that change the fence at run time, and Rewrites
	// those that change the files that start the server fenced.
	Sets, Rewrites []string
}

// Of returns the codec of a method. With MethodNone it reads a fence by min-replicas-to-write that
// somebody else has set.
func Of(m fences.Method) Codec {
	if m.Kind == fences.ACL {
		return userFence{m.User, m.Allow}
	}
	return paramFence{}
}
