// Package table is the lock table: which lock has which copies on which nodes, what that
// amounts to, and what is told of it. It is pure: what was read, and when, comes from outside.
package table

import (
	"container/heap"
	"redlockctl/monitor"
	"redlockctl/monitor/internal/packed"
	"redlockctl/server/safetext"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/btree"
)

// Table is the lock table: resource → copies on each node. It is pure: what was
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
type Table struct {
	*packed.Origin
	quorum  int
	maxTTL  time.Duration // 0: unknown
	bound   time.Duration // of TTLs; 0: unknown
	Attempt time.Duration // how long an attempt to lock takes at most
	nodes   []node
	names   []string // of the nodes

	records map[string]*record
	all     []*record     // in no order
	dirty   []*record     // to be assessed
	ordered int           // how many of them, the last ones, are in the order of their keys
	waiting []*record     // perhaps not confirmed by all nodes; those without the mark are to be left out
	asked   bool          // a node has confirmed something
	askNext packed.Moment // when to look which of them that makes certain
	sweep   int           // all[:sweep] is still to be looked at
	whole   bool          // the sweep assesses all of them, not only those that a full scan did not meet
	round   uint32        // of the sweeps that assess all
	timers  timerQueue
	groups  map[string]*group
	room    room
	found   []*record // of the rows that are being taken in

	locks   *btree.BTreeG[*monitor.Lock]
	counts  monitor.Counts
	fresh   []string // keys whose lock changed since the last snapshot
	settled bool     // all nodes had their first scan: changes are news
	// settledAt is when they had. What was wrong by then is told together, at
	// firstAlarms.
	settledAt, firstAlarms packed.Moment
	restartedAt            packed.Moment // the last restart of any node
	ended                  ended
	lapsed                 ended                // grants of which nobody knows that they ended: nodes did not answer
	vouching               map[*record]struct{} // of which more is known than their copies tell
	endings                map[string]ending    // by key: the last grant that ended before its time after copies of it were lost
	emit                   func(monitor.Event)
	// TakenBy is who took a lock from the holder of this token, as far as it is
	// known; nil: nobody knows.
	TakenBy func(key, token string) (monitor.Taking, bool)
	// OnRestart is told what a restart of node i, or a wipe of its data, cost, when all locks
	// have been looked at; nil: nobody listens.
	OnRestart func(i int, cost monitor.RestartCost, now time.Time)
}

// BoundTTL sets the longest TTL that a lock may have; 0: not known.
func (t *Table) BoundTTL(most time.Duration) {
	if t.bound != most {
		t.bound = most
		t.sweepAll()
	}
}

func New(names []string, quorum int, maxTTL, attempt time.Duration, now time.Time, emit func(monitor.Event)) *Table {
	n := len(names)
	t := &Table{
		Origin: packed.NewOrigin(now.Add(-time.Hour)), // so that no time that matters is zero
		quorum: quorum, maxTTL: maxTTL, bound: maxTTL, Attempt: attempt, emit: emit,
		nodes:    make([]node, n),
		names:    names,
		records:  map[string]*record{},
		groups:   map[string]*group{},
		vouching: map[*record]struct{}{}, endings: map[string]ending{},
		locks: monitor.NewLockTree(),
	}
	for i := range t.nodes {
		t.nodes[i].epoch, t.nodes[i].incarnation = 1, 1
	}
	return t
}

func (t *Table) sweepAll() { t.sweep, t.whole, t.round = len(t.all), true, t.round+1 }

func (t *Table) markDirty(r *record) {
	if !r.dirty {
		r.dirty = true
		t.dirty = append(t.dirty, r)
	}
}

// Locks is all locks, as they are now for good.
func (t *Table) Locks() monitor.Locks {
	return monitor.LocksOf(t.locks.Copy())
}

// Len is how many locks there are.
func (t *Table) Len() int { return t.locks.Len() }

// Counts are the numbers of locks by their state.
func (t *Table) Counts() monitor.Counts { return t.counts }

// TakeFresh are the keys of the locks that changed since it was last asked.
func (t *Table) TakeFresh() []string {
	fresh := t.fresh
	t.fresh = nil
	return fresh
}

func (t *Table) newRecord(key string) *record {
	key = strings.Clone(key) // what was read shares its memory with all else that was
	r := &record{
		lock: &monitor.Lock{Key: safetext.New(key)}, Set: packed.NewSet(t.Origin, len(t.nodes)),
		early: !t.settled, at: -1, pos: int32(len(t.all)), holder: -1, grant: grant{token: -1},
	}
	t.records[key] = r
	t.all = append(t.all, r)
	return r
}

// token is the number of tok among the tokens of r, which owns its copies, for one
// on node i.
func (t *Table) token(r *record, i int, tok packed.Token) uint8 {
	if k := slices.Index(r.Tokens, tok); k >= 0 {
		return uint8(k)
	}
	if len(r.Tokens) > len(t.nodes)+2 {
		r.Copies[i] = packed.Copy{} // its token is the one that goes
		r.compact()
	}
	tok.Prefix = strings.Clone(tok.Prefix)
	if k, ok := r.learnToken(tok); ok {
		return uint8(k)
	}
	r.Tokens = append(r.Tokens, tok)
	t.weigh(r, r.foreign)
	return uint8(len(r.Tokens) - 1)
}

// count keeps the nodes' numbers of copies in step when r's copies become next.
func (t *Table) count(r *record, next monitor.Copies) {
	for i := range r.lock.Copies.Len() {
		if holdsLock(&r.lock.Copies.Packed().Copies[i]) {
			t.nodes[i].present--
		}
	}
	for i := range next.Len() {
		if holdsLock(&next.Packed().Copies[i]) {
			t.nodes[i].present++
		}
	}
}

// holdsLock reports whether the copy is one of a lock, and there.
func holdsLock(c *packed.Copy) bool {
	return c.Kind == packed.LockCopy && c.State == monitor.CopyPresent
}

func (t *Table) schedule(r *record, at packed.Moment) {
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
func (t *Table) seen(r *record, i int) bool {
	return r.Copies[i].Have() && t.nodes[i].reachable && r.Copies[i].Epoch == t.nodes[i].epoch
}

// absent reports whether r is known not to be on node i.
func (t *Table) absent(r *record, i int) bool {
	n := &t.nodes[i]
	return !r.Copies[i].Have() && n.reachable && n.scanned == n.epoch
}

// confirmed reports whether node i was read after the last change of r, or is known
// to have changed nothing since.
func (t *Table) confirmed(r *record, i int) bool {
	n := &t.nodes[i]
	if t.seen(r, i) {
		return max(r.Copies[i].Sent, n.synced) >= r.changed
	}
	return t.absent(r, i) && n.looked() >= r.changed
}

// stateOf is what is known of copy i of r.
func (t *Table) stateOf(r *record, i int) monitor.CopyState {
	switch {
	case t.voteLost(r, i):
		return monitor.CopyLost
	case t.seen(r, i):
		return monitor.CopyPresent
	case t.absent(r, i):
		return monitor.CopyAbsent
	case t.nodes[i].reachable:
		return monitor.CopyUnread
	}
	return monitor.CopyUnknown
}

// stale reports whether dropVanished would drop anything of r.
func (t *Table) stale(r *record) bool {
	for i := range r.Copies {
		n, c := &t.nodes[i], &r.Copies[i]
		if c.Have() && (c.Epoch < n.incarnation || (n.scanned == n.epoch && c.Sent < n.began)) {
			return true
		}
	}
	return false
}
