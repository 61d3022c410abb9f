// Package table is the lock table: copies read per key → lock state → events. It is pure:
// reads and times come from outside.
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

// Table is the lock table: resource → copies on each node. It is pure: reads and times
// come from outside. A change costs time for the copies that it touches. A change of a
// node concerns all locks (it went down, came back, restarted or was fully read); a sweep
// handles it in slices, so that other work can run in between; see Work.
//
// The nodes are read one after the other, so the table mixes times for a moment: a lock
// that is being acquired is on two nodes of five, and one that changes hands has both
// tokens. Numbers say what was read. States that raise an alarm (bare majority, orphaned,
// split) wait until every node that answers is known to have no later change, or has been
// read again.
type Table struct {
	*packed.Origin
	quorum  int
	maxTTL  time.Duration // 0: unknown
	bound   time.Duration // of TTLs; 0: unknown
	Attempt time.Duration // longest duration of an attempt to lock
	nodes   []node
	names   []string // of the nodes

	records map[string]*record
	all     []*record     // in no order
	dirty   []*record     // to be assessed
	ordered int           // how many of them, at the end, are sorted by key
	waiting []*record     // perhaps not confirmed by all nodes; ignore those without the mark
	asked   bool          // a node has confirmed something
	askNext packed.Moment // when to check which of them are certain now
	sweep   int           // all[:sweep] is still to be visited
	whole   bool          // the sweep assesses all of them, not only those that a full scan did not find
	round   uint32        // of the sweeps that assess all
	timers  timerQueue
	groups  map[string]*group
	room    room
	found   []*record // records of the rows being read

	locks   *btree.BTreeG[*monitor.Lock]
	counts  monitor.Counts
	fresh   []string // keys whose lock changed since the last snapshot
	settled bool     // all nodes had their first scan: changes are reported
	// settledAt is when that was. What was wrong by then is reported together, at
	// firstAlarms.
	settledAt, firstAlarms packed.Moment
	stopped                packed.Span // in which this process did not run, the last time
	// how long locks stay split, or without a TTL, or partly released, before that passes
	// by itself
	splits, lateTTLs, releases learned
	restartedAt                packed.Moment // the last restart of any node
	ended                      ended
	short                      shortGrants
	lapsed                     ended                // grants whose end is uncertain: nodes did not answer
	vouching                   map[*record]struct{} // locks about which more is known than their copies say
	rivals                     map[*record][]rival  // of records with several tokens
	leaving                    map[*record][]leaving
	late                       map[*record]lateExtension // of locks without a majority
	shortened                  map[*record]shortened
	leftBySteps                ended                 // tokens of which a guard told that
	stretched                  map[*record][]stretch // of records with copies on nodes whose clocks were stepped back
	certain                    map[string][]certain  // what guards know of lost votes, by key
	endings                    map[string]ending     // by key: the last grant that ended early after it had lost copies
	emit                       func(monitor.Event)
	// TakenBy returns who removed a lock from the holder of this token; nil or false:
	// unknown.
	TakenBy func(key, token string) (monitor.Action, bool)
	// Await emits an event whose text may change within a moment, when text returns the final one and
	// true; nil: it is emitted as it is. What is emitted meanwhile comes after it.
	Await func(e monitor.Event, text func() (safetext.Text, bool))
	// OtherDatabase returns the number of a database that has keys and is not the one of the locks; -1:
	// none is known. May be nil.
	OtherDatabase func() int
	// OnRestart gets the cost of a restart of node i, or of a wipe of its data, once all
	// locks have been assessed; may be nil.
	OnRestart func(i int, cost monitor.RestartCost, now time.Time)
}

// BoundTTL sets the longest TTL that a lock may have; 0: unknown.
func (t *Table) BoundTTL(most time.Duration) {
	if t.bound != most {
		t.bound = most
		t.sweepAll()
	}
}

func New(names []string, quorum int, maxTTL, attempt time.Duration, now time.Time, emit func(monitor.Event)) *Table {
	n := len(names)
	t := &Table{
		Origin: packed.NewOrigin(now.Add(-time.Hour)), // so that no relevant time is zero
		quorum: quorum, maxTTL: maxTTL, bound: maxTTL, Attempt: attempt, emit: emit,
		nodes:    make([]node, n),
		names:    names,
		records:  map[string]*record{},
		groups:   map[string]*group{},
		vouching: map[*record]struct{}{}, certain: map[string][]certain{}, rivals: map[*record][]rival{}, leaving: map[*record][]leaving{}, late: map[*record]lateExtension{}, shortened: map[*record]shortened{}, stretched: map[*record][]stretch{}, endings: map[string]ending{},
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

// Locks returns all locks, in a view that does not change.
func (t *Table) Locks() monitor.Locks {
	return monitor.LocksOf(t.locks.Copy())
}

// Len returns the number of locks.
func (t *Table) Len() int { return t.locks.Len() }

// Counts returns the numbers of locks by state.
func (t *Table) Counts() monitor.Counts { return t.counts }

// TakeFresh returns the keys of the locks that changed since its last call.
func (t *Table) TakeFresh() []string {
	fresh := t.fresh
	t.fresh = nil
	return fresh
}

func (t *Table) newRecord(key string) *record {
	key = strings.Clone(key) // a copy: what was read shares its memory with the whole read
	r := &record{
		lock: &monitor.Lock{Key: safetext.New(key)}, Set: packed.NewSet(t.Origin, len(t.nodes)),
		early: !t.settled, at: -1, pos: int32(len(t.all)), holder: -1, grant: grant{token: -1},
	}
	t.records[key] = r
	t.all = append(t.all, r)
	return r
}

// token returns the number of tok among the tokens of r, for a copy on node i. r must own
// its copies.
func (t *Table) token(r *record, i int, tok packed.Token) uint8 {
	if k := slices.Index(r.Tokens, tok); k >= 0 {
		return uint8(k)
	}
	if len(r.Tokens) > len(t.nodes)+2 {
		r.Copies[i] = packed.Copy{} // frees the token that it replaces
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

// count updates the nodes' numbers of copies when r's copies become next.
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

// holdsLock reports whether the copy exists and is one of a lock.
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

// seen reports whether copy i of r is known to exist.
func (t *Table) seen(r *record, i int) bool {
	return r.Copies[i].Have() && t.nodes[i].reachable && r.Copies[i].Epoch == t.nodes[i].epoch
}

// absent reports whether r is known not to be on node i.
func (t *Table) absent(r *record, i int) bool {
	n := &t.nodes[i]
	return !r.Copies[i].Have() && n.reachable && n.scanned == n.epoch
}

// confirmed reports whether node i was read after the last change of r, or is known to
// have changed nothing since.
func (t *Table) confirmed(r *record, i int) bool {
	n := &t.nodes[i]
	if t.seen(r, i) {
		return max(r.Copies[i].Sent, n.synced) >= r.changed
	}
	return t.absent(r, i) && n.looked() >= r.changed
}

// stateOf returns what is known of copy i of r.
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

// stale reports whether dropVanished may change anything of r.
func (t *Table) stale(r *record) bool {
	for i := range r.Copies {
		n, c := &t.nodes[i], &r.Copies[i]
		if r.awaited(i) || c.Have() && (c.Epoch < n.incarnation || (n.scanned == n.epoch && c.Sent < n.began)) {
			return true
		}
	}
	return false
}
