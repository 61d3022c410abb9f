package table

import (
	"slices"

	"redlockctl/monitor"
	"redlockctl/monitor/internal/packed"
	"redlockctl/server/announce"
	"redlockctl/server/lockform"
)

// record is all that is known of a key: its copies on all nodes, and what they
// amounted to at the last look.
type record struct {
	lock  *monitor.Lock // as published: never written again; before that its key alone
	form  *lockform.Form
	group *group
	*packed.Set
	grant grant
	// changed is when a copy came, went or changed its token. The first sights of
	// the first view are no change, unless they differ.
	changed  packed.Moment
	minority packed.Moment // since when holder has no majority; zero while it has
	alarmed  packed.Moment // since when alarm holds
	timer    packed.Moment // when to look again; zero: no need

	at, pos int32  // place in the timer queue, −1: none; and in all
	weight  int32  // that it is reckoned at, in bytes
	round   uint32 // of the sweeps, in which it was last assessed

	holder    int8              // token; −1: none yet
	alarm     monitor.LockState // that is worth an event when it has lasted; LockHeld: none
	alarmTold bool
	early     bool // was there when the monitor came; holder has not changed since
	aged      bool // where its holder had copies, and since when, is not known for the time before
	known     bool // assessed once
	foreign   bool // reckoned as no lock
	dirty     bool // to be assessed
	waits     bool // not confirmed by all nodes
	overdue   bool // what time alone says of it has to be confirmed by nodes that are not up to date
	listed    bool // in waiting
	buried    bool
	shared    bool // the copies are those of lock too: not to be written

	// hit is which nodes lost its copy by a restart or a wipe since it was last assessed;
	// loaded is on which nodes the copy was loaded from disk and not written since; a bit
	// each for the first 64.
	hit, loaded uint64
	presumed    uint64   // on which silent nodes the copy is taken for extended, as it was on others
	earlier     *earlier // a grant that another one followed before its time; nil: none
}

func (r *record) key() string { return r.lock.Key.Raw() }

// own makes the copies of r those of r alone, before they are written.
func (r *record) own() {
	if r.shared {
		r.Set, r.shared = r.Clone(), false
	}
}

// drop forgets copy i.
func (r *record) drop(i int) {
	r.own()
	r.Copies[i] = packed.Copy{}
	r.presumed &^= 1 << min(i, 63)
}

// compact forgets the tokens that nothing refers to any more.
func (r *record) compact() {
	used := make([]int8, len(r.Tokens)) // their new numbers, from 1 on
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

// differs reports whether another node than i has another value than this.
func (r *record) differs(i int, next packed.Copy) bool {
	for k := range r.Copies {
		if c := &r.Copies[k]; k != i && c.Have() && (c.Type != next.Type || (c.Kind == packed.LockCopy && c.Token != next.Token)) {
			return true
		}
	}
	return false
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

// grant is the last known grant of a lock: a token that has had a majority, until it is
// released, removed or expires. Its holder may rely on it until then, whatever copies
// are lost. It begins, is extended, loses copies and ends; each of these is an event.
type grant struct {
	token int8  // −1: there is none
	lost  uint8 // copies that went with restarts since it last had a majority
	// fell: its majority was lost, and that was reported. parted: copies were deleted, and
	// not all of them, so that this is no release.
	fell, parted bool
	supposed     bool // its end is that of an extension that silent nodes may have taken too
	// extensions were told of none since the last one was; extended is when that was,
	// zero: none yet.
	extensions uint16
	// went is on which nodes a copy went before its time, since that was last told; a
	// bit for each of the first 32 nodes.
	went     uint32
	deleted  uint64        // on which nodes a copy was deleted without a loss of the node; a bit each, the last for all beyond
	end      packed.Moment // until when its holder may rely on it; zero: never
	seen     packed.Moment // the end of the majority that was seen last
	extended packed.Moment
	heard    [8]byte // the sum of its token, where a guard told of the grant; zero: none did
}

// sumOf is the sum of the token of r's grant.
func (r *record) sumOf(g *grant) [8]byte {
	if g.heard != [8]byte{} {
		return g.heard // the token itself may not have been read
	}
	return announce.TokenSum(r.Tokens[g.token].Prefix)
}

// earlier is a client that may rely on a lock beside its holder. Of one that a guard told of, only
// the begin of the token is known, and sum.
type earlier struct {
	monitor.Reliance
	sum [8]byte
}

// reliance is nil where there is none.
func (e *earlier) reliance() *monitor.Reliance {
	if e == nil {
		return nil
	}
	return &e.Reliance
}

// group is a lock that is several keys. Each of them is assessed by itself; what
// is shown is one lock.
type group struct {
	name    string
	members []*record // by their keys
	shown   *monitor.Lock
	// crowd: there are or were so many that what they share is no token but a
	// constant. Each is shown by itself then, and only their number is kept.
	crowd bool
	size  int
}

// groupMost is how many keys one lock has at most: to show a change of one of
// them costs time in their number.
const groupMost = 64
