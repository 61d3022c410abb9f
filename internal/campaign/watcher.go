package campaign

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab"
)

const (
	watchEvery   = 2 * time.Millisecond
	watchTimeout = 2 * time.Second
)

// record is what the watchers have seen.
type record struct {
	mu       sync.Mutex
	rejoins  int
	accepted int           // SETs accepted by a life before it rejoined
	longest  time.Duration // from the start of a process to its rejoining
	shortest time.Duration
	faults   []string
	open     map[string]bool // nodes that were seen open in their present life
}

func (r *record) fault(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

func (r *record) started(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[node] = false
}

func (r *record) isOpen(node string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open[node]
}

// watch asks one life of a server until it is open, or ends, or ctx does.
// started is a moment before its process began, and delay D: the life must not be
// open before both are over.
func (r *record) watch(ctx context.Context, s *lab.Server, node string, started time.Time, delay time.Duration) {
	// The one connection of this client belongs to one life.
	c := s.Node().OneLife(watchTimeout)
	defer c.Close()
	// One transaction: the count belongs to the state of the fence.
	var fence *redis.MapStringStringCmd
	var stats *redis.StringCmd
	for ctx.Err() == nil {
		_, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
			fence = p.ConfigGet(ctx, "min-replicas-to-write")
			stats = p.Info(ctx, "commandstats")
			return nil
		})
		seen := time.Now()
		if err != nil {
			return // the life has ended, or never began
		}
		if fence.Val()["min-replicas-to-write"] != "0" {
			if n := accepted(stats.Val()); n > 0 {
				r.mu.Lock()
				r.accepted += n
				r.mu.Unlock()
				r.fault("%s has accepted %d SETs %s after its start, and is closed", node, n, seen.Sub(started))
				return
			}
			sleep(ctx, watchEvery)
			continue
		}
		took := seen.Sub(started)
		r.mu.Lock()
		r.rejoins++
		r.open[node] = true
		r.longest = max(r.longest, took)
		if r.shortest == 0 || took < r.shortest {
			r.shortest = took
		}
		r.mu.Unlock()
		if took < delay {
			r.fault("%s is open %s after its start, before D = %s", node, took, delay)
		}
		return
	}
}

// accepted is how many SETs a life has executed. Those that the fence refused
// are not among the calls.
func accepted(info string) int {
	for line := range strings.Lines(info) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "cmdstat_set:calls="); ok {
			calls, _, _ := strings.Cut(rest, ",")
			n, err := strconv.Atoi(calls)
			if err != nil {
				return 1 // it counts something
			}
			return n
		}
	}
	return 0
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
