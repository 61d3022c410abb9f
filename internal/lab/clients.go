package lab

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"redlockctl/base/crash"
	"redlockctl/base/sleep"
	"redlockctl/redlock"
)

// Clients are simulated clients that acquire, extend, compete for and release locks.
type Clients struct {
	Count  int           // how many; default 12
	First  int           // the number of the first one; the number decides what a client does
	MaxTTL time.Duration // longest TTL they use; default 30 s. All their times are shares of it.
	Prefix string        // of lock names; default ""
	// Tally counts what they do; nil: nothing is counted.
	Tally *Tally
}

// Tally counts what clients did. The zero value is ready for use.
type Tally struct {
	acquired, contended, failed, extended, lost, released, abandoned atomic.Int64
}

// Counts is a [Tally] at one moment.
type Counts struct {
	Acquired  int64 // locks acquired
	Contended int64 // acquisitions that failed since another held the lock
	Failed    int64 // acquisitions that failed for another reason: no quorum, too late
	Extended  int64
	Lost      int64 // locks whose validity ended before their work
	Released  int64
	Abandoned int64 // locks left to expire: by a client that acts as if it crashed, or because the release reached no quorum
}

// Counts are the numbers so far.
func (t *Tally) Counts() Counts {
	return Counts{
		Acquired: t.acquired.Load(), Contended: t.contended.Load(), Failed: t.failed.Load(), Extended: t.extended.Load(),
		Lost: t.lost.Load(), Released: t.released.Load(), Abandoned: t.abandoned.Load(),
	}
}

// shared are the locks that clients compete for.
var shared = []string{
	"orders:41", "orders:42", "invoices:2026-11", "import", "mail:digest", "reports:daily", "payments:7",
	"cache:warm-up", "index:rebuild", "stock:sync",
}

// own are the locks of the clients that keep a lock for long.
var own = []string{"leader:scheduler", "leader:billing", "backup:nightly", "migration"}

// Run works until ctx ends, then releases what the clients hold and returns
// when they have all ended; it returns early if a client is closed. Workers that do the
// same kind of job share one of four clients: a process with its own [redlock.Options.Owner].
func (c Clients) Run(ctx context.Context, clients ...*redlock.Client) {
	if c.Count <= 0 {
		c.Count = 12
	}
	if c.MaxTTL <= 0 {
		c.MaxTTL = 30 * time.Second
	}
	if c.Tally == nil {
		c.Tally = &Tally{}
	}
	var wg sync.WaitGroup
	for i := range c.Count {
		w := &worker{Clients: c, client: clients[i%len(clients)], number: c.First + i, rand: rand.New(rand.NewPCG(uint64(c.First+i), 1))}
		wg.Go(crash.Safe(func() { w.run(ctx) }))
	}
	wg.Wait()
}

// worker is one simulated client.
type worker struct {
	Clients
	client *redlock.Client
	number int
	rand   *rand.Rand
}

// share is a random part of the longest TTL, from low to high.
func (w *worker) share(low, high float64) time.Duration {
	return time.Duration(float64(w.MaxTTL) * (low + (high-low)*w.rand.Float64()))
}

// job is what a client does with one lock.
type job struct {
	name    string
	ttl     time.Duration
	work    time.Duration // how long the lock is needed; it is extended as often as necessary
	abandon bool          // it is not released
	pause   time.Duration // before the next job
}

// next draws a job: of four clients, one keeps a lock for long, two do short jobs, and
// one long jobs; one of the two crashes at times.
func (w *worker) next() job {
	name := shared[w.rand.IntN(len(shared))]
	switch w.number % 4 {
	case 0:
		kept := w.number / 4
		name = own[kept%len(own)]
		if kept >= len(own) {
			name += ":" + strconv.Itoa(kept/len(own)+1)
		}
		return job{name: name, ttl: w.share(0.4, 0.6), work: w.share(2, 5), pause: w.share(0.05, 0.2)}
	case 1:
		ttl := w.share(0.1, 0.4)
		return job{name: name, ttl: ttl, work: ttl / 3, pause: w.share(0.02, 0.1)}
	case 2:
		return job{name: name, ttl: w.share(0.7, 1), work: w.share(0.8, 2), pause: w.share(0.05, 0.2)}
	default:
		ttl := w.share(0.15, 0.4)
		return job{name: name, ttl: ttl, work: ttl / 2, abandon: w.rand.IntN(2) == 0, pause: w.share(0.05, 0.3)}
	}
}

func (w *worker) run(ctx context.Context) {
	// They do not all begin at once.
	for pause := w.share(0, 0.05); sleep.For(ctx, pause) == nil; {
		j := w.next()
		lock, err := w.client.Acquire(ctx, w.Prefix+j.name, j.ttl)
		switch {
		case err == nil:
			w.Tally.acquired.Add(1)
			w.hold(ctx, lock, j)
		case ctx.Err() != nil:
		case errors.Is(err, redlock.ErrClosed), errors.Is(err, redlock.ErrInvalid):
			return // it will never work
		case errors.Is(err, redlock.ErrContended):
			w.Tally.contended.Add(1)
		default:
			w.Tally.failed.Add(1)
		}
		pause = j.pause
	}
}

// hold works under the lock, and releases it.
func (w *worker) hold(ctx context.Context, lock *redlock.Lock, j job) {
	lost := false
	for end := time.Now().Add(j.work); ctx.Err() == nil && !lost; {
		left := time.Until(end)
		if left <= 0 {
			break
		}
		if sleep.For(ctx, min(left, j.ttl/3)) != nil {
			break
		}
		if time.Until(end) > 0 {
			lost = !w.extend(ctx, lock, j.ttl)
		}
	}
	if j.abandon && !lost && ctx.Err() == nil {
		w.Tally.abandoned.Add(1)
		return
	}
	// The remaining copies of a lost lock would block the others.
	valid := time.Now().Before(lock.Until())
	switch _, err := lock.Release(ctx); {
	case lost || !valid || errors.Is(err, redlock.ErrNotHeld):
		w.Tally.lost.Add(1)
	case err != nil: // the nodes could not be told
		w.Tally.abandoned.Add(1)
	default:
		w.Tally.released.Add(1)
	}
}

// extend tries until it succeeds or the lock is lost, and reports whether it is held.
func (w *worker) extend(ctx context.Context, lock *redlock.Lock, ttl time.Duration) bool {
	for {
		err := lock.Extend(ctx, ttl)
		switch {
		case err == nil:
			w.Tally.extended.Add(1)
			return true
		case ctx.Err() != nil:
			return true
		case !errors.Is(err, redlock.ErrNoQuorum), !time.Now().Before(lock.Until()):
			return false
		}
		if sleep.For(ctx, ttl/20) != nil {
			return true
		}
	}
}
