package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"redlockctl/internal/lab"
)

// listMost is for how long a list of all locks is waited for.
const listMost = 5 * time.Minute

// lists measures how soon the console lists all locks: each round has a bare scan of the
// same servers before and behind it, and the ratio within the round is what counts. CPU is
// told too, which a busy machine changes less. idle: the servers have had nothing to do for
// a while; else the bare scan has just ended, and to the servers it is a load of others.
func (b *screenBench) lists(open func() (*terminal, error), servers []*lab.Server, idle bool) error {
	rounds := 5
	if b.quick || b.locks > 300_000 {
		rounds = 3
	}
	title := grouped(b.locks)
	var ratios, wholes, bares, cpus, scans []float64
	var firsts []time.Duration
	for range rounds {
		scan := func() (float64, error) {
			from, err := serversCPU(servers)
			if err != nil {
				return 0, err
			}
			took, err := bareScan(servers)
			if err != nil {
				return 0, err
			}
			to, err := serversCPU(servers)
			scans = append(scans, to-from)
			return took.Seconds(), err
		}
		var first, whole, cpu time.Duration
		bare, err := between(scan, func() (err error) {
			if idle {
				if err := quiet(servers); err != nil {
					return err
				}
			}
			first, whole, cpu, err = b.list(open, title)
			return err
		})
		if err != nil {
			return err
		}
		firsts, cpus = append(firsts, first), append(cpus, cpu.Seconds())
		ratios, wholes, bares = append(ratios, whole.Seconds()/mean(bare)), append(wholes, whole.Seconds()), append(bares, mean(bare))
	}
	when := ""
	if !idle {
		when = ", right behind another read"
	}
	b.times("start → the first of "+title+" locks are listed"+when, firsts, 50, 100*time.Millisecond)
	b.line("start → all "+title+" locks are listed"+when+", to a bare scan", "×", median(ratios), 2, "%s; %.2f s to %.2f s; CPU of the program %.2f s, of the servers for a bare scan %.2f s",
		list(ratios), median(wholes), median(bares), median(cpus), median(scans))
	return nil
}

// list is one start of the console until the first locks and until all are listed.
func (b *screenBench) list(open func() (*terminal, error), title string) (first, whole, cpu time.Duration, err error) {
	t, err := open()
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

// serversCPU is the CPU time that the servers have used, in seconds.
func serversCPU(servers []*lab.Server) (sum float64, failed error) {
	for _, s := range servers {
		info, err := s.Do(context.Background(), "INFO", "cpu")
		failed = errors.Join(failed, err)
		sum += usedCPU(fmt.Sprint(info))
	}
	return sum, failed
}
