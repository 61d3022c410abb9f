package sim

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"redlockctl/proof/sim/mutant"
	"redlockctl/proof/sim/schedule"
	"redlockctl/proof/sim/trace"
	"redlockctl/proof/sim/world"
)

// ErrUnknownMutant is returned for an unknown name of a mutant.
var ErrUnknownMutant = errors.New("no such mutant")

// Config is what to simulate. The zero value of a field means its default.
type Config struct {
	// Seed is that of the first schedule; each further one has the next. The
	// same seed and settings give the same schedule everywhere.
	Seed uint64
	// Schedules is how many are played at most. Default 1.
	Schedules int64
	// WithoutGuard plays without a guard, on masters that start unfenced.
	WithoutGuard bool
	// Delay is a factor on D; default 1, which is right.
	Delay float64
	// EarlyRejoin has guards let masters rejoin before D, by evidence.
	EarlyRejoin bool
	// Faults are the kinds of faults that may happen. It has no default: zero is
	// [NoFaults].
	Faults schedule.Faults
	// Mutant is the name of one of [Mutants] to play with; default none.
	Mutant string
	// Workers is how many processors to use. What is found does not depend on
	// it. Default: all.
	Workers int
	// Progress, if set, is called now and then, with how many schedules were
	// played. It is called from one goroutine at a time, and must be quick.
	Progress func(played int64)
}

// Report is the result of a campaign.
type Report struct {
	world.Stats
	Elapsed time.Duration
	// Violation is the one of the smallest seed; nil: none was found.
	Violation *Violation
}

// Violation is a schedule in which a property does not hold.
type Violation struct {
	Seed     uint64          `json:"seed"`
	Played   int64           `json:"schedule"` // schedules up to and with this one
	Property mutant.Property `json:"property"`
	What     string          `json:"what"`  // what the witness saw
	About    string          `json:"about"` // what the shortest trace is played with
	// Trace is the shortest schedule that was found to break the same property: it
	// was made of the one of Seed by leaving out and simplifying what it does not
	// need.
	Trace []trace.Line `json:"trace"`
	Tries int          `json:"-"` // schedules that were played to shorten it
}

// batch is how many schedules a worker takes at a time.
const batch = 256

// Run plays schedules until all are played, one breaks a property, or ctx ends;
// then the report says how far it came, and the error is that of ctx. It fails
// with [ErrUnknownMutant].
func Run(ctx context.Context, cfg Config) (Report, error) {
	r, force, err := cfg.rules()
	if err != nil {
		return Report{}, err
	}
	began := time.Now()
	report := Report{}
	var found int64
	report.Stats, found = search(ctx, cfg, r, force)
	if found < 0 {
		report.Elapsed = time.Since(began)
		return report, ctx.Err()
	}
	report.Violation = explain(cfg.Seed+uint64(found), cfg.Faults, r, force)
	report.Violation.Played = found + 1
	report.Elapsed = time.Since(began)
	return report, nil
}

// search plays until something is found, and returns the index of that
// schedule, the smallest there is; or less than 0.
func search(ctx context.Context, cfg Config, r mutant.Rules, force func(*schedule.Plan)) (world.Stats, int64) {
	schedules := max(cfg.Schedules, 1)
	workers := cfg.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	workers = int(min(int64(workers), (schedules+batch-1)/batch))

	var taken, played, first atomic.Int64
	first.Store(schedules)
	var mu sync.Mutex // of stats and Progress
	var stats world.Stats
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			w, p := world.New(), new(schedule.Plan)
			defer func() {
				mu.Lock()
				stats.Add(w.Stats)
				mu.Unlock()
			}()
			for ctx.Err() == nil {
				from := taken.Add(batch) - batch
				for i := from; i < min(from+batch, schedules); i++ {
					if i >= first.Load() {
						return
					}
					p.Draw(cfg.Seed+uint64(i), cfg.Faults)
					force(p)
					w.Play(p, r)
					if w.Broken != nil {
						for f := first.Load(); i < f && !first.CompareAndSwap(f, i); f = first.Load() {
						}
						return
					}
				}
				if from+batch >= schedules {
					return
				}
				n := played.Add(batch)
				if cfg.Progress != nil {
					mu.Lock()
					cfg.Progress(n)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if i := first.Load(); i < schedules {
		return stats, i
	}
	return stats, -1
}

// rules are how to play, and what is forced upon each plan.
func (cfg Config) rules() (mutant.Rules, func(*schedule.Plan), error) {
	r, force := mutant.Right(), func(*schedule.Plan) {}
	if cfg.Mutant != "" {
		m, ok := mutant.Named(cfg.Mutant)
		if !ok {
			return r, nil, fmt.Errorf("%w: %q", ErrUnknownMutant, cfg.Mutant)
		}
		if r = m.Rules(); m.Force != nil {
			force = m.Force
		}
	}
	if cfg.WithoutGuard {
		r.NoGuard, r.NoExcuse, r.Checks = true, true, 1<<mutant.Exclusion
		before := force
		force = func(p *schedule.Plan) { before(p); p.Fenced = false }
	}
	r.EarlyRejoin = r.EarlyRejoin || cfg.EarlyRejoin
	if cfg.Delay != 0 {
		r.Delay *= cfg.Delay
		if cfg.Delay < 1 {
			// It is known to be too short; the question is what follows.
			r.Checks &^= 1 << mutant.EarlyRejoin
		}
	}
	return r, force, nil
}

// explain plays a schedule that breaks a property again, shortens it, and takes
// down what happens.
func explain(seed uint64, faults schedule.Faults, r mutant.Rules, force func(*schedule.Plan)) *Violation {
	w, p := world.New(), new(schedule.Plan)
	p.Draw(seed, faults)
	force(p)
	w.Play(p, r)
	small, tries := shrink(w, *p, r, w.Broken.Property)
	w.Trace = new(trace.Log)
	w.Play(small, r)
	return &Violation{
		Seed: seed, Property: w.Broken.Property, What: w.Broken.Text, About: about(small, r), Trace: w.Trace.Lines, Tries: tries,
	}
}
