package redlock

import "context"

// Release deletes the copies of token on all N nodes, and only those: each node
// compares. It is sent even if ctx has ended, and waits for no node longer than the
// node timeout. A node that is down does not make it fail; while the client is open,
// that node gets the release as soon as it answers again.
//
// A node is clean if it deleted the copy, or has no key or another value. The error is
// nil when a quorum is clean and a copy was deleted: the token has no quorum. It is
// [ErrNotHeld] when a quorum is clean and no node had the token, and [ErrNoQuorum] when
// fewer nodes are clean: the token may still hold the lock until its copies expire. The
// results say for each node whether a copy may be left.
func (c *Client) Release(ctx context.Context, resource, token string) (_ []NodeResult, err error) {
	defer c.observe(ctx, "release", resource)(&err)
	return c.release(ctx, request{key: resource, token: token}, nil)
}

// release is Release with what else is known (see [request]); enough may end the wait
// before all nodes have answered.
func (c *Client) release(ctx context.Context, ask request, enough func([]NodeResult) bool) ([]NodeResult, error) {
	const op = "release"
	resource, token := ask.key, ask.token
	if err := checkNames(op, resource, token); err != nil {
		return nil, err
	}
	if err := c.enter(ctx, op, resource); err != nil {
		return nil, err
	}
	defer c.ops.Done()
	// Also if ctx has ended: a release is always sent.
	_ = c.warm.wait(context.Background(), nil, c.opt.ConnectTimeout, c.nodeTimeout)
	ask.op, ask.admitted = opRelease, c.enterRelease(ctx)
	results := c.ask(ask, nil, enough)
	err := c.assessRelease(op, resource, results)
	if err == nil {
		c.waits.released(resource)
	}
	return results, err
}

// enterRelease waits for room for a release, and reports whether it got any. It waits
// until ctx ends, and then for at most the node timeout.
func (c *Client) enterRelease(ctx context.Context) bool {
	if ctx.Err() == nil && c.admission.enter(ctx, true, nil) == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.nodeTimeout())
	defer cancel()
	return c.admission.enter(ctx, true, nil) == nil
}

// assessRelease says what the answers to a release mean.
func (c *Client) assessRelease(op, resource string, results []NodeResult) error {
	clean, deleted := tally(results)
	switch {
	case clean < c.Quorum():
		return &Error{Op: op, Resource: resource, Kind: ErrNoQuorum, Nodes: results}
	case deleted == 0:
		return &Error{Op: op, Resource: resource, Kind: ErrNotHeld, Nodes: results}
	}
	return nil
}

// released reports whether a token has no quorum, whatever the missing answers will be.
func (c *Client) released(results []NodeResult) bool {
	clean, deleted := tally(results)
	return clean >= c.Quorum() && deleted > 0
}

func tally(results []NodeResult) (clean, deleted int) {
	for i := range results {
		if isClean(&results[i]) {
			clean++
		}
		if results[i].Status == StatusOK {
			deleted++
		}
	}
	return clean, deleted
}
