package main

import (
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab"
	"redlockctl/internal/who"
)

// The world of the benchmark: applications in processes of their own, a third of each
// library.
const (
	whoApps  = 20
	whoConns = 10
)

// whoPools are the ways to choose a connection: the last that became free, the one that
// is free for longest, or the only one.
var whoPools = []string{"lifo", "fifo", "single"}

//go:embed whoapps
var whoScripts embed.FS

// whoResult counts the outcomes of the questions.
type whoResult struct {
	asked, claims, right int
	took                 []time.Duration // of claims
}

// whoWorld is how the benchmark is run.
type whoWorld struct {
	server, modules string // redis-server; node_modules of ioredis and redlock5
	lasts           time.Duration
	asks            int // at the same time
}

func whoBench(args []string) error {
	fs := flag.NewFlagSet("who", flag.ExitOnError)
	var w whoWorld
	fs.StringVar(&w.server, "redis-server", "redis-server", "path of redis-server")
	fs.StringVar(&w.modules, "node", "", "directory that ./scripts/node-libraries has filled: also applications of node-redlock and redis-py (python3-redis of Debian)")
	fs.DurationVar(&w.lasts, "for", 90*time.Second, "how long to ask, for each kind of pool")
	fs.IntVar(&w.asks, "asks", 6, "questions at the same time")
	pools := fs.String("pools", strings.Join(whoPools, ","), "kinds of pools, with commas")
	_ = fs.Parse(args)
	for pool := range strings.SplitSeq(*pools, ",") {
		if err := w.run(pool); err != nil {
			return err
		}
	}
	return nil
}

// run asks who holds locks, again and again, and compares the answers with the truth.
func (w whoWorld) run(pool string) error {
	servers, err := lab.StartServers(w.server, 5)
	if err != nil {
		return err
	}
	defer servers.Close()
	dir, err := os.MkdirTemp("", "redlockctl-who-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(dir, whoScripts); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), w.lasts)
	defer cancel()
	var apps sync.WaitGroup
	defer apps.Wait()
	for app := range whoApps {
		cmd := w.app(ctx, filepath.Join(dir, "whoapps"), app, pool, servers)
		if err := cmd.Start(); err != nil {
			return err
		}
		apps.Go(func() {
			if err := cmd.Wait(); ctx.Err() == nil {
				fmt.Fprintf(os.Stderr, "bench: %s has ended: %v\n", appName(app), err)
				cancel()
			}
		})
	}
	pause(ctx, 4*time.Second, time.Second) // all hold their lock
	var mu sync.Mutex
	var sum whoResult
	var asking sync.WaitGroup
	for range w.asks {
		asking.Go(func() {
			for ctx.Err() == nil {
				app, begun := rand.IntN(whoApps), time.Now()
				got, err := who.Observe(ctx, servers.Nodes(), who.Options{Key: "held:" + appName(app), For: time.Minute, Timeout: 5 * time.Second})
				if err != nil || ctx.Err() != nil {
					if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
						fmt.Fprintln(os.Stderr, "bench:", err)
					}
					return
				}
				mu.Lock()
				sum.count(app, got, time.Since(begun))
				mu.Unlock()
			}
		})
	}
	asking.Wait()
	fmt.Printf("%s pools: %s; %s\n", pool, sum, listCost(servers, w.lasts))
	return nil
}

// count counts an answer to who holds the lock of an application.
func (r *whoResult) count(app int, got *who.Answer, took time.Duration) {
	r.asked++
	if got.Method != who.Inferred {
		return
	}
	r.claims++
	r.took = append(r.took, took)
	if got.Group.Name == appName(app) {
		r.right++
	} else {
		fmt.Fprintf(os.Stderr, "wrong: %s for %s, p %.4f from %d events\n", got.Group, appName(app), got.P, got.Events)
	}
}

func (r whoResult) String() string {
	s := fmt.Sprintf("%d asked, %d claims, %d right, %d abstained", r.asked, r.claims, r.right, r.asked-r.claims)
	if len(r.took) > 0 {
		s += fmt.Sprintf("; median %.1f s to a claim", percentile(r.took, 50).Seconds())
	}
	return s
}

// app is the process of an application: of redsync, node-redlock or redis-py.
func (w whoWorld) app(ctx context.Context, scripts string, app int, pool string, servers lab.Servers) *exec.Cmd {
	conns := whoConns
	if pool == "single" {
		conns = 1
	}
	args := []string{appName(app), pool, strconv.Itoa(conns)}
	for _, s := range servers {
		args = append(args, s.Addr())
	}
	self, _ := os.Executable()
	cmd := exec.CommandContext(ctx, self, append([]string{"who-app"}, args...)...)
	switch {
	case w.modules != "" && app%3 == 1:
		cmd = exec.CommandContext(ctx, "node", append([]string{filepath.Join(scripts, "app.mjs")}, args...)...)
		cmd.Dir = w.modules
	case w.modules != "" && app%3 == 2:
		cmd = exec.CommandContext(ctx, "/usr/bin/python3", append([]string{filepath.Join(scripts, "app.py")}, args...)...)
	}
	cmd.Stderr = os.Stderr
	return cmd
}

func appName(app int) string { return fmt.Sprint("app-", app) }

// whoApp is an application of redsync: NAME POOL CONNECTIONS HOST:PORT.... It holds the
// lock held:NAME, extends it about once a second, and takes and releases others, one to
// three in a second.
func whoApp(args []string) error {
	ctx, app := context.Background(), args[0]
	conns, _ := strconv.Atoi(args[2])
	var pools []redsyncredis.Pool
	for _, addr := range args[3:] {
		c := redis.NewClient(&redis.Options{
			Addr: addr, ClientName: app, PoolSize: conns, MinIdleConns: conns, PoolFIFO: args[1] == "fifo",
		})
		defer c.Close()
		pools = append(pools, goredis.NewPool(c))
	}
	rs := redsync.New(pools...)
	go func() {
		m := rs.NewMutex("held:"+app, redsync.WithExpiry(time.Minute))
		for ctx.Err() == nil && m.LockContext(ctx) != nil {
		}
		for ctx.Err() == nil {
			pause(ctx, 750*time.Millisecond, 500*time.Millisecond)
			_, _ = m.ExtendContext(ctx)
		}
	}()
	for ctx.Err() == nil {
		m := rs.NewMutex(fmt.Sprint("short:", app, ":", rand.IntN(100)), redsync.WithExpiry(10*time.Second), redsync.WithTries(1))
		if m.LockContext(ctx) == nil {
			pause(ctx, 10*time.Millisecond, 100*time.Millisecond)
			_, _ = m.UnlockContext(ctx)
		}
		pause(ctx, 250*time.Millisecond, 500*time.Millisecond)
	}
	return nil
}

func pause(ctx context.Context, least, more time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(least + rand.N(more)):
	}
}

// listCost is how many lists the servers have made, and how long one took.
func listCost(servers lab.Servers, during time.Duration) string {
	stat := regexp.MustCompile(`cmdstat_client\|list:calls=(\d+),usec=\d+,usec_per_call=([\d.]+)`)
	calls := 0
	var times []string
	for _, s := range servers {
		text, _ := s.Do(context.Background(), "INFO", "commandstats")
		if m := stat.FindStringSubmatch(fmt.Sprint(text)); m != nil {
			n, _ := strconv.Atoi(m[1])
			calls += n
			times = append(times, m[2])
		}
	}
	return fmt.Sprintf("CLIENT LIST %.1f/s on a node, %s µs each", float64(calls)/float64(len(servers))/during.Seconds(), strings.Join(times, ", "))
}
