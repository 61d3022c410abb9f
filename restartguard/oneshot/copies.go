// Package oneshot does one thing to one node for a command, without a guard: inspect, cordon,
// uncordon, let rejoin, wait.
package oneshot

import (
	"context"
	"fmt"

	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/wire"
	"redlockctl/server/fences"
)

// CopiesOn reads the unexpired copies of a node under the patterns. It also fails if it could not
// read all of them.
func CopiesOn(ctx context.Context, node *redlock.Node, patterns []string) ([]restartguard.Copy, error) {
	l := wire.Dial(node, fences.Method{}, wire.HandTimeout)
	defer l.Close()
	var s wire.Scan
	for s.Begin(restartguard.Question{}, ""); !s.Done; {
		if err := s.Step(ctx, &l, patterns); err != nil {
			return nil, wire.NodeError(node, err, restartguard.ErrUnreachable)
		}
	}
	if s.Doubt != "" {
		return nil, fmt.Errorf("node %q %s", node.Name(), s.Doubt)
	}
	return s.Copies, nil
}
