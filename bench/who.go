package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"redlockctl/internal/lab"
	"redlockctl/internal/who"
	"redlockctl/redlock"
)

// The world of the benchmark: applications of redsync with pools of go-redis.
const (
	whoApps  = 20
	whoConns = 10
	whoAsks  = 6 // locks that are asked for at the same time
)

// whoResult counts what became of the questions.
type whoResult struct {
	asked, claims, right int
	took                 []time.Duration // of claims
}

func whoBench(args []string) {
	fs := flag.NewFlagSet("who", flag.ExitOnError)
	server := fs.String("redis-server", "redis-server", "path of redis-server")
	lasts := fs.Duration("for", 90*time.Second, "how long to ask, for each kind of pool")
	_ = fs.Parse(args)
	logging.Disable()
	for _, fifo := range []bool{false, true} {
		if err := runWho(*server, fifo, *lasts); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
	}
}

// runWho asks who holds locks, again and again, and compares the answers with the truth.
func runWho(bin string, fifo bool, lasts time.Duration) error {
	servers, stop, err := start(bin, 5)
	if err != nil {
		return err
	}
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), lasts)
	defer cancel()
	var wg sync.WaitGroup
	for app := range whoApps {
		wg.Go(func() { whoApp(ctx, servers, app, fifo) })
	}
	var nodes []*redlock.Node
	for _, s := range servers {
		nodes = append(nodes, s.Node())
	}
	select {
	case <-time.After(3 * time.Second): // all hold their lock
	case <-ctx.Done():
	}
	var mu sync.Mutex
	var sum whoResult
	for range whoAsks {
		wg.Go(func() {
			for ctx.Err() == nil {
				app, begun := rand.IntN(whoApps), time.Now()
				got, err := who.Observe(ctx, nodes, who.Options{Key: fmt.Sprint("held:", app), For: 30 * time.Second, Timeout: 5 * time.Second})
				if err != nil || ctx.Err() != nil {
					if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
						fmt.Fprintln(os.Stderr, "bench:", err)
					}
					return
				}
				mu.Lock()
				sum.asked++
				if got.Method == who.Inferred {
					sum.claims++
					sum.took = append(sum.took, time.Since(begun))
					if got.Group.Name == appName(app) {
						sum.right++
					} else {
						fmt.Fprintf(os.Stderr, "wrong: %s for %s, p %.4f from %d events\n", got.Group, appName(app), got.P, got.Events)
					}
				}
				mu.Unlock()
			}
		})
	}
	<-ctx.Done()
	wg.Wait()
	calls, each := listCost(servers)
	pool := "LIFO"
	if fifo {
		pool = "FIFO"
	}
	fmt.Printf("%s pools: %d asked, %d claims, %d right, %d abstained", pool, sum.asked, sum.claims, sum.right, sum.asked-sum.claims)
	if len(sum.took) > 0 {
		var secs []float64
		for _, d := range sum.took {
			secs = append(secs, d.Seconds())
		}
		fmt.Printf("; median %.1f s to a claim", median(secs))
	}
	fmt.Printf("; CLIENT LIST %.1f/s on a node, %s µs each\n", float64(calls)/float64(len(servers))/lasts.Seconds(), each)
	return nil
}

func appName(app int) string { return fmt.Sprint("app-", app) }

// whoApp holds one lock, extends it about once a second, and takes and releases
// others, one to three in a second.
func whoApp(ctx context.Context, servers []*lab.Server, app int, fifo bool) {
	var pools []redsyncredis.Pool
	for _, s := range servers {
		c := redis.NewClient(&redis.Options{
			Addr: s.Addr(), ClientName: appName(app), PoolSize: whoConns, MinIdleConns: whoConns, PoolFIFO: fifo,
		})
		defer c.Close()
		pools = append(pools, goredis.NewPool(c))
	}
	rs := redsync.New(pools...)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		m := rs.NewMutex(fmt.Sprint("held:", app), redsync.WithExpiry(time.Minute))
		for ctx.Err() == nil && m.LockContext(ctx) != nil {
		}
		for ctx.Err() == nil {
			pause(ctx, 750*time.Millisecond, 500*time.Millisecond)
			_, _ = m.ExtendContext(ctx)
		}
	})
	for ctx.Err() == nil {
		m := rs.NewMutex(fmt.Sprint("short:", app, ":", rand.IntN(100)), redsync.WithExpiry(10*time.Second), redsync.WithTries(1))
		if m.LockContext(ctx) == nil {
			pause(ctx, 10*time.Millisecond, 100*time.Millisecond)
			_, _ = m.UnlockContext(ctx)
		}
		pause(ctx, 250*time.Millisecond, 500*time.Millisecond)
	}
}

func pause(ctx context.Context, least, more time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(least + rand.N(more)):
	}
}

// listCost is how many lists the servers have made, and how long one took.
func listCost(servers []*lab.Server) (calls int, each string) {
	stat := regexp.MustCompile(`cmdstat_client\|list:calls=(\d+),usec=\d+,usec_per_call=([\d.]+)`)
	var times []string
	for _, s := range servers {
		c := s.Node().Client(1, 5*time.Second)
		text, _ := c.Info(context.Background(), "commandstats").Result()
		_ = c.Close()
		if m := stat.FindStringSubmatch(text); m != nil {
			var n int
			_, _ = fmt.Sscan(m[1], &n)
			calls += n
			times = append(times, m[2])
		}
	}
	return calls, strings.Join(times, ", ")
}
