package redlock

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// greeting puts the name of a connection into its HELLO. The client library would send
// CLIENT SETNAME, whose refusal ends the connection.
type greeting struct{ name string }

func (g greeting) DialHook(next redis.DialHook) redis.DialHook { return next }

func (g greeting) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (g greeting) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		hello, ok := cmd.(*redis.MapStringInterfaceCmd)
		if !ok || cmd.Name() != "hello" {
			return next(ctx, cmd)
		}
		args := hello.Args()
		named := redis.NewMapStringInterfaceCmd(ctx, append(args[:len(args):len(args)], "setname", g.name)...)
		err := next(ctx, named)
		hello.SetVal(named.Val())
		hello.SetErr(err)
		return err
	}
}
