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
	"redlockctl/redlock"
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
		clients := make([]*redis.Client, len(b.servers))
		for i, s := range b.servers {
			clients[i] = redlock.Connect(s.Node(), 4, 5*time.Second)
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
		b.line("change to snapshot, p50", "ms", percentile(f.took, 50), 10, "at %.0f changes/s", float64(total)/spent.Seconds())
		b.line("change to snapshot, p99", "ms", percentile(f.took, 99), 40, "")
		different, err := b.compare(m)
		if err != nil {
			return err
		}
		b.line("changes lost", "", float64(lost+different), 0, "%d of %d not seen (%d overtaken by the next), %d copies differ at the end", lost, total, overtaken, different)
		return nil
	})
}

// compare counts the copies that differ from what the servers say.
func (b *monitorRun) compare(m *observe.Monitor) (int, error) {
	s := m.Snapshot()
	different := make([]int, len(b.servers))
	err := each(b.servers, func(i int, c *redis.Client) error {
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
	alone := func() (float64, error) { return b.setNX(slice) }
	var steady, scanning ratios
	for range b.rounds(3, 7) {
		var first float64
		err := steady.round(alone, func() (watching float64, err error) {
			err = b.watchedPatiently(func(ctx context.Context, m *observe.Monitor) (err error) {
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
			return watching, err
		})
		if err != nil {
			return err
		}
		scanning.ratio = append(scanning.ratio, first/steady.base[len(steady.base)-1])
	}
	b.line("SET NX p99 while watching, to not watching", "×", median(steady.ratio), 1.25, "%s", &steady)
	b.line("SET NX p99 during the first scan, to not watching", "×", median(scanning.ratio), 3, "%s", &scanning)
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
		from, err := serversCPU(b.servers)
		if err != nil {
			return 0, err
		}
		if _, err := b.setNX(slice); err != nil {
			return 0, err
		}
		to, err := serversCPU(b.servers)
		return (to - from) / slice.Seconds(), err
	}
	for _, c := range []struct {
		watchers int
		most     float64
	}{{1, 1.5}, {3, 1.9}} {
		var r ratios
		for range b.rounds(3, 5) {
			if err := r.round(spend, func() (float64, error) { return b.watchedBy(c.watchers, spend) }); err != nil {
				return err
			}
		}
		b.line(fmt.Sprintf("CPU of the servers for each lock change, watchers: %d, to none", c.watchers), "×", median(r.ratio), c.most, "%s; %.1f %% of a core not watched", &r, 100*median(r.base))
	}
	return nil
}

// watchedBy measures something while so many monitors watch, all of them settled.
func (b *monitorRun) watchedBy(watchers int, measure func() (float64, error)) (value float64, err error) {
	if watchers == 0 {
		time.Sleep(500 * time.Millisecond)
		return measure()
	}
	err = b.watchedPatiently(func(ctx context.Context, m *observe.Monitor) (err error) {
		if err := m.Settled(ctx); err != nil {
			return err
		}
		value, err = b.watchedBy(watchers-1, measure)
		return err
	})
	return value, err
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
	args := []string{"clients"}
	for _, s := range b.servers {
		args = append(args, s.Addr())
	}
	cmd := exec.Command(self, args...)
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

// runClients is the process of clients, which takes and releases locks at these
// addresses until standard input ends, and prints the p99 of SET NX in milliseconds.
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
	fmt.Println(percentile(took, 99))
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
		err := each(b.servers, func(i int, c *redis.Client) error {
			for n := 0; n < total/len(b.servers); n += 100 {
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
		b.line(fmt.Sprintf("copies that differ after %d changes in a burst", total), "", float64(different), 0, "all was seen %s after the last change, at %.0f changes/s", (last.Sub(begun) - spent).Round(10*time.Millisecond), float64(total)/spent.Seconds())
		return nil
	})
}
