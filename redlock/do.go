package redlock

import (
	"context"
	"errors"
)

// Do does work under a lock: it acquires it as [Client.AcquireWith] does, keeps it
// ([Lock.Keep]) while work runs, and releases it, also when work panics. The context
// that work gets ends with ctx, and when the lock is lost, with [ErrLost] as its
// cause; work should return then, which Do waits for.
//
// The error is that of the acquisition, when work has not begun; else that of work,
// joined with one that is [ErrLost] if the lock was lost before work had returned. A
// release that does not reach enough nodes is no error of the work: what it leaves
// ends with the TTL.
func (c *Client) Do(ctx context.Context, resource string, opt AcquireOptions, work func(ctx context.Context, lock *Lock) error) (err error) {
	lock, err := c.AcquireWith(ctx, resource, opt)
	if err != nil {
		return err
	}
	keeper := lock.Keep(KeepOptions{Context: ctx})
	defer func() {
		lost := error(nil)
		if keeper.State() == Lost {
			lost = keeper.Err()
		}
		if _, rerr := keeper.Release(ctx); lost == nil && errors.Is(rerr, ErrLost) {
			lost = rerr
		}
		if lost != nil {
			err = errors.Join(err, lost)
		}
	}()
	return work(keeper.Context(), lock)
}
