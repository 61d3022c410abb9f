package redlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
	"redlockctl/server/lockform"
)

// TestConnectionsAreNamed: those of the lock client and plain ones, also for a user
// who has no CLIENT, without a command beyond the greeting.
func TestConnectionsAreNamed(t *testing.T) {
	s := labtest.Servers(t, 1)[0]
	admin := redlock.Connect(s.Node(), 1, time.Second)
	defer admin.Close()
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "app", "on", ">secret", "~*", "+@all", "-client").Err(); err != nil {
		t.Fatal(err)
	}
	plain, err := redlock.NewNode("n1", &redis.Options{Addr: s.Addr(), Username: "app", Password: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	node := plain.Named("redlockctl:run:a b\x1b@host:1" + strings.Repeat("x", 200))
	c, err := redlock.New([]*redlock.Node{node}, redlock.Options{Owner: "ann@web-7:4711"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l, err := c.Acquire(t.Context(), "job", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	other := redlock.Connect(node, 1, time.Second)
	defer other.Close()
	if err := other.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	list := admin.ClientList(t.Context()).Val()
	if n := strings.Count(list, "name=redlockctl:run:a-b-@host:1xx"); n != 2 {
		t.Errorf("%d connections are named; want 2:\n%s", n, list)
	}
	if stat := admin.Info(t.Context(), "commandstats").Val(); strings.Contains(stat, "client|setname") {
		t.Error("the name has cost a command")
	}
	token := admin.Get(t.Context(), "job").Val()
	if token != l.Token() || len(token) > 64 {
		t.Errorf("token %q", token)
	}
	if f := lockform.Recognize("job", "string", token, int64(len(token)), time.Now()); f == nil || f.Library != "redlockctl" || f.Owner.Raw() != "ann@web-7:4711" {
		t.Errorf("the owner of %q is not recognised: %+v", token, f)
	}
	if _, err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestOwnerIsPlain: what would not fit a token is refused.
func TestOwnerIsPlain(t *testing.T) {
	n, _ := redlock.NewNode("n1", &redis.Options{Addr: "127.0.0.1:1"})
	for _, owner := range []string{"a b", "a\x1b", "é", strings.Repeat("x", redlock.MostOwner+1)} {
		if _, err := redlock.New([]*redlock.Node{n}, redlock.Options{Owner: owner}); err == nil {
			t.Errorf("%q is accepted", owner)
		}
	}
}
