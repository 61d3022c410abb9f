// Package monitor watches the masters: their health, clocks and locks.
//
// Each node has two goroutines, each with a connection of its own. The probe
// asks for the time and the fence several times a second, and for the rest of
// the node's health once a second; a deadline decides that a node does not
// answer. The scan reads all locks, again and again, and leaves the node alone
// for at least four fifths of the time. Neither ever writes.
//
// What they see goes into a pure state (nodes, lock table, clocks, events), from
// which immutable snapshots are published: as soon as something changes, but not
// more often than twenty times a second, and without ever waiting for a reader.
package monitor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"redlockctl/redlock"
)

// Options of a Monitor; the zero value of a field means its default.
type Options struct {
	ClusterName  string
	LockPatterns []string      // glob patterns of keys that are locks; default "*"
	MaxTTL       time.Duration // of the cluster; 0: unknown, no TTL counts as too long
	Redlock      redlock.Options
	Timeout      time.Duration // of one command to a node; default 500 ms
	ProbeEvery   time.Duration // TIME probes; default 200 ms
	InfoEvery    time.Duration // INFO and CONFIG; default 1 s
	ScanEvery    time.Duration // least pause between full scans of a node; default 250 ms
	ScanCount    int           // COUNT of SCAN; default 250
	EventsKept   int           // default 500
}

func (o Options) withDefaults() (Options, error) {
	if len(o.LockPatterns) == 0 {
		o.LockPatterns = []string{"*"}
	}
	if o.Redlock.NodeTimeout == 0 {
		o.Redlock.NodeTimeout = redlock.DefaultNodeTimeout
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		or    time.Duration
	}{
		{"timeout", &o.Timeout, 500 * time.Millisecond},
		{"probe interval", &o.ProbeEvery, 200 * time.Millisecond},
		{"info interval", &o.InfoEvery, time.Second},
		{"scan interval", &o.ScanEvery, 250 * time.Millisecond},
		{"max TTL", &o.MaxTTL, 0},
	} {
		if *d.value < 0 {
			return o, fmt.Errorf("%s %s is negative", d.name, *d.value)
		}
		if *d.value == 0 {
			*d.value = d.or
		}
	}
	for _, d := range []struct {
		name  string
		value *int
		or    int
	}{{"scan count", &o.ScanCount, 250}, {"number of events kept", &o.EventsKept, 500}} {
		if *d.value < 0 {
			return o, fmt.Errorf("%s %d is negative", d.name, *d.value)
		}
		if *d.value == 0 {
			*d.value = d.or
		}
	}
	return o, nil
}

const (
	publishEvery = 50 * time.Millisecond  // changes are collected for so long
	refreshEvery = 250 * time.Millisecond // round trips, clocks: the numbers that always change
)

// Monitor watches a set of masters until its context ends. It is safe for use
// by many goroutines; a slow reader of snapshots holds up nobody.
type Monitor struct {
	nodes    []*redlock.Node
	opt      Options
	wake     chan struct{}   // the publisher has to look at urgent
	wakeScan []chan struct{} // one for each node
	settled  chan struct{}

	mu     sync.Mutex
	world  *world
	urgent bool          // something changed that a snapshot should show soon
	fresh  chan struct{} // closed with the next snapshot

	snapshot atomic.Pointer[Snapshot]
}

// New makes a monitor; nothing is contacted before Run. It fails if there are
// no nodes or an option is negative.
func New(nodes []*redlock.Node, opt Options) (*Monitor, error) {
	if len(nodes) == 0 {
		return nil, errors.New("a monitor needs a node")
	}
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, err
	}
	m := &Monitor{
		nodes: nodes, opt: opt,
		wake:    make(chan struct{}, 1),
		settled: make(chan struct{}),
		fresh:   make(chan struct{}),
		world:   newWorld(nodes, opt, time.Now()),
	}
	for range nodes {
		m.wakeScan = append(m.wakeScan, make(chan struct{}, 1))
	}
	m.snapshot.Store(m.world.snapshot(time.Now(), 1))
	return m, nil
}

// Run watches until ctx ends and returns when all its goroutines have. It is
// to be called once.
func (m *Monitor) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for i := range m.nodes {
		wg.Go(func() { m.probe(ctx, i) })
		wg.Go(func() { m.scan(ctx, i) })
	}
	m.publishUntil(ctx)
	wg.Wait()
}

// Snapshot is the current state; never nil.
func (m *Monitor) Snapshot() *Snapshot { return m.snapshot.Load() }

// Changed is closed when a snapshot newer than the one with this version is
// there.
func (m *Monitor) Changed(version uint64) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.snapshot.Load().Version > version {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	return m.fresh
}

// Settled waits until every node has been probed and, where it answers, fully
// scanned once, and a snapshot says so; or until ctx ends, whose cause it then
// returns. A node that is down, slow or denied is settled by its first failed
// probe.
func (m *Monitor) Settled(ctx context.Context) error {
	select {
	case <-m.settled:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Note adds an event of others (the guard, the operator) to the stream. Its Seq
// is given here; a zero At means now.
func (m *Monitor) Note(e Event) {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.world.events.add(e)
	m.hurry()
}

// hurry asks for a snapshot soon; m.mu is held.
func (m *Monitor) hurry() {
	if !m.urgent {
		m.urgent = true
		poke(m.wake)
	}
}

// hasten wakes the scans if the state asks for it; m.mu is held.
func (m *Monitor) hasten() {
	if m.world.hasten {
		m.world.hasten = false
		for _, wake := range m.wakeScan {
			poke(wake)
		}
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// publishUntil publishes snapshots until ctx ends, and a last one then.
func (m *Monitor) publishUntil(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	least := publishEvery
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
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
		// A snapshot of very many locks takes its time: a tenth of it at most.
		least = max(publishEvery, 9*time.Since(now))
		timer.Reset(time.Until(m.due(last, least)))
	}
}

// due is when the next snapshot is, after one at last.
func (m *Monitor) due(last time.Time, least time.Duration) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	soonest, due := last.Add(least), last.Add(max(least, refreshEvery))
	if m.urgent {
		return soonest
	}
	if next := m.world.table.next(); !next.IsZero() && next.Before(due) {
		due = next
	}
	if due.Before(soonest) {
		return soonest
	}
	return due
}

func (m *Monitor) publish() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.urgent = false
	now := time.Now()
	m.world.tick(now)
	m.hasten()
	m.snapshot.Store(m.world.snapshot(now, m.snapshot.Load().Version+1))
	close(m.fresh)
	m.fresh = make(chan struct{})
	if m.world.done {
		select {
		case <-m.settled:
		default:
			close(m.settled)
		}
	}
}

// answered takes in a probe's sight; again asks for another one soon.
func (m *Monitor) answered(i int, v sight) (again bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	again, changed := m.world.answered(i, v, time.Now())
	m.after(i, changed)
	return again
}

func (m *Monitor) failed(i int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.after(i, m.world.failed(i, err, time.Now()))
}

// after follows a change of node i; m.mu is held.
func (m *Monitor) after(i int, changed bool) {
	if changed {
		m.hurry()
		poke(m.wakeScan[i])
	}
}

func (m *Monitor) scanStarts(i int, runID string) (epoch uint64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.world.scanStarts(i, runID)
}

func (m *Monitor) read(i int, runID string, sent, received time.Time, rows []row) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	ok := m.world.read(i, runID, sent, received, rows)
	m.table()
	return ok
}

// table asks for a snapshot if locks changed; m.mu is held.
func (m *Monitor) table() {
	if len(m.world.table.dirty) > 0 {
		m.hurry()
	}
}

func (m *Monitor) scanned(i int, runID string, epoch uint64, began time.Time, note string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.world.done
	ok := m.world.scanned(i, runID, epoch, began, time.Now())
	if ok {
		m.world.nodes[i].note("read", note)
	}
	m.table()
	if m.world.done != was {
		m.hurry()
	}
	m.hasten()
	return ok
}

func (m *Monitor) scanFailed(i int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.world.scanFailed(i, err, time.Now())
	m.hurry()
}
