package operator

import (
	"context"
	"time"

	"redlockctl/internal/audit"
	"redlockctl/internal/who"
	"redlockctl/redlock"
)

const (
	// WhoFor is the default limit for asking who holds a lock.
	WhoFor     = time.Minute
	whoTimeout = 2 * time.Second
	// whoGlance is how long to wait for a node to list its connections.
	whoGlance = 2 * time.Second
)

// WhoNow returns what the token and one list of connections on each node tell about the
// holder, or nil.
func (o *Operator) WhoNow(ctx context.Context, resource string) *who.Answer {
	a, err := who.Observe(ctx, o.locks.Nodes(), who.Options{Key: resource, For: whoGlance, Timeout: whoTimeout})
	if err != nil || a.Method != who.Told {
		return nil
	}
	return a
}

// Who watches a lock for up to a minute and returns who holds it. known is an earlier
// answer, or nil. It changes nothing, and is refused with [who.ErrTooMany] if a node has
// too many connections.
func (o *Operator) Who(ctx context.Context, resource string, known *who.Answer) (*who.Answer, error) {
	return who.Observe(ctx, o.locks.Nodes(), who.Options{Key: resource, For: WhoFor, Timeout: whoTimeout, Known: known})
}

// MonitorLock reads the traffic of a node, by calling do, to find the holder of a lock.
// do returns the detail for the log. It changes nothing but shows all data of all
// clients: it needs a reason and is logged.
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
