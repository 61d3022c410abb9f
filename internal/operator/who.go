package operator

import (
	"context"
	"time"

	"redlockctl/internal/audit"
	"redlockctl/internal/who"
	"redlockctl/redlock"
)

const (
	// WhoFor is how long asking who holds a lock takes at most, where nobody says.
	WhoFor     = time.Minute
	whoTimeout = 2 * time.Second
	// whoGlance is for how long a node is waited for that does not tell of its connections.
	whoGlance = 2 * time.Second
)

// WhoNow is what the token and one list of connections on each node say of the holder,
// nil where they say nothing.
func (o *Operator) WhoNow(ctx context.Context, resource string) *who.Answer {
	a, err := who.Observe(ctx, o.locks.Nodes(), who.Options{Key: resource, For: whoGlance, Timeout: whoTimeout})
	if err != nil || a.Method != who.Told {
		return nil
	}
	return a
}

// Who watches a lock for up to a minute and says who holds it; known is what was answered
// before, or nil. It changes nothing, and is refused with [who.ErrTooMany] where a node has
// many connections.
func (o *Operator) Who(ctx context.Context, resource string, known *who.Answer) (*who.Answer, error) {
	return who.Observe(ctx, o.locks.Nodes(), who.Options{Key: resource, For: WhoFor, Timeout: whoTimeout, Known: known})
}

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
