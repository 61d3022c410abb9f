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

// Whatever a caller does wrong, he gets a typed error at once; nothing panics, and nothing
// keeps Close from returning.
func TestMisuse(t *testing.T) {
	servers := labtest.Servers(t, 3)
	c, err := redlock.New(labtest.Nodes(servers), redlock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, s := t.Context(), time.Second
	lock, err := c.Acquire(ctx, "kept", 10*s)
	if err != nil {
		t.Fatal(err)
	}
	keeper, err := lock.Keep(redlock.KeepOptions{})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("n", redlock.MostName+1)
	var noContext context.Context
	var noLock *redlock.Lock
	var noClient *redlock.Client
	work := func(context.Context, *redlock.Lock) error { return nil }
	second := func(_ any, err error) error { return err }
	for name, misuse := range map[string]func() error{
		"acquire without a context":       func() error { return second(c.Acquire(noContext, "a", s)) },
		"try without a context":           func() error { return second(c.TryAcquire(noContext, "a", s)) },
		"fenced without a context":        func() error { return second(c.AcquireFenced(noContext, "a", s)) },
		"extend without a context":        func() error { return second(c.Extend(noContext, "a", "t", s)) },
		"release without a context":       func() error { return second(c.Release(noContext, "a", "t")) },
		"inspect without a context":       func() error { return second(c.Inspect(noContext, "a")) },
		"revoke without a context":        func() error { return second(c.Revoke(noContext, "a", "t", s)) },
		"force-release without a context": func() error { return second(c.ForceRelease(noContext, "a", "t")) },
		"do without a context":            func() error { return c.Do(noContext, "a", redlock.AcquireOptions{TTL: s}, work) },
		"do without work":                 func() error { return c.Do(ctx, "a", redlock.AcquireOptions{TTL: s}, nil) },
		"do all without work":             func() error { return c.DoAll(ctx, []string{"a"}, redlock.AcquireOptions{TTL: s}, nil) },
		"do all of nothing":               func() error { return c.DoAll(ctx, nil, redlock.AcquireOptions{TTL: s}, nil) },
		"an empty name":                   func() error { return second(c.Acquire(ctx, "", s)) },
		"a name that is too long":         func() error { return second(c.Acquire(ctx, long, s)) },
		"a name of 20 MiB":                func() error { return second(c.Acquire(ctx, strings.Repeat("n", 20<<20), s)) },
		"one of several names is too long": func() error {
			return c.DoAll(ctx, []string{"a", long}, redlock.AcquireOptions{TTL: s}, func(context.Context, []*redlock.Lock) error { return nil })
		},
		"no TTL":                       func() error { return second(c.Acquire(ctx, "a", 0)) },
		"a negative TTL":               func() error { return second(c.Acquire(ctx, "a", -1)) },
		"a TTL without validity":       func() error { return second(c.Acquire(ctx, "a", time.Millisecond)) },
		"a TTL beyond all bounds":      func() error { return second(c.Acquire(ctx, "a", 1<<62)) },
		"an empty token":               func() error { return second(c.Release(ctx, "a", "")) },
		"keep with TTL −1":             func() error { return second(lock.Keep(redlock.KeepOptions{TTL: -1})) },
		"keep with TTL 1ms":            func() error { return second(lock.Keep(redlock.KeepOptions{TTL: time.Millisecond})) },
		"keep every −1":                func() error { return second(lock.Keep(redlock.KeepOptions{Every: -1})) },
		"keep for −1 extensions":       func() error { return second(lock.Keep(redlock.KeepOptions{MaxExtensions: -1})) },
		"a second keeper":              func() error { return second(lock.Keep(redlock.KeepOptions{})) },
		"extend a zero lock":           func() error { return new(redlock.Lock).Extend(ctx, s) },
		"release a zero lock":          func() error { return second(new(redlock.Lock).Release(ctx)) },
		"keep a zero lock":             func() error { return second(new(redlock.Lock).Keep(redlock.KeepOptions{})) },
		"extend no lock":               func() error { return noLock.Extend(ctx, s) },
		"release no lock":              func() error { return second(noLock.Release(ctx)) },
		"keep no lock":                 func() error { return second(noLock.Keep(redlock.KeepOptions{})) },
		"release the lock, no context": func() error { return second(lock.Release(noContext)) },
		"a zero client":                func() error { return second(new(redlock.Client).Acquire(ctx, "a", s)) },
		"a zero client releases":       func() error { return second(new(redlock.Client).Release(ctx, "a", "t")) },
		"a zero client inspects":       func() error { return second(new(redlock.Client).Inspect(ctx, "a")) },
		"no client":                    func() error { return second(noClient.Acquire(ctx, "a", s)) },
		"no client extends":            func() error { return second(noClient.Extend(ctx, "a", "t", s)) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("a panic: %v", p)
				}
			}()
			if err := misuse(); !errors.Is(err, redlock.ErrInvalid) || len(err.Error()) > 1000 {
				t.Errorf("%.200v", err)
			}
		})
	}
	if noLock.Valid(time.Now()) || new(redlock.Lock).Valid(time.Now()) || noClient.Close() != nil || new(redlock.Client).Close() != nil {
		t.Error("something of nothing is valid, or cannot be closed")
	}
	// The misuse has cost the lock nothing; a release tells its keeper at once.
	if keeper.State() != redlock.Held {
		t.Errorf("%s: %v", keeper.State(), keeper.Err())
	}
	if _, err := lock.Release(ctx); err != nil {
		t.Error(err)
	}
	if got := keeper.State(); got != redlock.Released {
		t.Errorf("the keeper of a released lock says %s", got)
	}
	closed := make(chan error, 1)
	go func() { closed <- c.Close() }()
	select {
	case <-closed:
	case <-time.After(30 * time.Second):
		t.Fatal("Close hangs")
	}
	if _, err := c.Acquire(ctx, "a", s); !errors.Is(err, redlock.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// A keeper's callback may do anything with the keeper and the client.
func TestACallbackMayStopItsKeeper(t *testing.T) {
	servers := labtest.Servers(t, 3)
	c, err := redlock.New(labtest.Nodes(servers), redlock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lock, err := c.Acquire(t.Context(), "a", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	kept := make(chan *redlock.Keeper, 1)
	k, err := lock.Keep(redlock.KeepOptions{Repaired: func([]string) {
		(<-kept).Stop()
		_ = c.Close()
		close(done)
	}})
	if err != nil {
		t.Fatal(err)
	}
	kept <- k
	if err := servers[2].Kill(); err != nil { // its copy is put back when it serves again
		t.Fatal(err)
	}
	if err := servers[2].Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-done:
	case <-time.After(60 * time.Second):
		t.Fatal("the callback hangs")
	}
}
