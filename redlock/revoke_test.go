package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
)

// everywhere waits for the copies that the grant did not wait for.
func everywhere(t *testing.T, c *redlock.Client, l *redlock.Lock) {
	t.Helper()
	eventually(t, "a copy does not come", func() bool {
		seen, err := c.Inspect(context.Background(), l.Resource())
		return err == nil && countTrue(seen, redlock.StatusHeld) == len(seen)
	})
}

func TestRevoke(t *testing.T) {
	servers := labtest.Servers(t, 5)
	holder, other := open(t, servers, patient()), open(t, servers, patient())
	l := acquire(t, holder, "a", 2*time.Second)
	everywhere(t, other, l)
	results, err := other.Revoke(t.Context(), "a", l.Token(), time.Minute)
	if err != nil || countTrue(results, redlock.StatusOK) != 5 {
		t.Fatalf("%s, %v", statuses(results), err)
	}
	// The holder keeps what it was promised, and gets no more.
	if !l.Valid(time.Now()) {
		t.Error("the validity was cut short")
	}
	if err := l.Extend(t.Context(), 20*time.Second); !errors.Is(err, redlock.ErrNotHeld) {
		t.Errorf("extended: %v", err)
	}
	// No other client gets the lock before the TTL ends; then any may.
	if _, err := other.TryAcquire(t.Context(), "a", time.Second); !errors.Is(err, redlock.ErrContended) {
		t.Errorf("acquired: %v", err)
	}
	seen, err := other.Inspect(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range seen {
		if !redlock.IsTombstone(r.Token) || r.TTL <= 0 || r.TTL > 2*time.Second {
			t.Errorf("%s: %q for %s", r.Node, r.Token, r.TTL)
		}
	}
	eventually(t, "the name never becomes free", func() bool {
		l, err := other.TryAcquire(context.Background(), "a", time.Minute)
		if err == nil {
			_, err = l.Release(context.Background())
		}
		return err == nil
	})
	if left := time.Until(l.Until()); left > 0 {
		t.Errorf("another got in %s before the validity ended", left)
	}
	// A token that holds nothing, and one that is not meant.
	if _, err := other.Revoke(t.Context(), "a", l.Token(), time.Minute); !errors.Is(err, redlock.ErrNotHeld) {
		t.Errorf("revoked again: %v", err)
	}
}

func TestRevokeGivesAnEndToCopiesWithoutOne(t *testing.T) {
	servers := labtest.Servers(t, 3)
	c := open(t, servers, patient())
	for _, s := range servers {
		if _, err := s.Do(t.Context(), "SET", "a", "for ever"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Revoke(t.Context(), "a", "for ever", time.Minute); err != nil {
		t.Fatal(err)
	}
	seen, err := c.Inspect(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range seen {
		if r.TTL <= 0 || r.TTL > time.Minute {
			t.Errorf("%s: %s", r.Node, r.TTL)
		}
	}
	for _, atMost := range []time.Duration{0, -1, time.Microsecond} {
		if _, err := c.Revoke(t.Context(), "a", "for ever", atMost); !errors.Is(err, redlock.ErrInvalid) {
			t.Errorf("%s: %v", atMost, err)
		}
	}
}

// No grant has a TTL above ten years: a tombstone with the rest of one would stand for ever.
func TestRevokeGivesAnEndToCopiesThatEndInTenYears(t *testing.T) {
	servers := labtest.Servers(t, 3)
	c := open(t, servers, patient())
	const most, year = 10 * 365 * 24 * time.Hour / time.Millisecond, 365 * 24 * time.Hour
	for name, ms := range map[string]int64{"the longest of a grant": int64(most), "above it": int64(most) + 60_000, "near 2⁶³": 9_223_370_000_000_000_000} {
		for _, s := range servers {
			if _, err := s.Do(t.Context(), "SET", name, "x", "PX", ms); err != nil {
				t.Fatal(err)
			}
		}
		before, err := c.Inspect(t.Context(), name)
		if err != nil || before[0].TTL < 9*year {
			t.Fatalf("%s: a TTL of %d ms is read as %s, %v", name, ms, before[0].TTL, err)
		}
		if _, err := c.Revoke(t.Context(), name, "x", time.Minute); err != nil {
			t.Fatal(err)
		}
		seen, err := c.Inspect(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range seen {
			if stays := r.TTL > time.Minute; stays != (ms == int64(most)) || r.TTL <= 0 {
				t.Errorf("%s: the tombstone on %s ends in %s", name, r.Node, r.TTL)
			}
		}
	}
}

func TestForceReleaseComparesTheToken(t *testing.T) {
	servers := labtest.Servers(t, 5)
	c := open(t, servers, patient())
	l := acquire(t, c, "a", time.Minute)
	everywhere(t, c, l)
	if results, err := c.ForceRelease(t.Context(), "a", "another"); !errors.Is(err, redlock.ErrNotHeld) || countTrue(results, redlock.StatusHeld) != 5 {
		t.Fatalf("%s, %v", statuses(results), err)
	}
	if results, err := c.ForceRelease(t.Context(), "a", l.Token()); err != nil || countTrue(results, redlock.StatusOK) != 5 {
		t.Fatalf("%s, %v", statuses(results), err)
	}
}

func TestForceReleaseHash(t *testing.T) {
	servers := labtest.Servers(t, 3)
	c := open(t, servers, patient())
	const holder = "8743c9c0-0795-4907-87fd-6c719a6b4586:1"
	put := func(cmd ...any) {
		t.Helper()
		for _, s := range servers {
			if _, err := s.Do(t.Context(), cmd...); err != nil {
				t.Fatal(err)
			}
		}
	}
	put("HSET", "plain", holder, "1")
	heard := redlock.Connect(servers[0].Node(), 1, time.Second)
	defer heard.Close()
	waiter := heard.Subscribe(t.Context(), "redisson_lock__channel:{plain}")
	defer waiter.Close()
	if _, err := waiter.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ForceReleaseHash(t.Context(), "plain", "somebody else:1", "redisson_lock__channel:{plain}"); !errors.Is(err, redlock.ErrNotHeld) {
		t.Errorf("by another holder: %v", err)
	}
	if results, err := c.ForceReleaseHash(t.Context(), "plain", holder, "redisson_lock__channel:{plain}"); err != nil || countTrue(results, redlock.StatusOK) != 3 {
		t.Errorf("%s, %v", statuses(results), err)
	}
	select {
	case m := <-waiter.Channel():
		if m.Payload != "0" {
			t.Errorf("waiters were told %q", m.Payload)
		}
	case <-time.After(5 * time.Second):
		t.Error("waiters were not told")
	}

	put("HSET", "rw", "mode", "read", holder, "1")
	// Its reader is a field beside the mode: not the only one, so it stays.
	if _, err := c.ForceReleaseHash(t.Context(), "rw", holder, "c"); !errors.Is(err, redlock.ErrNotHeld) {
		t.Errorf("the reader of a read-write lock: %v", err)
	}
	if v, err := servers[0].Do(t.Context(), "EXISTS", "rw"); err != nil || v != int64(1) {
		t.Errorf("%v, %v", v, err)
	}
}
