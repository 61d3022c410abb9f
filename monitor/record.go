package monitor

import (
	"container/heap"
	"slices"
	"strings"

	"redlockctl/internal/lockform"
)

// record is all that is known of a key: its copies on all nodes, and what they
// amounted to at the last look.
type record struct {
	lock  *Lock // as published: never written again; before that its key alone
	form  *lockform.Form
	group *group
	*copySet
	grant grant
	// changed is when a copy came, went or changed its token. The first sights of
	// the first view are no change, unless they differ.
	changed  moment
	since    moment // of holder
	minority moment // since when holder has no majority; zero while it has
	alarmed  moment // since when alarm holds
	timer    moment // when to look again; zero: no need

	at, pos int32  // place in the timer queue, −1: none; and in all
	weight  int32  // that it is reckoned at, in bytes
	round   uint32 // of the sweeps, in which it was last assessed

	holder    int8      // token; −1: none yet
	alarm     LockState // that is worth an event when it has lasted; LockHeld: none
	alarmTold bool
	early     bool // was there when the monitor came; holder has not changed since
	known     bool // assessed once
	foreign   bool // reckoned as no lock
	dirty     bool // to be assessed
	waits     bool // not confirmed by all nodes
	listed    bool // in waiting
	buried    bool
	hit       bool // lost a copy by a restart since it was last assessed
	shared    bool // the copies are those of lock too: not to be written
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
	mark(r.grant.token)
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
	for _, k := range []*int8{&r.holder, &r.grant.token} {
		if *k >= 0 {
			*k = used[*k] - 1
		}
	}
	r.tokens = slices.Clip(kept)
}

// differs reports whether another node than i has another value than this.
func (r *record) differs(i int, next copyOf) bool {
	for k := range r.copies {
		if c := &r.copies[k]; k != i && c.have() && (c.typ != next.typ || (c.kind == lockCopy && c.token != next.token)) {
			return true
		}
	}
	return false
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
