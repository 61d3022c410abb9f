package oneshot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"redlockctl/base/sleep"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/server/fences"
	"redlockctl/server/minreplicas"
)

// ErrWait is returned by [WaitServing] when the node does not serve in time.
var ErrWait = errors.New("the node does not serve yet")

// WaitServing returns as soon as the node answers as a master that accepts votes. If ctx ends
// before, it fails with [ErrWait] and says in which state the node is. It changes nothing.
func WaitServing(ctx context.Context, node *redlock.Node, method fences.Method) error {
	why := ""
	for {
		o, err := Inspect(ctx, node, method)
		if err == nil && o.Serves() {
			return nil
		}
		// An I/O deadline may pass before the context reports its end.
		end, bounded := ctx.Deadline()
		over := ctx.Err() != nil || bounded && !time.Now().Before(end)
		if why = whyWaiting(why, o, err, over); !over {
			_ = sleep.For(ctx, 100*time.Millisecond)
			over = ctx.Err() != nil
		}
		if over {
			return fmt.Errorf("node %q: %w: %s", node.Name(), ErrWait, why)
		}
	}
}

// whyWaiting returns why a node does not serve; before is what was known before this observation.
// One that was cut short by the end of the wait says less than the one before.
func whyWaiting(before string, o restartguard.Observation, err error, over bool) string {
	_, cordoned := o.Fenced()
	switch {
	case err != nil && over && before != "":
		return before
	case err != nil:
		return err.Error()
	case o.Role != "master":
		return "its role is " + o.Role
	case o.Blind:
		return "its fence cannot be read: " + o.Err
	case cordoned:
		return "an operator has cordoned it"
	case o.Lacking:
		return fmt.Sprintf("it refuses writes for lack of replicas: %s is %d", minreplicas.Param, o.Params.MinReplicas)
	}
	return "it is fenced"
}
