package restartguard

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// codec is what a method knows. It has a file of its own, and in method.go a constant and a row of methods.
type codec interface {
	// check tells why the method cannot be used.
	check() error
	// ask reads the fence. Whatever the method, the answer says what min-replicas-to-write
	// would: 0, FenceUp, FenceCordon, or another number that is no fence.
	ask(context.Context, redis.Pipeliner) func() (Params, error)
	// set puts the fence to a value. lag: the server has min-replicas-max-lag 0; replica: it is one, so
	// it is made read-only where the fence does not stop it.
	set(ctx context.Context, p redis.Pipeliner, value int64, lag, replica bool) []redis.Cmder
	// canary tries a write of a key that nobody else has, and that leaves nothing.
	canary(ctx context.Context, p redis.Pipeliner, key string) func() (Canary, error)
	// words are params for people; "" where the numbers are those of the server.
	words(Params) string
	// assessBoot says how a server that is started with a text starts.
	assessBoot(*BootVerdict, BootText)
	// howToStart says what starts a server fenced, in the method's own words.
	howToStart(BootCheck) BootHow
	traits() traits
}

// traits of a method, as names of commands.
type traits struct {
	command string // by which the fence is set
	refusal string // the error by which a server refuses a write behind the fence
	// sets are the counters of commandstats that show that the fence was changed at run
	// time, and rewrites those of commands that change the files on which it rests.
	sets, rewrites []string
	// boot: assessBoot has to know which commands write.
	boot bool
}
