package redlock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestDeadlineTellsWhatWasInTheWay: who waited until a deadline learns who has the
// lock, or which nodes are not there; who has given up is not held up by that.
func TestDeadlineTellsWhatWasInTheWay(t *testing.T) {
	inMemory(t, 3, func(t *testing.T, nodes []*memNode, c *Client) {
		holder := mustAcquire(t, c, time.Hour)
		synctest.Wait()
		wait := AcquireOptions{TTL: time.Hour, Retries: UntilContextEnds}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		_, err := c.AcquireWith(ctx, "a", wait)
		if !errors.Is(err, ErrContended) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), holder.Token()) {
			t.Errorf("held by another: %v", err)
		}
		if took := time.Since(begin); took < time.Minute || took > time.Minute+c.nodeTimeout() {
			t.Errorf("gave up after %s", took)
		}
		cancelled, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, stop)
		if _, err := c.AcquireWith(cancelled, "a", wait); errors.Is(err, ErrContended) || !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
		nodes[1].hang()
		nodes[2].hang()
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin = time.Now()
		if _, err = c.AcquireWith(ctx, "b", wait); !errors.Is(err, ErrNoQuorum) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("too few nodes: %v", err)
		}
		if took := time.Since(begin); took > time.Minute+c.nodeTimeout() {
			t.Errorf("gave up after %s", took)
		}
	})
}

// TestOptionsOfOneAcquisition: options that are not set are those of the client.
func TestOptionsOfOneAcquisition(t *testing.T) {
	inMemory(t, 3, func(t *testing.T, nodes []*memNode, c *Client) {
		for _, n := range nodes {
			n.set(func(n *memNode) { n.deaf, n.trackingDown = true, true })
		}
		mustAcquire(t, c, time.Hour)
		for retries, most := range map[int]time.Duration{-1: 0, 2: 2 * time.Second} {
			begin := time.Now()
			_, err := c.AcquireWith(t.Context(), "a", AcquireOptions{TTL: time.Hour, Retries: retries, RetryDelay: time.Second})
			if !errors.Is(err, ErrContended) {
				t.Error(err)
			}
			if took := time.Since(begin); took > most+time.Second || took < most/2 {
				t.Errorf("%d retries took %s", retries, took)
			}
		}
		l, err := c.AcquireWith(t.Context(), "b", AcquireOptions{TTL: time.Hour, Fenced: true})
		if err != nil || l.FencingToken() == 0 {
			t.Errorf("not fenced: %v", err)
		}
	})
}

// TestReleaseTellsOfALoss: who releases a lock that was lost before learns it.
func TestReleaseTellsOfALoss(t *testing.T) {
	take := func(n *memNode) { n.keys["a"] = memCopy{"another", time.Now().Add(time.Hour)} }
	for name, x := range map[string]struct {
		before func(nodes []*memNode, c *Client)
		want   []error // none: the release succeeds
	}{
		"held":                 {func([]*memNode, *Client) {}, nil},
		"a minority forgot it": {func(nodes []*memNode, _ *Client) { nodes[0].forget(); nodes[3].forget() }, nil},
		"a majority forgot it": {func(nodes []*memNode, _ *Client) { nodes[0].forget(); nodes[1].forget(); nodes[2].forget() }, []error{ErrLost, ErrNotHeld}},
		"all forgot it": {func(nodes []*memNode, _ *Client) {
			for _, n := range nodes {
				n.forget()
			}
		}, []error{ErrLost, ErrNotHeld}},
		"another has a majority": {func(nodes []*memNode, _ *Client) {
			for _, n := range nodes[:3] {
				n.set(take)
			}
		}, []error{ErrLost, ErrNotHeld}},
		"it has ended":              {func([]*memNode, *Client) { time.Sleep(11 * time.Second) }, []error{ErrLost, ErrNotHeld}},
		"it has ended, copies live": {func([]*memNode, *Client) { time.Sleep(9950 * time.Millisecond) }, nil},
		"it has ended, no node tells": {func(nodes []*memNode, _ *Client) {
			for _, n := range nodes[:3] {
				n.hang()
			}
			time.Sleep(11 * time.Second)
		}, []error{ErrLost, ErrExpired, ErrNoQuorum}},
	} {
		t.Run(name, func(t *testing.T) {
			inMemory(t, 5, func(t *testing.T, nodes []*memNode, c *Client) {
				l := mustAcquire(t, c, 10*time.Second)
				synctest.Wait()
				x.before(nodes, c)
				_, err := l.Release(t.Context())
				if x.want == nil && err != nil {
					t.Error(err)
				}
				for _, want := range x.want {
					if !errors.Is(err, want) {
						t.Errorf("%v is not %v", err, want)
					}
				}
				if _, err := l.Release(t.Context()); errors.Is(err, ErrLost) {
					t.Errorf("released twice: %v", err)
				}
			})
		})
	}
}

// TestDo: the work runs under the lock, which is kept meanwhile and released then.
func TestDo(t *testing.T) {
	inMemory(t, 3, func(t *testing.T, nodes []*memNode, c *Client) {
		failure := errors.New("the work failed")
		opt := AcquireOptions{TTL: 10 * time.Second}
		err := c.Do(t.Context(), "a", opt, func(ctx context.Context, l *Lock) error {
			time.Sleep(time.Minute)
			if ctx.Err() != nil || !l.Valid(time.Now()) {
				t.Error("not kept")
			}
			if err := c.Do(ctx, "a", AcquireOptions{TTL: time.Second, Retries: -1}, func(context.Context, *Lock) error { panic("two holders") }); !errors.Is(err, ErrContended) {
				t.Error(err)
			}
			return failure
		})
		synctest.Wait()
		if !errors.Is(err, failure) || errors.Is(err, ErrLost) || nodes[0].live() > 0 {
			t.Errorf("%v, %d copies are left", err, nodes[0].live())
		}
		err = c.Do(t.Context(), "a", opt, func(ctx context.Context, l *Lock) error {
			for _, n := range nodes {
				n.forget()
			}
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), ErrLost) {
				t.Error(context.Cause(ctx))
			}
			return nil
		})
		if !errors.Is(err, ErrLost) {
			t.Errorf("lost meanwhile: %v", err)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			_ = c.Do(t.Context(), "a", opt, func(context.Context, *Lock) error { panic("in the work") })
		}()
		synctest.Wait()
		if nodes[0].live() > 0 {
			t.Error("not released after a panic")
		}
	})
}
