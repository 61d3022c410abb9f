package redlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
)

// Locks can be taken, kept and released from far, without a setting. One that does not fit
// the network is named, with the round trip.
func TestLocksFromFar(t *testing.T) {
	t.Parallel()
	for _, trip := range []time.Duration{60 * time.Millisecond, 300 * time.Millisecond} {
		t.Run(trip.String(), func(t *testing.T) {
			t.Parallel()
			nodes := make([]*redlock.Node, 3)
			for i, p := range labtest.Proxies(t, labtest.Servers(t, 3)) {
				p.Delay(labtest.ToServer, trip/2, trip/2)
				p.Delay(labtest.ToClient, trip/2, trip/2)
				nodes[i] = p.Node()
			}
			open := func(opt redlock.Options) *redlock.Client {
				c, err := redlock.New(nodes, opt)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() })
				return c
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			c := open(redlock.Options{})
			begun := time.Now()
			l, err := c.Acquire(ctx, "job", 30*time.Second)
			if err != nil {
				t.Fatalf("after %s: %v", time.Since(begun), err)
			}
			t.Logf("the first lock after %s", time.Since(begun).Round(time.Millisecond))
			if err := l.Extend(ctx, 30*time.Second); err != nil {
				t.Error(err)
			}
			if _, err := l.Release(ctx); err != nil {
				t.Error(err)
			}
			_, err = open(redlock.Options{NodeTimeout: 50 * time.Millisecond, Retries: 1}).Acquire(ctx, "set", 30*time.Second)
			if !errors.Is(err, redlock.ErrNoQuorum) || !strings.Contains(err.Error(), "a round trip takes ") || !strings.Contains(err.Error(), "node_timeout") {
				t.Errorf("a short node timeout: %v", err)
			}
			if trip < 100*time.Millisecond {
				return
			}
			_, err = c.TryAcquire(ctx, "short", time.Second)
			if !errors.Is(err, redlock.ErrNoQuorum) || !strings.Contains(err.Error(), "needs a TTL of more than ") {
				t.Errorf("a short TTL: %v", err)
			}
		})
	}
}
