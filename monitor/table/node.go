package table

import (
	"redlockctl/monitor"
	"redlockctl/monitor/internal/packed"
	"redlockctl/redlock"
	"redlockctl/server/safetext"
	"slices"
	"time"
)

// node is what the table knows of a node.
type node struct {
	reachable bool
	closed    bool // refuses writes: a release leaves its copies there
	// epoch counts how often the node became unreadable. A copy read in an earlier epoch
	// may be gone.
	epoch       uint32
	incarnation uint32        // epoch in which this incarnation of the server started: copies of earlier ones are lost
	scanned     uint32        // epoch of the last complete scan; 0: never
	began       packed.Moment // when that scan started
	ended       packed.Moment // and ended
	// synced is a time up to which all changes on this node have been read, since the
	// node reports them.
	synced packed.Moment
	// missed is a time up to which changes may have been missed. It counts until the node
	// has been read after it, see isCurrent.
	missed    packed.Moment
	lostSight packed.Moment // since when the node is unreachable
	present   int           // copies of locks seen there
	// refused are the keys without room since the last full read started; unkeptBefore,
	// those of the one before.
	refused, unkeptBefore refusals
	restart               *restartCost  // of a restart, still being counted
	restarted             packed.Moment // when its last restart was seen; zero: never
	wiped                 packed.Moment // when its data was last wiped; zero: never
	stepped               packed.Moment // when its clock was last stepped forward, by stepBy; zero: never
	stepBy                time.Duration
	backs                 []stepBack // the last ones, the latest at the end
	loss, older           loss       // the last loss, and those before it
	// sealed: it was fenced when first seen and may have loaded keys from disk: those that
	// it has are taken for such.
	// loads: it has keys that have not been read since it started.
	sealed, loads bool
	lost          lostCopies
	expired       expiredCopies
}

// lostCopies counts the lost copies of a node whose locks are still held.
type lostCopies struct {
	since      packed.Moment // start of the current second
	reported   int           // one by one in that second
	unreported int           // the others, to be reported in one event
}

// expiredCopies are the copies of locks on a node that expired while it did not answer.
type expiredCopies struct {
	copies int
	until  packed.Moment // the latest end that was known
	names  []string
}

// noteExpired counts the copy of r on node i, which does not answer, as one that expires unseen: if the node
// crashed, it was lost while its holder relied on it. The holder of a grant that has ended does not.
func (t *Table) noteExpired(r *record, i int) {
	c, e := &r.Copies[i], &t.nodes[i].expired
	if c.Kind != packed.LockCopy || t.hasEnded(r, int8(c.Token)) || redlock.IsTombstone(r.Tokens[c.Token].Prefix) {
		return
	}
	e.copies++
	e.until = max(e.until, t.reliedOn(r, i))
	e.names = named(e.names, r)
}

// restartCost is the cost of a restart or a wipe, while it is counted.
type restartCost struct {
	cause monitor.LossCause
	read  bool          // the node must be read before the cost is known
	since packed.Moment // time of the loss

	hits                          int // locks whose part of it is still to be counted
	copies, bare, fell, unrevoked int
	others                        int           // copies of other tokens than the holder's
	expired                       expiredCopies // before the restart was seen
	until                         packed.Moment // latest end of a lost majority; far: there is none
	// locks that lost their majority, that are not revoked any more, that have a bare majority
	// now, and that lost a copy otherwise
	felled, freed, bared, names []string
}

// costReady reports whether the cost of a loss on node i can be reported: the node has
// been read since, if needed, or that takes too long.
func (t *Table) costReady(i int, now packed.Moment) bool {
	n := &t.nodes[i]
	c := n.restart
	switch {
	case c == nil:
		return false
	case now > c.since+packed.Moment(costPatience):
		return true
	case c.read && n.looked() <= c.since:
		return false
	}
	for k := range t.nodes { // after a stop of this process, all are read again: only then it is known what is left
		if o := &t.nodes[k]; c.hits > 0 && k != i && o.reachable && o.scanned != o.epoch {
			return false
		}
	}
	return true
}

// costPatience is how long an event about a loss waits for the node to be read.
const costPatience = 3 * time.Second

// mostNamed limits the locks that an event names.
const mostNamed = 50

func named(names []string, r *record) []string {
	if len(names) < mostNamed {
		names = append(names, r.key())
	}
	return names
}

// fall counts r as a lock that lost its majority; its holder relies on it until then.
func (c *restartCost) fall(r *record, until packed.Moment) {
	c.fell++
	if until == 0 {
		until = far
	}
	c.until = max(c.until, until)
	c.felled = named(c.felled, r)
}

// lossCost returns the cost of a loss on node i, for an event.
func (t *Table) lossCost(i int) monitor.RestartCost {
	c := t.nodes[i].restart
	t.countHits(i, c)
	slices.Sort(c.felled)
	slices.Sort(c.freed)
	slices.Sort(c.bared)
	slices.Sort(c.names)
	if c.until == far {
		c.until = 0
	}
	cost := monitor.RestartCost{Cause: c.cause, Lost: c.copies, Bare: c.bare, LostMajority: c.fell, HeldUntil: t.Time(c.until), Unrevoked: c.unrevoked, Others: c.others, Expired: c.expired.copies, ExpiredAt: t.Time(c.expired.until), Loaded: t.loaded(i)}
	names := slices.Concat(c.felled, c.freed, c.bared, c.names, c.expired.names)
	for _, name := range names[:min(len(names), mostNamed)] {
		cost.Locks = append(cost.Locks, safetext.New(name))
	}
	return cost
}

// loaded returns the meaning of the copies that node i loaded from disk.
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

// looked returns when the node was last known to be fully read: a copy that was not found
// did not exist then.
func (n *node) looked() packed.Moment { return max(n.began, n.synced) }

// isCurrent reports whether all changes that may have been missed have been read since.
// Until then, a TTL that ran out does not prove that a copy is gone: it may have been
// extended. A node that cannot be read counts as current, since nothing better is known.
func (n *node) isCurrent() bool {
	return n.missed == 0 || !n.reachable || n.scanned == n.epoch && n.looked() >= n.missed
}

// provesEnd reports whether a copy with this last known expiry is gone now: a node that
// does not report its changes may have had the copy extended since it was read.
func (n *node) provesEnd(expires packed.Moment) bool {
	return n.isCurrent() && (!n.reachable || n.synced != 0 || n.looked() >= expires)
}

// justRestarted reports whether present changes are probably caused by a restart of the
// node.
func (n *node) justRestarted(now packed.Moment) bool { return isRecent(n.restarted, now) }

// justWiped reports whether present changes are probably caused by a wipe of the node's
// data.
func (n *node) justWiped(now packed.Moment) bool { return isRecent(n.wiped, now) }

func isRecent(at, now packed.Moment) bool { return at != 0 && now-at < packed.Moment(5*time.Second) }

// unkept returns the number of keys of a node without room, counted since its last full
// read but one.
func (n *node) unkept() refusals {
	return refusals{max(n.refused.keys, n.unkeptBefore.keys), max(n.refused.locks, n.unkeptBefore.locks)}
}

// Reachable records that node i answers (again), and whether it refuses writes. Its
// copies stay unknown until they have been read.
func (t *Table) Reachable(i int, closed bool) {
	n := &t.nodes[i]
	if n.closed != closed && n.reachable {
		t.sweepAll() // the meaning of its copies depends on it
	}
	n.reachable, n.closed = true, closed
	n.sealed = n.sealed && closed
}

// Unreachable records that node i cannot be read: its copies become unknown.
func (t *Table) Unreachable(i int, now time.Time) {
	n := &t.nodes[i]
	if n.reachable {
		n.lostSight, n.expired = t.Moment(now), expiredCopies{}
	}
	n.reachable, n.missed = false, 0
	n.epoch++
	t.sweepAll()
}

// Doubt marks the copies of node i as unknown, though not gone: they must be read again.
func (t *Table) Doubt(i int) {
	t.nodes[i].epoch++
	t.nodes[i].missed = 0
	t.sweepAll()
}

// Scanned records that a full scan of node i, started at began in this epoch, is
// complete: a copy that it did not find is gone.
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
		t.sweepAll() // unknown copies are absent now
	} else {
		t.sweep = len(t.all)
	}
	t.asked = true
}

// Sync records that all changes of node i up to until have been read.
func (t *Table) Sync(i int, until time.Time) {
	n := &t.nodes[i]
	if m := t.Moment(until); m > n.synced && n.reachable && n.scanned == n.epoch {
		n.synced = m
		t.asked = t.asked || len(t.waiting) > 0
	}
}

// Missed records that changes of node i before now may not have been reported.
func (t *Table) Missed(i int, now time.Time) { t.nodes[i].missed = t.Moment(now) }

// Stopped records that this process did not run for a time: how a grant ended in it was not seen.
func (t *Table) Stopped(from, to time.Time) {
	t.stopped = packed.Span{Begin: t.Moment(from), End: t.Moment(to)}
}

// Epoch returns how often node i became unreadable; the end of a full read must quote it.
func (t *Table) Epoch(i int) uint32 { return t.nodes[i].epoch }

// InSight reports whether node i answers.
func (t *Table) InSight(i int) bool { return t.nodes[i].reachable }

// ReadWhole reports whether node i has been fully read since it became readable.
func (t *Table) ReadWhole(i int) bool { return t.nodes[i].scanned == t.nodes[i].epoch }

// ReadSince reports whether node i was fully read, or reported all of its changes, after
// a moment.
func (t *Table) ReadSince(i int, at time.Time) bool { return t.nodes[i].looked() >= t.Moment(at) }

// ReadBegins records the start of a full read of node i.
func (t *Table) ReadBegins(i int) { t.nodes[i].refused = refusals{} }

// JustRestarted reports whether present changes of node i are probably caused by its
// restart.
func (t *Table) JustRestarted(i int, now time.Time) bool {
	return t.nodes[i].justRestarted(t.Moment(now))
}

// JustLost reports whether a loss on node i was seen a moment ago.
func (t *Table) JustLost(i int, now time.Time) bool {
	n, m := &t.nodes[i], t.Moment(now)
	return n.justRestarted(m) || n.justWiped(m)
}

// Present returns the number of copies of locks seen on node i.
func (t *Table) Present(i int) int { return t.nodes[i].present }

// LastEnd returns when the last copy of a lock on node i expires; zero: there is none, or one has no
// TTL. It looks at all locks.
func (t *Table) LastEnd(i int) time.Time {
	var last packed.Moment
	for _, r := range t.all {
		switch c := &r.Copies[i]; {
		case c.Kind != packed.LockCopy:
		case c.Expires == 0:
			return time.Time{}
		default:
			last = max(last, c.Expires)
		}
	}
	return t.Time(last)
}

// NoRoom returns how many keys of node i found no room, and how many of them may be
// locks.
func (t *Table) NoRoom(i int) (keys, locks int) {
	r := t.nodes[i].unkept()
	return r.keys, r.locks
}
