package table

import (
	"math"
	"slices"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/internal/packed"
	"redlockctl/redlock"
	"redlockctl/server/announce"
	"redlockctl/server/lockform"
)

// Row is the result of reading a key on a node.
type Row struct {
	Key    string
	Type   string        // "none": no such key
	TTL    time.Duration // negative: no TTL, unless Type is "none"
	Far    int64         // TTL in milliseconds if it may exceed a Duration; otherwise zero
	Len    int64
	Prefix string // of a string: its first bytes; of a small hash: the names of its fields, one per line
}

const (
	PrefixLen = 128     // bytes read of a value
	FieldsLen = 1 << 10 // bytes read of the field names of a small hash
)

// NewRow limits what a server may return. A pttl of −2 means that the key does not exist.
func NewRow(key, typ string, pttl, length int64, prefix string) Row {
	const longest = 100 * 365 * 24 * int64(time.Hour/time.Millisecond)
	most, r := PrefixLen, Row{Key: key, Type: typ, TTL: -1, Len: length}
	if typ == "hash" || typ == "zset" {
		most = FieldsLen
	}
	r.Prefix = prefix[:min(len(prefix), most)]
	switch {
	case pttl == -2:
		r.Type = "none"
	case pttl >= 0:
		if r.TTL = time.Duration(min(pttl, longest)) * time.Millisecond; pttl > longest {
			r.Far = pttl
		}
	}
	return r
}

// Read records the result of reading some keys of node i, with the times of sending and
// receiving. Expiry counts from the sending: PTTL was read later, so the copy lives at
// least that long, and at most a round trip longer.
func (t *Table) Read(i int, sentAt, receivedAt time.Time, rows []Row) {
	sent, received := t.Moment(sentAt), t.Moment(receivedAt)
	found := t.lookUp(rows)
	for k := range rows {
		w, r := &rows[k], found[k]
		if r == nil || r.buried { // unless an earlier row has the same key
			r = t.records[w.Key]
		}
		var expires packed.Moment
		if w.TTL >= 0 {
			if expires = sent + packed.Moment(w.TTL); w.Far > 0 {
				expires = t.After(sent, w.Far)
			}
		}
		if r != nil {
			had := r.Copies[i].Have()
			if t.dropVanished(r, i, received); had && !r.Copies[i].Have() {
				t.markDirty(r) // the sweep has nothing left to do there
			}
		}
		// An answer that arrives after its own TTL ended proves nothing if changes may
		// have been missed.
		late := r != nil && r.Copies[i].Have() && !t.nodes[i].provesEnd(expires)
		if w.Type == "none" || (w.TTL >= 0 && expires <= received && !late) {
			if r != nil && r.Copies[i].Have() && r.Copies[i].Sent <= sent {
				cause := t.lossOf(i, &r.Copies[i], received)
				t.countLoss(r, i, cause, received)
				t.vanish(r, i, cause, received)
				r.changed = received
				t.markDirty(r)
			} else if w.Type == "none" && (r == nil || !r.Copies[i].Have()) {
				t.cameAndWent(i, w.Key, received)
			}
			continue
		}
		if r != nil && r.Copies[i].Have() && r.Copies[i].Sent > sent {
			continue // a later read overtook it
		}
		typ := t.TypeNumber(w.Type)
		tok, isLock := tokenOf(w, receivedAt)
		if r == nil {
			if !t.room.admits(int64(costKey+costCopy*len(t.nodes)+len(w.Key)+costToken+len(tok.Prefix)), isLock) {
				t.nodes[i].refused.add(1, isLock)
				continue
			}
			r = t.newRecord(w.Key)
			r.foreign = !isLock
		}
		c := &r.Copies[i]
		unchanged := c.Have() && r.Tokens[c.Token] == tok
		same := c.Have() && c.Type == typ && (unchanged || !isLock)
		// If the end that is known lies within what this read says, the read was only slow.
		if same && unchanged && expires < c.Expires && c.Expires <= expires+received-sent && w.TTL >= 0 && r.presumed&(1<<min(i, 63)) == 0 {
			expires = c.Expires
		}
		if same && unchanged && c.Epoch == t.nodes[i].epoch && packed.Alike(c.Expires, expires) {
			// No visible change, but it may confirm a change elsewhere.
			if c.Sent = sent; r.waits {
				t.markDirty(r)
			}
			continue
		}
		if !same && (c.Have() || c.Lost()) {
			cause := t.lossOf(i, c, received)
			if c.Have() {
				t.countLoss(r, i, cause, received)
			}
			r.noteGone(i, cause, received)
			t.noteOverwritten(r, i, cause, received)
			if isLock && redlock.IsTombstone(tok.Prefix) && r.lock.State == monitor.LockOrphaned && int8(c.Token) == r.holder {
				t.ended.add(r.key(), announce.TokenSum(tok.Prefix)) // nobody relied on what is revoked
			}
		}
		r.own()
		next := packed.Copy{Sent: sent, Expires: expires, Epoch: t.nodes[i].epoch, Type: typ, Token: c.Token, Kind: packed.OtherCopy}
		if isLock {
			next.Kind = packed.LockCopy
		}
		if !unchanged {
			if isLock && !redlock.IsTombstone(tok.Prefix) && !t.mayBeOlder(i) {
				t.ended.take(r.key(), announce.TokenSum(tok.Prefix)) // some clients use a token again
			}
			known := len(r.Tokens)
			switch next.Token = t.token(r, i, tok); {
			case !isLock || int(next.Token) < known:
			case r.holder >= 0:
				t.addRival(r, rival{token: r.Tokens[known], aged: t.mayBeOlder(i), since: received})
			default:
				r.aged = t.mayBeOlder(i)
				t.reopen(r, tok.Prefix, received)
			}
		}
		if !same && (t.settled || r.differs(i, next)) {
			r.changed = received
		}
		if unchanged && isLock && c.Expires != 0 && time.Duration(next.Expires-c.Expires) > extendedBy && !t.movedBack(r, i, next.Expires) {
			t.noteExtension(r, i, received)
			if t.nodes[i].lostSight > c.Sent {
				r.unwatched = c.Sent
			} else if r.grant.veiled != 0 { // it was extended after these losses, which keep the end that they had
				r.grant.veiled, r.grant.supposed = 0, false
			}
		}
		t.markLoaded(r, i, next)
		r.presumed &^= 1 << min(i, 63)
		r.slow = max(r.slow, uint16(min((received-sent)/packed.Moment(time.Millisecond)+1, math.MaxUint16)))
		r.Copies[i] = next
		t.markDirty(r)
		if t.room.bursts() {
			t.bury(r)
			t.nodes[i].refused.add(1, true)
		}
	}
}

// tokenOf returns the token of a row, and reports whether it can be a lock. Some
// libraries keep a lock in a hash.
func tokenOf(w *Row, at time.Time) (tok packed.Token, isLock bool) {
	tok = packed.Token{Prefix: w.Prefix, Length: w.Len}
	if w.Type == "string" {
		return tok, true
	}
	if w.Prefix != "" {
		if f := lockform.Recognize(w.Key, w.Type, w.Prefix, w.Len, at); f != nil {
			if isLock = !f.Companion && !f.Shared; isLock || f.Shared {
				return tok, isLock
			}
		}
	}
	return packed.Token{Length: w.Len}, false
}

// lookUp returns the records of rows; nil: none yet. Records are far apart in memory, and
// cache misses cost more than the work on them. So it touches one part of all records
// before the next part: the processor then waits for several misses at once. That halves
// the cost of a read.
func (t *Table) lookUp(rows []Row) []*record {
	found := t.found[:0]
	for k := range rows {
		found = append(found, t.records[rows[k].Key])
	}
	t.found = found
	for _, r := range found {
		if r != nil {
			_ = r.Set.Tokens
		}
	}
	for k, r := range found {
		if r != nil {
			_ = slices.Contains(r.Tokens, packed.Token{Prefix: rows[k].Prefix, Length: rows[k].Len})
		}
	}
	return found
}

// dropVanished drops the copy of r on node i if it belongs to an earlier incarnation, or
// if the last full scan did not find it.
func (t *Table) dropVanished(r *record, i int, now packed.Moment) {
	n, c := &t.nodes[i], &r.Copies[i]
	switch {
	case r.awaited(i):
		t.explain(r, i)
	case !c.Have():
	case c.Epoch < n.incarnation: // certain: no other node has to confirm it
		t.countLoss(r, i, monitor.LostByRestart, now)
		t.vanish(r, i, monitor.LostByRestart, now)
	case n.scanned == n.epoch && c.Sent < n.began:
		cause := t.lossOf(i, c, now)
		t.countLoss(r, i, cause, n.ended)
		t.vanish(r, i, cause, n.ended)
		r.changed = max(r.changed, n.ended)
	}
}

// countLoss adds copy i of r to the cost of a restart or a wipe.
func (t *Table) countLoss(r *record, i int, cause monitor.LossCause, now packed.Moment) {
	c := &r.Copies[i]
	if cause == monitor.LostByDeletion || c.Kind != packed.LockCopy || c.Expires != 0 && c.Expires <= now {
		return
	}
	t.charge(r, i)
}

// charge adds the copy of r on node i, which is lost, to the cost of the loss.
func (t *Table) charge(r *record, i int) {
	c, cost := &r.Copies[i], t.nodes[i].restart
	k, g := int8(c.Token), &r.grant
	if g.token >= 0 && k == g.token {
		g.lost++
	}
	tombstone := redlock.IsTombstone(r.Tokens[k].Prefix)
	switch {
	case cost == nil:
	case !tombstone && g.token >= 0 && k != g.token && r.earlierOf(announce.TokenSum(r.Tokens[k].Prefix)) == nil:
		cost.others++ // nothing of the holder is lost
	case r.known && (r.lock.LostMajority() || tombstone && r.lock.State != monitor.LockRevoked):
		cost.copies++ // what matters was lost before
		cost.names = named(cost.names, r)
	default:
		cost.copies++
		if bit := uint64(1) << min(i, 63); r.hit&bit == 0 {
			r.hit |= bit
			cost.hits++
		}
	}
}

// markLoaded records whether node i loaded its copy of r from disk: the node has refused
// writes since it started, and the copy was found by the first full read since then.
func (t *Table) markLoaded(r *record, i int, next packed.Copy) {
	if i >= 64 || next.Kind != packed.LockCopy {
		return
	}
	was, bit := &r.Copies[i], uint64(1)<<i
	switch {
	case t.nodes[i].sealed && t.nodes[i].scanned == 0:
		r.loaded |= bit
	case was.Have() && was.Token == next.Token && (packed.Alike(was.Expires, next.Expires) || t.nodes[i].sealed && time.Duration(next.Expires-was.Expires).Abs() <= extendedBy): // the same copy, read again
	default:
		r.loaded &^= bit
	}
}

// noteGone records that copy i of r is gone before its TTL, if the copy belongs to the
// grant.
func (r *record) noteGone(i int, cause monitor.LossCause, now packed.Moment) {
	c, g := &r.Copies[i], &r.grant
	if c.Kind != packed.LockCopy || g.token < 0 || int8(c.Token) != g.token || c.Expires != 0 && c.Expires <= now {
		return
	}
	if cause == monitor.LostByDeletion && i < 64 && r.presumed&(1<<i) != 0 {
		return // it expired without an extension there
	}
	if bit := uint64(1) << min(i, 63); cause == monitor.LostByDeletion && !g.expiredThere(c, now) {
		g.deleted |= bit
		g.deletedAt = now
		g.freed = g.fell
	}
	if i < 32 {
		g.went |= 1 << i
	}
}

// expiredThere reports whether a copy that ended before the grant has expired: by the node's
// clock, which may be faster than ours.
func (g *grant) expiredThere(c *packed.Copy, now packed.Moment) bool {
	return c.Expires != 0 && time.Duration(g.end-c.Expires) > extendedBy && c.Expires-now <= (now-c.Sent)/100
}

// weigh updates the memory accounted to r.
func (t *Table) weigh(r *record, foreign bool) {
	t.unweigh(r)
	r.weight, r.foreign = int32(r.cost()), foreign
	t.room.add(r, int64(r.weight))
}

// unweigh removes r from the accounted memory.
func (t *Table) unweigh(r *record) {
	t.room.add(r, -int64(r.weight))
	r.weight = 0
}

// Wanted returns the keys of node i that are worth reading: when the table is full, only
// those that it knows. With count, as in a full read, which meets each key once, the
// others are counted.
func (t *Table) Wanted(i int, keys []string, count bool) []string {
	if !t.room.full() {
		return keys
	}
	kept := keys[:0]
	for _, key := range keys {
		if t.records[key] != nil {
			kept = append(kept, key)
		}
	}
	if gone := len(keys) - len(kept); gone > 0 && count {
		t.nodes[i].refused.add(gone, true)
	} else if gone > 0 && t.nodes[i].unkept().locks == 0 {
		t.nodes[i].refused.add(1, true)
	}
	return kept
}

func (t *Table) bury(r *record) {
	t.count(r, monitor.Copies{})
	t.schedule(r, 0)
	t.unweigh(r)
	r.waits, r.buried = false, true
	delete(t.records, r.key())
	delete(t.rivals, r)
	delete(t.leaving, r)
	delete(t.late, r)
	delete(t.shortened, r)
	delete(t.stretched, r)
	last := len(t.all) - 1
	t.all[r.pos] = t.all[last]
	t.all[r.pos].pos = r.pos
	t.all[last] = nil
	t.all = t.all[:last]
	if r.known {
		t.publish(r, nil)
	}
}
