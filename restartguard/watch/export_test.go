package watch

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/wire"
	"redlockctl/server/fences"
)

// LookAt reads the node at the end of a client.
func LookAt(ctx context.Context, c *redis.Client) (restartguard.Observation, error) {
	l := wire.Over(c, fences.Method{})
	return l.Look(ctx)
}

// Carry carries out an action through a client.
func Carry(ctx context.Context, c *redis.Client, a restartguard.Action) (restartguard.Observation, error) {
	l := wire.Over(c, fences.Method{})
	return l.Perform(ctx, a)
}

// Broken reports whether an action's outcome is not known.
func Broken(err error) bool { return errors.Is(err, wire.ErrBroken) }

// Dial is the client that the guard uses for one incarnation.
func Dial(node *redlock.Node, timeout time.Duration) *redis.Client {
	return wire.Dial(node, fences.Method{}, timeout).Client.(*redis.Client)
}

// TrustAll makes the guard take the word of all nodes that are open, as if it had
// known them for long.
func (g *Guard) TrustAll() {
	for _, w := range g.members {
		w.mu.Lock()
		if w.state.Basis.Phase == restartguard.PhaseServing {
			w.state.Basis.Trusted = w.state.Basis.LastSeen
		}
		w.mu.Unlock()
	}
}

// HostOf is the name in an address.
func HostOf(addr string) string { return hostOf(addr) }
