package operator

import (
	"context"

	"redlockctl/internal/audit"
	"redlockctl/redlock"
)

// MonitorLock has the traffic of a node read for the holder of a lock, by do, which
// returns what the log says of it. It changes nothing, and shows all data of all
// clients: it needs a reason, and is in the log.
func (o *Operator) MonitorLock(ctx context.Context, node, resource, reason string, do func(context.Context, *redlock.Node) (string, error)) error {
	if err := o.mayAct(reason); err != nil {
		return err
	}
	from, err := o.find(node)
	if err != nil {
		return err
	}
	a, err := o.begin(audit.Record{Act: "monitor", Target: resource, Reason: reason, Detail: "on " + node})
	if err != nil {
		return err
	}
	said, err := do(ctx, from)
	return a.end(joined(", ", "on "+node, said), err)
}
