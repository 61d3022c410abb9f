package campaign

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"redlockctl/base/sleep"
	"redlockctl/redlock"
)

// client takes locks as fast as it can, over connections of its own.
type client struct {
	number    int
	rand      *rand.Rand
	lock      *redlock.Client
	witness   *Witness
	resources int
	maxTTL    time.Duration
	granted   chan<- grant // has room for the latest, at least
	violated  func()
}

func (c *client) run(ctx context.Context) {
	for ctx.Err() == nil {
		c.round(ctx)
		_ = sleep.For(ctx, time.Duration(1+c.rand.IntN(6))*time.Millisecond)
	}
}

// round is one attempt, and the time for which it is believed in.
func (c *client) round(ctx context.Context) {
	resource := prefix + strconv.Itoa(c.rand.IntN(c.resources))
	// All of them up to the longest, which D is made for.
	ttl := c.maxTTL - time.Duration(c.rand.Int64N(int64(c.maxTTL)*3/8))
	began := time.Now()
	l, err := c.lock.TryAcquire(ctx, resource, ttl)
	now := time.Now()
	// Early rejoin rests on attempts that take no longer.
	if err != nil || !l.Valid(now) || now.Sub(began) > attemptBound {
		return
	}
	end, contradicts := c.witness.Believe(Belief{Resource: resource, Client: c.number, Token: l.Token(), From: now, Until: l.Until()})
	if contradicts {
		c.violated()
	}
	g := grant{until: l.Until()}
	for _, r := range l.Nodes() {
		if r.Status == redlock.StatusOK {
			g.nodes = append(g.nodes, r.Node)
		}
	}
	select {
	case c.granted <- g:
	default:
	}
	// Most believe to the end, and leave the copies to their TTL: that is when a
	// vote that is given again hurts.
	left := time.Until(l.Until())
	if c.rand.IntN(10) < 7 {
		_ = sleep.For(ctx, left)
		return
	}
	_ = sleep.For(ctx, time.Duration(c.rand.Float64()*float64(left)/2))
	end()
	_, _ = l.Release(ctx)
}
