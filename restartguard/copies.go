package restartguard

import (
	"context"
	"fmt"
	"time"

	"redlockctl/redlock"
)

// CopiesOn reads the unexpired copies that a node has under the patterns. It fails also if they cannot
// be told completely.
func CopiesOn(ctx context.Context, node *redlock.Node, patterns []string) ([]Copy, error) {
	l := dial(node, paramFence{}, handTimeout)
	defer l.close()
	var s scan
	for s.begin(Question{}, ""); !s.done; {
		if err := s.step(ctx, &l, patterns); err != nil {
			return nil, handError(node, err, ErrUnreachable)
		}
	}
	if s.Doubt != "" {
		return nil, fmt.Errorf("node %q %s", node.Name(), s.Doubt)
	}
	return s.Copies, nil
}

// Endless reports whether the copy never expires.
func (c Copy) Endless() bool { return c.Left < 0 }

// Ends is when the copy expires, by a clock that runs as the node's.
func (c Copy) Ends() time.Time { return c.Got.Add(c.Left) }
