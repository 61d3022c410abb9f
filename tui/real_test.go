package tui

import (
	"context"
	"fmt"
	"testing"
	"time"

	"redlockctl/internal/lab/labtest"
	"redlockctl/internal/operator"
	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/redlock"
)

// clientActions uses the lock algorithm directly, without an operator.
type clientActions struct {
	*fakeActions
	c *redlock.Client
}

func (a clientActions) AcquireWith(ctx context.Context, resource string, ttl time.Duration, _ operator.AcquireOptions) (*redlock.Lock, error) {
	return a.c.Acquire(ctx, resource, ttl)
}

func (a clientActions) Release(ctx context.Context, resource, token string) ([]redlock.NodeResult, error) {
	return a.c.Release(ctx, resource, token)
}

// A lock is acquired by hand on real servers, is marked as acquired here, and is
// released; a second acquisition in between says who holds it.
func TestAcquireAndReleaseOnRealServers(t *testing.T) {
	servers := labtest.Servers(t, 3)
	client, err := redlock.New(labtest.Nodes(servers), redlock.Options{Retries: -1, NodeTimeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	r.m.Actions = clientActions{r.acts, client}

	acquire := func() {
		r.press("a")
		r.settle()
		r.typed("by hand")
		r.press("enter")
		r.run()
	}
	acquire()
	r.sees("acquire by hand: done", "r releases it")
	g, ok := r.m.Mine["by hand"]
	if !ok || g.Token == "" || time.Until(g.Until) <= 0 {
		t.Fatalf("the grant is not kept: %+v", g)
	}
	copies := 0
	for _, s := range servers {
		if v, err := s.Do(t.Context(), "GET", "by hand"); err == nil && v == g.Token {
			copies++
		}
	}
	if copies < 2 { // the acquisition may not have waited for the third server
		t.Errorf("%d copies", copies)
	}
	r.settle()
	r.press("enter")
	acquire()
	r.sees("acquire by hand: failed", redlock.ErrContended.Error())
	r.settle()
	r.press("enter")

	s := monitortest.Degraded(monitortest.Epoch)
	s.Locks = monitor.NewLocks(monitortest.LockOf(monitortest.Epoch, "by hand", monitor.LockHeld, g.Token, "9 9 9 9 9"))
	r.push(s)
	r.press("r")
	r.settle()
	r.press("enter")
	r.run()
	r.sees("release by hand: done", "copy deleted")
	for i, s := range servers {
		if v, err := s.Do(t.Context(), "EXISTS", "by hand"); err != nil || fmt.Sprint(v) != "0" {
			t.Errorf("n%d: %v, %v", i+1, v, err)
		}
	}
	if len(r.m.Mine) != 0 {
		t.Error("what was released is still kept")
	}
}
