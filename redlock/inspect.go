package redlock

import (
	"context"
	"slices"
	"time"
)

// Inspect reads the copies of a resource on all nodes, and changes nothing. The status
// of each node is:
//
//   - [StatusHeld]: a string is there; Token is its value, of which at most the
//     first 256 bytes are read, Len its whole length, TTL what is left;
//   - [StatusAbsent]: nothing is there;
//   - [StatusProtocol] with a Type: a key of another type is there;
//   - any other: why the node did not answer.
//
// A node that does not answer does not fail it. It fails with [ErrNoQuorum]
// when no node answered at all, with [ErrInvalid], [ErrClosed], or the cause of
// the context's end.
func (c *Client) Inspect(ctx context.Context, resource string) (_ []NodeResult, err error) {
	const op = "inspect"
	defer c.observe(ctx, op, resource)(&err)
	if err := checkResource(op, resource); err != nil {
		return nil, err
	}
	if err := c.enterConnected(ctx, op, resource); err != nil {
		return nil, err
	}
	defer c.ops.Done()
	results := c.look(ctx, resource)
	if ctx.Err() != nil {
		return results, c.endedBy(ctx, op, resource, ctx.Err(), results)
	}
	if slices.ContainsFunc(results, func(r NodeResult) bool { return r.Status.Answered() }) {
		return results, nil
	}
	return results, &Error{Op: op, Resource: resource, Kind: ErrNoQuorum, Nodes: results}
}

func (c *Client) look(ctx context.Context, resource string) []NodeResult {
	return c.lookUntil(ctx, resource, nil)
}

func (c *Client) lookUntil(ctx context.Context, resource string, enough func([]NodeResult) bool) []NodeResult {
	if c.admission.enter(ctx, false, c.closing) != nil {
		return c.blank()
	}
	return c.ask(request{op: opInspect, key: resource, admitted: true, notAfter: time.Now().Add(c.nodeTimeout())}, ctx.Done(), enough)
}
