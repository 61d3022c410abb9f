package observe

import (
	"context"
	"sync"
	"time"

	"redlockctl/base/crash"
	"redlockctl/base/sleep"
	"redlockctl/monitor"
	"redlockctl/monitor/clock"
)

// Run watches until ctx ends, and returns when all its goroutines have ended. Call it
// once.
func (m *Monitor) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(crash.Safe(func() { m.live(ctx) }))
	for i := range m.nodes {
		wg.Go(crash.Safe(func() { m.probe(ctx, i) }))
		wg.Go(crash.Safe(func() { m.scan(ctx, i) }))
	}
	if m.opt.Recorded != nil {
		wg.Go(crash.Safe(func() { m.recall(ctx) }))
	}
	if m.opt.Forced != nil || m.opt.Cordons != nil {
		wg.Go(crash.Safe(func() { m.followActions(ctx) }))
	}
	m.publishUntil(ctx)
	wg.Wait()
}

// live sends heartbeats until ctx ends. Goroutines that wait for m.mu send none while
// another works on very many locks, although this process is not stopped. A stop is
// reported before the next heartbeat, so that the heartbeat does not hide it.
func (m *Monitor) live(ctx context.Context) {
	for last := time.Now(); ctx.Err() == nil; _ = sleep.For(ctx, beatEvery) {
		last = m.lives(last)
	}
}

// lives sends a heartbeat; last is the time of the previous one.
func (m *Monitor) lives(last time.Time) time.Time {
	if now := time.Now(); now.Sub(last) > clock.LateGap {
		m.mu.Lock()
		m.world.awake(now)
		m.mu.Unlock()
	}
	now := time.Now()
	m.beat.Store(&now)
	return now
}

// publishUntil publishes snapshots until ctx ends, then a last one.
func (m *Monitor) publishUntil(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	least := publishEvery
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			m.mu.Lock()
			m.world.events.settle(time.Now().Add(textWaits))
			m.mu.Unlock()
			m.publish()
			return
		case <-m.wake:
		case <-timer.C:
		}
		now := time.Now()
		if due := m.due(last, least); due.After(now) {
			timer.Reset(due.Sub(now))
			continue
		}
		last = now
		m.publish()
		// A snapshot of very many locks takes long: use at most half of the time.
		least = max(publishEvery, time.Since(now))
		if m.loading() {
			least = max(least, loadEvery)
		}
		timer.Reset(time.Until(m.due(last, least)))
	}
}

// due returns when the next snapshot is due, after one at last.
func (m *Monitor) due(last time.Time, least time.Duration) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.isSettled() && !m.world.loading() {
		least = publishEvery // all nodes are read: the first complete view is awaited
	}
	soonest, due := last.Add(least), last.Add(max(least, refreshEvery))
	if m.urgent {
		return soonest
	}
	if next := m.world.table.Next(); !next.IsZero() && next.Before(due) {
		due = next
	}
	if due.Before(soonest) {
		return soonest
	}
	return due
}

// work brings the states up to date, in slices, so that data from the nodes does not wait
// for all of it. It reports whether it stopped early, so as not to delay a snapshot.
func (m *Monitor) work() (more bool) {
	begun, most := time.Now(), workMost
	for {
		m.mu.Lock()
		now := time.Now()
		more = m.world.tick(now)
		loading := m.world.loading()
		if !m.world.done {
			most = workFirst
		}
		m.hasten()
		m.mu.Unlock()
		// Before the first view is complete, each lock changes with each node that is
		// read: assess it once, at the end.
		if !more || loading || now.Sub(begun) >= most {
			return more && !loading
		}
	}
}

func (m *Monitor) publish() {
	more := m.work()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.urgent = false
	now := time.Now()
	version := m.snapshot.Load().Version + 1
	m.snapshot.Store(m.world.snapshot(now, version))
	if more {
		m.hurry()
	}
	close(m.fresh)
	m.fresh = make(chan struct{})
	if m.world.done && !m.isSettled() {
		close(m.settled)
	}
	if !m.isAssessed && !m.world.unassessed(now) {
		m.isAssessed = true
		close(m.assessed)
	}
	if !m.isDecided && !m.world.undecided(now) {
		m.isDecided = true
		close(m.decided)
	}
}

// mostRecalled is of how many locks a record is asked.
const mostRecalled = 500

// uneven reports whether a copy of the holder ends so much earlier than another one that its TTL may
// have been cut: the holder then relies on the later end.
func uneven(l *monitor.Lock) bool {
	var least, most time.Time
	for _, c := range l.Copies.All() {
		if c.State != monitor.CopyPresent || c.Token != l.Holder || c.Expires.IsZero() {
			continue
		}
		if least.IsZero() || c.Expires.Before(least) {
			least = c.Expires
		}
		if c.Expires.After(most) {
			most = c.Expires
		}
	}
	return most.Sub(least) > time.Second
}

// recall takes in, once the first view is complete, what a record knows of the locks of which the
// view shows a minority, and of those that lost their majority.
func (m *Monitor) recall(ctx context.Context) {
	if m.Settled(ctx) != nil {
		return
	}
	s := m.Snapshot()
	var keys []string
	for l := range s.Locks.All() {
		left := l.Held > 0 && l.Held < s.Cluster.Quorum && !l.ReliedOn() // of a grant, perhaps
		if (left || l.Held >= s.Cluster.Quorum && uneven(l)) && len(keys) < mostRecalled {
			keys = append(keys, l.Key.Raw())
		}
	}
	known := m.opt.Recorded(keys)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.world.table.Heard(known, time.Now())
	m.world.recalled = true
	m.table()
	m.hurry()
}

// actionsEvery is how often it is asked which locks were force-released, and who cordoned nodes.
const actionsEvery = time.Second

// followActions tells the findings until ctx ends which locks were force-released, and the snapshots who
// cordoned nodes.
func (m *Monitor) followActions(ctx context.Context) {
	for had, cordoned := 0, 0; ctx.Err() == nil; _ = sleep.For(ctx, actionsEvery) {
		var all []monitor.Forced
		var cordons map[string]monitor.Cordon
		if m.opt.Forced != nil {
			all = m.opt.Forced()
		}
		if m.opt.Cordons != nil {
			cordons = m.opt.Cordons()
		}
		m.mu.Lock()
		m.world.findings.Forced(all)
		m.world.cordons = cordons
		if !m.world.forcedKnown || len(all) != had || len(cordons) != cordoned {
			m.world.forcedKnown = true
			m.world.findings.Hurry()
			m.hurry()
		}
		m.mu.Unlock()
		had, cordoned = len(all), len(cordons)
	}
}
