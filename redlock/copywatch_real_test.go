package redlock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
)

// A keeper learns of lost copies at once, and not from its next extension.
func TestAKeeperIsToldOfALossAtOnce(t *testing.T) {
	servers := labtest.Servers(t, 5)
	c := open(t, servers, patient())
	for name, take := range map[string]func(key string){
		"deleted": func(key string) {
			for _, s := range servers[:3] {
				if _, err := s.Do(t.Context(), "DEL", key); err != nil {
					t.Fatal(err)
				}
			}
		},
		"taken": func(key string) {
			for _, s := range servers[:3] {
				if _, err := s.Do(t.Context(), "SET", key, "another", "PX", "60000"); err != nil {
					t.Fatal(err)
				}
			}
		},
		"flushed": func(string) {
			for _, s := range servers[:3] {
				if _, err := s.Do(t.Context(), "FLUSHALL"); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		l := acquire(t, c, name, time.Minute)
		k, err := l.Keep(redlock.KeepOptions{})
		if err != nil {
			t.Fatal(err)
		}
		everywhere(t, c, l)
		eventually(t, "the copies are not listened to", func() bool { return redlock.Listened(k) == 5 })
		began := time.Now()
		take(name)
		select {
		case <-k.Context().Done():
			t.Logf("%s: told after %s", name, time.Since(began))
		case <-time.After(10 * time.Second): // the next extension is due in 16 s at the earliest
			t.Errorf("%s: not told", name)
		}
		if !errors.Is(context.Cause(k.Context()), redlock.ErrLost) {
			t.Errorf("%s: %v", name, context.Cause(k.Context()))
		}
		_, _ = k.Release(t.Context())
	}
}

// Callers that name several locks in different orders do not wait for each other for ever,
// get all of them or none, and never hold one at the same time.
func TestDoAllHasOneOrder(t *testing.T) {
	servers := labtest.Servers(t, 3)
	var clients []*redlock.Client
	for range 3 {
		clients = append(clients, open(t, servers, patient()))
	}
	names := []string{"a", "b", "c"}
	var mu sync.Mutex
	inside, done := 0, 0
	var wg sync.WaitGroup
	for i, c := range clients {
		for j := range 3 {
			wg.Go(func() {
				order := slices.Clone(names)
				for range i + j {
					order = append(order[1:], order[0])
				}
				opt := redlock.AcquireOptions{TTL: 10 * time.Second, Retries: redlock.UntilContextEnds}
				err := c.DoAll(t.Context(), order, opt, func(_ context.Context, locks []*redlock.Lock) error {
					mu.Lock()
					inside++
					if inside > 1 {
						t.Error("two inside")
					}
					for i, l := range locks {
						if l.Resource() != order[i] || !l.Valid(time.Now()) {
							t.Errorf("lock %d of %v is %s", i, order, l.Resource())
						}
					}
					mu.Unlock()
					time.Sleep(time.Millisecond)
					mu.Lock()
					inside--
					done++
					mu.Unlock()
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	if done != 9 {
		t.Errorf("%d were done", done)
	}
	held := acquire(t, clients[0], "b", 10*time.Second)
	err := clients[1].DoAll(t.Context(), []string{"c", "b", "a"}, redlock.AcquireOptions{TTL: 10 * time.Second, Retries: -1}, func(context.Context, []*redlock.Lock) error {
		t.Error("not all locks are there")
		return nil
	})
	var e *redlock.Error
	if !errors.As(err, &e) || e.Resource != "b" || !errors.Is(err, redlock.ErrContended) {
		t.Errorf("the error is %v", err)
	}
	if l, err := clients[0].TryAcquire(t.Context(), "a", time.Second); err != nil {
		t.Errorf("a is still held: %v", err)
	} else {
		_, _ = l.Release(t.Context())
	}
	_, _ = held.Release(t.Context())
	if err := clients[0].DoAll(t.Context(), nil, redlock.AcquireOptions{}, nil); !errors.Is(err, redlock.ErrInvalid) {
		t.Errorf("no names: %v", err)
	}
}
