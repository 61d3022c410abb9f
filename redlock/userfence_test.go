package redlock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
)

// TestUserFenceStopsEverybody: who logs in as another user than the one whom the fence stops counts no
// vote and no extension of a fenced node, and leaves nothing behind there.
func TestUserFenceStopsEverybody(t *testing.T) {
	servers := labtest.Servers(t, 3, "--user", "locks", "on", ">pw", "~*", "&*", "+@all",
		"--user", "other", "on", ">pw", "~*", "&*", "+@all", "-acl")
	as := func(user string) *redlock.Client {
		var nodes []*redlock.Node
		for _, s := range servers {
			opt := &redis.Options{Addr: s.Addr(), Username: user}
			if user != "" {
				opt.Password = "pw"
			}
			n, err := redlock.NewNode(s.Node().Name(), opt)
			if err != nil {
				t.Fatal(err)
			}
			nodes = append(nodes, n.FencedBy("locks"))
		}
		c, err := redlock.New(nodes, redlock.Options{Retries: -1, NodeTimeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	fence := func(rule string, on ...int) {
		for _, i := range on {
			if _, err := servers[i].Do(t.Context(), "ACL", "SETUSER", "locks", rule); err != nil {
				t.Fatal(err)
			}
		}
	}
	admin := as("")
	held, err := admin.Acquire(t.Context(), "held", 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	fence("-@write", 0, 1)
	if _, err := admin.Acquire(t.Context(), "k", 20*time.Second); !errors.Is(err, redlock.ErrNoQuorum) {
		t.Fatalf("acquired with two of three nodes fenced: %v", err)
	}
	for _, s := range servers {
		gone := false
		for end := time.Now().Add(5 * time.Second); !gone && time.Now().Before(end); time.Sleep(time.Millisecond) {
			n, _ := s.Do(t.Context(), "EXISTS", "k")
			gone = n == int64(0)
		}
		if !gone {
			t.Errorf("%s has a copy of a failed attempt", s.Node().Name())
		}
	}
	if _, err := admin.Extend(t.Context(), "held", held.Token(), 30*time.Second); err == nil {
		t.Error("extended with two of three nodes fenced")
	}
	fence("+@write", 0)
	lock, err := admin.Acquire(t.Context(), "k", 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if s := lock.Nodes()[1].Status; s != redlock.StatusFenced && s != redlock.StatusUnanswered {
		t.Errorf("the fenced node: %s", s)
	}
	if _, err := admin.Release(t.Context(), "k", lock.Token()); err != nil {
		t.Fatal(err)
	}
	if _, err := as("other").Acquire(t.Context(), "k", 20*time.Second); err == nil {
		t.Error("acquired by a user who cannot see whether a node is fenced")
	}
	fence("+@write", 1)
	if _, err := as("locks").Acquire(t.Context(), "k", 20*time.Second); err != nil {
		t.Errorf("the lock clients' own user: %v", err)
	}
}
