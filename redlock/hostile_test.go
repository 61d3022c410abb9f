package redlock_test

import (
	"context"
	"testing"
	"time"

	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
)

// A server that sends more than was asked for, or something that is not a reply, is one
// node without a vote: it costs no memory, and does not affect the other nodes.
func TestServersThatMisbehave(t *testing.T) {
	servers := labtest.Servers(t, 3)
	peak := labtest.HeapPeak(t)
	for _, m := range labtest.Mischiefs() {
		switch m.To {
		case "", "hello", "client", "ping", "set", "eval", "evalsha", "get", "time":
		default:
			continue
		}
		nodes := append(labtest.Nodes(servers[:2]), labtest.Misbehaving(t, m.Name, servers[2].Addr(), m))
		c, err := redlock.New(nodes, redlock.Options{NodeTimeout: 500 * time.Millisecond, ConnectTimeout: 500 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		first, err := c.AcquireFenced(ctx, "job:1", 10*time.Second)
		if err != nil {
			t.Errorf("%s: %v", m.Name, err)
			cancel()
			continue
		}
		waited := make(chan error, 1)
		go func() { // who waits listens to each node, too
			second, err := c.Acquire(ctx, "job:1", 10*time.Second)
			if err == nil {
				_, err = second.Release(ctx)
			}
			waited <- err
		}()
		if err := first.Extend(ctx, 10*time.Second); err != nil {
			t.Errorf("%s: extend: %v", m.Name, err)
		}
		if _, err := c.Inspect(ctx, "job:1"); err != nil {
			t.Errorf("%s: inspect: %v", m.Name, err)
		}
		if _, err := first.Release(ctx); err != nil {
			t.Errorf("%s: release: %v", m.Name, err)
		}
		if err := <-waited; err != nil {
			t.Errorf("%s: waiting: %v", m.Name, err)
		}
		cancel()
		_ = c.Close()
	}
	if n := peak(); n > 64<<20 {
		t.Errorf("%d MiB of memory in between", n>>20)
	}
}
