// Package observe watches the masters: their health, clocks and locks.
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
	publishEvery = 5 * time.Millisecond   // changes are collected for so long
	refreshEvery = 250 * time.Millisecond // round trips, clocks: the numbers that always change
	workMost     = 50 * time.Millisecond  // before a snapshot
	workFirst    = 250 * time.Millisecond // before one of the first view, when all nodes are read
	nudgeEvery   = 50 * time.Millisecond
	beatEvery    = 250 * time.Millisecond // that this process runs
	loadEvery    = 100 * time.Millisecond // snapshots before the first view is complete, but the first ones
)

// Monitor watches a set of masters until its context ends. It is safe for use
// by many goroutines; a slow reader of snapshots holds up nobody.
type Monitor struct {
	nodes             []*redlock.Node
	opt               Options
	sought            sought
	wake              chan struct{}   // the publisher has to look at urgent
	changes           []*wire.Changes // of each node, to be read
	settled           chan struct{}
	assessed, decided chan struct{}

	mu      sync.Mutex
	world   *world
	urgent  bool          // something changed that a snapshot should show soon
	fresh   chan struct{} // closed with the next snapshot
	seeds   int           // keys that one node found and the others were asked for at once
	hurried []bool        // nodes whose full read should not wait for its turn
	nudged  time.Time     // when all followers were last woken to confirm something

	isAssessed, isDecided bool // assessed, decided are closed

	snapshot atomic.Pointer[monitor.Snapshot]
	beat     atomic.Pointer[time.Time] // when this process was last known to run, see [Monitor.live]
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
		m.changes = append(m.changes, wire.NewChanges())
	}
	m.beat.Store(&m.world.base)
	m.world.beat = func() time.Time { return *m.beat.Load() }
	m.snapshot.Store(m.world.snapshot(time.Now(), 1))
	return m, nil
}

// Snapshot is the current state; never nil.
func (m *Monitor) Snapshot() *monitor.Snapshot { return m.snapshot.Load() }

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
	return m.world.log.since(version)
}

// EventsSince are the events after the one with this Seq, oldest first. missed is
// how many more there were that are not kept any longer. A consumer that asks
// after each snapshot misses none but in a storm.
func (m *Monitor) EventsSince(seq uint64) (events []monitor.Event, missed uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.world.events.since(seq)
}

// History are the latest events of the lock with this key, oldest first: 16 at
// most, and of the locks that changed last.
func (m *Monitor) History(key string) []monitor.Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.world.events.history.of(key)
}

// Note adds an event of others (the guard, the operator) to the stream. Its Seq
// is given here; a zero At means now.
func (m *Monitor) Note(e monitor.Event) {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.world.note(e)
	m.hurry()
}

// hurry asks for a snapshot soon; m.mu is held.
func (m *Monitor) hurry() {
	if !m.urgent {
		m.urgent = true
		wire.Poke(m.wake)
	}
}

// hasten wakes the scans if the state asks for it; m.mu is held.
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
	if v.guards != nil && len(v.guards.locks) > 0 {
		m.table()
	}
	return again
}

// Vouches are the announcements, for a guard to make on the node with this name, of what only this
// monitor knows of locks.
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

// passed takes in how much of the keys of node i its full read of this epoch has passed.
func (m *Monitor) passed(i int, epoch uint32, part float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.world.passed(i, epoch, part)
}

// seed asks the other nodes for the first locks that one of them has found, so
// that the first screen shows all of their copies; m.mu is held.
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

// table asks for a snapshot if locks changed, and the nodes to confirm it if it
// is not certain; m.mu is held.
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

// task is what there is to do for the follower of node i in this incarnation of its
// server; false: nothing more.
func (m *Monitor) task(i int, runID string) (task, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := task{epoch: m.world.table.Epoch(i), gap: !m.world.table.ReadWhole(i), hasten: m.hurried[i], unconfirmed: m.world.unconfirmed(), busy: m.world.nodes[i].ops >= wire.BusyOps}
	m.hurried[i] = false
	return t, m.world.inSight(i, runID)
}

// wanted are those of the keys of node i that are worth reading, see [table.Table.Wanted].
func (m *Monitor) wanted(i int, keys []string, count bool) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.world.table.Wanted(i, keys, count)
}

// reads says that a full read of node i begins.
func (m *Monitor) reads(i int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.world.table.ReadBegins(i)
}

// keysMost is how many keys and pages a full read of node i brings at most.
func (m *Monitor) keysMost(i int) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.world.nodes[i].keysMost()
}

// sample are some keys of node i that are shown, from a place in the table on; next is where to go on.
func (m *Monitor) sample(i, from, most int) (keys []string, next int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.world.table.Sample(i, from, most)
}

// unseen are those of the keys of a page that are looked at and not known to be on node i.
func (m *Monitor) unseen(i int, keys []string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(m.world.table.Unseen(i, keys), func(key string) bool { return !m.sought.keeps(key) })
}

// differs are the keys of node i of which these rows say something else than what is shown.
func (m *Monitor) differs(i int, runID string, sent, received time.Time, rows []table.Row) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.world.differs(i, runID, sent, received, rows)
}

// untold says that these keys of node i changed, and it did not tell of that.
func (m *Monitor) untold(i int, keys []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.world.untold(i, keys, time.Now())
	m.hurry()
}

// listens says whether node i tells of its changes.
func (m *Monitor) listens(i int, tells bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.world.nodes[i].tells = tells
}

// unheard says that nobody listens to node i any more.
func (m *Monitor) unheard(i int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.world.nodes[i]; n.tells {
		n.tells = false
		m.world.missed(i, time.Now())
		m.hurry()
	}
}

// missed says that changes of node i may not have been told.
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

// told says that all changes of node i until then have been read.
func (m *Monitor) told(i int, runID string, until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.world.told(i, runID, until, time.Now()) {
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
		wire.Poke(m.wake) // the publisher takes its time while nodes are read
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

// Guarded tells the monitor of the guard in this process: sight is called with
// each look for findings, and must answer at once. Without one, what only a
// guard can know is not told.
func (m *Monitor) Guarded(sight func() monitor.GuardView) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.world.findings.Guarded(sight)
}

// Booted tells the monitor how nodes start, by their names; what was told before
// is replaced. shown is closed when a snapshot has it.
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

// task is what the state of all wants of a follower.
type task struct {
	epoch       uint32
	gap         bool // there was no full read in this epoch
	hasten      bool // a full read should not wait for its turn
	unconfirmed bool // a lock waits for the nodes to confirm it
	busy        bool // the node said that it has much to do
}
