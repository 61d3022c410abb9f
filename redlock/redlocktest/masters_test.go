package redlocktest_test

import (
	"errors"
	"testing"
	"time"

	"redlockctl/redlock"
	"redlockctl/redlock/redlocktest"
)

// steady are options for a machine on which a test has to wait for its turn.
var steady = redlock.Options{NodeTimeout: time.Second, Retries: -1}

func TestMasters(t *testing.T) {
	m := redlocktest.Start(t, 3)
	one, two := m.Client(t, steady), m.Client(t, steady)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := one.Acquire(ctx, "job", time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := two.Acquire(ctx, "job", time.Minute); !errors.Is(err, redlock.ErrContended) {
		t.Fatalf("held by another, and %v", err)
	}
	m.Pass(time.Minute)
	if _, err := two.Acquire(ctx, "job", time.Minute); err != nil {
		t.Fatalf("its time has passed, and %v", err)
	}
	must(m.Crash(0))
	must(m.Crash(1))
	if _, err := one.Acquire(ctx, "other", time.Minute); !errors.Is(err, redlock.ErrNoQuorum) {
		t.Fatalf("two are down, and %v", err)
	}
	must(m.Restart(0))
	if _, err := one.Acquire(ctx, "other", time.Minute); !errors.Is(err, redlock.ErrNoQuorum) {
		t.Fatalf("one is fenced, and %v", err)
	}
	must(m.Rejoin(0))
	acquired := func() error { // a client does not ask a node that failed for a while
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			l, err := one.Acquire(ctx, "other", time.Minute)
			if err == nil {
				_, err = l.Release(ctx)
				return err
			} else if time.Now().After(end) {
				return err
			}
		}
	}
	must(acquired())
	must(m.Hang(2))
	if _, err := one.Acquire(ctx, "third", time.Minute); !errors.Is(err, redlock.ErrNoQuorum) {
		t.Fatalf("one hangs, and %v", err)
	}
	must(m.Resume(2))
	must(acquired())
}
