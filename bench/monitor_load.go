package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/monitor/observe"
)

// change is a write that a snapshot has to show.
type change struct {
	node  int
	token string
	at    time.Time
}

// follower takes the time until changes are in a snapshot.
type follower struct {
	mu      sync.Mutex
	pending map[string]change
	took    []float64 // ms
}

// expect waits for a change from now on, and reports whether the one before it of the
// same key was still waited for.
func (f *follower) expect(key string, c change) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, waits := f.pending[key]
	f.pending[key] = c
	return waits
}

func (f *follower) left() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.pending)
}

// follow looks at each snapshot until ctx ends.
func (f *follower) follow(ctx context.Context, m *observe.Monitor) {
	version := m.Snapshot().Version
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.Changed(version):
		}
		s := m.Snapshot()
		now := time.Now()
		keys, ok := m.ChangedSince(version)
		version = s.Version
		f.mu.Lock()
		if !ok {
			keys = slices.Collect(maps.Keys(f.pending))
		}
		for _, k := range keys {
			c, waits := f.pending[k]
			if l := s.Locks.Get(k); waits && l != nil && l.Copies.At(c.node).Token.Raw() == c.token {
				f.took = append(f.took, float64(now.Sub(c.at).Microseconds())/1000)
				delete(f.pending, k)
			}
		}
		f.mu.Unlock()
	}
}

// changes changes locks at a steady rate and waits for each change to be in a
// snapshot; then the last snapshot has to equal what the servers say.
func (b *monitorRun) changes() error {
	const rate = 1000
	total := 60 * rate
	if b.quick {
		total = 10 * rate
	}
	return b.watched(func(ctx context.Context, m *observe.Monitor) error {
		if err := m.Settled(ctx); err != nil {
			return err
		}
		f := follower{pending: map[string]change{}}
		overtaken := 0
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() { f.follow(ctx, m) })
		clients := make([]*redis.Client, len(b.nodes))
		for i, n := range b.nodes {
			clients[i] = n.Client(4, 5*time.Second)
			defer clients[i].Close()
		}
		begun := time.Now()
		for n := range total {
			if wait := time.Until(begun.Add(time.Duration(n) * time.Second / rate)); wait > 0 {
				time.Sleep(wait)
			}
			i := n % len(clients)
			key, token := fmt.Sprintf("lock:%08d", 1+(n*7919)%b.locks), fmt.Sprintf("change%018d", n)
			if f.expect(key, change{i, token, time.Now()}) {
				overtaken++
			}
			if err := clients[i].Set(ctx, key, token, 2*time.Hour).Err(); err != nil {
				return err
			}
		}
		spent := time.Since(begun)
		deadline := time.Now().Add(10 * time.Second)
		for f.left() > 0 && time.Now().Before(deadline) {
			time.Sleep(10 * time.Millisecond)
		}
		lost := f.left()
		cancel()
		wg.Wait()
		slices.Sort(f.took)
		p50, p99 := f.took[len(f.took)/2], f.took[len(f.took)*99/100]
		b.line("change to snapshot, p50", p50 <= 10, "≤ 10 ms", "%.1f ms at %.0f changes/s", p50, float64(total)/spent.Seconds())
		b.line("change to snapshot, p99", p99 <= 40, "≤ 40 ms", "%.1f ms", p99)
		different, err := b.compare(m)
		if err != nil {
			return err
		}
		b.line("changes lost", lost == 0 && different == 0, "none", "%d of %d not seen (%d overtaken by the next), %d copies differ at the end", lost, total, overtaken, different)
		return nil
	})
}

// compare counts the copies that differ from what the servers say.
func (b *monitorRun) compare(m *observe.Monitor) (int, error) {
	s := m.Snapshot()
	different := make([]int, len(b.nodes))
	err := b.each(func(i int, c *redis.Client) error {
		var keys []string
		flush := func() error {
			if len(keys) == 0 {
				return nil
			}
			values, err := c.MGet(context.Background(), keys...).Result()
			if err != nil {
				return err
			}
			for k, key := range keys {
				if l := s.Locks.Get(key); values[k] != any(l.Copies.At(i).Token.Raw()) {
					different[i]++
				}
			}
			keys = keys[:0]
			return nil
		}
		for l := range s.Locks.All() {
			if keys = append(keys, l.Key.Raw()); len(keys) == 1000 {
				if err := flush(); err != nil {
					return err
				}
			}
		}
		return flush()
	})
	sum := 0
	for _, d := range different {
		sum += d
	}
	return sum, err
}

// cost is what those who lock feel: the p99 of SET NX at a steady rate.
func (b *monitorRun) cost() error {
	slice := 4 * time.Second
	if b.quick {
		slice = 1500 * time.Millisecond
	}
	var steady, scanning []float64
	for range b.rounds(3, 7) {
		var first, watching float64
		alone, err := between(func() (float64, error) { return b.setNX(slice) }, func() error {
			return b.watching(b.patient(), func(ctx context.Context, m *observe.Monitor) (err error) {
				first, err = b.setNXUntil(func() bool { return m.Snapshot().Cluster.Serving == len(m.Snapshot().Nodes) && settled(m) }, time.Minute)
				if err != nil {
					return err
				}
				if err := m.Settled(ctx); err != nil {
					return err
				}
				time.Sleep(500 * time.Millisecond)
				watching, err = b.setNX(slice)
				return err
			})
		})
		if err != nil {
			return err
		}
		steady, scanning = append(steady, watching/mean(alone)), append(scanning, first/mean(alone))
	}
	b.line("SET NX p99 while watching, to not watching", median(steady) <= 1.25, "≤ 1.25", "%.2f (%s)", median(steady), list(steady))
	b.line("SET NX p99 during the first scan, to not watching", median(scanning) <= 3, "≤ 3", "%.2f (%s)", median(scanning), list(scanning))
	return nil
}

// price is what the servers pay: their CPU while locks are taken and released at a
// steady rate, watched to not watched.
func (b *monitorRun) price() error {
	slice := 6 * time.Second
	if b.quick {
		slice = 3 * time.Second
	}
	spend := func() (float64, error) {
		from, err := b.serverCPU()
		if err != nil {
			return 0, err
		}
		if _, err := b.setNX(slice); err != nil {
			return 0, err
		}
		to, err := b.serverCPU()
		return (to - from) / slice.Seconds(), err
	}
	var ratios, alones []float64
	for range b.rounds(3, 5) {
		var watched float64
		alone, err := between(spend, func() error {
			return b.watching(b.patient(), func(ctx context.Context, m *observe.Monitor) (err error) {
				if err := m.Settled(ctx); err != nil {
					return err
				}
				time.Sleep(500 * time.Millisecond)
				watched, err = spend()
				return err
			})
		})
		if err != nil {
			return err
		}
		ratios, alones = append(ratios, watched/mean(alone)), append(alones, alone...)
	}
	r := median(ratios)
	b.line("CPU of the servers for each lock change, watched to not watched", r <= 1.6, "≤ 1.6", "%.2f (%s); %.1f %% of a core not watched", r, list(ratios), 100*median(alones))
	return nil
}

// serverCPU is the CPU time that all servers have used, in seconds.
func (b *monitorRun) serverCPU() (float64, error) {
	used := make([]float64, len(b.nodes))
	err := b.each(func(i int, c *redis.Client) error {
		text, err := c.Info(context.Background(), "cpu").Result()
		used[i] = usedCPU(text)
		return err
	})
	sum := 0.0
	for _, v := range used {
		sum += v
	}
	return sum, err
}

func settled(m *observe.Monitor) bool {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return m.Settled(ctx) == nil
}

func (b *monitorRun) setNX(d time.Duration) (float64, error) {
	end := time.Now().Add(d)
	return b.setNXUntil(func() bool { return time.Now().After(end) }, 2*d)
}

// setNXUntil takes and releases locks on all servers, 200 times a second each,
// and returns the p99 of SET NX in milliseconds. It does so in a process of its
// own, as clients are: what they wait for is the server, not the monitor's
// goroutines.
func (b *monitorRun) setNXUntil(done func() bool, most time.Duration) (float64, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	var addrs []string
	for _, n := range b.nodes {
		addrs = append(addrs, n.Addr())
	}
	cmd := exec.Command(self, "monitor", "--only", clientPart)
	cmd.Env = append(os.Environ(), clientAddrs+"="+strings.Join(addrs, ","))
	cmd.Stderr = os.Stderr
	stop, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	for end := time.Now().Add(most); !done() && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	_ = stop.Close()
	if err := cmd.Wait(); err != nil {
		return 0, err
	}
	var p99 float64
	_, err = fmt.Sscan(out.String(), &p99)
	return p99, err
}

// The process of the clients: what it is started with.
const (
	clientPart  = "client"
	clientAddrs = "REDLOCKCTL_BENCH_ADDRS"
)

// runClients takes and releases locks until standard input ends, and prints the
// p99 of SET NX in milliseconds.
func runClients(addrs []string) error {
	stop := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); close(stop) }()
	var mu sync.Mutex
	var took []float64
	errs := make([]error, len(addrs))
	var work sync.WaitGroup
	for i, addr := range addrs {
		work.Go(func() {
			c := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 1})
			defer c.Close()
			ctx := context.Background()
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				key := fmt.Sprintf("lock:new:%d:%d", i, n)
				begun := time.Now()
				if errs[i] = c.SetNX(ctx, key, "token", time.Minute).Err(); errs[i] != nil {
					return
				}
				d := time.Since(begun)
				mu.Lock()
				took = append(took, d.Seconds()*1000)
				mu.Unlock()
				if errs[i] = c.Del(ctx, key).Err(); errs[i] != nil {
					return
				}
				time.Sleep(time.Until(begun.Add(5 * time.Millisecond)))
			}
		})
	}
	work.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if len(took) == 0 {
		return errors.New("no SET NX at all")
	}
	slices.Sort(took)
	fmt.Println(took[len(took)*99/100])
	return nil
}

// burst makes a million changes as fast as the servers take them; then the last
// snapshot has to equal what the servers say.
func (b *monitorRun) burst() error {
	total := 1_000_000
	if b.quick {
		total /= 10
	}
	return b.watched(func(ctx context.Context, m *observe.Monitor) error {
		if err := m.Settled(ctx); err != nil {
			return err
		}
		begun := time.Now()
		err := b.each(func(i int, c *redis.Client) error {
			for n := 0; n < total/len(b.nodes); n += 100 {
				_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
					for k := range 100 {
						p.Set(ctx, fmt.Sprintf("lock:%08d", 1+((n+k)*7919+i)%b.locks), fmt.Sprintf("burst%d%018d", i, n+k), 2*time.Hour)
					}
					return nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		spent := time.Since(begun)
		// Until nothing changes any more; to compare takes much longer than that.
		last, deadline := time.Now(), time.Now().Add(time.Minute)
		for version := m.Snapshot().Version; time.Since(last) < time.Second && time.Now().Before(deadline); {
			time.Sleep(50 * time.Millisecond)
			s := m.Snapshot()
			if keys, ok := m.ChangedSince(version); !ok || len(keys) > 0 {
				last = time.Now()
			}
			version = s.Version
		}
		different, err := b.compare(m)
		if err != nil {
			return err
		}
		b.line(fmt.Sprintf("changes lost of %d in a burst", total), different == 0, "none",
			"%d copies differ at the end; all was seen %s after the last change, at %.0f changes/s", different, (last.Sub(begun) - spent).Round(10*time.Millisecond), float64(total)/spent.Seconds())
		return nil
	})
}
