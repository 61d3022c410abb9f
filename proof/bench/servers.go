package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab"
	"redlockctl/redlock"
	"redlockctl/server/serverinfo"
)

// each does something on all servers at once.
func each(servers lab.Servers, do func(i int, c *redis.Client) error) error {
	errs := make([]error, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() {
			c := redlock.Connect(s.Node(), 1, time.Minute)
			defer c.Close()
			errs[i] = do(i, c)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// command sends one to all servers at once.
func command(ctx context.Context, servers lab.Servers, args ...any) error {
	return each(servers, func(_ int, c *redis.Client) error { return c.Do(ctx, args...).Err() })
}

// fill sets so many locks and other keys on each server.
func fill(servers lab.Servers, locks, others int) error {
	return errors.Join(fillWith(servers, "app", others), fillWith(servers, "lock", locks))
}

// fillWith sets n keys with this beginning on each server.
func fillWith(servers lab.Servers, name string, n int) error {
	const script = `local name = ARGV[3]
for i = ARGV[1], ARGV[2] do
  if name == 'app' then redis.call('SET', string.format('app:%08d', i), 'x')
  else redis.call('SET', string.format('%s:%08d', name, i), string.format('token%019d', i), 'PX', 7200000) end
end`
	return each(servers, func(_ int, c *redis.Client) error {
		for from := 1; from <= n; from += 50_000 {
			if err := c.Eval(context.Background(), script, nil, from, min(n, from+49_999), name).Err(); err != nil && !errors.Is(err, redis.Nil) {
				return err
			}
		}
		return nil
	})
}

// leftOver counts the keys on all servers.
func leftOver(servers lab.Servers) float64 {
	sizes := make([]int64, len(servers))
	_ = each(servers, func(i int, c *redis.Client) error { sizes[i] = c.DBSize(context.Background()).Val(); return nil })
	sum := int64(0)
	for _, n := range sizes {
		sum += n
	}
	return float64(sum)
}

// serversCPU is the processor time that all servers have used, in seconds.
func serversCPU(servers lab.Servers) (sum float64, err error) {
	used := make([]float64, len(servers))
	err = each(servers, func(i int, c *redis.Client) error {
		info, err := c.Info(context.Background(), "cpu").Result()
		for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
			v, _ := strconv.ParseFloat(serverinfo.Field(info, name), 64)
			used[i] += v
		}
		return err
	})
	for _, v := range used {
		sum += v
	}
	return sum, err
}

// quiet waits until the servers count none of our commands as their clients' any more:
// the console reads a node that has clients at work with pauses.
func quiet(servers lab.Servers) error {
	return each(servers, func(_ int, c *redis.Client) error {
		for {
			info, err := c.Info(context.Background(), "stats").Result()
			if ops, ok := serverinfo.Number(info, "instantaneous_ops_per_sec"); err != nil || ok && ops < 50 {
				return err
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// redisVersion is what the servers call their version.
func redisVersion(servers lab.Servers) string {
	info, _ := servers[0].Do(context.Background(), "INFO", "server")
	if v := serverinfo.Field(fmt.Sprint(info), "valkey_version"); v != "" {
		return "Valkey " + v
	}
	return serverinfo.Field(fmt.Sprint(info), "redis_version")
}
