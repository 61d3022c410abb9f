package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/monitor"
	"redlockctl/monitor/observe"
)

const bareScript = `local out = {}
for i = 1, #KEYS do
  out[4*i-3] = redis.call('TYPE', KEYS[i])['ok']
  out[4*i-2] = redis.call('PTTL', KEYS[i])
  out[4*i-1] = redis.call('STRLEN', KEYS[i])
  out[4*i] = redis.call('GETRANGE', KEYS[i], 0, 127)
end
return out`

// bare scans all servers and reads what it finds, and does nothing with it.
func (b *monitorRun) bare() (seconds float64, err error) {
	begun := time.Now()
	ctx := context.Background()
	err = each(b.servers, func(_ int, c *redis.Client) error {
		sha, err := c.ScriptLoad(ctx, bareScript).Result()
		if err != nil {
			return err
		}
		var cursor uint64
		var batch []string
		for {
			keys, next, err := c.Scan(ctx, cursor, "lock:*", 250).Result()
			if err != nil {
				return err
			}
			batch = append(batch, keys...)
			for len(batch) >= 200 || next == 0 && len(batch) > 0 {
				n := min(200, len(batch))
				if _, err := c.EvalShaRO(ctx, sha, batch[:n]).Slice(); err != nil {
					return err
				}
				batch = batch[:copy(batch, batch[n:])]
			}
			if cursor = next; cursor == 0 {
				return nil
			}
		}
	})
	return time.Since(begun).Seconds(), err
}

func (b *monitorRun) view() error {
	var r ratios
	var firsts []time.Duration
	for range b.rounds(3, 5) {
		err := r.round(b.bare, func() (seconds float64, err error) {
			runtime.GC()
			begun := time.Now()
			err = b.watched(func(ctx context.Context, m *observe.Monitor) error {
				settled := make(chan error, 1)
				go func() { err := m.Settled(ctx); seconds = time.Since(begun).Seconds(); settled <- err }()
				for seen := false; ; {
					s := m.Snapshot()
					if !seen && b.screenful(s) {
						seen, firsts = true, append(firsts, time.Since(begun))
					}
					select {
					case err := <-settled:
						if n := m.Snapshot().Locks.Len(); n != b.locks {
							return fmt.Errorf("%d locks, not %d", n, b.locks)
						}
						return err
					case <-m.Changed(s.Version):
					}
				}
			})
			return seconds, err
		})
		if err != nil {
			return err
		}
	}
	b.line("first full view, to a bare SCAN and read", "×", median(r.ratio), 1.3, "%.2f s to %.2f s", median(r.value), median(r.base))
	b.times("first screen: 40 locks with all copies", firsts, 50, 300*time.Millisecond)
	return nil
}

// screenful reports whether forty locks have all their copies.
func (b *monitorRun) screenful(s *monitor.Snapshot) bool {
	full := 0
	for l := range s.Locks.All() {
		if l.Held == len(b.servers) && l.State == monitor.LockHeld {
			full++
		}
		if full == 40 {
			return true
		}
	}
	return false
}

// oneshot is what a command takes that looks once: all keys of all nodes, and an end.
func (b *monitorRun) oneshot() error {
	var r ratios
	for range b.rounds(3, 5) {
		err := r.round(b.bare, func() (float64, error) {
			runtime.GC()
			begun := time.Now()
			err := b.watched(func(ctx context.Context, m *observe.Monitor) error {
				if err := m.Assessed(ctx); err != nil {
					return err
				}
				if s := m.Snapshot(); !s.Complete || s.Locks.Len() != b.locks {
					return fmt.Errorf("%d locks, not %d: %v", s.Locks.Len(), b.locks, s.Unread())
				}
				return nil
			})
			return time.Since(begun).Seconds(), err
		})
		if err != nil {
			return err
		}
	}
	b.line("a command that looks once, to a bare SCAN and read", "×", median(r.ratio), 1.5, "%.2f s to %.2f s", median(r.value), median(r.base))
	return nil
}

// memory is what all of them take.
func (b *monitorRun) memory() error {
	limit := 200.0
	if b.locks > 200_000 {
		limit = 1200
	} else if b.locks < 100_000 {
		limit = 200 * float64(b.locks) / 100_000
	}
	return b.weigh(b.options(), b.locks, limit)
}

// million is the same with a million locks.
func (b *monitorRun) million() error {
	const n = 1_000_000
	if b.quick {
		return nil
	}
	if err := fillWith(b.servers, "million", n); err != nil {
		return err
	}
	return b.weigh(observe.Options{LockPatterns: []string{"million:*"}}, n, 1200)
}

// weigh measures the memory of a monitor of n locks.
func (b *monitorRun) weigh(opt observe.Options, n int, limit float64) error {
	heap := func() float64 {
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc) / (1 << 20)
	}
	before, rssBefore := heap(), rss()
	return watching(b.servers, opt, func(ctx context.Context, m *observe.Monitor) error {
		begun := time.Now()
		if err := m.Settled(ctx); err != nil {
			return err
		}
		took, peak := time.Since(begun), rss()-rssBefore
		if got := m.Snapshot().Locks.Len(); got != n {
			return fmt.Errorf("%d locks, not %d", got, n)
		}
		time.Sleep(2 * time.Second)
		live := heap() - before
		b.line(fmt.Sprintf("memory, %d locks", n), "MiB", peak, limit, "resident at the end of the first view (after %.1f s); %.0f MiB live (%.0f bytes a lock)",
			took.Seconds(), live, live*(1<<20)/float64(n))
		return nil
	})
}

// rest is how much CPU is used while nothing changes.
func (b *monitorRun) rest() error {
	return b.watched(func(ctx context.Context, m *observe.Monitor) error {
		if err := m.Settled(ctx); err != nil {
			return err
		}
		time.Sleep(2 * time.Second)
		rest := 30 * time.Second
		if b.quick {
			rest = 12 * time.Second
		}
		from, begun := processCPU(), time.Now()
		time.Sleep(rest)
		share := 100 * (processCPU() - from).Seconds() / time.Since(begun).Seconds()
		b.line("CPU at rest", "% of a core", share, 3, "over %s, reconciliations of all nodes included", rest)
		return nil
	})
}
