package monitor

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/btree"

	"redlockctl/internal/lockform"
	"redlockctl/internal/safetext"
	"redlockctl/redlock"
)

// row is what one read says of a key on a node.
type row struct {
	key    string
	typ    string        // "none": not there
	pttl   time.Duration // negative: it has no TTL, unless typ is "none"
	length int64
	prefix string // of a string: its first bytes; of a small hash: the names of its fields, one a line
}

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
	dirty   []*record // to be judged
	waiting []*record // perhaps not confirmed by all nodes; those without the mark are to be left out
	asked   bool      // a node has confirmed something
	askNext moment    // when to look which of them that makes certain
	sweep   int       // all[:sweep] is still to be looked at
	whole   bool      // the sweep judges all of them, not only those that a full scan did not meet
	round   uint32    // of the sweeps that judge all
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
	restart func(i, copies, bare int, now time.Time)
}

type tableNode struct {
	reachable bool
	closed    bool // refuses writes: a release leaves its copies there
	// epoch counts how often sight of the node was lost. A copy read in an
	// earlier one is not known to be there still.
	epoch   uint32
	life    uint32 // epoch in which this life of the server began: copies of earlier ones are lost
	scanned uint32 // epoch of the last complete scan; 0: never
	began   moment // when that scan began
	ended   moment // and ended
	// synced is a time up to which all changes on this node have been read, since
	// the node tells of them.
	synced    moment
	lostSight moment // while not reachable: since when
	present   int    // copies of locks seen there
	// refused are the keys that found no room since the last full read began;
	// unkeptBefore, in the one before.
	refused, unkeptBefore refusals
	restart               *cost // of a restart, being counted
	lost                  lostCopies
}

// lostCopies counts, for a node, the copies of locks that are held on without
// them.
type lostCopies struct {
	since  moment // begin of the present second
	told   int    // one by one, in that second
	untold int    // beyond those, to be told in one sentence
}

// lostTold is how many lost copies of a node are told one by one in a second.
const lostTold = 20

// cost is what a restart cost.
type cost struct{ copies, bare int }

// looked is when the node was last known to be read whole: a copy that is not
// there was not there then.
func (n *tableNode) looked() moment { return max(n.began, n.synced) }

type record struct {
	lock  *Lock // as published: never written again; before that its key alone
	form  *lockform.Form
	group *group
	*copySet
	// changed is when a copy came, went or changed its token. The first sights of
	// the first view are no change, unless they differ.
	changed  moment
	since    moment // of holder
	minority moment // since when holder has no majority; zero while it has
	end      moment // of the grant's majority; zero: never
	extended moment // when the last extension was told; zero: none of this grant's
	alarmed  moment // since when alarm holds
	timer    moment // when to look again; zero: no need

	at, pos int32 // place in the timer queue, −1: none; and in all
	// went is on which nodes a copy of the grant went before its time, since that
	// was last told; a bit for each of the first 32 nodes.
	went   uint32
	lost   uint8 // copies of the grant that went with restarts since it last had a majority
	holder int8  // token; −1: none yet
	grant  int8  // token that last reached a majority, until its end was told; −1: none
	early  bool  // was there when the monitor came; holder has not changed since
	known  bool  // judged once
	dirty  bool
	waits  bool // not confirmed by all nodes
	listed bool // in waiting
	buried bool
	struck bool // lost a copy by a restart since it was last judged
	shared bool // the copies are those of lock too: not to be written

	foreign bool   // reckoned as no lock
	weight  int32  // that it is reckoned at, in bytes
	judged  uint32 // round in which it was last judged

	extensions uint16    // of the grant, since one was last told
	alarm      LockState // that is worth an event when it has lasted; LockHeld: none
	alarmTold  bool
}

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
		t.nodes[i].epoch, t.nodes[i].life = 1, 1
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

// restarted drops the copies of node i: another life of the server begins with
// none, or with what the next scan finds. What that cost is told to t.restart
// when all locks have been looked at: at once, where they are few.
func (t *table) restarted(i int, now time.Time) {
	n := &t.nodes[i]
	n.epoch++
	n.life = n.epoch
	n.scanned, n.began, n.synced = 0, 0, 0
	t.restartedAt = t.moment(now)
	if n.restart == nil {
		n.restart = &cost{}
	}
	t.sweepAll()
	t.work(now, sweepSlice)
}

// strike drops the copy of r on node i if it belongs to an earlier life, or if
// the last full scan did not meet it.
func (t *table) strike(r *record, i int, now moment) {
	n, c := &t.nodes[i], &r.copies[i]
	switch {
	case !c.have():
	case c.epoch < n.life:
		if c.kind == lockCopy && (c.expires == 0 || c.expires > now) {
			if n.restart != nil {
				n.restart.copies++
			}
			r.struck = true
			if r.grant >= 0 && int8(c.token) == r.grant {
				r.lost++
			}
			r.goes(i, now)
		}
		r.drop(i) // no change for the other nodes to confirm: this one is certain
	case n.scanned == n.epoch && c.sent < n.began:
		r.goes(i, n.ended)
		r.drop(i)
		r.changed = max(r.changed, n.ended)
	}
}

// goes takes note that copy i of r goes, if it is one of the grant whose time
// is not over.
func (r *record) goes(i int, now moment) {
	if c := &r.copies[i]; i < 32 && c.kind == lockCopy && r.grant >= 0 && int8(c.token) == r.grant && (c.expires == 0 || c.expires > now) {
		r.went |= 1 << i
	}
}

// stale tells if strike would drop anything of r.
func (t *table) stale(r *record) bool {
	for i := range r.copies {
		n, c := &t.nodes[i], &r.copies[i]
		if c.have() && (c.epoch < n.life || (n.scanned == n.epoch && c.sent < n.began)) {
			return true
		}
	}
	return false
}

// read takes in what a read of some keys of node i said, that was sent and
// received at these times. An expiry is counted from the sending: PTTL was
// taken later, so the copy lives at least that long, and a round trip longer at
// most.
func (t *table) read(i int, sentAt, receivedAt time.Time, rows []row) {
	sent, received := t.moment(sentAt), t.moment(receivedAt)
	for k := range rows {
		w := &rows[k]
		r := t.records[w.key]
		var expires moment
		if w.pttl >= 0 {
			expires = sent + moment(w.pttl)
		}
		if r != nil {
			had := r.copies[i].have()
			if t.strike(r, i, received); had && !r.copies[i].have() {
				t.touch(r) // the sweep finds nothing to do there any more
			}
		}
		if w.typ == "none" || (w.pttl >= 0 && expires <= received) {
			if r != nil && r.copies[i].have() && r.copies[i].sent <= sent {
				r.goes(i, received)
				r.drop(i)
				r.changed = received
				t.touch(r)
			}
			continue
		}
		if r != nil && r.copies[i].have() && r.copies[i].sent > sent {
			continue // a later read was faster
		}
		typ, isLock := t.typ(w.typ), w.typ == "string"
		tok, shared := token{w.prefix, w.length}, false
		if !isLock {
			// Some libraries keep a lock in a hash.
			if w.prefix != "" {
				f := lockform.Recognize(w.key, w.typ, w.prefix, w.length, receivedAt)
				isLock = f != nil && !f.Companion && !f.Shared
				shared = f != nil && f.Shared
			}
			if !isLock && !shared {
				tok = token{length: w.length}
			}
		}
		if r == nil {
			if !t.room.admits(int64(costKey+costCopy*len(t.nodes)+len(w.key)+costToken+len(tok.prefix)), isLock) {
				t.nodes[i].refused.add(1, isLock)
				continue
			}
			r = t.newRecord(w.key)
			r.foreign = !isLock
		}
		c := &r.copies[i]
		unchanged := c.have() && r.tokens[c.token] == tok
		same := c.have() && c.typ == typ && (unchanged || !isLock)
		if same && unchanged && c.epoch == t.nodes[i].epoch && alike(c.expires, expires) {
			// Nothing that a person would see; it may confirm a change elsewhere.
			if c.sent = sent; r.waits {
				t.touch(r)
			}
			continue
		}
		if !same && c.have() {
			r.goes(i, received)
		}
		r.own()
		next := copyOf{sent: sent, expires: expires, epoch: t.nodes[i].epoch, typ: typ, token: c.token, kind: otherCopy}
		if isLock {
			next.kind = lockCopy
		}
		if !unchanged {
			next.token = t.token(r, i, tok)
		}
		if !same && (t.settled || r.differs(i, next)) {
			r.changed = received
		}
		r.copies[i] = next
		t.touch(r)
		if t.weigh(r, r.foreign); t.room.bursts() {
			t.bury(r)
			t.nodes[i].refused.add(1, true)
		}
	}
}

func (t *table) newRecord(key string) *record {
	key = strings.Clone(key) // what was read shares its memory with all else that was
	r := &record{
		lock: lockAt(key), copySet: newCopySet(t.origin, len(t.nodes)),
		early: !t.settled, at: -1, pos: int32(len(t.all)), holder: -1, grant: -1,
	}
	t.records[key] = r
	t.all = append(t.all, r)
	return r
}

func (r *record) key() string { return r.lock.Key.Raw() }

// own makes the copies of r those of r alone, before they are written.
func (r *record) own() {
	if r.shared {
		r.copySet, r.shared = r.clone(), false
	}
}

// drop forgets copy i.
func (r *record) drop(i int) {
	r.own()
	r.copies[i] = copyOf{}
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

// compact forgets the tokens that nothing refers to any more.
func (r *record) compact() {
	used := make([]int8, len(r.tokens)) // their new numbers, from 1 on
	mark := func(k int8) {
		if k >= 0 {
			used[k] = 1
		}
	}
	for i := range r.copies {
		if c := &r.copies[i]; c.have() {
			mark(int8(c.token))
		}
	}
	mark(r.holder)
	mark(r.grant)
	if !slices.Contains(used, 0) {
		return
	}
	r.own()
	var kept []token
	for k := range used {
		if used[k] > 0 {
			kept = append(kept, r.tokens[k])
			used[k] = int8(len(kept))
		}
	}
	for i := range r.copies {
		if c := &r.copies[i]; c.have() {
			c.token = uint8(used[c.token] - 1)
		}
	}
	for _, k := range []*int8{&r.holder, &r.grant} {
		if *k >= 0 {
			*k = used[*k] - 1
		}
	}
	r.tokens = slices.Clip(kept)
}

// differs tells if another node than i has another value than this.
func (r *record) differs(i int, next copyOf) bool {
	for k := range r.copies {
		if c := &r.copies[k]; k != i && c.have() && (c.typ != next.typ || (c.kind == lockCopy && c.token != next.token)) {
			return true
		}
	}
	return false
}

// doubtful tells if the first view has locks whose state another read of all
// nodes may change: several tokens, or one that passed on meanwhile.
func (t *table) doubtful() bool {
	for _, r := range t.waiting {
		if r.waits && r.changed != 0 {
			return true
		}
	}
	return false
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

// ask judges anew what waits to be confirmed, and is by now. Where very many
// locks wait, it is some time before they are asked for again.
func (t *table) ask(now moment) {
	t.asked, t.askNext = false, now+moment(len(t.waiting))*moment(askPause)
	kept := t.waiting[:0]
	for _, r := range t.waiting {
		if !r.waits {
			r.listed = false
			continue
		}
		kept = append(kept, r)
		if t.ripe(r) {
			t.touch(r)
		}
	}
	clear(t.waiting[len(kept):])
	if t.waiting = kept; cap(kept) > 1024 && cap(kept) > 4*len(kept) {
		t.waiting = slices.Clone(kept)
	}
}

// ripe tells if what the nodes have confirmed by now may make another state of r.
func (t *table) ripe(r *record) bool {
	all, unread := true, false
	for i := range r.copies {
		if t.nodes[i].reachable && !t.confirmed(r, i) {
			all = false
			unread = unread || !t.seen(r, i)
		}
	}
	return all || r.lost > 0 || !unread && r.lock.State == LockHeld
}

// unconfirmed reports whether anything waits for the nodes to confirm it.
func (t *table) unconfirmed() bool {
	for k := len(t.waiting) - 1; k >= 0; k-- {
		if t.waiting[k].waits {
			return true
		}
		t.waiting[k].listed = false
		t.waiting = t.waiting[:k]
	}
	return false
}

// settle says that the first view is complete. What is wrong from the start is
// told in one sentence for each kind.
func (t *table) settle(at time.Time) {
	t.refresh(at)
	t.settled, t.settledAt = true, t.moment(at)
	t.tellFirstAlarms(t.settledAt, LockOverTTL)
	t.firstAlarms = t.settledAt + moment(alarmPatience)
}

// tellFirstAlarms tells what was wrong when the first view was complete and
// still is, in one sentence for each of these states.
func (t *table) tellFirstAlarms(now moment, states ...LockState) {
	counts := map[LockState]int{}
	first := map[LockState]*record{}
	for _, r := range t.all {
		if !slices.Contains(states, r.alarm) || r.alarmTold || r.alarmed > t.settledAt {
			continue
		}
		r.alarmTold = true
		counts[r.alarm]++
		if f := first[r.alarm]; f == nil || r.key() < f.key() {
			first[r.alarm] = r
		}
	}
	for _, s := range states {
		switch n := counts[s]; {
		case n == 1:
			t.emit(lockEvent(t.time(now), LevelAlarm, s.String(), first[s].key(), "%s", first[s].lock.alarmText()))
		case n > 1:
			t.emit(nodeEvent(t.time(now), LevelAlarm, s.String(), "", "%d locks: %s", n, alarmTexts[s]))
		}
	}
}

// alarmPatience is how long a lock must have been split or without a TTL before
// that is told as an alarm: a client that tries in vain leaves its copies for a
// moment, and the old SETNX pattern sets the TTL with a second command.
const alarmPatience = 1500 * time.Millisecond

// patience is how long a state must have lasted to be told as an alarm; false: it
// is none.
func patience(s LockState) (time.Duration, bool) {
	switch s {
	case LockOverTTL:
		return 0, true
	case LockSplit, LockImmortal:
		return alarmPatience, true
	}
	return 0, false
}

func (t *table) touch(r *record) {
	if !r.dirty {
		r.dirty = true
		t.dirty = append(t.dirty, r)
	}
}

func (t *table) sweepAll() { t.sweep, t.whole, t.round = len(t.all), true, t.round+1 }

// askPause is how long asking is put off for each lock that waits: some ten
// times what it takes.
const askPause = 500 * time.Nanosecond

// sweepSlice is how many locks are judged in one go: a few milliseconds.
const sweepSlice = 2000

// refresh brings the states up to now, whatever time it takes.
func (t *table) refresh(now time.Time) {
	for t.work(now, sweepSlice) {
	}
}

// work brings the states of at most budget locks up to now. It tells if there
// is more to do.
func (t *table) work(at time.Time, budget int) (more bool) {
	now := t.moment(at)
	if t.asked && (now >= t.askNext || !t.settled) {
		t.ask(now)
	}
	for budget > 0 && len(t.timers) > 0 && t.timers[0].timer <= now {
		t.touch(heap.Pop(&t.timers).(*record))
		budget--
	}
	for budget > 0 && len(t.dirty) > 0 {
		last := len(t.dirty) - 1
		r := t.dirty[last]
		t.dirty[last] = nil
		t.dirty = t.dirty[:last]
		if !r.dirty {
			continue // its turn came before
		}
		r.dirty = false
		if !r.buried {
			t.judge(r, now)
			budget--
		}
	}
	if len(t.dirty) == 0 && cap(t.dirty) > 4*sweepSlice {
		t.dirty = nil
	}
	// From the end on: whoever is buried has its place taken by the last, who has
	// been looked at.
	t.sweep = min(t.sweep, len(t.all))
	for budget > 0 && t.sweep > 0 {
		t.sweep--
		r := t.all[t.sweep]
		switch {
		case r.dirty, t.whole && r.judged == t.round:
		case t.whole:
			t.judge(r, now)
			budget--
		case t.stale(r):
			t.judge(r, now)
			budget--
		}
		t.sweep = min(t.sweep, len(t.all))
	}
	if t.firstAlarms != 0 && now >= t.firstAlarms && t.sweep == 0 && len(t.dirty) == 0 {
		t.firstAlarms = 0
		t.tellFirstAlarms(now, LockSplit, LockImmortal)
	}
	t.tellUntold(at)
	if t.sweep == 0 && len(t.dirty) == 0 {
		t.whole = false
		for i := range t.nodes {
			if n := &t.nodes[i]; n.restart != nil {
				lost := *n.restart
				n.restart = nil
				if t.restart != nil {
					t.restart(i, lost.copies, lost.bare, at)
				}
			}
		}
	}
	return t.sweep > 0 || len(t.dirty) > 0 || (len(t.timers) > 0 && t.timers[0].timer <= now)
}

// first judges those of the first n locks that have changed before all others.
func (t *table) first(at time.Time, n int) {
	now := t.moment(at)
	// From the end on: who is buried gives its place to one that is later.
	for k := min(n, len(t.all)) - 1; k >= 0; k-- {
		if k < len(t.all) && t.all[k].dirty {
			t.all[k].dirty = false
			t.judge(t.all[k], now)
		}
	}
}

// pending tells if there is something to do now.
func (t *table) pending() bool { return t.sweep > 0 || len(t.dirty) > 0 || t.asked }

// next is when refresh has something to do at the latest; zero: nothing is due.
func (t *table) next() time.Time {
	due := t.firstAlarms
	if len(t.timers) > 0 && (due == 0 || t.timers[0].timer < due) {
		due = t.timers[0].timer
	}
	return t.time(due)
}

// seen tells if copy i of r is known to be there.
func (t *table) seen(r *record, i int) bool {
	return r.copies[i].have() && t.nodes[i].reachable && r.copies[i].epoch == t.nodes[i].epoch
}

// absent tells if r is known not to be on node i.
func (t *table) absent(r *record, i int) bool {
	n := &t.nodes[i]
	return !r.copies[i].have() && n.reachable && n.scanned == n.epoch
}

// confirmed tells if node i was read after the last change of r, or is known
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

// tally is how many copies a token has.
type tally struct {
	present int // known to be there
	last    int // at last sight, of nodes that do not answer
}

// judge works out what the copies of r mean now: numbers, state, the next time
// to look, and what happened since the last look.
func (t *table) judge(r *record, now moment) {
	n := len(t.nodes)
	r.judged = t.round
	for i := range r.copies {
		t.strike(r, i, now)
		if c := &r.copies[i]; c.have() && c.expires != 0 && c.expires <= now {
			r.drop(i)
		}
	}
	if len(r.tokens) > 1 {
		r.compact()
		t.weigh(r, r.foreign)
	}
	// One pass over the copies.
	var few [8]tally
	tallies := few[:]
	if len(r.tokens) > len(few) {
		tallies = make([]tally, len(r.tokens))
	}
	var locks, others int
	all := true // every node that answers was read since the last change
	var immortal, over bool
	counters := 0 // copies that are numbers without a TTL
	var timer moment
	soon := func(at moment) {
		if at > now && (timer == 0 || at < timer) {
			timer = at
		}
	}
	for i := range r.copies {
		if state := t.stateOf(r, i); state != r.copies[i].state {
			r.own()
			r.copies[i].state = state
		}
		c := &r.copies[i]
		if t.nodes[i].reachable && !t.confirmed(r, i) {
			all = false
		}
		if !c.have() {
			continue
		}
		soon(c.expires)
		if c.kind != lockCopy {
			others++
			continue
		}
		locks++
		if c.expires == 0 {
			immortal = true
			if c.typ == typeString && lockform.IsNumber(r.tokens[c.token].prefix, r.tokens[c.token].length) {
				counters++
			}
		} else if t.maxTTL > 0 && !redlock.IsTombstone(r.tokens[c.token].prefix) && time.Duration(c.expires-now) > t.maxTTL {
			over = true
			soon(c.expires - moment(t.maxTTL))
		}
		if c.state == CopyPresent {
			tallies[c.token].present++
		} else {
			tallies[c.token].last++
		}
	}
	if locks+others == 0 {
		t.end(r, now, true)
		t.bury(r)
		return
	}

	// The holder: the token with most copies; among equals the one that had the
	// majority, so that the screen does not swap them. What a revocation left
	// holds nothing.
	var best tally
	holder, tokens, holders := int8(-1), 0, 0
	revoked := false
	for k := range r.tokens {
		y := tallies[k]
		if y.present+y.last == 0 {
			continue
		}
		tokens++
		if redlock.IsTombstone(r.tokens[k].prefix) {
			revoked = true
		} else {
			holders++
		}
		if d := cmp.Or(cmp.Compare(y.present, best.present), cmp.Compare(y.last, best.last)); d > 0 ||
			(d == 0 && int8(k) == r.holder) {
			best, holder = y, int8(k)
		}
	}
	if locks == 0 {
		t.recognizeForeign(r, now)
	}
	if r.foreign != (locks == 0) {
		t.weigh(r, locks == 0)
	}
	if holder >= 0 && (holder != r.holder || r.since == 0) {
		r.holder, r.since = holder, now
		r.minority = 0
		if t.settled {
			r.early = false
		}
		r.form = t.recognize(r, holder, now)
	}
	if r.since == 0 {
		r.since = now
	}
	tombstone := holder >= 0 && redlock.IsTombstone(r.tokens[holder].prefix)
	form := r.form
	if counters > 0 && counters == locks && (form == nil || !form.Companion && form.Deadline.IsZero()) {
		form = lockform.Number()
	}
	companion := form != nil && form.Companion
	var deadline moment
	if r.form != nil && !r.form.Deadline.IsZero() {
		deadline = t.moment(r.form.Deadline)
		soon(deadline)
	}
	end, never := t.majorityEnd(r, holder, deadline)
	majority := best.present >= t.quorum
	// A node that does not answer may have kept its copy, and the holder counts
	// on it.
	perhaps := !majority && best.present+best.last >= t.quorum
	margin := crashMargin(n, t.quorum, best.present)

	kinds := holders
	if others > 0 && locks > 0 {
		kinds++
	}
	state := LockHeld
	worse := func(s LockState) { state = max(state, s) }
	switch {
	case locks == 0 || companion:
		worse(LockNotALock)
	case revoked && (tombstone || (!majority && !perhaps)):
		r.minority = 0
		worse(LockRevoked)
	case majority:
		r.minority = 0
		if margin <= 0 && margin+t.possibleNews(r, holder) <= 0 {
			worse(LockBare)
		}
		if !never && time.Duration(end-now) <= time.Second {
			worse(LockExpiring)
		} else if !never {
			soon(end - moment(time.Second))
		}
	case perhaps:
		r.minority = 0
		worse(LockBare)
	default:
		if r.minority == 0 {
			r.minority = now
		}
		ripe := r.minority + moment(t.attempt)
		soon(ripe)
		if ripe <= now && all && best.present+t.possible(r, holder) < t.quorum {
			worse(LockOrphan)
		} else {
			worse(LockPartial)
		}
	}
	if locks > 0 && !companion {
		switch {
		case !immortal:
		case deadline == 0:
			worse(LockImmortal)
		case deadline <= now:
			worse(LockOrphan) // nobody holds it, and it stays until somebody takes it
		}
		if over {
			worse(LockOverTTL)
		}
		if kinds > 1 && all {
			worse(LockSplit)
		}
	}

	was, known := r.lock.State, r.known
	next := Lock{
		Key: r.lock.Key, State: state, Held: best.present, Tokens: tokens,
		MajorityEnd: t.time(end), Since: t.time(r.since), Form: form,
	}
	if state == LockSplit && holders > 1 && !majority && !perhaps {
		next.Nobody = true
		for k := range r.tokens {
			if tallies[k].present+t.possible(r, int8(k)) >= t.quorum {
				next.Nobody = false
			}
		}
	}
	if holder >= 0 {
		next.Holder = safetext.New(r.tokens[holder].prefix)
	}
	if next.Copies = (Copies{r.copySet}); !known || !same(r.lock, &next) {
		r.shared = true
		t.count(r, next.Copies)
		shown := r.lock
		if known {
			shown = new(Lock)
		}
		*shown = next
		t.publish(r, shown)
	}
	r.known = true
	if r.went != 0 {
		soon(r.changed + moment(t.attempt))
	}
	soon(t.tellAlarm(r, now))
	t.schedule(r, timer)
	t.tell(r, holder, majority && !tombstone && !companion, end, was, known, now, all)
	if r.struck {
		r.struck = false
		for i := range t.nodes {
			if c := t.nodes[i].restart; c != nil && r.lock.Held >= t.quorum && r.lock.Margin() <= 0 {
				c.bare++
			}
		}
	}
	r.waits = !all || r.lost > 0
	if r.waits && !r.listed {
		r.listed = true
		t.waiting = append(t.waiting, r)
	}
}

// same tells if a lock would look like the old one.
func same(old, next *Lock) bool {
	return old.State == next.State && old.Held == next.Held && old.Tokens == next.Tokens &&
		old.Nobody == next.Nobody && old.Holder == next.Holder && old.Form == next.Form && old.Since.Equal(next.Since) &&
		old.MajorityEnd.IsZero() == next.MajorityEnd.IsZero() && abs(old.MajorityEnd.Sub(next.MajorityEnd)) < jitter &&
		old.Copies.set.alike(next.Copies.set)
}

// possible is how many more copies of tok there may be on nodes that do not
// answer: where it was last seen there, or where nobody looked between its
// first sight and the node's silence.
func (t *table) possible(r *record, tok int8) int {
	k := 0
	for i := range t.nodes {
		n := &t.nodes[i]
		switch c := &r.copies[i]; {
		case n.reachable:
		case c.have():
			if c.kind == lockCopy && int8(c.token) == tok {
				k++
			}
		case n.lostSight == 0: // never seen at all
			if r.early {
				k++
			}
		case r.since < n.lostSight && n.looked() < r.since:
			k++
		}
	}
	return k
}

// possibleNews is how many more copies of tok there may be on nodes that answer
// and have not confirmed the last change yet.
func (t *table) possibleNews(r *record, tok int8) int {
	k := 0
	for i := range r.copies {
		if c := &r.copies[i]; t.nodes[i].reachable && !t.confirmed(r, i) && !(t.seen(r, i) && c.kind == lockCopy && int8(c.token) == tok) {
			k++
		}
	}
	return k
}

// majorityEnd is the quorum-th latest expiry of the copies of tok. never: a
// quorum of them has no TTL. Both zero: there is no majority. A copy without
// TTL whose value tells its deadline ends then.
func (t *table) majorityEnd(r *record, tok int8, deadline moment) (end moment, never bool) {
	var few [8]moment
	ends := few[:0]
	forever := 0
	for i := range r.copies {
		c := &r.copies[i]
		switch {
		case c.kind != lockCopy || int8(c.token) != tok:
		case c.expires != 0:
			ends = append(ends, c.expires)
		case deadline != 0:
			ends = append(ends, deadline)
		default:
			forever++
		}
	}
	switch {
	case forever >= t.quorum:
		return 0, true
	case forever+len(ends) < t.quorum:
		return 0, false
	}
	slices.Sort(ends)
	return ends[len(ends)-(t.quorum-forever)], false
}

// tell makes events of what changed since the last look.
func (t *table) tell(r *record, holder int8, majority bool, end moment, was LockState, known bool, now moment, all bool) {
	if r.grant >= 0 && (!majority || holder != r.grant) {
		t.end(r, now, all)
	}
	if majority && r.grant < 0 {
		r.grant, r.end, r.lost, r.went = holder, end, 0, 0
		r.extended, r.extensions = 0, 0
		if t.settled && !r.early {
			t.emit(t.grantEvent(r, holder, end, 0, lockEvent(t.time(now), LevelInfo, "acquired", r.key(), "acquired by %s for %s", r.tokens[holder].prefix, left(end, now))))
		}
		r.early = false
	} else if majority && holder == r.grant {
		if t.settled && r.end != 0 && time.Duration(end-r.end) > extendedBy {
			r.extensions = min(r.extensions, 1<<15) + 1
			if r.extended == 0 || time.Duration(now-r.extended) >= extendedEvery {
				often := ""
				if r.extensions > 1 {
					often = fmt.Sprintf(" (%d times since that was last told)", r.extensions)
				}
				t.emit(t.grantEvent(r, holder, end, int(r.extensions), lockEvent(t.time(now), LevelInfo, "extended", r.key(), "extended by %s: ends in %s%s", r.tokens[holder].prefix, left(end, now), often)))
				r.extended, r.extensions = now, 0
			}
		}
		r.end, r.lost = end, 0
		t.tellLost(r, now, all)
	}
	if s := r.lock.State; t.settled && (s != was || !known) && s == LockOrphan {
		t.emit(lockEvent(t.time(now), LevelNotice, s.String(), r.key(), "%s", r.lock.alarmText()))
	}
}

// tellAlarm tells of a state that needs a person when it has lasted, and returns
// when to look again.
func (t *table) tellAlarm(r *record, now moment) (again moment) {
	s := r.lock.State
	wait, ok := patience(s)
	if !ok {
		r.alarm, r.alarmTold = LockHeld, false
		return 0
	}
	if r.alarm != s {
		r.alarm, r.alarmed, r.alarmTold = s, now, false
	}
	if !t.settled || r.alarmTold || t.firstAlarms != 0 && r.alarmed <= t.settledAt {
		return 0 // it was told, or will be with the others
	}
	if due := r.alarmed + moment(wait); now < due {
		return due
	}
	r.alarmTold = true
	t.emit(lockEvent(t.time(now), LevelAlarm, s.String(), r.key(), "%s", r.lock.alarmText()))
	return 0
}

// tellLost tells of the copies that a lock has lost which is held on without
// them: when all nodes have confirmed it, and when a release would have come to
// its end.
func (t *table) tellLost(r *record, now moment, all bool) {
	if r.went == 0 || !all || !t.settled || now < r.changed+moment(t.attempt) {
		return
	}
	for i := range r.copies {
		c := &r.copies[i]
		if i >= 32 || r.went&(1<<i) == 0 || c.kind == lockCopy && int8(c.token) == r.grant {
			continue // it is back
		}
		l := &t.nodes[i].lost
		if now-l.since >= moment(time.Second) {
			l.since, l.told = now, 0
		}
		if l.told++; l.told > lostTold {
			l.untold++
			continue
		}
		why := "gone before its time, and not released"
		switch {
		case c.kind == lockCopy && redlock.IsTombstone(r.tokens[c.token].prefix):
			why = "revoked there"
		case c.have():
			why = "something else is there"
		}
		e := lockEvent(t.time(now), LevelNotice, lostCopy, r.key(), "lost its copy on %s (%s): %d left", t.names[i], why, r.lock.Held)
		e.Node = t.names[i]
		t.emit(e)
	}
	r.went = 0
}

// tellUntold tells how many more copies a node has lost than were told one by
// one.
func (t *table) tellUntold(at time.Time) {
	for i := range t.nodes {
		if l := &t.nodes[i].lost; l.untold > 0 && t.moment(at)-l.since >= moment(time.Second) {
			t.emit(nodeEvent(at, LevelNotice, lostCopy, t.names[i], "%s: %s of held locks gone before their time, and not released",
				t.names[i], count(l.untold, "more copy", "more copies")))
			l.untold = 0
		}
	}
}

const lostCopy = "lost copy"

const (
	jitter        = 2 * time.Millisecond   // of an expiry, from read to read
	extendedBy    = 100 * time.Millisecond // the majority end moved by more: not the jitter of a read
	extendedEvery = 10 * time.Second       // a watched lock is extended all the time: the first is told, then one once in a while
)

// end tells how the grant of r ended, as soon as that is certain.
func (t *table) end(r *record, now moment, all bool) {
	if r.grant < 0 {
		return
	}
	// Copies that are there; that may be there; and that are there because the
	// node takes no DEL either.
	there, unknown, stuck, tombstones := 0, 0, 0, 0
	for i := range r.copies {
		c := &r.copies[i]
		if c.kind != lockCopy {
			continue
		}
		switch seen := t.seen(r, i); {
		case int8(c.token) != r.grant:
			if redlock.IsTombstone(r.tokens[c.token].prefix) {
				tombstones++
			}
		case seen && t.nodes[i].closed:
			stuck++
		case seen:
			there++
			// After a restart a lock may just be on its way out: look again.
			all = all && (r.lost == 0 || max(c.sent, t.nodes[i].synced) >= t.restartedAt)
		default:
			unknown++
		}
	}
	var kind, text string
	level := LevelInfo
	switch {
	case there+stuck+unknown >= t.quorum:
		return // it may still be held
	case r.end != 0 && now >= r.end:
		kind, text = "expired", "its time ran out"
	case !all && (there+stuck+unknown > 0 || r.lost > 0):
		return // the other nodes will say
	case tombstones > 0:
		kind, level = "revoked", LevelNotice
		text = "revoked" + t.by(r, r.grant, "revoke") + ": nobody gets in before its TTL ends"
	case there+stuck+int(r.lost) >= t.quorum:
		kind, text, level = "lost majority", "lost its majority by a restart", LevelAlarm
	case there == 0:
		kind, text = "released", "released" // wherever that could be seen and done
		if by := t.by(r, r.grant, "force-release"); by != "" {
			kind, text, level = "force-released", "force-released"+by, LevelNotice
		}
	default:
		kind, text, level = "lost majority", "copies are missing: no majority, and not released", LevelAlarm
	}
	if t.settled {
		t.emit(lockEvent(t.time(now), level, kind, r.key(), "%s (%s)", text, r.tokens[r.grant].prefix))
	}
	r.grant, r.lost, r.went = -1, 0, 0
}

// grantEvent is an event with what it tells of the grant of a holder.
func (t *table) grantEvent(r *record, holder int8, end moment, times int, e Event) Event {
	e.Token, e.Times = safetext.New(r.tokens[holder].prefix), times
	if end != 0 {
		e.Until = t.time(end)
	}
	return e
}

func left(end, now moment) string {
	if end == 0 {
		return "ever"
	}
	return time.Duration(end - now).Round(100 * time.Millisecond).String()
}

// by says by whom the lock was taken from the holder of a token in this way, and
// why, where that is known: " by ops@host (host burnt down)".
func (t *table) by(r *record, tok int8, act string) string {
	if t.takenBy == nil || !r.tokens[tok].whole() {
		return ""
	}
	taking, ok := t.takenBy(r.key(), r.tokens[tok].prefix)
	if !ok || taking.Act != act {
		return ""
	}
	by := " by " + taking.Actor
	if taking.Reason != "" {
		by += ": " + taking.Reason
	}
	return by
}

// alarmTexts are what a state of several locks means.
var alarmTexts = map[LockState]string{
	LockOrphan:   "a minority of copies that nobody completes: it keeps others out of those nodes until it expires",
	LockOverTTL:  "a TTL longer than the cluster's maximum: a restart may forget it too early",
	LockSplit:    "several tokens at once",
	LockImmortal: "a copy without TTL: it never ends by itself",
}

// alarmText is what the state of the lock means.
func (l *Lock) alarmText() string {
	switch {
	case l.State == LockSplit && l.Tokens <= 1:
		return "locks and other values at once"
	case l.State == LockSplit && l.Nobody:
		return "several tokens at once, and none has a majority: " + l.NobodyText()
	case l.State == LockImmortal:
		return l.EndlessText()
	}
	return alarmTexts[l.State]
}

// recognize is the form of the lock with this holder.
func (t *table) recognize(r *record, holder int8, now moment) *lockform.Form {
	typ := uint8(typeString)
	for i := range r.copies {
		if c := &r.copies[i]; c.kind == lockCopy && int8(c.token) == holder {
			typ = c.typ
		}
	}
	tok := r.tokens[holder]
	return lockform.Recognize(r.key(), t.types[typ], tok.prefix, tok.length, t.time(now))
}

// recognizeForeign finds out what r is, which no copy makes a lock: something
// that a library keeps beside its locks, maybe.
func (t *table) recognizeForeign(r *record, now moment) {
	have := func(c copyOf) bool { return c.have() }
	i := slices.IndexFunc(r.copies, have)
	typ, was := t.types[r.copies[i].typ], ""
	if old := r.lock.Copies.set; old != nil {
		if k := slices.IndexFunc(old.copies, have); k >= 0 {
			was = t.types[old.copies[k].typ]
		}
	}
	tok := r.tokens[r.copies[i].token]
	if r.form == nil || r.holder >= 0 || typ != was || tok.prefix != "" {
		// What several hold keeps its holders; of anything else no value is kept.
		if f := lockform.Recognize(r.key(), typ, tok.prefix, tok.length, t.time(now)); f == nil || r.form == nil || *f != *r.form {
			r.form = f
		}
	}
	r.holder = -1
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

func (t *table) bury(r *record) {
	t.count(r, Copies{})
	t.schedule(r, 0)
	t.unweigh(r)
	r.waits, r.buried = false, true
	delete(t.records, r.key())
	last := len(t.all) - 1
	t.all[r.pos] = t.all[last]
	t.all[r.pos].pos = r.pos
	t.all[last] = nil
	t.all = t.all[:last]
	if r.known {
		t.publish(r, nil)
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

// view is all locks, as they are now for good.
func (t *table) view() Locks {
	return Locks{t.locks.Copy()}
}

// timerQueue is a heap of records by the time to look at them again.
type timerQueue []*record

func (q timerQueue) Len() int           { return len(q) }
func (q timerQueue) Less(i, j int) bool { return q[i].timer < q[j].timer }
func (q timerQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].at, q[j].at = int32(i), int32(j)
}
func (q *timerQueue) Push(x any) {
	r := x.(*record)
	r.at = int32(len(*q))
	*q = append(*q, r)
}
func (q *timerQueue) Pop() any {
	old := *q
	r := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	r.at = -1
	return r
}
