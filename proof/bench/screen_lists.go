package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab"
)

// listMost is for how long a list of all locks is waited for.
const listMost = 5 * time.Minute

// lists measures how soon the console lists all locks: each round has a bare scan of the
// same servers before and after it, and only the ratio within the round counts. It also
// prints the CPU time, which depends less on a busy machine. idle: the servers have been
// idle for a while; otherwise the bare scan has just ended, as another client's load would.
func (b *screenRun) lists(idle bool) error {
	rounds := b.rounds(3, 5)
	if b.locks > 300_000 {
		rounds = 3
	}
	title, when := grouped(b.locks), ""
	if !idle {
		when = ", right behind another read"
	}
	var r ratios
	var cpus, scans []float64
	var firsts []time.Duration
	scan := func() (float64, error) {
		from, err := serversCPU(b.servers)
		if err != nil {
			return 0, err
		}
		seconds, err := bareScan(b.servers)
		if err != nil {
			return 0, err
		}
		to, err := serversCPU(b.servers)
		scans = append(scans, to-from)
		return seconds, err
	}
	for range rounds {
		err := r.round(scan, func() (float64, error) {
			if idle {
				if err := quiet(b.servers); err != nil {
					return 0, err
				}
			}
			first, whole, cpu, err := b.list(title)
			firsts, cpus = append(firsts, first), append(cpus, cpu.Seconds())
			return whole.Seconds(), err
		})
		if err != nil {
			return err
		}
	}
	b.times("start → the first of "+title+" locks are listed"+when, firsts, 50, 100*time.Millisecond)
	b.line("start → all "+title+" locks are listed"+when+", to a bare scan", "×", median(r.ratio), 2, "%s; %.2f s to %.2f s; CPU of the program %.2f s, of the servers for a bare scan %.2f s",
		&r, median(r.value), median(r.base), median(cpus), median(scans))
	return nil
}

// list is one start of the console until the first locks and until all are listed.
func (b *screenRun) list(title string) (first, whole, cpu time.Duration, err error) {
	t, err := b.open()
	if err != nil {
		return 0, 0, 0, err
	}
	defer t.close()
	first, ok := t.until(time.Minute, "lock:0")
	if ok {
		whole, ok = t.until(listMost, title+" held")
	}
	if !ok {
		return 0, 0, 0, fmt.Errorf("not all locks are shown:\n%s", t.tail())
	}
	return first, whole, t.cpu(), nil
}

// bareScan is how many seconds it takes to read all keys of the servers, all at the same time,
// with token and TTL of each, and to do nothing with them.
func bareScan(servers lab.Servers) (seconds float64, err error) {
	const script = `local p = redis.call('SCAN', ARGV[1], 'COUNT', 250)
local out = {p[1]}
for _, k in ipairs(p[2]) do
  out[#out + 1], out[#out + 2], out[#out + 3] = k, redis.call('GET', k), redis.call('PTTL', k)
end
return out`
	begun := time.Now()
	err = each(servers, func(_ int, c *redis.Client) error {
		for cursor := "0"; ; {
			page, err := c.Eval(context.Background(), script, nil, cursor).Slice()
			if err != nil {
				return err
			}
			if cursor, _ = page[0].(string); cursor == "0" {
				return nil
			}
		}
	})
	return time.Since(begun).Seconds(), err
}
