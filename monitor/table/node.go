package table

import (
	"redlockctl/monitor"
	"redlockctl/monitor/internal/packed"
	"redlockctl/server/safetext"
	"slices"
	"time"
)

// tableNode is what the table knows of a node.
type node struct {
	reachable bool
	closed    bool // refuses writes: a release leaves its copies there
	// epoch counts how often sight of the node was lost. A copy read in an
	// earlier one is not known to be there still.
	epoch       uint32
	incarnation uint32        // epoch in which this incarnation of the server began: copies of earlier ones are lost
	scanned     uint32        // epoch of the last complete scan; 0: never
	began       packed.Moment // when that scan began
	ended       packed.Moment // and ended
	// synced is a time up to which all changes on this node have been read, since
	// the node tells of them.
	synced packed.Moment
	// missed is a time up to which changes may have been missed; it counts until the node has been
	// read up to then, see isCurrent.
	missed    packed.Moment
	lostSight packed.Moment // while not reachable: since when
	present   int           // copies of locks seen there
	// refused are the keys that found no room since the last full read began;
	// unkeptBefore, in the one before.
	refused, unkeptBefore refusals
	restart               *restartCost  // of a restart, being counted
	restarted             packed.Moment // when it was last seen to have restarted; zero: never
	wiped                 packed.Moment // when its data were last wiped; zero: never
	stepped               packed.Moment // when its clock was last stepped forward, by stepBy; zero: never
	stepBy                time.Duration
	loss, older           loss // the last one, and those before it
	// sealed: it has refused writes since it started, so what it has was loaded from its
	// disk. loads: it has keys that have not been read since it started.
	sealed, loads bool
	lost          lostCopies
}

// lostCopies counts, for a node, the copies of locks that are held on without
// them.
type lostCopies struct {
	since  packed.Moment // begin of the present second
	told   int           // one by one, in that second
	untold int           // beyond those, to be told in one sentence
}

// restartCost is what a restart or a wipe cost, while it is being counted.
type restartCost struct {
	cause monitor.LossCause
	read  bool          // the node has to be read before the cost is known
	since packed.Moment // the loss

	copies, bare, fell int
	until              packed.Moment // the latest end of a lost majority
	// of locks that lost their majority, that have a bare one now, and others that lost a
	// copy
	felled, bared, names []string
}

// ready reports whether the cost of a loss on node i can be told: the node has been read
// since, if that is needed, or takes too long.
func (t *Table) costReady(i int, now packed.Moment) bool {
	n := &t.nodes[i]
	c := n.restart
	return c != nil && (!c.read || n.looked() > c.since || now > c.since+packed.Moment(costPatience))
}

// costPatience is how long an event about a loss waits for the node to be read.
const costPatience = 3 * time.Second

// mostNamed is how many locks an event names.
const mostNamed = 50

func named(names []string, r *record) []string {
	if len(names) < mostNamed {
		names = append(names, r.key())
	}
	return names
}

// lossCost is what a loss on node i cost, for an event.
func (t *Table) lossCost(i int) monitor.RestartCost {
	c := t.nodes[i].restart
	slices.Sort(c.felled)
	slices.Sort(c.bared)
	slices.Sort(c.names)
	told := monitor.RestartCost{Cause: c.cause, Lost: c.copies, Bare: c.bare, LostMajority: c.fell, HeldUntil: t.Time(c.until), Loaded: t.loaded(i)}
	names := slices.Concat(c.felled, c.bared, c.names)
	for _, name := range names[:min(len(names), mostNamed)] {
		told.Locks = append(told.Locks, safetext.New(name))
	}
	return told
}

// loaded says what the copies that node i loaded from its disk mean.
func (t *Table) loaded(i int) (l monitor.Loaded) {
	if t.nodes[i].incarnation <= 1 || i >= 64 {
		return l
	}
	for _, r := range t.all {
		c := &r.Copies[i]
		switch k := int8(c.Token); {
		case c.Kind != packed.LockCopy || r.loaded&(1<<i) == 0:
		case k == r.grant.token:
			l.Held++
		case t.hasEnded(r, k):
			l.LeftOver++
		default:
			l.Unknown++
		}
	}
	return l
}

// looked is when the node was last known to be read whole: a copy that is not
// there was not there then.
func (n *node) looked() packed.Moment { return max(n.began, n.synced) }

// isCurrent reports whether nothing can have been missed that has not been read since. Until then
// a TTL that ran out is no proof that a copy is gone: it may have been extended. Of a node that
// cannot be read nothing better is to be had.
func (n *node) isCurrent() bool {
	return n.missed == 0 || !n.reachable || n.scanned == n.epoch && n.looked() >= n.missed
}

// provesEnd reports whether a copy that was last seen to expire then is gone now: one that does not
// tell of its changes may have extended it since it was read.
func (n *node) provesEnd(expires packed.Moment) bool {
	return n.isCurrent() && (!n.reachable || n.synced != 0 || n.looked() >= expires)
}

// justRestarted reports whether what is told now is likely what a restart of the node
// did.
func (n *node) justRestarted(now packed.Moment) bool { return isRecent(n.restarted, now) }

// justWiped reports whether what is told now is likely what a wipe of the node's data did.
func (n *node) justWiped(now packed.Moment) bool { return isRecent(n.wiped, now) }

func isRecent(at, now packed.Moment) bool { return at != 0 && now-at < packed.Moment(5*time.Second) }

// unkept are the keys of a node that found no room, as far as they were counted
// since its last full read but one.
func (n *node) unkept() refusals {
	return refusals{max(n.refused.keys, n.unkeptBefore.keys), max(n.refused.locks, n.unkeptBefore.locks)}
}

// Reachable says that node i answers (again), and if it refuses writes. Its
// copies stay unknown until they have been read.
func (t *Table) Reachable(i int, closed bool) {
	n := &t.nodes[i]
	if n.closed != closed && n.reachable {
		t.sweepAll() // what its copies mean depends on it
	}
	n.reachable, n.closed = true, closed
	n.sealed = n.sealed && closed
}

// Unreachable says that node i cannot be read: its copies become unknown.
func (t *Table) Unreachable(i int, now time.Time) {
	n := &t.nodes[i]
	if n.reachable {
		n.lostSight = t.Moment(now)
	}
	n.reachable, n.missed = false, 0
	n.epoch++
	t.sweepAll()
}

// Doubt forgets that the copies of node i were seen, without their being
// gone: they have to be read again.
func (t *Table) Doubt(i int) {
	t.nodes[i].epoch++
	t.nodes[i].missed = 0
	t.sweepAll()
}

// Scanned says that a full scan of node i, begun at began in this epoch, is
// complete: a copy that it did not meet is gone.
func (t *Table) Scanned(i int, epoch uint32, began, now time.Time) {
	n := &t.nodes[i]
	if epoch != n.epoch || !n.reachable {
		return
	}
	first := n.scanned != epoch
	n.scanned, n.began, n.ended = epoch, t.Moment(began), t.Moment(now)
	n.loads = false
	n.unkeptBefore, n.refused = n.refused, refusals{}
	if first {
		t.sweepAll() // what was unknown is absent now
	} else {
		t.sweep = len(t.all)
	}
	t.asked = true
}

// Sync says that all changes that node i made until then have been read.
func (t *Table) Sync(i int, until time.Time) {
	n := &t.nodes[i]
	if m := t.Moment(until); m > n.synced && n.reachable && n.scanned == n.epoch {
		n.synced = m
		t.asked = t.asked || len(t.waiting) > 0
	}
}

// Missed says that changes of node i before now may not have been told.
func (t *Table) Missed(i int, now time.Time) { t.nodes[i].missed = t.Moment(now) }

// Epoch is how often sight of node i was lost: the end of a full read has to quote it.
func (t *Table) Epoch(i int) uint32 { return t.nodes[i].epoch }

// InSight reports whether node i answers.
func (t *Table) InSight(i int) bool { return t.nodes[i].reachable }

// ReadWhole reports whether node i was read whole since it is in sight.
func (t *Table) ReadWhole(i int) bool { return t.nodes[i].scanned == t.nodes[i].epoch }

// ReadSince reports whether node i was read whole, or told all of its changes, after a moment.
func (t *Table) ReadSince(i int, at time.Time) bool { return t.nodes[i].looked() >= t.Moment(at) }

// ReadBegins says that a full read of node i begins.
func (t *Table) ReadBegins(i int) { t.nodes[i].refused = refusals{} }

// JustRestarted reports whether what is told of node i now is likely what its restart did.
func (t *Table) JustRestarted(i int, now time.Time) bool {
	return t.nodes[i].justRestarted(t.Moment(now))
}

// JustLost reports whether a loss on node i was seen a moment ago.
func (t *Table) JustLost(i int, now time.Time) bool {
	n, m := &t.nodes[i], t.Moment(now)
	return n.justRestarted(m) || n.justWiped(m)
}

// Present is how many copies of locks are seen on node i.
func (t *Table) Present(i int) int { return t.nodes[i].present }

// NoRoom is how many keys of node i found no room, and how many of them may be locks.
func (t *Table) NoRoom(i int) (keys, locks int) {
	r := t.nodes[i].unkept()
	return r.keys, r.locks
}
