package table

import (
	"slices"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/internal/packed"
	"redlockctl/server/announce"
	"redlockctl/server/lockform"
)

// record is all that is known of a key: its copies on all nodes, and their meaning at the
// last assessment.
type record struct {
	lock  *monitor.Lock // as published, then never changed; before that, only its key
	form  *lockform.Form
	group *group
	*packed.Set
	grant grant
	// changed is when a copy was added, removed or changed its token. The first reads of
	// the first view count only if they differ.
	changed  packed.Moment
	minority packed.Moment // since when the holder has no majority; zero while it has one
	alarmed  packed.Moment // since when alarm holds
	timer    packed.Moment // next check; zero: none needed

	at, pos int32  // index in the timer queue, −1: none; index in all
	weight  int32  // accounted memory, in bytes
	round   uint32 // sweep in which it was last assessed

	holder    int8              // token; −1: none yet
	alarm     monitor.LockState // state that is worth an event once it has lasted; LockHeld: none
	alarmTold bool
	toldTwo   bool // it was told that two clients may rely on it
	early     bool // existed when the monitor started, and holder has not changed since
	aged      bool // where its holder had copies, and since when, is unknown for the time before
	known     bool // has been assessed
	foreign   bool // accounted as a key that is not a lock
	dirty     bool // to be assessed
	waits     bool // not confirmed by all nodes
	overdue   bool // a change by time alone must be confirmed by nodes that are not up to date
	listed    bool // in the waiting list
	buried    bool
	shared    bool // the copies belong to lock too: do not change them
	// slow is how many milliseconds the slowest read took that its copies' ends are from, since the
	// grant's latest was set, rounded up.
	slow uint16

	// hit has a bit for each node that lost its copy by a restart or a wipe whose cost is not
	// counted yet; loaded for each whose copy was loaded from disk and not written
	// since. Only the first 64 nodes.
	hit, loaded uint64
	presumed    uint64        // silent nodes whose copy is assumed to be extended, as on other nodes
	unwatched   packed.Moment // a copy was extended after that, while its node was silent; zero: none was
	earlier     *earlier      // grants that others followed too early, the longest first; nil: none
}

func (r *record) key() string { return r.lock.Key.Raw() }

// own gives r its own copies, before they are changed.
func (r *record) own() {
	if r.shared {
		r.Set, r.shared = r.Clone(), false
	}
}

// first returns the first node with a copy or a lost vote of token k.
func (r *record) first(k int8) int {
	return slices.IndexFunc(r.Copies, func(c packed.Copy) bool { return (c.Have() || c.Lost()) && int8(c.Token) == k })
}

// drop removes copy i.
func (r *record) drop(i int) {
	r.own()
	r.Copies[i] = packed.Copy{}
	r.presumed &^= 1 << min(i, 63)
}

// compact removes tokens that are no longer used.
func (r *record) compact() {
	used := make([]int8, len(r.Tokens)) // their new numbers, from 1
	mark := func(k int8) {
		if k >= 0 {
			used[k] = 1
		}
	}
	for i := range r.Copies {
		if c := &r.Copies[i]; c.Have() || c.Lost() {
			mark(int8(c.Token))
		}
	}
	mark(r.holder)
	mark(r.grant.token)
	if !slices.Contains(used, 0) {
		return
	}
	r.own()
	var kept []packed.Token
	for k := range used {
		if used[k] > 0 {
			kept = append(kept, r.Tokens[k])
			used[k] = int8(len(kept))
		}
	}
	for i := range r.Copies {
		if c := &r.Copies[i]; c.Have() || c.Lost() {
			c.Token = uint8(used[c.Token] - 1)
		}
	}
	for _, k := range []*int8{&r.holder, &r.grant.token} {
		if *k >= 0 {
			*k = used[*k] - 1
		}
	}
	r.Tokens = slices.Clip(kept)
}

// differs reports whether a node other than i has another value than this.
func (r *record) differs(i int, next packed.Copy) bool {
	for k := range r.Copies {
		if c := &r.Copies[k]; k != i && c.Have() && (c.Type != next.Type || (c.Kind == packed.LockCopy && c.Token != next.Token)) {
			return true
		}
	}
	return false
}

// timerQueue is a heap of records by the time of their next check.
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

// grant is the last known grant of a lock: a token that has had a majority, until it is
// released, removed or expires. Its holder may rely on it until then, whatever copies are
// lost. It begins, is extended, loses copies and ends; each of these is an event.
type grant struct {
	token int8  // −1: none
	lost  uint8 // copies lost by restarts since it last had a majority
	// fell: its lost majority was reported. parted: some copies were deleted but not all,
	// so this is no release. freed: others were deleted since: it was a slow one. perhaps: it
	// fell, and may have been released, or never granted.
	fell, parted, freed, perhaps bool
	shrank                       bool // its copies show an earlier end than its holder relies on
	supposed                     bool // its end is that of an extension that silent nodes may have received too
	// extensions counts those that were seen, the last one at extended; reported of them were
	// reported, the last ones at reportedAt.
	extensions, reported uint32
	extending            uint32 // milliseconds from the first of them to the last
	// went has a bit for each of the first 32 nodes on which a copy was lost since the
	// last report; veiled, for each whose copy was lost after a silence: it may have been
	// extended before.
	went, veiled uint32
	deleted      uint64        // a bit for each node on which a copy was deleted without a loss of the node; the last one for all nodes beyond
	end          packed.Moment // until when its holder may rely on it; zero: no end
	seen         packed.Moment // end of the last majority that was seen; if supposed, the end before that
	shown        packed.Moment // the latest end that its copies showed here: a later one was told by a guard
	latest       packed.Moment // the latest that seen can be, by how long the reads took: only a later end proves an extension
	deletedAt    packed.Moment // when the last of these was deleted
	extended     packed.Moment
	reportedAt   packed.Moment
	heard        [8]byte // sum of its token, if a guard announced the grant; otherwise zero
}

// sumOf returns the sum of the token of r's grant.
func (r *record) sumOf(g *grant) [8]byte {
	if g.heard != [8]byte{} {
		return g.heard // the token itself may not have been read
	}
	return announce.TokenSum(r.Tokens[g.token].Prefix)
}

// noteEnd records the end of the majority of the grant of r that is seen now.
func (r *record) noteEnd(end packed.Moment) {
	g := &r.grant
	if end > g.latest || time.Duration(g.seen-end) > extendedBy {
		g.latest, r.slow = end+packed.Moment(r.slow)*packed.Moment(time.Millisecond), 0
	}
	g.seen = end
}

// rival is what is known of a token of a record that is not the holder: it was, until
// another one had more copies, or it was first read while another one was.
type rival struct {
	token           packed.Token
	aged            bool
	since, minority packed.Moment
}

// rivalOf returns what is known of a token of r that is not the holder; nil: nothing.
func (t *Table) rivalOf(r *record, token int8) *rival {
	all := t.rivals[r]
	if k := slices.IndexFunc(all, func(v rival) bool { return v.token == r.Tokens[token] }); k >= 0 {
		return &all[k]
	}
	return nil
}

// addRival records what is known of a token of r that is not the holder.
func (t *Table) addRival(r *record, v rival) {
	all := slices.DeleteFunc(t.rivals[r], func(o rival) bool { return o.token == v.token })
	if len(all) > len(t.nodes) {
		all = all[1:] // the oldest
	}
	t.rivals[r] = append(all, v)
}

// age records that a token of r may have had copies that were not seen.
func (t *Table) age(r *record, token int8) {
	r.aged = true
	if v := t.rivalOf(r, token); v != nil {
		v.aged = true
	}
}

// changeHolder records that another token of r is the holder.
func (t *Table) changeHolder(r *record, next int8) {
	if r.holder < 0 {
		return
	}
	aged := true // it may have existed for some time
	if next >= 0 {
		if v := t.rivalOf(r, next); v != nil {
			aged = v.aged
		}
	}
	t.addRival(r, rival{r.Tokens[r.holder], r.aged, r.lock.Span.Begin, r.minority})
	r.aged = aged
}

// earlier is a client that may rely on a lock besides its holder. If a guard announced
// it, only sum and the start of the token are known.
type earlier struct {
	monitor.Reliance
	sum [8]byte
	// was is its grant, if that was seen to lose its majority here. Otherwise was.fell is false: a
	// guard announced it, or its votes only may have been a majority.
	was  grant
	next *earlier // another one, which relies on the lock for as long at most; nil: none
}

// earlierMost is the largest number of them that is kept.
const earlierMost = 8

// addEarlier records a client that may rely on r besides its holder, in the order of their ends.
func (r *record) addEarlier(e earlier) {
	if known := r.earlierOf(e.sum); known != nil {
		if known.Until.IsZero() || !e.Until.IsZero() && !e.Until.After(known.Until) {
			return
		}
		if !e.was.fell {
			e.was = known.was
		}
	}
	r.dropEarlier(e.sum)
	at, before := &r.earlier, 0
	for ; *at != nil && !e.Until.IsZero() && ((*at).Until.IsZero() || !(*at).Until.Before(e.Until)); before++ {
		at = &(*at).next
	}
	if before < earlierMost {
		e.next = *at
		*at = &e
	}
}

// dropEarlier forgets the client with this token. It reports whether there was one.
func (r *record) dropEarlier(sum [8]byte) bool {
	for at := &r.earlier; *at != nil; at = &(*at).next {
		if (*at).sum == sum {
			*at = (*at).next
			return true
		}
	}
	return false
}

// earlierOf returns the client with this token; nil: none.
func (r *record) earlierOf(sum [8]byte) *earlier {
	for e := r.earlier; e != nil; e = e.next {
		if e.sum == sum {
			return e
		}
	}
	return nil
}

// reliance is nil if there is none.
func (e *earlier) reliance() *monitor.Reliance {
	if e == nil {
		return nil
	}
	return &e.Reliance
}

// group is a lock of several keys. Each key is assessed alone, and one lock is shown.
type group struct {
	name    string
	members []*record // sorted by key
	shown   *monitor.Lock
	// crowd: there are or were so many that their common value is a constant, not a
	// token. Then each is shown alone, and only their number is kept.
	crowd bool
	size  int
}

// groupMost is the largest number of keys of one lock: showing a change of one costs time
// for all.
const groupMost = 64
