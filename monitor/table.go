package monitor

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"redlockctl/internal/safetext"
)

// row is what one read says of a key on a node.
type row struct {
	key    string
	typ    string        // "none": not there
	pttl   time.Duration // negative: it has no TTL, unless typ is "none"
	length int64
	prefix string // of a string: its first bytes
}

// table is the lock table: resource → copies on each node. It is pure: what was
// read and what time it is come from outside. A change costs time in the number
// of copies that it touches; only a change of a whole node looks at all locks.
//
// The nodes are read one after the other, so for a moment the table mixes
// times: a lock that is being taken shows on two nodes of five, one that passed
// from hand to hand shows both tokens. Numbers say what was read. States that
// raise an alarm (bare, orphan, split) wait until every node that answers has
// been read again after the last change of that lock.
type table struct {
	quorum  int
	maxTTL  time.Duration // 0: unknown
	attempt time.Duration // how long an attempt to lock takes at most
	nodes   []tableNode

	records map[string]*record
	order   []*record // sorted by key; may hold dead ones and lack added ones
	added   []*record
	dirty   map[*record]struct{}
	waiting map[*record]struct{} // not confirmed by all nodes
	timers  timerQueue

	locks   []Lock // as last published; nil when something changed
	settled bool   // all nodes had their first scan: changes are news
	emit    func(Event)
}

type tableNode struct {
	reachable bool
	closed    bool // refuses writes: a release leaves its copies there
	// epoch counts how often sight of the node was lost. A copy read in an
	// earlier one is not known to be there still.
	epoch     uint64
	scanned   uint64    // epoch of the last complete scan; 0: never
	began     time.Time // when that scan began
	lostSight time.Time // while not reachable: since when
	present   int       // copies of strings seen there
}

type record struct {
	key    string
	copies []copyOf
	// changed is when a copy came, went or changed its token. The first sights of
	// the first view are no change, unless they differ.
	changed time.Time
	early   bool // was there when the monitor came; holder has not changed since
	dead    bool
	lost    int       // copies of the grant that went with restarts since it last had a majority
	lostAt  time.Time // the last of them

	holder   token
	since    time.Time // of holder
	minority time.Time // since when holder has no majority; zero while it has
	grant    token     // what last reached a majority, until its end was told
	granted  bool
	end      time.Time // of the grant's majority; zero: never
	extended time.Time // when the last extension was told

	lock  Lock
	timer time.Time // when to look again; zero: no need
	at    int       // place in the timer queue; -1: none
}

// token tells values apart by what was read of them.
type token struct {
	prefix string
	length int64
}

type copyOf struct {
	have    bool
	epoch   uint64
	typ     string
	token   token
	expires time.Time // zero: no TTL
	sent    time.Time // when the read was sent
	readAt  time.Time
}

func newTable(n, quorum int, maxTTL, attempt time.Duration, emit func(Event)) *table {
	t := &table{
		quorum: quorum, maxTTL: maxTTL, attempt: attempt, emit: emit,
		nodes:   make([]tableNode, n),
		records: map[string]*record{},
		dirty:   map[*record]struct{}{},
		waiting: map[*record]struct{}{},
	}
	for i := range t.nodes {
		t.nodes[i].epoch = 1
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
		n.lostSight = now
	}
	n.reachable = false
	n.epoch++
	t.touchAll()
}

// doubt forgets that the copies of node i were seen, without their being
// gone: they have to be read again.
func (t *table) doubt(i int) {
	t.nodes[i].epoch++
	t.touchAll()
}

// restarted drops the copies of node i: another life of the server begins with
// none, or with what the next scan finds. It returns how many locks' copies
// were dropped, and how many locks have a majority left but no copy to lose.
func (t *table) restarted(i int, now time.Time) (copies, bare int) {
	n := &t.nodes[i]
	n.epoch++
	n.scanned, n.began = 0, time.Time{}
	var hit []*record
	for _, r := range t.records {
		c := &r.copies[i]
		if !c.have {
			continue
		}
		if c.typ == "string" && (c.expires.IsZero() || c.expires.After(now)) {
			copies++
			hit = append(hit, r)
			if r.granted && c.token == r.grant {
				r.lost, r.lostAt = r.lost+1, now
			}
		}
		*c = copyOf{} // no change for the other nodes to confirm: this one is certain
	}
	t.touchAll()
	t.refresh(now)
	for _, r := range hit {
		if r.lock.Held >= t.quorum && r.lock.Margin <= 0 {
			bare++
		}
	}
	return copies, bare
}

// read takes in what a read of some keys of node i said, that was sent and
// received at these times. An expiry is counted from the sending: PTTL was
// taken later, so the copy lives at least that long, and a round trip longer at
// most.
func (t *table) read(i int, sent, received time.Time, rows []row) {
	for _, w := range rows {
		r := t.records[w.key]
		var expires time.Time
		if w.pttl >= 0 {
			expires = sent.Add(w.pttl)
		}
		if w.typ == "none" || (w.pttl >= 0 && !expires.After(received)) {
			if r != nil && r.copies[i].have {
				r.copies[i] = copyOf{}
				r.changed = received
				t.touch(r)
			}
			continue
		}
		if r == nil {
			r = &record{key: w.key, copies: make([]copyOf, len(t.nodes)), early: !t.settled, at: -1}
			r.lock.Key = safetext.New(w.key)
			t.records[w.key] = r
			t.added = append(t.added, r)
		}
		c := &r.copies[i]
		tok := token{w.prefix, w.length}
		if w.typ != "string" {
			tok = token{length: w.length}
		}
		same := c.have && c.typ == w.typ && (c.token == tok || w.typ != "string")
		if !same {
			if t.settled || r.differs(i, w.typ, tok) {
				r.changed = received
			}
		} else if t.quiet(r) && c.epoch == t.nodes[i].epoch &&
			c.expires.IsZero() == expires.IsZero() && abs(expires.Sub(c.expires)) < jitter &&
			received.Sub(r.lock.Copies[i].ReadAt) < time.Second {
			c.expires, c.sent, c.readAt = expires, sent, received
			continue // nothing that a person would see
		}
		*c = copyOf{
			have: true, epoch: t.nodes[i].epoch, typ: w.typ, token: tok,
			expires: expires, sent: sent, readAt: received,
		}
		t.touch(r)
	}
}

// quiet tells if r was judged since it was last read, and by all nodes.
func (t *table) quiet(r *record) bool {
	_, dirty := t.dirty[r]
	_, waits := t.waiting[r]
	return !dirty && !waits
}

// differs tells if another node than i has another value than this.
func (r *record) differs(i int, typ string, tok token) bool {
	for k := range r.copies {
		if c := &r.copies[k]; k != i && c.have && (c.typ != typ || (typ == "string" && c.token != tok)) {
			return true
		}
	}
	return false
}

// doubtful tells if the first view has locks whose state another read of all
// nodes may change: several tokens, or one that passed on meanwhile.
func (t *table) doubtful(now time.Time) bool {
	t.refresh(now)
	for r := range t.waiting {
		if !r.changed.IsZero() {
			return true
		}
	}
	return false
}

// scanned says that a full scan of node i, begun at began in this epoch, is
// complete: a copy that it did not meet is gone.
func (t *table) scanned(i int, epoch uint64, began, now time.Time) {
	n := &t.nodes[i]
	if epoch != n.epoch || !n.reachable {
		return
	}
	first := n.scanned != epoch
	n.scanned, n.began = epoch, began
	for _, r := range t.records {
		if c := &r.copies[i]; c.have && c.sent.Before(began) {
			*c = copyOf{}
			r.changed = now
			t.touch(r)
		}
	}
	if first {
		t.touchAll() // what was unknown is absent now
	}
	for r := range t.waiting {
		t.touch(r)
	}
}

// settle says that the first view is complete. What is wrong from the start is
// told in one sentence for each kind.
func (t *table) settle(now time.Time) {
	t.refresh(now)
	counts := map[LockState]int{}
	example := map[LockState]*record{}
	for _, r := range t.records {
		s := r.lock.State
		counts[s]++
		if e := example[s]; e == nil || r.key < e.key {
			example[s] = r
		}
	}
	for _, s := range []LockState{LockOverTTL, LockSplit, LockImmortal} {
		switch n := counts[s]; {
		case n == 1:
			t.emit(lockEvent(now, LevelAlarm, s.String(), example[s].key, "%s", stateSentence(s, example[s].lock.Tokens)))
		case n > 1:
			t.emit(nodeEvent(now, LevelAlarm, s.String(), "", "%d locks: %s", n, stateSentence(s, 2)))
		}
	}
	t.settled = true
}

func (t *table) touch(r *record) { t.dirty[r] = struct{}{} }

func (t *table) touchAll() {
	for _, r := range t.records {
		t.dirty[r] = struct{}{}
	}
}

// refresh brings the states up to now.
func (t *table) refresh(now time.Time) {
	for len(t.timers) > 0 && !t.timers[0].timer.After(now) {
		r := heap.Pop(&t.timers).(*record)
		t.touch(r)
	}
	if len(t.dirty) == 0 {
		return
	}
	t.locks = nil
	for r := range t.dirty {
		t.judge(r, now)
	}
	clear(t.dirty)
}

// next is when refresh has something to do at the latest; zero: nothing is due.
func (t *table) next() time.Time {
	if len(t.timers) == 0 {
		return time.Time{}
	}
	return t.timers[0].timer
}

// seen tells if copy i of r is known to be there.
func (t *table) seen(r *record, i int) bool {
	return r.copies[i].have && t.nodes[i].reachable && r.copies[i].epoch == t.nodes[i].epoch
}

// absent tells if r is known not to be on node i.
func (t *table) absent(r *record, i int) bool {
	n := &t.nodes[i]
	return !r.copies[i].have && n.reachable && n.scanned == n.epoch
}

// confirmed tells if node i was read after the last change of r.
func (t *table) confirmed(r *record, i int) bool {
	if t.seen(r, i) {
		return !r.copies[i].sent.Before(r.changed)
	}
	return t.absent(r, i) && !t.nodes[i].began.Before(r.changed)
}

// judge works out what the copies of r mean now: numbers, state, the next time
// to look, and what happened since the last look.
func (t *table) judge(r *record, now time.Time) {
	n := len(t.nodes)
	for i := range r.copies {
		if c := &r.copies[i]; c.have && !c.expires.IsZero() && !c.expires.After(now) {
			*c = copyOf{}
		}
	}
	// One pass over the copies.
	type tally struct {
		token   token
		present int // known to be there
		last    int // at last sight, of nodes that do not answer
	}
	var tallies []tally
	var strings, others, present, unread int
	all := true // every node that answers was read since the last change
	var immortal, over bool
	copies := make([]Copy, n)
	var timer time.Time
	soon := func(at time.Time) {
		if at.After(now) && (timer.IsZero() || at.Before(timer)) {
			timer = at
		}
	}
	for i := range r.copies {
		c := &r.copies[i]
		seen := t.seen(r, i)
		switch {
		case c.have:
			copies[i] = Copy{State: CopyUnknown, Type: c.typ, Len: c.token.length, Expires: c.expires, ReadAt: c.readAt}
			if seen {
				copies[i].State = CopyPresent
				present++
			}
			soon(c.expires)
		case t.absent(r, i):
			copies[i].State = CopyAbsent
		default:
			copies[i].State = CopyUnknown
		}
		if t.nodes[i].reachable && !t.confirmed(r, i) {
			all = false
			if !seen {
				unread++
			}
		}
		if !c.have {
			continue
		}
		if c.typ != "string" {
			others++
			continue
		}
		strings++
		copies[i].Token = safetext.New(c.token.prefix)
		if c.expires.IsZero() {
			immortal = true
		} else if t.maxTTL > 0 && c.expires.Sub(now) > t.maxTTL {
			over = true
			soon(c.expires.Add(-t.maxTTL))
		}
		k := slices.IndexFunc(tallies, func(y tally) bool { return y.token == c.token })
		if k < 0 {
			k = len(tallies)
			tallies = append(tallies, tally{token: c.token})
		}
		if seen {
			tallies[k].present++
		} else {
			tallies[k].last++
		}
	}
	if strings+others == 0 {
		t.end(r, now, true)
		t.bury(r)
		return
	}

	// The holder: the token with most copies; among equals the one that had the
	// majority, so that the screen does not swap them.
	var best tally
	for _, y := range tallies {
		if d := cmp.Or(cmp.Compare(y.present, best.present), cmp.Compare(y.last, best.last)); d > 0 ||
			(d == 0 && y.token == r.holder) {
			best = y
		}
	}
	if len(tallies) > 0 && (best.token != r.holder || r.since.IsZero()) {
		r.holder, r.since = best.token, now
		r.minority = time.Time{}
		if t.settled {
			r.early = false
		}
	}
	if r.since.IsZero() {
		r.since = now
	}
	end, never := t.majorityEnd(r, best.token)
	majority := best.present >= t.quorum
	// A node that does not answer may have kept its copy, and the holder counts
	// on it.
	perhaps := !majority && best.present+best.last >= t.quorum
	// The copies that a lock may lose before another client can reach a
	// quorum: another needs quorum nodes that are free of any token. With c copies
	// n − c are free, and after x losses n − c + x; the largest x that stays
	// below the quorum is c − (n − quorum + 1). Five nodes: 5 copies may lose 2,
	// 3 copies none.
	margin := present - (n - t.quorum + 1)

	tokens := len(tallies)
	if others > 0 && strings > 0 {
		tokens++
	}
	state := LockHeld
	worse := func(s LockState) { state = max(state, s) }
	switch {
	case strings == 0:
		worse(LockNotALock)
	case majority:
		r.minority = time.Time{}
		if margin+unread <= 0 {
			worse(LockBare)
		}
		if !never && end.Sub(now) <= time.Second {
			worse(LockExpiring)
		} else if !never {
			soon(end.Add(-time.Second))
		}
	case perhaps:
		r.minority = time.Time{}
		worse(LockBare)
	default:
		if r.minority.IsZero() {
			r.minority = now
		}
		ripe := r.minority.Add(t.attempt)
		soon(ripe)
		if !ripe.After(now) && all && best.present+t.possible(r, best.token) < t.quorum {
			worse(LockOrphan)
		} else {
			worse(LockPartial)
		}
	}
	if strings > 0 {
		if immortal {
			worse(LockImmortal)
		}
		if over {
			worse(LockOverTTL)
		}
		if tokens > 1 && all {
			worse(LockSplit)
		}
	}

	was := r.lock.State
	known := r.lock.Copies != nil
	t.count(r, copies)
	r.lock = Lock{
		Key: r.lock.Key, State: state, Copies: copies, Held: best.present, Tokens: len(tallies),
		MajorityEnd: end, Margin: margin, Since: r.since,
		Holder: safetext.New(best.token.prefix),
	}
	t.schedule(r, timer)
	t.tell(r, best.token, majority, end, was, known, now, all)
	if all && r.lost == 0 {
		delete(t.waiting, r)
	} else {
		t.waiting[r] = struct{}{}
	}
}

// possible is how many more copies of tok there may be on nodes that do not
// answer: where it was last seen there, or where nobody looked between its
// first sight and the node's silence.
func (t *table) possible(r *record, tok token) int {
	k := 0
	for i := range t.nodes {
		n := &t.nodes[i]
		switch c := &r.copies[i]; {
		case n.reachable:
		case c.have:
			if c.token == tok && c.typ == "string" {
				k++
			}
		case n.lostSight.IsZero(): // never seen at all
			if r.early {
				k++
			}
		case r.since.Before(n.lostSight) && n.began.Before(r.since):
			k++
		}
	}
	return k
}

// majorityEnd is the quorum-th latest expiry of the copies of tok. never: a
// quorum of them has no TTL. Both zero: there is no majority.
func (t *table) majorityEnd(r *record, tok token) (end time.Time, never bool) {
	var ends []time.Time
	forever := 0
	for i := range r.copies {
		c := &r.copies[i]
		switch {
		case !c.have || c.typ != "string" || c.token != tok:
		case c.expires.IsZero():
			forever++
		default:
			ends = append(ends, c.expires)
		}
	}
	switch {
	case forever >= t.quorum:
		return time.Time{}, true
	case forever+len(ends) < t.quorum:
		return time.Time{}, false
	}
	slices.SortFunc(ends, func(a, b time.Time) int { return b.Compare(a) })
	return ends[t.quorum-forever-1], false
}

// tell makes events of what changed since the last look.
func (t *table) tell(r *record, best token, majority bool, end time.Time, was LockState, known bool, now time.Time, all bool) {
	if r.granted && (!majority || best != r.grant) {
		t.end(r, now, all)
	}
	if majority && !r.granted {
		r.grant, r.granted, r.end, r.lost = best, true, end, 0
		r.extended = now
		if t.settled && !r.early {
			t.emit(lockEvent(now, LevelInfo, "acquired", r.key, "acquired by %s for %s", best.prefix, left(end, now)))
		}
		r.early = false
	} else if majority && best == r.grant {
		if t.settled && !r.end.IsZero() && end.Sub(r.end) > extendedBy && now.Sub(r.extended) >= extendedEvery {
			r.extended = now
			t.emit(lockEvent(now, LevelInfo, "extended", r.key, "extended by %s: ends in %s", best.prefix, left(end, now)))
		}
		r.end, r.lost = end, 0
	}
	if s := r.lock.State; t.settled && (s != was || !known) {
		switch s {
		case LockOrphan:
			t.emit(lockEvent(now, LevelNotice, s.String(), r.key, "%s", stateSentence(s, 1)))
		case LockOverTTL, LockSplit, LockImmortal:
			t.emit(lockEvent(now, LevelAlarm, s.String(), r.key, "%s", stateSentence(s, r.lock.Tokens)))
		}
	}
}

const (
	jitter        = 2 * time.Millisecond   // of an expiry, from read to read
	extendedBy    = 100 * time.Millisecond // the majority end moved by more: not the jitter of a read
	extendedEvery = 10 * time.Second       // a watched lock is extended all the time: told once in a while
)

// end tells how the grant of r ended, as soon as that is certain.
func (t *table) end(r *record, now time.Time, all bool) {
	if !r.granted {
		return
	}
	// Copies that are there; that may be there; and that are there because the
	// node takes no DEL either.
	there, unknown, stuck := 0, 0, 0
	for i := range r.copies {
		if c := &r.copies[i]; c.have && c.typ == "string" && c.token == r.grant {
			switch {
			case t.seen(r, i) && t.nodes[i].closed:
				stuck++
			case t.seen(r, i):
				there++
				// After a restart a lock may just be on its way out: look again.
				all = all && (r.lost == 0 || !c.sent.Before(r.lostAt))
			default:
				unknown++
			}
		}
	}
	var kind, text string
	level := LevelInfo
	switch {
	case there+stuck+unknown >= t.quorum:
		return // it may still be held
	case !r.end.IsZero() && !now.Before(r.end):
		kind, text = "expired", "its time ran out"
	case !all && (there+stuck+unknown > 0 || r.lost > 0):
		return // the other nodes will say
	case there+stuck+r.lost >= t.quorum:
		kind, text, level = "lost majority", "lost its majority by a restart", LevelAlarm
	case there == 0:
		kind, text = "released", "released" // wherever that could be seen and done
	default:
		kind, text, level = "lost majority", "copies are missing: no majority, and not released", LevelAlarm
	}
	if t.settled {
		t.emit(lockEvent(now, level, kind, r.key, "%s (%s)", text, r.grant.prefix))
	}
	r.granted, r.lost = false, 0
}

func left(end, now time.Time) string {
	if end.IsZero() {
		return "ever"
	}
	return end.Sub(now).Round(100 * time.Millisecond).String()
}

func stateSentence(s LockState, tokens int) string {
	switch s {
	case LockOrphan:
		return "a minority of copies that nobody completes: it keeps others out until it expires"
	case LockOverTTL:
		return "a TTL longer than the cluster's maximum: a restart may forget it too early"
	case LockSplit:
		if tokens > 1 {
			return "several tokens at once"
		}
		return "locks and other values at once"
	case LockImmortal:
		return "a copy without TTL: it never ends by itself"
	}
	return s.String()
}

// count keeps the nodes' numbers of copies in step when r's copies become next.
func (t *table) count(r *record, next []Copy) {
	for i, c := range r.lock.Copies {
		if c.State == CopyPresent && c.Type == "string" {
			t.nodes[i].present--
		}
	}
	for i, c := range next {
		if c.State == CopyPresent && c.Type == "string" {
			t.nodes[i].present++
		}
	}
}

func (t *table) bury(r *record) {
	t.count(r, nil)
	t.schedule(r, time.Time{})
	delete(t.waiting, r)
	delete(t.records, r.key)
	r.dead = true
}

func (t *table) schedule(r *record, at time.Time) {
	switch {
	case r.at >= 0 && at.IsZero():
		heap.Remove(&t.timers, r.at)
	case r.at >= 0:
		r.timer = at
		heap.Fix(&t.timers, r.at)
	case !at.IsZero():
		r.timer = at
		heap.Push(&t.timers, r)
	}
}

// view is all locks, sorted by key, in a slice that is never written again.
func (t *table) view() []Lock {
	if t.locks != nil {
		return t.locks
	}
	byKey := func(a, b *record) int { return cmp.Compare(a.key, b.key) }
	slices.SortFunc(t.added, byKey)
	merged := make([]*record, 0, len(t.records))
	old, young := t.order, t.added
	for len(old) > 0 || len(young) > 0 {
		var r *record
		if len(young) == 0 || (len(old) > 0 && old[0].key <= young[0].key) {
			r, old = old[0], old[1:]
		} else {
			r, young = young[0], young[1:]
		}
		if !r.dead {
			merged = append(merged, r)
		}
	}
	t.order, t.added = merged, nil
	t.locks = make([]Lock, len(merged))
	for i, r := range merged {
		t.locks[i] = r.lock
	}
	return t.locks
}

// timerQueue is a heap of records by the time to look at them again.
type timerQueue []*record

func (q timerQueue) Len() int           { return len(q) }
func (q timerQueue) Less(i, j int) bool { return q[i].timer.Before(q[j].timer) }
func (q timerQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].at, q[j].at = i, j
}
func (q *timerQueue) Push(x any) {
	r := x.(*record)
	r.at = len(*q)
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
