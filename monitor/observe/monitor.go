// Package observe watches the masters: their health, clocks and locks.
//
// Each node has three goroutines, each with its own connection. The probe reads time and
// fence several times a second, and the rest of the node's health once a second; a node
// that misses a deadline does not answer. The feed learns from the node which keys have
// changed (CLIENT TRACKING); a push only means that the key must be read again. The
// reader reads those keys, a few milliseconds' worth at a time. It reads everything at
// the start, after a gap, and seldom in between. If a node does not report changes, the
// reader reads everything repeatedly, and pauses for at least four fifths of the time.
// None of them ever writes.
//
// Their results go into a pure state (nodes, lock table, clocks, events). Immutable
// snapshots of it are published as soon as something changes, at most two hundred times a
// second, and without waiting for their readers.
package observe

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/finding"
	"redlockctl/monitor/table"
	"redlockctl/monitor/wire"
	"redlockctl/redlock"
)

const (
	publishEvery = 5 * time.Millisecond   // how long changes are collected
	refreshEvery = 250 * time.Millisecond // for numbers that always change: round trips, clocks
	workMost     = 50 * time.Millisecond  // before a snapshot
	workFirst    = 250 * time.Millisecond // before a snapshot of the first view, while all nodes are read
	nudgeEvery   = 50 * time.Millisecond
	beatEvery    = 250 * time.Millisecond // heartbeat of this process
	loadEvery    = 100 * time.Millisecond // between snapshots before the first view is complete, except the first ones
)

// Monitor watches a set of masters until its context ends. It is safe for use by many
// goroutines; a slow reader of snapshots delays nobody.
type Monitor struct {
	nodes             []*redlock.Node
	opt               Options
	watchedKeys       watchedKeys
	wake              chan struct{}    // wakes the publisher, which checks urgent
	changes           []*wire.Changes  // changes to be read, of each node
	patience          []*wire.Patience // of each node
	settled           chan struct{}
	assessed, decided chan struct{}

	mu      sync.Mutex
	world   *world
	urgent  bool          // a change should be published soon
	fresh   chan struct{} // closed with the next snapshot
	seeds   int           // keys found on one node and at once read on the others
	hurried []bool        // nodes whose full read should start now
	nudged  time.Time     // when all followers were last woken to confirm something

	isAssessed, isDecided bool // assessed, decided are closed

	snapshot atomic.Pointer[monitor.Snapshot]
	beat     atomic.Pointer[time.Time] // last heartbeat, see [Monitor.live]
}

// New makes a monitor. It contacts no node before Run. It fails without nodes or with a
// negative option.
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
		watchedKeys: newWatchedKeys(opt),
		wake:        make(chan struct{}, 1),
		hurried:     make([]bool, len(nodes)),
		settled:     make(chan struct{}),
		assessed:    make(chan struct{}),
		decided:     make(chan struct{}),
		fresh:       make(chan struct{}),
		world:       newWorld(nodes, opt, time.Now()),
	}
	for range nodes {
		m.changes = append(m.changes, wire.NewChanges())
		m.patience = append(m.patience, wire.NewPatience(opt.Timeout))
	}
	m.beat.Store(&m.world.base)
	m.world.beat = func() time.Time { return *m.beat.Load() }
	m.snapshot.Store(m.world.snapshot(time.Now(), 1))
	return m, nil
}

// Snapshot returns the current state; never nil.
func (m *Monitor) Snapshot() *monitor.Snapshot { return m.snapshot.Load() }

// Changed returns a channel that is closed when a snapshot newer than version exists.
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

// Settled waits until each node has been probed and, if it answers, fully read once, and
// a snapshot shows that; or until ctx ends, and then returns its cause. A node that is
// down, slow or denied counts as done after its first failed probe, one that answers but
// cannot be scanned after the third failed scan: then the snapshot is not
// [Snapshot.Complete].
func (m *Monitor) Settled(ctx context.Context) error { return await(ctx, m.settled) }

// Assessed waits for [Monitor.Settled] and for the states of all locks. A minority of
// copies may be an attempt under way: that takes a second to know, and only then does it
// wait.
func (m *Monitor) Assessed(ctx context.Context) error { return await(ctx, m.assessed) }

// Decided waits for [Monitor.Assessed] and for the dangers of the first view; with
// [Options.Warnings] for the warnings too, of which some open only after two seconds.
func (m *Monitor) Decided(ctx context.Context) error { return await(ctx, m.decided) }

func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ChangedSince returns the keys of the locks that were added, removed or changed after
// the snapshot with this version, each once and unordered, for a consumer that keeps its
// own order. ok is false if that is too long ago or too much: then all locks must be
// read. Its cost grows with the number of keys.
func (m *Monitor) ChangedSince(version uint64) (keys []string, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.world.log.since(version)
}

// EventsSince returns the events after the one with this Seq, oldest first. missed counts
// those that are no longer kept. A consumer that asks after each snapshot misses events
// only in a storm.
func (m *Monitor) EventsSince(seq uint64) (events []monitor.Event, missed uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.world.events.since(seq)
}

// History returns the latest events of the lock with this key, oldest first: at most 16,
// and only for the locks that changed last.
func (m *Monitor) History(key string) []monitor.Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.world.events.history.of(key)
}

// Note adds an event of another source (guard, operator) to the stream. It sets the Seq;
// a zero At means now.
func (m *Monitor) Note(e monitor.Event) {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.world.note(e)
	m.hurry()
}

// hurry requests a snapshot soon; m.mu is held.
func (m *Monitor) hurry() {
	if !m.urgent {
		m.urgent = true
		wire.Poke(m.wake)
	}
}

// hasten wakes the scans if the state needs it; m.mu is held.
func (m *Monitor) hasten() {
	if m.world.hasten {
		m.world.hasten = false
		for i, c := range m.changes {
			m.hurried[i] = true
			wire.Poke(c.Wake)
		}
	}
}

func (m *Monitor) loading() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.world.loading() && m.world.table.Len() >= seedMost
}

// isSettled reports whether a snapshot of the first complete view is published.
func (m *Monitor) isSettled() bool {
	select {
	case <-m.settled:
		return true
	default:
		return false
	}
}

// answered records a probe; again requests another one soon.
func (m *Monitor) answered(i int, v sight) (again bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	step := m.world.steps[i].at
	again, changed := m.world.answered(i, v, time.Now())
	m.after(i, changed)
	if m.world.steps[i].at.After(step) {
		wire.Poke(m.changes[i].Wake)
	}
	if m.world.nodes[i].perhapsEarly() {
		m.hurry()
	}
	if v.guards != nil && len(v.guards.locks) > 0 {
		m.table()
	}
	return again
}

// Vouches returns the announcements that a guard should make on the node with this name:
// what only this monitor knows about locks.
func (m *Monitor) Vouches(node string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, n := range m.world.nodes {
		if n.Name == node {
			return m.world.vouches(i, time.Now())
		}
	}
	return nil
}

func (m *Monitor) wiped(i int, runID string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.world.wiped(i, runID, time.Now())
	m.table()
}

// failed records a failed probe. It reports whether that counts: it does not if this
// process may have been late itself.
func (m *Monitor) failed(i int, err error) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	counts, changed := m.world.failed(i, err, time.Now())
	m.after(i, changed)
	return counts
}

// after reacts to a change of node i; m.mu is held.
func (m *Monitor) after(i int, changed bool) {
	if changed {
		m.hurry()
		m.hurried[i] = true
		wire.Poke(m.changes[i].Wake)
	}
}

func (m *Monitor) scanStarts(i int, runID string) (epoch uint32, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.world.scanStarts(i, runID)
}

func (m *Monitor) read(i int, runID string, sent, received time.Time, rows []table.Row) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	ok := m.world.read(i, runID, sent, received, rows)
	if ok && !m.world.done && m.seeds < seedMost {
		m.seed(i, rows)
	}
	m.table()
	return ok
}

// passed records which share of the keys of node i its full read of this epoch has
// passed.
func (m *Monitor) passed(i int, epoch uint32, part float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.world.passed(i, epoch, part)
}

// seed reads the first locks found on one node from the other nodes at once, so that the
// first screen shows all their copies; m.mu is held.
func (m *Monitor) seed(i int, rows []table.Row) {
	rows = rows[:min(len(rows), seedMost-m.seeds)]
	m.seeds += len(rows)
	keys := make([]string, len(rows))
	for k := range rows {
		keys[k] = rows[k].Key
	}
	for k, c := range m.changes {
		if k != i {
			c.Add(keys...)
		}
	}
}

// table requests a snapshot if locks changed, and a confirmation by the nodes if the
// state is uncertain; m.mu is held.
func (m *Monitor) table() {
	now := time.Now()
	if !m.world.table.Due(now) {
		return
	}
	m.hurry()
	if now.Sub(m.nudged) >= nudgeEvery {
		m.nudged = now
		for _, c := range m.changes {
			wire.Poke(c.Wake)
		}
	}
}

// task returns what the follower of node i should do in this incarnation of its server;
// false: stop.
func (m *Monitor) task(i int, runID string) (task, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := task{epoch: m.world.table.Epoch(i), gap: !m.world.table.ReadWhole(i), hasten: m.hurried[i], unconfirmed: m.world.unconfirmed(), busy: m.world.nodes[i].ops >= wire.BusyOps}
	if s := m.world.steps[i]; !s.heard {
		t.stepped = s.at
	}
	m.hurried[i] = false
	return t, m.world.inSight(i, runID)
}

// wanted returns the keys of node i that are worth reading, see [table.Table.Wanted].
func (m *Monitor) wanted(i int, keys []string, count bool) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.world.table.Wanted(i, keys, count)
}

// reads records the start of a full read of node i.
func (m *Monitor) reads(i int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.world.table.ReadBegins(i)
}

// keysMost returns the limit of keys and pages for a full read of node i.
func (m *Monitor) keysMost(i int) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.world.nodes[i].keysMost()
}

// sample returns some shown keys of node i, starting at a position in the table; next is
// where to continue.
func (m *Monitor) sample(i, from, most int) (keys []string, next int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.world.table.Sample(i, from, most)
}

// unseen returns the wanted keys of a page that are not known to be on node i.
func (m *Monitor) unseen(i int, keys []string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(m.world.table.Unseen(i, keys), func(key string) bool { return !m.watchedKeys.keeps(key) })
}

// differs returns the keys of node i whose rows differ from the view.
func (m *Monitor) differs(i int, runID string, sent, received time.Time, rows []table.Row) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.world.differs(i, runID, sent, received, rows)
}

// unreported records that these keys of node i changed without a report.
func (m *Monitor) unreported(i int, keys []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.world.unreported(i, keys, time.Now())
	m.hurry()
}

// listens records whether node i reports its changes.
func (m *Monitor) listens(i int, tells bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.world.nodes[i].tells = tells
}

// heardSince reports whether anything was heard of node i after a moment.
func (m *Monitor) heardSince(i int, at time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.world.nodes[i].Heard.After(at)
}

// unheard records that the feed of node i has ended.
func (m *Monitor) unheard(i int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.world.nodes[i]; n.tells {
		n.tells = false
		m.world.missed(i, time.Now())
		m.hurry()
	}
}

// missed records that changes of node i may not have been reported.
func (m *Monitor) missed(i int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.world.missed(i, time.Now())
	m.hurry()
}

// excused reports whether a session with a node ended because this process did not run.
func (m *Monitor) excused(err error) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.world.excused(err, time.Now())
}

// readUpTo records that all changes of node i up to until have been read.
func (m *Monitor) readUpTo(i int, runID string, until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.world.readUpTo(i, runID, until, time.Now()) {
		m.hasten()
	}
	m.table()
}

func (m *Monitor) scanned(i int, runID string, epoch uint32, began time.Time, missing bool, notes map[string]monitor.Limit) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.world.done
	ok := m.world.scanned(i, runID, epoch, began, time.Now())
	if ok {
		if missing {
			m.world.missed(i, time.Now())
		}
		for topic, note := range notes {
			m.world.nodes[i].note(topic, note)
		}
	}
	m.table()
	if m.world.done != was {
		m.hurry()
	}
	if !m.world.done && !m.world.loading() {
		wire.Poke(m.wake) // the publisher is slower while nodes are read
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

// Guarded connects the monitor to the guard in this process. The monitor calls sight
// whenever it evaluates findings; sight must return at once. Without a guard, findings
// that only a guard can know are missing.
func (m *Monitor) Guarded(sight func() monitor.GuardView) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.world.findings.Guarded(sight)
}

// Recorded sets the source of why nothing is recorded, for the findings. It must return
// at once, because the monitor waits for it.
func (m *Monitor) Recorded(fails func() error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.world.findings.Recorded(fails)
}

// Booted sets how nodes start, by node name; it replaces earlier values. shown is closed
// when a snapshot has it.
func (m *Monitor) Booted(boots map[string]finding.BootSight) (shown <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.world.findings.Booted(boots)
	for _, w := range m.world.nodes {
		w.booted(boots[w.Name])
	}
	m.hurry()
	return m.fresh
}

// task says what the whole state needs from a follower.
type task struct {
	epoch       uint32
	gap         bool      // no full read yet in this epoch
	hasten      bool      // start a full read now
	unconfirmed bool      // a lock waits to be confirmed by the nodes
	busy        bool      // the node said that it is busy
	stepped     time.Time // when its clock was last seen to be stepped: its copies end at other times since
}
