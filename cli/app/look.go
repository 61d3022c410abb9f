package app

import (
	"context"
	"sync"
	"time"

	"redlockctl/base/crash"
	"redlockctl/internal/config"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
)

// SettleTime bounds how long a screen or a stream of events waits for the first
// snapshot: what is missing then comes later.
const SettleTime = 2 * time.Second

// Aim is what a look is for.
type Aim struct {
	Keys  []string // these locks alone, each read by its name
	Nodes bool     // no locks at all
	Locks bool     // the states of locks, and no findings
	// Starts: also how the nodes start, on which it depends who else can get a lock. With findings
	// it is looked at in any case.
	Starts bool
	// Findings: all warnings are asked for too, see [observe.Options].
	Findings bool
	Match    string        // the locks under this pattern alone
	Most     time.Duration // 0: as long as it takes
	Fast     bool          // at the cost of the masters' other clients
	// Reading, if not nil, is called while it is waited for, and what it returns then.
	Reading func(*observe.Monitor) (done func())
}

// Watch runs f beside a monitor of the cluster.
func Watch(ctx context.Context, cfg *config.Config, of Aim, f func(*observe.Monitor) error) error {
	s, err := SpecOf(cfg)
	if err != nil {
		return err
	}
	s.Monitor.Keys, s.Monitor.Match, s.Monitor.NoLocks, s.Monitor.Patient, s.Monitor.Warnings = of.Keys, of.Match, of.Nodes, !of.Fast, of.Findings
	mon, err := newMonitor(s.Nodes, s.Monitor)
	if err != nil {
		return err
	}
	run, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	if !of.Locks { // else there are no findings
		mon.Recorded(recordFails(run, &wg, s))
	}
	wg.Go(crash.Safe(func() { mon.Run(run) }))
	defer wg.Wait()
	defer stop()
	if of.Starts || !of.Locks && of.Keys == nil { // findings and the verdict are asked for
		bounded, cancel := bound(ctx, of.Most)
		seen := bootSights(bounded, s, boots{})
		select {
		case <-mon.Booted(seen.sights):
		case <-bounded.Done():
		}
		cancel()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		wg.Go(crash.Safe(func() { followBoots(run, s, mon, seen) }))
	}
	return f(mon)
}

// Look is a snapshot of the cluster once all that is asked for is known, see
// [Decided].
func Look(ctx context.Context, cfg *config.Config, of Aim) (s *monitor.Snapshot, err error) {
	err = Watch(ctx, cfg, of, func(mon *observe.Monitor) error {
		s, err = Decided(ctx, mon, of)
		return err
	})
	return s, err
}

// Decided waits for the first snapshot in which everything that was asked for has been read, and
// what takes time to decide is decided. If the time limit ends before, the snapshot says what is
// missing; only the end of ctx is an error.
func Decided(ctx context.Context, mon *observe.Monitor, of Aim) (*monitor.Snapshot, error) {
	if of.Reading != nil {
		defer of.Reading(mon)()
	}
	if of.Locks {
		return within(ctx, of.Most, mon, mon.Assessed)
	}
	return within(ctx, of.Most, mon, mon.Decided)
}

// Settled waits for the first view, for [SettleTime] at most, where a screen shows
// what is missing as it comes; only the end of ctx is an error.
func Settled(ctx context.Context, mon *observe.Monitor) (*monitor.Snapshot, error) {
	return within(ctx, SettleTime, mon, mon.Settled)
}

// bound bounds ctx; 0: it does not.
func bound(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	if most <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, most)
}

// within is the snapshot after wait, which has so long; 0: as long as it takes.
func within(ctx context.Context, most time.Duration, mon *observe.Monitor, wait func(context.Context) error) (*monitor.Snapshot, error) {
	bounded, cancel := bound(ctx, most)
	defer cancel()
	_ = wait(bounded)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return mon.Snapshot(), nil
}
