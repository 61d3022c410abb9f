package who_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab/labtest"
	"redlockctl/internal/who"
	"redlockctl/redlock"
)

const extendScript = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0`

// TestPoolsOnRealServers: six applications with go-redis pools, each with its own locks;
// the one that extends the lock is named, and is gone when it has ended.
func TestPoolsOnRealServers(t *testing.T) {
	servers := labtest.Servers(t, 3)
	nodes := labtest.Nodes(servers)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	holding, release := context.WithCancel(ctx)
	for app := range 6 {
		var pools []*redis.Client
		for _, s := range servers {
			c := redis.NewClient(&redis.Options{Addr: s.Addr(), ClientName: fmt.Sprint("app", app), PoolSize: 4, MinIdleConns: 4})
			defer c.Close()
			pools = append(pools, c)
		}
		key, every, life := fmt.Sprint("own:", app), time.Second, ctx
		if app == 2 {
			key, every, life = "job", 600*time.Millisecond, holding
		}
		for _, c := range pools {
			c.Set(ctx, key, fmt.Sprint("token", app), time.Minute)
		}
		wg.Go(func() {
			for life.Err() == nil {
				for _, c := range pools {
					c.Eval(ctx, extendScript, []string{key}, fmt.Sprint("token", app), 60000)
				}
				select {
				case <-life.Done():
				case <-time.After(every*3/4 + rand.N(every/2)):
				}
			}
			for _, c := range pools {
				_ = c.Close()
			}
		})
	}
	// By chance, and on a busy machine, it is not sure within twenty seconds.
	opt := who.Options{Key: "job", For: time.Minute, Timeout: 2 * time.Second}
	got, err := who.Observe(ctx, nodes, opt)
	if err != nil {
		t.Fatal(err)
	}
	if got.Method != who.Inferred || got.Group.Name != "app2" || got.Events < who.LeastProofs || got.Liveness != who.Alive || len(got.Conns) < 3 || got.Conns[0].Find == "" {
		t.Errorf("%+v", got)
	}
	time.AfterFunc(4*time.Second, release)
	opt.For = 7 * time.Second
	if got, err = who.Observe(ctx, nodes, opt); err != nil {
		t.Fatal(err)
	}
	if got.Method == who.Inferred && got.Group.Name != "app2" {
		t.Errorf("it is dead: %+v", got)
	}
}

// TestToldByItsToken: named at once, with the connections of the process. Asked again after
// the process has ended, it is gone, as quickly.
func TestToldByItsToken(t *testing.T) {
	servers := labtest.Servers(t, 3)
	var named []*redlock.Node
	for _, n := range labtest.Nodes(servers) {
		named = append(named, n.Named(who.ConnName("run", "ann@web-7:4711")))
	}
	c, err := redlock.New(named, redlock.Options{Owner: "ann@web-7:4711"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Acquire(t.Context(), "job", time.Minute); err != nil {
		t.Fatal(err)
	}
	opt := who.Options{Key: "job", For: 20 * time.Second, Timeout: 2 * time.Second}
	ask := func() {
		t.Helper()
		begun := time.Now()
		got, err := who.Observe(t.Context(), labtest.Nodes(servers), opt)
		if err != nil {
			t.Fatal(err)
		}
		if got.Method != who.Told || got.Owner.Raw() != "ann@web-7:4711" || len(got.Conns) != 3 {
			t.Errorf("%+v", got)
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("it took %s to read a token", took)
		}
		opt.Known = got
	}
	ask()
	ask()
	if opt.Known.Liveness == who.Gone {
		t.Errorf("its connections are open: %+v", opt.Known)
	}
	_ = c.Close()
	for _, s := range servers {
		awaitNone(t, s, "of the holder", func(c who.Conn) bool { return strings.HasSuffix(c.Name.Raw(), "ann@web-7:4711") })
	}
	if ask(); opt.Known.Liveness != who.Gone {
		t.Errorf("its connections are closed: %+v", opt.Known)
	}
}

// TestTrafficOfANode: the holder is seen at its first extension, among other busy
// clients; if the holder does nothing, reading ends with the TTL.
func TestTrafficOfANode(t *testing.T) {
	server := labtest.Servers(t, 1)[0]
	const key, token = "job \"1\"\n", "to\\ken\x01"
	admin := redlock.Connect(server.Node(), 2, 2*time.Second)
	defer admin.Close()
	admin.Set(t.Context(), key, token, time.Minute)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	for app := range 3 {
		c := redis.NewClient(&redis.Options{Addr: server.Addr(), ClientName: fmt.Sprint("app", app)})
		defer c.Close()
		wg.Go(func() {
			for ctx.Err() == nil {
				if app == 1 {
					c.Eval(ctx, extendScript, []string{key}, token, 60000)
				} else {
					c.Eval(ctx, extendScript, []string{key}, "another", 60000)
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	got, err := who.Monitor(ctx, server.Node(), key, true, 2*time.Second)
	if err != nil || got.Method != who.Seen || got.Group.Name != "app1" || len(got.Conns) != 1 || got.Conns[0].ID == 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if left := admin.ClientList(ctx).Val(); strings.Contains(left, "cmd=monitor") {
		t.Errorf("it goes on:\n%s", left)
	}
	admin.Set(ctx, "quiet", "nobody's", 700*time.Millisecond)
	begun := time.Now()
	if got, err = who.Monitor(ctx, server.Node(), "quiet", true, 2*time.Second); err != nil || got.Method != who.Unknown || time.Since(begun) > 3*time.Second {
		t.Errorf("after %s: %+v, %v", time.Since(begun), got, err)
	}
}

// TestEndOfTheTime: a command that a node has not answered at the deadline is not a
// failure of the node, and each node answers once, however short the time is.
func TestEndOfTheTime(t *testing.T) {
	servers := labtest.Servers(t, 3)
	var nodes []*redlock.Node
	for i, p := range labtest.Proxies(t, servers) {
		// The first list takes longer than the shortest deadline, and everything later is
		// in flight at the deadline.
		p.Delay(labtest.ToClient, 60*time.Millisecond, 60*time.Millisecond)
		nodes = append(nodes, p.Node())
		client := redis.NewClient(&redis.Options{Addr: servers[i].Addr()})
		client.Set(t.Context(), "job", "token", time.Minute)
		_ = client.Close()
	}
	for _, f := range []time.Duration{time.Millisecond, 100 * time.Millisecond, 450 * time.Millisecond} {
		got, err := who.Observe(t.Context(), nodes, who.Options{Key: "job", For: f, Timeout: 20 * time.Second})
		if err != nil || len(got.Unusable) > 0 || got.Held != 3 {
			t.Errorf("for %s: %+v, %v", f, got, err)
		}
	}
	// A node that refuses is reported with its reason, however late that arrives.
	_ = servers[1].Kill()
	got, err := who.Observe(t.Context(), nodes, who.Options{Key: "job", For: time.Millisecond, Timeout: 20 * time.Second})
	if err != nil || len(got.Unusable) != 1 || got.Unusable["n2"].Raw() == "no answer in time" || got.Held != 2 {
		t.Errorf("without n2: %+v, %v", got, err)
	}
}
