package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
)

// TestAKeptLockOutlivesARollingRestart restarts five real masters one by one, as
// the manual says: each comes back fenced, rejoins after D, and the next one waits
// until kept locks have their copy back. The lock is never lost, and nobody else
// gets it meanwhile.
func TestAKeptLockOutlivesARollingRestart(t *testing.T) {
	const ttl, d = 6 * time.Second, 6*time.Second*101/100 + 50*time.Millisecond
	servers := labtest.Servers(t, 5, lab.BootFence...)
	open1 := func(s *lab.Server) {
		t.Helper()
		if _, err := s.Do(t.Context(), "CONFIG", "SET", "min-replicas-to-write", "0"); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range servers {
		open1(s)
	}
	c, rival := open(t, servers, patient()), open(t, servers, patient())
	l := acquire(t, c, "job", ttl)
	everywhere(t, c, l)
	told := make(chan []string, 100)
	k, err := l.Keep(redlock.KeepOptions{Repaired: func(nodes []string) { told <- nodes }})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Stop()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if _, err := rival.TryAcquire(ctx, "job", ttl); err == nil && k.State() != redlock.Lost {
				t.Error("two holders")
				return
			} else if err != nil && !errors.Is(err, redlock.ErrContended) && !errors.Is(err, redlock.ErrNoQuorum) && ctx.Err() == nil {
				t.Logf("the rival: %v", err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	defer func() { cancel(); <-ended }()
	for _, s := range servers {
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := s.Start(lab.BootFence...); err != nil {
			t.Fatal(err)
		}
		time.Sleep(d)
		open1(s)
		select {
		case <-told:
		case <-k.Context().Done():
			t.Fatalf("%s restarted: %v", s.Addr(), k.Err())
		case <-time.After(time.Minute):
			t.Fatalf("%s restarted, and its copy is not put back: %s, %v", s.Addr(), k.State(), k.Err())
		}
		time.Sleep(ttl) // as the manual says
	}
	if k.State() == redlock.Lost {
		t.Fatal(k.Err())
	}
	cancel()
	<-ended
	if _, err := k.Release(t.Context()); err != nil {
		t.Error(err)
	}
	settled(t, servers)
}
