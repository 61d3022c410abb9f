package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

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

// TestAKeptLockOutlivesADrainOfEachMaster drains real masters one after the other and restarts none:
// each keeps its copy, refuses to extend it, and serves again when it has expired. With either fence
// the copy is put back there; what a person deletes stays away.
func TestAKeptLockOutlivesADrainOfEachMaster(t *testing.T) {
	for name, fence := range map[string][2][]any{
		"min-replicas": {{"CONFIG", "SET", "min-replicas-to-write", "1000"}, {"CONFIG", "SET", "min-replicas-to-write", "0"}},
		"acl":          {{"ACL", "SETUSER", "locks", "-@write"}, {"ACL", "SETUSER", "locks", "+@write"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const ttl = 3 * time.Second
			servers := labtest.Servers(t, 3, "--user", "locks", "on", ">pw", "~*", "&*", "+@all")
			do := func(s *lab.Server, command ...any) any {
				t.Helper()
				answer, err := s.Do(t.Context(), command...)
				if err != nil {
					t.Fatal(err)
				}
				return answer
			}
			var nodes []*redlock.Node
			for _, s := range servers {
				n, err := redlock.NewNode(s.Node().Name(), &redis.Options{Addr: s.Addr(), Username: "locks", Password: "pw"})
				if err != nil {
					t.Fatal(err)
				}
				nodes = append(nodes, n.FencedBy("locks"))
			}
			c, err := redlock.New(nodes, patient())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			l := acquire(t, c, "job", ttl)
			everywhere(t, c, l)
			k, err := l.Keep(redlock.KeepOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer k.Stop()
			extended := func(from time.Time) {
				t.Helper()
				eventually(t, "it is not extended", func() bool { return k.Until().After(from.Add(ttl)) })
			}
			for _, s := range servers {
				do(s, fence[0]...)
				eventually(t, "the copy does not expire", func() bool { return do(s, "EXISTS", "job") == int64(0) })
				do(s, fence[1]...)
				eventually(t, "the copy is not put back", func() bool { return value(t, s, "job") == l.Token() })
				extended(time.Now().Add(3 * time.Second)) // it counts
			}
			do(servers[0], fence[0]...)
			extended(time.Now()) // refused
			do(servers[0], fence[1]...)
			do(servers[0], "DEL", "job")
			extended(time.Now().Add(2 * ttl))
			if n := do(servers[0], "EXISTS", "job"); n != int64(0) || k.State() != redlock.Held {
				t.Errorf("%d copies where it was deleted, and the lock is %s", n, k.State())
			}
		})
	}
}
