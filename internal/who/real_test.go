package who_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab/labtest"
	"redlockctl/internal/who"
	"redlockctl/redlock"
)

const extendScript = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0`

// TestPoolsOnRealServers: six applications of go-redis pools, each with locks of its
// own; the one that extends the lock is named, and is gone when it has ended.
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
	opt := who.Options{Key: "job", For: 20 * time.Second, Timeout: 2 * time.Second}
	got, err := who.Observe(ctx, nodes, opt)
	if err != nil {
		t.Fatal(err)
	}
	if got.Method != who.Inferred || got.Group.Name != "app2" || got.Events < who.LeastEvents || got.Life != who.Alive || len(got.Conns) < 3 || got.Conns[0].Find == "" {
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

// TestToldByItsToken: at once, with the connections of the process.
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
	begun := time.Now()
	got, err := who.Observe(t.Context(), labtest.Nodes(servers), who.Options{Key: "job", For: 20 * time.Second, Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if got.Method != who.Told || got.Owner.Raw() != "ann@web-7:4711" || len(got.Conns) != 3 {
		t.Errorf("%+v", got)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it took %s to read a token", took)
	}
}
