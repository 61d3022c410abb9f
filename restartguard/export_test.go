package restartguard

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/redlock"
	"redlockctl/server/resp"
)

// LookAt reads the node at the end of a client.
func LookAt(ctx context.Context, c *redis.Client) (Observation, error) {
	l := nodeConn{client: c, codec: paramFence{}, name: guardName, budget: resp.NewBudget(guardReply, guardExchange)}
	return l.look(ctx)
}

// Carry carries out an action through a client.
func Carry(ctx context.Context, c *redis.Client, a Action) (Observation, error) {
	l := nodeConn{client: c, codec: paramFence{}, name: guardName, budget: resp.NewBudget(guardReply, guardExchange)}
	return l.perform(ctx, a)
}

// Broken reports whether an action's outcome is not known.
func Broken(err error) bool { return errors.Is(err, errBroken) }

// Dial is the client that the guard uses for one incarnation.
func Dial(node *redlock.Node, timeout time.Duration) *redis.Client {
	return dial(node, paramFence{}, timeout).client
}

// TrustAll makes the guard take the word of all nodes that are open, as if it had
// known them for long.
func (g *Guard) TrustAll() {
	for _, w := range g.members {
		w.mu.Lock()
		if w.state.Phase == PhaseServing {
			w.state.Trusted = w.state.LastSeen
		}
		w.mu.Unlock()
	}
}

// HostOf is the name in an address.
func HostOf(addr string) string { return hostOf(addr) }
