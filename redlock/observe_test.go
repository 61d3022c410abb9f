package redlock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"redlockctl/redlock"
	"redlockctl/redlock/redlocktest"
)

// TestObserve: each operation is observed once when it begins and once when it has ended,
// with the error that its caller gets.
func TestObserve(t *testing.T) {
	type key struct{}
	var ended []string
	var errs []error
	masters := redlocktest.Start(t, 3)
	c := masters.Client(t, redlock.Options{
		NodeTimeout: time.Second, Retries: -1,
		Observe: func(ctx context.Context, op, resource string) func(error) {
			if ctx.Value(key{}) != "caller" || resource != "job" {
				t.Errorf("%s %q begins in another context", op, resource)
			}
			return func(err error) { ended, errs = append(ended, op), append(errs, err) }
		},
	})
	ctx := context.WithValue(t.Context(), key{}, "caller")
	l, err := c.Acquire(ctx, "job", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	_, contended := c.TryAcquire(ctx, "job", time.Minute)
	extended := l.Extend(ctx, time.Minute)
	_, inspected := c.Inspect(ctx, "job")
	_, revoked := c.Revoke(ctx, "job", l.Token(), time.Minute)
	_, forced := c.ForceRelease(ctx, "job", l.Token())
	_, lost := l.Release(ctx)
	_, again := c.Extend(ctx, "job", l.Token(), time.Minute)
	_, released := c.Release(ctx, "job", l.Token())
	if want := []string{"acquire", "acquire", "extend", "inspect", "revoke", "force-release", "release", "extend", "release"}; !slices.Equal(ended, want) {
		t.Fatalf("observed %q, not %q", ended, want)
	}
	if want := []error{nil, contended, extended, inspected, revoked, forced, lost, again, released}; !slices.Equal(errs, want) {
		t.Errorf("observed %v, not %v", errs, want)
	}
	if !errors.Is(contended, redlock.ErrContended) || !errors.Is(lost, redlock.ErrLost) {
		t.Errorf("%v; %v", contended, lost)
	}
}
