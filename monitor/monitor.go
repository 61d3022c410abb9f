// Package monitor watches the masters: their health, clocks and locks.
//
// Each node has three goroutines, each with a connection of its own. The probe
// asks for the time and the fence several times a second, and for the rest of
// the node's health once a second; a deadline decides that a node does not
// answer. The feed is told by the node which keys have changed (CLIENT
// TRACKING); it says only that a key is to be read again. The reader reads those,
// a few milliseconds' worth at a time, and everything at the start, after a gap
// and seldom in between. Where a node tells of nothing, the reader reads
// everything again and again, and leaves the node alone for at least four fifths
// of the time. None of them ever writes.
//
// What they see goes into a pure state (nodes, lock table, clocks, events), from
// which immutable snapshots are published: as soon as something changes, but not
// more often than two hundred times a second, and without ever waiting for a
// reader.
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
	Match        string        // only those that match this pattern too; "": all
	Keys         []string      // these keys alone, whatever the patterns say: nothing is scanned for
	NoLocks      bool          // nodes alone
	MaxTTL       time.Duration // of the cluster; 0: unknown, no TTL counts as too long
	Redlock      redlock.Options
	Timeout      time.Duration // of one command to a node; default 500 ms
	ProbeEvery   time.Duration // TIME probes; default 200 ms
	InfoEvery    time.Duration // INFO and CONFIG; default 1 s
	ScanEvery    time.Duration // least pause between full reads, where no gap asks for one; default 250 ms, 10 s for a node that tells of its changes
	ScanCount    int           // COUNT of SCAN; default 250
	EventsKept   int           // default 500
	// MaxMemory is how many bytes the locks of the cluster may take, what the garbage
	// collector leaves behind included, and keys that are none a quarter of it. Keys
	// that find no room are counted only, and a finding tells of it. Default
	// [DefaultMaxMemory].
	MaxMemory int64
	// Patient reads a node that has clients at work with pauses, the first time
	// too, so that they feel less of it: the first view takes up to four times as
	// long. It is for those who watch for long, not for a single look.
	Patient bool
	// Fences is how nodes are fenced, by name, where it is not by
	// min-replicas-to-write: "acl" or "none", as in the configuration.
	Fences map[string]string
	// TakenBy tells who took a lock from the holder of this token, as far as that
	// is on record here; nil: nobody knows. It is asked when a lock has ended, and
	// must answer at once.
	TakenBy func(key, token string) (Taking, bool)
}

// Taking is a lock that was taken from its holder, as it is on record.
type Taking struct {
	Act           string // "force-release", "revoke"
	Actor, Reason string
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
	if o.MaxMemory < 0 {
		return o, fmt.Errorf("max memory %d is negative", o.MaxMemory)
	}
	if o.MaxMemory == 0 {
		o.MaxMemory = DefaultMaxMemory()
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
	publishEvery = 5 * time.Millisecond   // changes are collected for so long
	refreshEvery = 250 * time.Millisecond // round trips, clocks: the numbers that always change
	workMost     = 50 * time.Millisecond  // before a snapshot
	nudgeEvery   = 50 * time.Millisecond
	loadEvery    = 100 * time.Millisecond // snapshots before the first view is complete, but the first ones
	seedMost     = 200                    // locks that the first screen may show
)

// Monitor watches a set of masters until its context ends. It is safe for use
// by many goroutines; a slow reader of snapshots holds up nobody.
type Monitor struct {
	nodes             []*redlock.Node
	opt               Options
	sought            sought
	wake              chan struct{} // the publisher has to look at urgent
	changes           []*changes    // of each node, to be read
	settled           chan struct{}
	assessed, decided chan struct{}

	mu      sync.Mutex
	world   *world
	urgent  bool          // something changed that a snapshot should show soon
	fresh   chan struct{} // closed with the next snapshot
	seeds   int           // keys that one node found and the others were asked for at once
	hurried []bool        // nodes whose full read should not wait for its turn
	nudged  time.Time     // when all followers were last woken to confirm something
	log     changeLog

	isAssessed, isDecided bool // assessed, decided are closed

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
		sought:   newSought(opt),
		wake:     make(chan struct{}, 1),
		hurried:  make([]bool, len(nodes)),
		settled:  make(chan struct{}),
		assessed: make(chan struct{}),
		decided:  make(chan struct{}),
		fresh:    make(chan struct{}),
		world:    newWorld(nodes, opt, time.Now()),
	}
	for range nodes {
		m.changes = append(m.changes, newChanges())
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
// probe, one that answers and cannot be scanned by the third scan that fails: then
// the snapshot is not [Snapshot.Complete].
func (m *Monitor) Settled(ctx context.Context) error { return await(ctx, m.settled) }

// Assessed waits until the first view has the states of all locks: [Monitor.Settled],
// and of a minority of copies it is told whether an attempt completes it. That is a
// second where there is such a thing, and nothing else.
func (m *Monitor) Assessed(ctx context.Context) error { return await(ctx, m.assessed) }

// Decided waits until the first view says all that it will say: [Monitor.Assessed],
// and the findings of what was there, of which some are told when it has lasted for a
// second or two.
func (m *Monitor) Decided(ctx context.Context) error { return await(ctx, m.decided) }

func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ChangedSince are the keys of the locks that came, went or changed after the
// snapshot with this version, for a consumer that keeps an order of its own: each
// once, in no order. ok is false if that is too long ago, or too much: then all
// locks are to be looked at. It costs time in the number of those keys.
func (m *Monitor) ChangedSince(version uint64) (keys []string, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.log.since(version)
}

// EventsSince are the events after the one with this Seq, oldest first. missed is
// how many more there were that are not kept any longer. A consumer that asks
// after each snapshot misses none but in a storm.
func (m *Monitor) EventsSince(seq uint64) (events []Event, missed uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.world.events.since(seq)
}

// History are the latest events of the lock with this key, oldest first: 16 at
// most, and of the locks that changed last.
func (m *Monitor) History(key string) []Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.world.events.history.of(key)
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
		for i, c := range m.changes {
			m.hurried[i] = true
			poke(c.wake)
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
		// A snapshot of very many locks takes its time: half of it at most.
		least = max(publishEvery, time.Since(now))
		if m.loading() {
			least = max(least, loadEvery)
		}
		timer.Reset(time.Until(m.due(last, least)))
	}
}

// due is when the next snapshot is, after one at last.
func (m *Monitor) due(last time.Time, least time.Duration) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.world.done && !m.isSettled() {
		least = publishEvery // the first whole view is waited for
	}
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

// work brings the states up to now, in slices: what comes from the nodes does
// not wait for all of it. It reports whether it stopped before the end, so that
// a snapshot is not held up for long.
func (m *Monitor) work() (more bool) {
	begun := time.Now()
	for {
		m.mu.Lock()
		now := time.Now()
		more = m.world.tick(now)
		loading := m.world.loading()
		m.hasten()
		m.mu.Unlock()
		// Before the first view is complete each lock changes with each node that is
		// read: to assess it once in the end is enough.
		if !more || loading || now.Sub(begun) >= workMost {
			return more && !loading
		}
	}
}

func (m *Monitor) loading() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.world.loading() && m.world.table.locks.Len() >= seedMost
}

func (m *Monitor) publish() {
	more := m.work()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.urgent = false
	now := time.Now()
	version := m.snapshot.Load().Version + 1
	s := m.world.snapshot(now, version)
	m.log.add(version, m.world.table.fresh)
	m.world.table.fresh = nil
	m.snapshot.Store(s)
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

// isSettled reports whether a snapshot of the first whole view is out.
func (m *Monitor) isSettled() bool {
	select {
	case <-m.settled:
		return true
	default:
		return false
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
		m.hurried[i] = true
		poke(m.changes[i].wake)
	}
}

func (m *Monitor) scanStarts(i int, runID string) (epoch uint32, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.world.scanStarts(i, runID)
}

func (m *Monitor) read(i int, runID string, sent, received time.Time, rows []row) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	ok := m.world.read(i, runID, sent, received, rows)
	if ok && !m.world.done && m.seeds < seedMost {
		m.seed(i, rows)
	}
	m.table()
	return ok
}

// passed takes in how much of the keys of node i its full read has passed.
func (m *Monitor) passed(i int, part float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.world.nodes[i].passed(part)
}

// seed asks the other nodes for the first locks that one of them has found, so
// that the first screen shows all of their copies; m.mu is held.
func (m *Monitor) seed(i int, rows []row) {
	rows = rows[:min(len(rows), seedMost-m.seeds)]
	m.seeds += len(rows)
	keys := make([]string, len(rows))
	for k := range rows {
		keys[k] = rows[k].key
	}
	for k, c := range m.changes {
		if k != i {
			c.add(keys...)
		}
	}
}

// table asks for a snapshot if locks changed, and the nodes to confirm it if it
// is not certain; m.mu is held.
func (m *Monitor) table() {
	if !m.world.table.pending() {
		return
	}
	m.hurry()
	if now := time.Now(); now.Sub(m.nudged) >= nudgeEvery {
		m.nudged = now
		for _, c := range m.changes {
			poke(c.wake)
		}
	}
}

// task is what there is to do for the follower of node i in this incarnation of its
// server; false: nothing more.
func (m *Monitor) task(i int, runID string) (task, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := &m.world.table.nodes[i]
	t := task{epoch: n.epoch, gap: n.scanned != n.epoch, hasten: m.hurried[i], unconfirmed: m.world.unconfirmed(), busy: m.opt.Patient && m.world.nodes[i].ops >= busyOps}
	m.hurried[i] = false
	return t, m.world.inSight(i, runID)
}

// wanted are those of the keys of node i that are worth reading, see table.wanted.
func (m *Monitor) wanted(i int, keys []string, count bool) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.world.table.wanted(i, keys, count)
}

// reads says that a full read of node i begins.
func (m *Monitor) reads(i int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.world.table.nodes[i].refused = refusals{}
}

// keysMost is how many keys and pages a full read of node i brings at most.
func (m *Monitor) keysMost(i int) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.world.nodes[i].keysMost()
}

// told says that all changes of node i until then have been read.
func (m *Monitor) told(i int, runID string, until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.world.told(i, runID, until, time.Now()) {
		m.hasten()
	}
	m.table()
}

func (m *Monitor) scanned(i int, runID string, epoch uint32, began time.Time, notes map[string]string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.world.done
	ok := m.world.scanned(i, runID, epoch, began, time.Now())
	if ok {
		for topic, note := range notes {
			m.world.nodes[i].note(topic, note)
		}
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
