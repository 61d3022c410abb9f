package monitor

import (
	"container/heap"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/btree"
)

// table is the lock table: resource → copies on each node. It is pure: what was
// read and what time it is come from outside. A change costs time in the number
// of copies that it touches. What concerns all locks (a node went, came back,
// was restarted or read whole) is done by a sweep, in slices between which
// others have their turn; see work.
//
// The nodes are read one after the other, so for a moment the table mixes
// times: a lock that is being taken shows on two nodes of five, one that passed
// from hand to hand shows both tokens. Numbers say what was read. States that
// raise an alarm (bare, orphan, split) wait until every node that answers is
// known to show no later change, or has been read again.
type table struct {
	*origin
	quorum  int
	maxTTL  time.Duration // 0: unknown
	attempt time.Duration // how long an attempt to lock takes at most
	nodes   []tableNode
	names   []string // of the nodes

	records map[string]*record
	all     []*record // in no order
	dirty   []*record // to be assessed
	waiting []*record // perhaps not confirmed by all nodes; those without the mark are to be left out
	asked   bool      // a node has confirmed something
	askNext moment    // when to look which of them that makes certain
	sweep   int       // all[:sweep] is still to be looked at
	whole   bool      // the sweep assesses all of them, not only those that a full scan did not meet
	round   uint32    // of the sweeps that assess all
	timers  timerQueue
	groups  map[string]*group
	room    room

	locks   *btree.BTreeG[*Lock]
	counts  Counts
	fresh   []string // keys whose lock changed since the last snapshot
	settled bool     // all nodes had their first scan: changes are news
	// settledAt is when they had. What was wrong by then is told together, at
	// firstAlarms.
	settledAt, firstAlarms moment
	restartedAt            moment // the last restart of any node
	emit                   func(Event)
	// takenBy is who took a lock from the holder of this token, as far as it is
	// known; nil: nobody knows.
	takenBy func(key, token string) (Taking, bool)
	// restart is told what a restart of node i cost, when all locks have been
	// looked at; nil: nobody listens.
	restart func(i int, cost restartCost, now time.Time)
}

type tableNode struct {
	reachable bool
	closed    bool // refuses writes: a release leaves its copies there
	// epoch counts how often sight of the node was lost. A copy read in an
	// earlier one is not known to be there still.
	epoch       uint32
	incarnation uint32 // epoch in which this incarnation of the server began: copies of earlier ones are lost
	scanned     uint32 // epoch of the last complete scan; 0: never
	began       moment // when that scan began
	ended       moment // and ended
	// synced is a time up to which all changes on this node have been read, since
	// the node tells of them.
	synced    moment
	lostSight moment // while not reachable: since when
	present   int    // copies of locks seen there
	// refused are the keys that found no room since the last full read began;
	// unkeptBefore, in the one before.
	refused, unkeptBefore refusals
	restart               *restartCost // of a restart, being counted
	restarted             moment       // when it was last seen to have restarted; zero: never
	lost                  lostCopies
}

// restartCost is what a restart cost, while it is being counted.
type restartCost struct {
	copies, bare int
	names, bared []string // of locks that lost a copy, and of those that are bare by it
}

// mostNamed is how many locks an event names.
const mostNamed = 50

func named(names []string, r *record) []string {
	if len(names) < mostNamed {
		names = append(names, r.key())
	}
	return names
}

// looked is when the node was last known to be read whole: a copy that is not
// there was not there then.
func (n *tableNode) looked() moment { return max(n.began, n.synced) }

func newTable(names []string, quorum int, maxTTL, attempt time.Duration, now time.Time, emit func(Event)) *table {
	n := len(names)
	t := &table{
		origin: newOrigin(now.Add(-time.Hour)), // so that no time that matters is zero
		quorum: quorum, maxTTL: maxTTL, attempt: attempt, emit: emit,
		nodes:   make([]tableNode, n),
		names:   names,
		records: map[string]*record{},
		groups:  map[string]*group{},
		locks:   newLockTree(),
	}
	for i := range t.nodes {
		t.nodes[i].epoch, t.nodes[i].incarnation = 1, 1
	}
	return t
}

// reachable says that node i answers (again), and if it refuses writes. Its
// copies stay unknown until they have been read.
func (t *table) reachable(i int, closed bool) {
	t.nodes[i].reachable, t.nodes[i].closed = true, closed
}

// unreachable says that node i cannot be read: its copies become unknown.
func (t *table) unreachable(i int, now time.Time) {
	n := &t.nodes[i]
	if n.reachable {
		n.lostSight = t.moment(now)
	}
	n.reachable = false
	n.epoch++
	t.sweepAll()
}

// doubt forgets that the copies of node i were seen, without their being
// gone: they have to be read again.
func (t *table) doubt(i int) {
	t.nodes[i].epoch++
	t.sweepAll()
}

// scanned says that a full scan of node i, begun at began in this epoch, is
// complete: a copy that it did not meet is gone.
func (t *table) scanned(i int, epoch uint32, began, now time.Time) {
	n := &t.nodes[i]
	if epoch != n.epoch || !n.reachable {
		return
	}
	first := n.scanned != epoch
	n.scanned, n.began, n.ended = epoch, t.moment(began), t.moment(now)
	n.unkeptBefore, n.refused = n.refused, refusals{}
	if first {
		t.sweepAll() // what was unknown is absent now
	} else {
		t.sweep = len(t.all)
	}
	t.asked = true
}

// sync says that all changes that node i made until then have been read.
func (t *table) sync(i int, until time.Time) {
	n := &t.nodes[i]
	if m := t.moment(until); m > n.synced && n.reachable && n.scanned == n.epoch {
		n.synced = m
		t.asked = true
	}
}

func (t *table) sweepAll() { t.sweep, t.whole, t.round = len(t.all), true, t.round+1 }

func (t *table) markDirty(r *record) {
	if !r.dirty {
		r.dirty = true
		t.dirty = append(t.dirty, r)
	}
}

// view is all locks, as they are now for good.
func (t *table) view() Locks {
	return Locks{t.locks.Copy()}
}

func (t *table) newRecord(key string) *record {
	key = strings.Clone(key) // what was read shares its memory with all else that was
	r := &record{
		lock: lockAt(key), copySet: newCopySet(t.origin, len(t.nodes)),
		early: !t.settled, at: -1, pos: int32(len(t.all)), holder: -1, grant: grant{token: -1},
	}
	t.records[key] = r
	t.all = append(t.all, r)
	return r
}

// token is the number of tok among the tokens of r, which owns its copies, for one
// on node i.
func (t *table) token(r *record, i int, tok token) uint8 {
	if k := slices.Index(r.tokens, tok); k >= 0 {
		return uint8(k)
	}
	if len(r.tokens) > len(t.nodes)+2 {
		r.copies[i] = copyOf{} // its token is the one that goes
		r.compact()
	}
	tok.prefix = strings.Clone(tok.prefix)
	r.tokens = append(r.tokens, tok)
	return uint8(len(r.tokens) - 1)
}

// count keeps the nodes' numbers of copies in step when r's copies become next.
func (t *table) count(r *record, next Copies) {
	for i := range r.lock.Copies.Len() {
		if r.lock.Copies.set.copies[i].held() {
			t.nodes[i].present--
		}
	}
	for i := range next.Len() {
		if next.set.copies[i].held() {
			t.nodes[i].present++
		}
	}
}

func (t *table) schedule(r *record, at moment) {
	switch {
	case r.at >= 0 && at == 0:
		heap.Remove(&t.timers, int(r.at))
	case r.at >= 0:
		if r.timer != at {
			r.timer = at
			heap.Fix(&t.timers, int(r.at))
		}
	case at != 0:
		r.timer = at
		heap.Push(&t.timers, r)
	}
}

// seen reports whether copy i of r is known to be there.
func (t *table) seen(r *record, i int) bool {
	return r.copies[i].have() && t.nodes[i].reachable && r.copies[i].epoch == t.nodes[i].epoch
}

// absent reports whether r is known not to be on node i.
func (t *table) absent(r *record, i int) bool {
	n := &t.nodes[i]
	return !r.copies[i].have() && n.reachable && n.scanned == n.epoch
}

// confirmed reports whether node i was read after the last change of r, or is known
// to have changed nothing since.
func (t *table) confirmed(r *record, i int) bool {
	n := &t.nodes[i]
	if t.seen(r, i) {
		return max(r.copies[i].sent, n.synced) >= r.changed
	}
	return t.absent(r, i) && n.looked() >= r.changed
}

// stateOf is what is known of copy i of r.
func (t *table) stateOf(r *record, i int) CopyState {
	switch {
	case t.seen(r, i):
		return CopyPresent
	case t.absent(r, i):
		return CopyAbsent
	case t.nodes[i].reachable:
		return CopyUnread
	}
	return CopyUnknown
}

// stale reports whether dropVanished would drop anything of r.
func (t *table) stale(r *record) bool {
	for i := range r.copies {
		n, c := &t.nodes[i], &r.copies[i]
		if c.have() && (c.epoch < n.incarnation || (n.scanned == n.epoch && c.sent < n.began)) {
			return true
		}
	}
	return false
}
