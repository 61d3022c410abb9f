package oneshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/redis/go-redis/v9"

	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/wire"
	"redlockctl/server/fences"
	"redlockctl/server/safetext"
)

// Inspect reads a node once, on its own connection, and changes nothing. It fails with
// [restartguard.ErrUnreachable] or [restartguard.ErrDenied]. If the fence cannot be read, Blind is
// set and Err says why.
func Inspect(ctx context.Context, node *redlock.Node, method fences.Method) (restartguard.Observation, error) {
	l := wire.Dial(node, method, wire.HandTimeout)
	defer l.Close()
	l.Introduced = true // a reader needs no name
	o, err := l.Look(ctx)
	if err != nil {
		return o, wire.NodeError(node, err, restartguard.ErrUnreachable)
	}
	return o, nil
}

// Unused fails if something listens at the node's address.
func Unused(ctx context.Context, node *redlock.Node) error {
	l := wire.Dial(node, fences.Method{}, wire.HandTimeout)
	defer l.Close()
	err := l.Send(ctx, func(p redis.Pipeliner) { p.Ping(ctx) })
	switch {
	case wire.IsRefused(err), errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil || wire.Answered(err):
		return fmt.Errorf("node %q: something answers at %s already", node.Name(), node.Addr())
	}
	return fmt.Errorf("node %q: it cannot be told that nothing listens at %s: %w: %s", node.Name(), node.Addr(), restartguard.ErrUnreachable, safetext.Error(err))
}

// CountKeys returns how many keys that match any of the patterns the node has in its database. It
// stops at the first few.
func CountKeys(ctx context.Context, node *redlock.Node, patterns []string) (found int, err error) {
	l := wire.Dial(node, fences.Method{}, wire.HandTimeout)
	defer l.Close()
	for _, pattern := range patterns {
		for cursor := uint64(0); ; {
			var scan *redis.ScanCmd
			err := l.Send(ctx, func(p redis.Pipeliner) { scan = p.Scan(ctx, cursor, pattern, 500) })
			if err == nil {
				err = scan.Err()
			}
			if err != nil {
				return found, wire.NodeError(node, err, restartguard.ErrUnreachable)
			}
			var keys []string
			keys, cursor = scan.Val()
			for _, k := range keys {
				if k != restartguard.CounterKey {
					found++
				}
			}
			if cursor == 0 || found > 0 {
				break
			}
		}
	}
	return found, nil
}
