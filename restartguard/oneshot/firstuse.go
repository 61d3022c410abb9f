package oneshot

import (
	"context"
	"fmt"

	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/wire"
	"redlockctl/server/fences"
)

// AskFirstUse reads a node and the announcements of the guards on it; it changes nothing. It fails
// if either cannot be read.
func AskFirstUse(ctx context.Context, node *redlock.Node, method fences.Method, remembered restartguard.Fact, patterns []string) (f restartguard.FirstUse, err error) {
	f = restartguard.FirstUse{Node: node.Name(), Remembered: remembered}
	l := wire.Dial(node, method, wire.HandTimeout)
	defer l.Close()
	l.Introduced, l.ReadGuards = true, true
	if f.Seen, err = l.Look(ctx); err != nil {
		return f, wire.NodeError(node, err, restartguard.ErrUnreachable)
	}
	if l.GuardsErr != nil {
		return f, fmt.Errorf("the guards that watch node %q cannot be seen: %w", node.Name(), wire.NodeError(node, l.GuardsErr, restartguard.ErrDenied))
	}
	f.Guards = l.Guards
	f.Keys, err = CountKeys(ctx, node, patterns)
	return f, err
}
