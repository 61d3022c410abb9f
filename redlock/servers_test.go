package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
)

// TestOneServerByTwoAddresses: a server that is reached by two addresses has one
// vote. Of two the second is refused, and said to be the first; when its address
// leads to a server of its own, it is a node like any other.
func TestOneServerByTwoAddresses(t *testing.T) {
	servers := labtest.Servers(t, 3)
	nodes := labtest.Nodes(servers)
	twice, err := redlock.NewNode("again", &redis.Options{Addr: servers[0].Addr()})
	if err != nil {
		t.Fatal(err)
	}
	c, err := redlock.New([]*redlock.Node{nodes[0], nodes[1], twice}, patient())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l, err := c.Acquire(t.Context(), "a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Extend(t.Context(), 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	// The one that both addresses lead to is left alone: it is no quorum.
	if err := servers[1].Kill(); err != nil {
		t.Fatal(err)
	}
	if err := l.Extend(t.Context(), 3*time.Minute); !errors.Is(err, redlock.ErrNoQuorum) || !strings.Contains(err.Error(), "the same server as") {
		t.Errorf("extended by one server of two voices: %v", err)
	}
}

// TestReadOnlyNodeIsDialledAnew: a name may lead elsewhere after a failover, so
// that a node that has become a replica is not asked again over the old connection.
func TestReadOnlyNodeIsDialledAnew(t *testing.T) {
	servers := labtest.Servers(t, 2)
	var to atomic.Int32
	moving, err := redlock.NewNode("moving", &redis.Options{Addr: "by its name", Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, servers[to.Load()].Addr())
	}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := redlock.New([]*redlock.Node{moving}, patient())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	first := acquire(t, c, "a", time.Minute)
	// Nobody ends the connection to the old master.
	if _, err := servers[0].Do(t.Context(), "REPLICAOF", "127.0.0.1", "1"); err != nil {
		t.Fatal(err)
	}
	to.Store(1)
	if _, err := c.Acquire(t.Context(), "b", time.Minute); !errors.Is(err, redlock.ErrNoQuorum) || !strings.Contains(err.Error(), "READONLY") {
		t.Errorf("of a replica: %v", err)
	}
	eventually(t, "the new master is not asked", func() bool {
		_, err := c.Acquire(t.Context(), "b", time.Minute)
		return err == nil
	})
	if value(t, servers[1], "b") == "" {
		t.Error("no copy on the new master")
	}
	if _, err := first.Release(t.Context()); !errors.Is(err, redlock.ErrNotHeld) {
		t.Errorf("the new master does not know it: %v", err)
	}
}

// TestReplicaIsNotBesieged: where the name goes on leading to a replica, the node
// is skipped like any that keeps failing.
func TestReplicaIsNotBesieged(t *testing.T) {
	servers := labtest.Servers(t, 1)
	if _, err := servers[0].Do(t.Context(), "REPLICAOF", "127.0.0.1", "1"); err != nil {
		t.Fatal(err)
	}
	var dialled atomic.Int32
	node, err := redlock.NewNode("n1", &redis.Options{Addr: servers[0].Addr(), Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		dialled.Add(1)
		return new(net.Dialer).DialContext(ctx, network, addr)
	}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := redlock.New([]*redlock.Node{node}, patient())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	skipped := 0
	for range 1000 {
		_, err := c.Acquire(t.Context(), "a", time.Minute)
		if e := (*redlock.Error)(nil); errors.As(err, &e) {
			skipped += countTrue(e.Nodes, redlock.StatusSkipped)
		}
	}
	if skipped < 900 || dialled.Load() > 50 {
		t.Errorf("%d of 1000 skipped, %d connections", skipped, dialled.Load())
	}
}

// TestRefusedReleasesArePaid: a node that refuses a release for now gets it again until
// it accepts, even if its connection never broke.
func TestRefusedReleasesArePaid(t *testing.T) {
	for name, trouble := range map[string]func(t *testing.T, s *lab.Server) (end func()){
		"busy": func(t *testing.T, s *lab.Server) func() {
			if _, err := s.Do(t.Context(), "CONFIG", "SET", "lua-time-limit", "1"); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = s.Do(context.Background(), "EVAL", "while true do end", "0")
			}()
			eventually(t, "not busy", func() bool {
				_, err := s.Do(t.Context(), "GET", "a")
				return err != nil && strings.HasPrefix(err.Error(), "BUSY")
			})
			return func() {
				eventually(t, "still busy", func() bool {
					_, _ = s.Do(t.Context(), "SCRIPT", "KILL")
					select {
					case <-ended:
						return true
					default:
						return false
					}
				})
			}
		},
		"cannot save": func(t *testing.T, s *lab.Server) func() {
			gone := t.TempDir() + "/gone"
			if err := os.Mkdir(gone, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, set := range [][]any{{"dir", gone}, {"save", "3600 1"}} {
				if _, err := s.Do(t.Context(), append([]any{"CONFIG", "SET"}, set...)...); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Remove(gone); err != nil {
				t.Fatal(err)
			}
			_, _ = s.Do(t.Context(), "BGSAVE")
			eventually(t, "it can save", func() bool {
				_, err := s.Do(t.Context(), "SET", "probe", "x")
				return err != nil && strings.HasPrefix(err.Error(), "MISCONF")
			})
			return func() {
				if _, err := s.Do(t.Context(), "CONFIG", "SET", "save", ""); err != nil {
					t.Fatal(err)
				}
			}
		},
		"fenced": func(t *testing.T, s *lab.Server) func() {
			set := func(n string) {
				if _, err := s.Do(t.Context(), "CONFIG", "SET", "min-replicas-to-write", n); err != nil {
					t.Fatal(err)
				}
			}
			set("2147483646")
			return func() { set("0") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			servers := labtest.Servers(t, 3, "--enable-protected-configs", "yes")
			c := open(t, servers, patient())
			locks := make([]*redlock.Lock, 50)
			for i := range locks {
				locks[i] = acquire(t, c, fmt.Sprint("job:", i), time.Hour)
			}
			eventually(t, "no copies there", func() bool {
				n, err := servers[0].Do(t.Context(), "DBSIZE")
				return err == nil && n == int64(len(locks))
			})
			end := trouble(t, servers[0])
			for _, l := range locks {
				if _, err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
			// What the node says meanwhile is said to whom it concerns.
			if _, err := c.Release(t.Context(), "other", "token"); !errors.Is(err, redlock.ErrNotHeld) {
				t.Error(err)
			}
			end()
			eventually(t, "copies are left", func() bool {
				keys, err := servers[0].Do(t.Context(), "KEYS", "job:*")
				return err == nil && len(keys.([]any)) == 0
			})
		})
	}
}
