package redlock

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"redlockctl/server/resp"
)

// boundary turns a panic of the client library, while it reads a node's reply, into an error of
// that command. The library itself drops the connection. Subscriptions do not pass through here:
// they are not used.
type boundary struct{ node string }

func (boundary) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b boundary) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) (err error) {
		defer func() {
			if err != nil && cmd.Err() == nil {
				cmd.SetErr(err)
			}
		}()
		defer resp.Contain(&err, b.node+": "+cmd.Name())
		return next(ctx, cmd)
	}
}

func (b boundary) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) (err error) {
		defer func() {
			for _, cmd := range cmds {
				if errors.Is(err, resp.ErrPanic) && cmd.Err() == nil {
					cmd.SetErr(err) // it is not known which of them panicked
				}
			}
		}()
		defer resp.Contain(&err, b.node+": a pipeline")
		return next(ctx, cmds)
	}
}
