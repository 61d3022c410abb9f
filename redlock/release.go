package redlock

import "context"

// Release deletes the copies of token on all N nodes, and only those: each
// node compares. It is sent although ctx is over, and waits for no silent node longer
// than the node timeout. A node that is down does not fail it, and is told as
// soon as it answers again while the client is open.
//
// Clean is a node that deleted the copy, has nothing there or has another
// value there. The error is nil when a quorum is clean and a copy was
// deleted: the token holds no quorum any more. It is [ErrNotHeld] when a quorum
// is clean and none of it had the token, and [ErrNoQuorum] when less than a
// quorum is clean: the token may go on holding the lock until its copies
// expire. The results tell of each node if a copy may be left on it.
func (c *Client) Release(ctx context.Context, resource, token string) ([]NodeResult, error) {
	return c.release(ctx, call{key: resource, token: token}, nil)
}

// release is Release, of which more may be known (see [call]); enough ends the
// waiting before all nodes have answered.
func (c *Client) release(ctx context.Context, ask call, enough func([]NodeResult) bool) ([]NodeResult, error) {
	const op = "release"
	resource, token := ask.key, ask.token
	if err := checkNames(op, resource, token); err != nil {
		return nil, err
	}
	if err := c.enter(ctx, op, resource); err != nil {
		return nil, err
	}
	defer c.ops.Done()
	// Without ctx: a release is sent all the same.
	_ = c.warm.wait(context.WithoutCancel(ctx), nil, c.opt)
	ask.op, ask.admitted = opRelease, c.enterRelease(ctx)
	results := c.ask(ask, nil, enough)
	err := c.assessRelease(op, resource, results)
	if err == nil {
		c.waits.released(resource)
	}
	return results, err
}

// enterRelease waits for room for a release, and reports whether there is any: as long
// as ctx runs, and after its end for no longer than a node may take to answer.
func (c *Client) enterRelease(ctx context.Context) bool {
	if ctx.Err() == nil && c.admission.enter(ctx, true, nil) == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.opt.NodeTimeout)
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

// released reports whether a token holds no quorum any more, whatever the nodes say
// that have not answered.
func (c *Client) released(results []NodeResult) bool {
	clean, deleted := tally(results)
	return clean >= c.Quorum() && deleted > 0
}

func tally(results []NodeResult) (clean, deleted int) {
	for i := range results {
		if isClean(results[i]) {
			clean++
		}
		if results[i].Status == StatusOK {
			deleted++
		}
	}
	return clean, deleted
}
