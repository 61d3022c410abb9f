package operator

import (
	"context"
	"fmt"
	"sync"
	"time"

	"redlockctl/base/crash"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/restartguard/oneshot"
	"redlockctl/server/announce"
)

// boundTime is the timeout for asking the guards before a lock is acquired.
const boundTime = 500 * time.Millisecond

// guardsOf returns the guards that announce themselves on the nodes. It waits for a
// quorum of nodes to answer.
func guardsOf(ctx context.Context, nodes []*redlock.Node) []announce.Guard {
	ctx, cancel := context.WithTimeout(ctx, boundTime)
	defer cancel()
	answers := make(chan []string, len(nodes))
	var all sync.WaitGroup
	for _, n := range nodes {
		all.Go(crash.Safe(func() {
			if channels, err := oneshot.Announced(ctx, n, boundTime); err == nil {
				answers <- channels
			}
		}))
	}
	crash.Go(func() { all.Wait(); close(answers) })
	var channels []string
	for heard := 0; heard < redlock.Quorum(len(nodes)); heard++ {
		some, more := <-answers
		if !more {
			break
		}
		channels = append(channels, some...)
	}
	return announce.DecodeAll(channels)
}

// bound returns the longest TTL that may be asked for, and who sets it; 0 means no bound.
func (o *Operator) bound(ctx context.Context) (most time.Duration, who string) {
	most, who = o.opt.MaxTTL, "the cluster's max_ttl"
	if o.guards == nil {
		return most, who
	}
	if g, ok := announce.Least(o.guards(ctx)); ok && (most == 0 || g.Covers() < most) {
		most, who = g.Covers(), fmt.Sprintf("what the guard %s covers (D %s)", monitor.GuardName(g), g.Delay)
	}
	return most, who
}

// HandTTL returns the TTL of a lock acquired by hand: given, or 30 s if the bound allows
// it.
func (o *Operator) HandTTL(ctx context.Context, given time.Duration) time.Duration {
	if given != 0 {
		return given
	}
	most, _ := o.bound(ctx)
	return HandTTL(0, most)
}

// within refuses a TTL beyond the bound. With Force it returns the risk instead.
func (o *Operator) within(ctx context.Context, ttl time.Duration) (risk string, err error) {
	most, who := o.bound(ctx)
	if most <= 0 || ttl <= most {
		return "", nil
	}
	text := fmt.Sprintf("the TTL %s is longer than %s, %s: a node that restarts votes again while the holder still relies on its lock, and a second client gets in", ttl, most, who)
	if o.opt.Force {
		return text, nil
	}
	return "", fmt.Errorf("%w: %s", ErrRefused, text)
}
