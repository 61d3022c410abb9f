package fence

import (
	"context"

	"github.com/redis/go-redis/v9"

	"redlockctl/restartguard"
	"redlockctl/server/minreplicas"
)

// codec is what a method knows. It has a file of its own, and in method.go a constant and a row of methods.
type Codec interface {
	// ask reads the fence. Whatever the method, the answer says what min-replicas-to-write
	// would: 0, FenceUp, FenceCordon, or another number that is no fence.
	Ask(context.Context, redis.Pipeliner) func() (minreplicas.Params, error)
	// set puts the fence to a value. lag: the server has min-replicas-max-lag 0; replica: it is one, so
	// it is made read-only where the fence does not stop it.
	Set(ctx context.Context, p redis.Pipeliner, value int64, lag, replica bool) []redis.Cmder
	// canary tries a write of a key that nobody else has, and that leaves nothing.
	Canary(ctx context.Context, p redis.Pipeliner, key string) func() (restartguard.Canary, error)
	// words are params for people; "" where the numbers are those of the server.
	Words(minreplicas.Params) string
	Traits() traits
}

// traits of a method, as names of commands.
type traits struct {
	Command string // by which the fence is set
	Refusal string // the error by which a server refuses a write behind the fence
	// sets are the counters of commandstats that show that the fence was changed at run
	// time, and rewrites those of commands that change the files on which it rests.
	Sets, Rewrites []string
}

// codecOf returns what knows a method. Of MethodNone it sees a fence by min-replicas-to-write
// that somebody else put up.
func Of(m restartguard.Method) Codec {
	if m.Kind == restartguard.MethodACL {
		return userFence{m.User, m.Allow}
	}
	return paramFence{}
}
