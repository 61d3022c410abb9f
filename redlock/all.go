package redlock

import (
	"context"
	"fmt"
	"slices"
)

// InOrder are names in the order in which several locks are acquired, each once:
// whoever acquires in this order waits for nobody who waits for him.
func InOrder(resources []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(resources)))
}

// DoAll is [Client.Do] under several locks: all of them, or none. They are acquired one
// after the other in the order of [InOrder], so that two callers that name the same in
// another order do not wait for each other for ever, are kept from the moment that each
// was acquired, and are released in reverse. The context of work ends when the first of
// them is lost. locks are in the order of resources. What cannot be acquired is named by
// the [Error]; then no lock is held any more.
//
// A caller waits for a lock while it holds those before it: keep the names few.
func (c *Client) DoAll(ctx context.Context, resources []string, opt AcquireOptions, work func(ctx context.Context, locks []*Lock) error) error {
	if len(resources) == 0 {
		return fmt.Errorf("%w: no resource is named", ErrInvalid)
	}
	held := make(map[string]*Lock, len(resources))
	var next func(ctx context.Context, left []string) error
	next = func(ctx context.Context, left []string) error {
		if len(left) > 0 {
			return c.Do(ctx, left[0], opt, func(ctx context.Context, l *Lock) error {
				held[left[0]] = l
				return next(ctx, left[1:])
			})
		}
		locks := make([]*Lock, len(resources))
		for i, name := range resources {
			locks[i] = held[name]
		}
		return work(ctx, locks)
	}
	return next(ctx, InOrder(resources))
}
