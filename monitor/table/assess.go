package table

import (
	"cmp"
	"slices"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/internal/packed"
	"redlockctl/redlock"
	"redlockctl/server/lockform"
	"redlockctl/server/safetext"
)

// assessment is what the copies of a record amount to.
type assessment struct {
	now  packed.Moment
	lock monitor.Lock  // without its copies
	wake packed.Moment // when to look again at the latest; zero: no need

	locks, others int            // copies of a lock, and those that are none
	rivals        int            // tokens with a copy on a node that takes writes, or may
	confirmed     bool           // every node that answers was read since the last change
	endless       bool           // a copy has no TTL
	over          bool           // a TTL is longer than the cluster's maximum
	numbers       int            // copies that are numbers without a TTL
	best          tally          // of holder
	holder        int8           // token; −1: none
	holders       int            // different tokens that are no tombstones
	revoked       bool           // a tombstone is among the tokens
	since         packed.Moment  // of holder
	minority      packed.Moment  // since when holder has no majority; zero while it has
	early         bool           // see record
	form          *lockform.Form // as recognized; that of lock may say more
	end           packed.Moment  // of the majority; zero: there is none, or never
	shrank        bool           // the majority ends sooner than it did, and not by its holder
	never         bool           // the majority has no end
	majority      bool
	granted       bool // holder was granted the lock, and that has neither ended nor been released
	perhaps       bool // without a majority: one may exist all the same
}

// tally is how many copies a token has.
type tally struct {
	present int           // known to be there
	unread  int           // when last read, of nodes that are being read again
	silent  int           // when last read, of nodes that do not answer
	lost    int           // lost votes that would still be unexpired
	end     packed.Moment // the latest expiry of its copies and lost votes; never: one has none
	never   bool
	written bool // a copy or lost vote of it was not loaded from disk
	open    int  // copies on nodes that take writes
}

// known is how many copies there are, if nodes that cannot be read now kept theirs.
func (v *tally) known() int { return v.present + v.unread + v.silent }

// wakeAt asks for another look then, if that time is to come.
func (a *assessment) wakeAt(at packed.Moment) {
	if at > a.now && (a.wake == 0 || at < a.wake) {
		a.wake = at
	}
}

// assessLock works out what the copies of r mean now. It reads the table and the
// record, and writes neither.
func (t *Table) assessLock(r *record, now packed.Moment) assessment {
	a := assessment{now: now, holder: -1, since: r.lock.Span.Begin, minority: r.minority, early: r.early, form: r.form}
	var few [8]tally
	tallies := few[:]
	if len(r.Tokens) > len(few) {
		tallies = make([]tally, len(r.Tokens))
	}
	t.countCopies(r, &a, tallies)
	t.chooseHolder(r, &a, tallies)
	if a.locks+a.others == 0 && a.holder < 0 {
		return a
	}
	if a.locks == 0 && a.others > 0 {
		a.form = t.recognizeForeign(r, now)
	}
	if a.holder >= 0 && (a.holder != r.holder || a.since == 0) {
		a.since, a.minority, a.early = now, 0, a.early && !t.settled
		a.form = t.recognize(r, a.holder, now)
	}
	if a.since == 0 {
		a.since = now
	}
	form := a.form
	if a.numbers > 0 && a.numbers == a.locks && (form == nil || !form.Companion && form.Deadline.IsZero()) {
		form = lockform.Number()
	}
	var deadline packed.Moment
	if a.form != nil && !a.form.Deadline.IsZero() {
		deadline = t.Moment(a.form.Deadline)
		a.wakeAt(deadline)
	}
	if a.majority = a.best.present >= t.quorum && (a.best.written || a.granted); a.majority {
		a.end, a.never = t.majorityEnd(r, a.holder, deadline, false, nil)
		t.relyBeyond(r, &a, deadline)
	}
	a.lock.Key, a.lock.Form, a.lock.Held = r.lock.Key, form, a.best.present
	a.lock.Supposed = r.presumed != 0
	a.lock.Lost, a.lock.Earlier = a.best.lost, r.earlier.reliance()
	if a.lock.Earlier == nil {
		a.lock.Earlier = t.mayRelyBeside(r, &a, tallies)
	}
	a.lock.Span = packed.Span{Begin: a.since, End: a.end}
	if a.holder >= 0 {
		a.lock.Holder = safetext.New(r.Tokens[a.holder].Prefix)
	}
	a.lock.State = t.lockState(r, &a, deadline)
	a.lock.Nobody = a.lock.State == monitor.LockSplit && a.holders > 1 && !a.majority && !a.perhaps && !a.granted && r.earlier == nil
	for k := 0; k < len(r.Tokens) && a.lock.Nobody; k++ {
		a.lock.Nobody = tallies[k].present+tallies[k].lost+len(t.unseen(r, &a, int8(k), true)) < t.quorum
	}
	if s := a.lock.State; (s == monitor.LockNoTTL || s == monitor.LockOverTTL) && a.holders == 1 && !a.majority && !a.granted {
		a.lock.Nobody = t.hasEnded(r, a.holder)
	}
	return a
}

// mayRelyBeside is a client that may rely on the lock beside its holder, by votes that were lost or are
// not seen; nil: there is none.
func (t *Table) mayRelyBeside(r *record, a *assessment, tallies []tally) *monitor.Reliance {
	for k := range r.Tokens {
		v := &tallies[k]
		if v.known()+v.lost == 0 || int8(k) == a.holder || !t.mayHold(r, a, int8(k), v) {
			continue
		}
		until := monitor.Reliance{Token: safetext.New(r.Tokens[k].Prefix)}
		if end, never := t.majorityEnd(r, int8(k), 0, true, t.unseen(r, a, int8(k), true)); !never && !v.never {
			until.Until = t.Time(end)
		}
		return &until
	}
	return nil
}

// countCopies counts the copies of r, and those of each token.
func (t *Table) countCopies(r *record, a *assessment, tallies []tally) {
	a.confirmed = true
	for i := range r.Copies {
		c, n := &r.Copies[i], &t.nodes[i]
		if n.reachable && !t.confirmed(r, i) {
			a.confirmed = false
		}
		if c.Lost() {
			a.wakeAt(c.Expires)
			if v := &tallies[c.Token]; t.voteLost(r, i) {
				v.lost++
				v.written, v.end, v.never = true, max(v.end, c.Expires), v.never || c.Expires == 0
			} else if n.loads {
				tallies[c.Token].unread++
			}
		}
		if !c.Have() {
			continue
		}
		a.wakeAt(c.Expires)
		if c.Kind != packed.LockCopy {
			a.others++
			continue
		}
		a.locks++
		tok, v := &r.Tokens[c.Token], &tallies[c.Token]
		if c.Expires == 0 {
			a.endless, v.never = true, true
			if c.Type == packed.StringType && lockform.IsNumber(tok.Prefix, tok.Length) {
				a.numbers++
			}
		} else if t.bound > 0 && !redlock.IsTombstone(tok.Prefix) && time.Duration(c.Expires-a.now) > t.bound {
			a.over = true
			a.wakeAt(c.Expires - packed.Moment(t.bound))
		}
		switch {
		case c.State == monitor.CopyPresent:
			v.present++
		case n.reachable:
			v.unread++
		default:
			v.silent++
		}
		v.end = max(v.end, c.Expires)
		v.written = v.written || i >= 64 || r.loaded&(1<<i) == 0
		if n.reachable && !n.closed {
			v.open++
		}
	}
}

// chooseHolder takes the token with a majority for the holder, then the one that was granted
// the lock and may rely on it still, then one that may have a majority, then the one with most copies; among equals the one that
// was it, so that the screen does not swap them. What a revocation left holds nothing.
func (t *Table) chooseHolder(r *record, a *assessment, tallies []tally) {
	rank := func(k int) (copies, granted, may, present, known int) {
		v := &tallies[k]
		if v.present < t.quorum && t.mayHold(r, a, int8(k), v) {
			may = 1
		}
		if v.present >= t.quorum && (v.written || t.granted(r, int8(k), v)) {
			copies = v.present
		}
		if t.granted(r, int8(k), v) {
			granted = 1
		}
		return copies, granted, may, v.present, v.known()
	}
	best := -1
	for k := range r.Tokens {
		v := &tallies[k]
		if v.known() > 0 {
			a.lock.Tokens++
			if redlock.IsTombstone(r.Tokens[k].Prefix) {
				a.revoked = true
			} else if a.holders++; v.open+v.silent > 0 {
				a.rivals++
			}
		} else if !t.granted(r, int8(k), v) && (v.lost == 0 || a.confirmed && v.lost+len(t.unseen(r, a, int8(k), true)) < t.quorum) {
			continue
		}
		if best < 0 {
			best = k
			continue
		}
		c, g, m, p, n := rank(k)
		bc, bg, bm, bp, bn := rank(best)
		if d := cmp.Or(cmp.Compare(c, bc), cmp.Compare(g, bg), cmp.Compare(m, bm), cmp.Compare(p, bp), cmp.Compare(n, bn)); d > 0 || d == 0 && int8(k) == r.holder {
			best = k
		}
	}
	if best >= 0 {
		a.holder, a.best, a.granted = int8(best), tallies[best], t.granted(r, int8(best), &tallies[best])
	}
}

// mayHold reports whether token k of r, which has not ended, has a quorum with all votes that may exist.
func (t *Table) mayHold(r *record, a *assessment, k int8, v *tally) bool {
	return !redlock.IsTombstone(r.Tokens[k].Prefix) && v.known()+v.lost+len(t.unseen(r, a, k, true)) >= t.quorum && !t.hasEnded(r, k)
}

// granted reports whether token k of r was granted the lock, and the grant has neither been
// released nor ended: it had a majority, or its copies and lost votes make one.
func (t *Table) granted(r *record, k int8, v *tally) bool {
	return k == r.grant.token || v.lost > 0 && v.present+v.unread+v.lost >= t.quorum && v.written && !redlock.IsTombstone(r.Tokens[k].Prefix)
}

// lockState is the state of the lock, the worst of those that it is in.
func (t *Table) lockState(r *record, a *assessment, deadline packed.Moment) monitor.LockState {
	if f := a.lock.Form; a.locks == 0 && a.others > 0 || f != nil && f.Companion {
		return monitor.LockNotALock
	}
	state := t.holderState(r, a)
	switch {
	case !a.endless:
	case deadline == 0:
		state = max(state, monitor.LockNoTTL)
	case deadline <= a.now:
		state = max(state, monitor.LockOrphaned) // nobody holds it, and it stays until somebody removes it
	}
	if a.over {
		state = max(state, monitor.LockOverTTL)
	}
	// Copies on nodes that refuse writes are left-overs: none of them completes an attempt.
	if (a.rivals > 1 || a.rivals == 1 && a.others > 0) && a.confirmed || a.majority && r.earlier != nil {
		if state == monitor.LockPartial && !a.majority && a.holder >= 0 && a.best.known()+a.best.lost+len(t.unseen(r, a, a.holder, true)) >= t.quorum {
			t.mayBeHeld(r, a) // what is not decided yet is no answer
		}
		state = max(state, monitor.LockSplit)
	}
	return state
}

// holderState is the state of the lock as far as it follows from what its holder
// has, and may have.
func (t *Table) holderState(r *record, a *assessment) monitor.LockState {
	if a.revoked && t.tombstonesHold(r) && (redlock.IsTombstone(r.Tokens[a.holder].Prefix) || !a.majority && a.best.known() < t.quorum) {
		a.minority = 0
		return monitor.LockRevoked
	}
	if a.majority {
		a.minority = 0
		if !a.never {
			a.wakeAt(a.end - packed.Moment(time.Second))
		}
		margin := monitor.CrashMargin(len(t.nodes), t.quorum, a.best.present)
		switch {
		case margin <= 0 && margin+t.possibleNews(r, a.holder) <= 0:
			return monitor.LockBareMajority
		case !a.never && time.Duration(a.end-a.now) <= time.Second:
			return monitor.LockExpiring
		}
		return monitor.LockHeld
	}
	if redlock.IsTombstone(r.Tokens[a.holder].Prefix) {
		return monitor.LockOrphaned // too few tombstones keep nobody out
	}
	if a.minority == 0 {
		a.minority = a.now
	}
	ripe := a.minority + packed.Moment(t.Attempt)
	a.wakeAt(ripe)
	known := a.best.known()
	switch {
	case a.best.present+a.best.unread >= t.quorum && (a.best.written || a.granted):
		a.perhaps = true
		return monitor.LockPartial // being read again
	case !a.granted && t.hasEnded(r, a.holder) && (a.best.open == 0 || ripe <= a.now):
		return monitor.LockOrphaned // left behind, maybe where a release is refused
	case known >= t.quorum, a.granted && r.grant.parted, !a.granted && known == 0:
		return t.mayBeHeld(r, a)
	case a.granted && a.holder == r.grant.token && r.grant.end != 0 && r.grant.end <= a.now:
		a.perhaps = true
		return monitor.LockPartial // its time came while nodes are read again
	case a.granted && r.grant.deleted != 0 && !r.grant.fell:
		a.perhaps = true
		a.wakeAt(r.changed + packed.Moment(t.Attempt))
		return monitor.LockPartial // a release is under way, or ends in vain
	case a.granted && known+len(t.unseen(r, a, a.holder, false)) >= t.quorum:
		return t.mayBeHeld(r, a)
	case a.granted:
		a.minority = 0
		t.relyUntil(r, a)
		return monitor.LockLostMajority
	case ripe > a.now && !a.over: // which is told at once
		return monitor.LockPartial
	case !a.best.written:
		return t.mayBeHeld(r, a)
	case known+a.best.lost+len(t.unseen(r, a, a.holder, true)) >= t.quorum:
		if heard := ripe + packed.Moment(HearTime); heard > a.now && !a.over {
			a.wakeAt(heard)
			return monitor.LockPartial // a guard that saw it all knows now, and says so
		}
		return t.mayBeHeld(r, a)
	case !a.confirmed:
		return monitor.LockPartial
	case !t.lookedSince(a.minority):
		a.confirmed = false
		return monitor.LockPartial
	}
	return monitor.LockOrphaned
}

// lookedSince reports whether all nodes that answer were read since then.
func (t *Table) lookedSince(then packed.Moment) bool {
	return !slices.ContainsFunc(t.nodes, func(n node) bool { return n.reachable && (n.scanned != n.epoch || n.looked() < then) })
}

// mayBeHeld is the state of a lock whose holder may have a majority that cannot be seen: until
// the end of its last known grant or, where none is known, of its last copy.
func (t *Table) mayBeHeld(r *record, a *assessment) monitor.LockState {
	a.perhaps = true
	if a.granted {
		t.relyUntil(r, a)
	}
	end, never := t.majorityEnd(r, a.holder, 0, true, t.unseen(r, a, a.holder, true))
	if a.lock.Relied = max(a.lock.Relied, end); never || a.best.never {
		a.lock.Relied = 0
	}
	return monitor.LockMayBeHeld
}

// relyUntil sets until when the holder may rely on a lock that it was granted and that has no
// majority now: the end of its last majority, or the one that its copies and lost votes make.
func (t *Table) relyUntil(r *record, a *assessment) {
	if a.holder == r.grant.token && r.grant.end == 0 {
		return // without end
	}
	if a.holder == r.grant.token {
		a.lock.Relied = r.grant.end
	}
	if a.best.known()+a.best.lost >= t.quorum {
		end, never := t.majorityEnd(r, a.holder, 0, true, t.unseen(r, a, a.holder, true))
		if a.lock.Relied = max(a.lock.Relied, end); never {
			a.lock.Relied = 0
		}
	}
	a.wakeAt(a.lock.Relied)
}

// tombstonesHold reports whether the tombstones of a revocation keep everybody else from a
// quorum: they are on at least N − Q + 1 nodes, or were lost on nodes that refuse writes.
func (t *Table) tombstonesHold(r *record) bool {
	k := 0
	for i := range r.Copies {
		c := &r.Copies[i]
		if (c.Kind == packed.LockCopy || c.Lost() && t.nodes[i].closed) && redlock.IsTombstone(r.Tokens[c.Token].Prefix) {
			k++
		}
	}
	return k >= len(t.nodes)-t.quorum+1
}

// unseen are the votes of a token that there may be beside those that are known, by when they
// expire: on nodes that do not answer and, forgotten, those that nodes may have lost.
func (t *Table) unseen(r *record, a *assessment, tok int8, forgotten bool) (ends []packed.Moment) {
	early, since := true, a.now
	if begin := r.lock.Span.Begin; tok == r.holder && begin != 0 { // else it is not known since when it is there
		if early = !t.settled || begin <= t.settledAt || r.aged; !r.aged {
			since = begin
		}
	}
	for i := range t.nodes {
		c := &r.Copies[i]
		if (c.Kind == packed.LockCopy || c.Lost()) && int8(c.Token) == tok {
			continue
		}
		if !t.nodes[i].reachable {
			ends = append(ends, far)
		} else if forgotten {
			if until := t.mayHaveForgotten(i, since, a.now, early, a.over || a.endless); until != 0 {
				ends = append(ends, until)
				a.wakeAt(until)
			}
		}
	}
	return ends
}

// possibleNews is how many more copies of tok there may be on nodes that answer
// and have not confirmed the last change yet.
func (t *Table) possibleNews(r *record, tok int8) int {
	k := 0
	for i := range r.Copies {
		if c := &r.Copies[i]; t.nodes[i].reachable && !t.confirmed(r, i) && !(t.seen(r, i) && c.Kind == packed.LockCopy && int8(c.Token) == tok) {
			k++
		}
	}
	return k
}

// majorityEnd is until when tok has a quorum, as far as is seen: the quorum-th latest expiry of its
// copies; supposed: until when it may have one, with lost votes, with extensions that were not
// seen, and with unseen votes, which last no longer than the latest copy. never: a quorum has no
// TTL. A copy without TTL whose value tells its deadline ends then.
func (t *Table) majorityEnd(r *record, tok int8, deadline packed.Moment, supposed bool, unseen []packed.Moment) (end packed.Moment, never bool) {
	var few [8]packed.Moment
	ends := few[:0]
	forever, latest := 0, packed.Moment(0)
	for i := range r.Copies {
		c := &r.Copies[i]
		if c.Kind != packed.LockCopy && !(supposed && c.Lost()) || int8(c.Token) != tok {
			continue
		}
		expires := cmp.Or(c.Expires, deadline)
		if !supposed && i < 64 && r.presumed&(1<<i) != 0 {
			expires = min(expires, r.grant.seen)
		}
		if latest = max(latest, expires); expires == 0 {
			forever++
		} else {
			ends = append(ends, expires)
		}
	}
	for _, until := range unseen {
		ends = append(ends, min(until, latest))
	}
	if forever >= t.quorum {
		return 0, true
	}
	if slices.Sort(ends); len(ends)+forever >= t.quorum {
		end = ends[len(ends)-(t.quorum-forever)]
	}
	return end, false
}

// relyBeyond sets until when the holder relies on a majority that ends sooner: by lost votes, by
// copies that may have been extended unseen, or because it shrank.
func (t *Table) relyBeyond(r *record, a *assessment, deadline packed.Moment) {
	if a.never {
		return
	}
	relied := a.end
	if unseen := t.unseen(r, a, a.holder, true); unseen != nil || a.best.lost > 0 || r.presumed != 0 {
		relied, _ = t.majorityEnd(r, a.holder, deadline, true, unseen)
	}
	if a.shrank = t.shrank(r, a); a.shrank {
		relied = max(relied, r.grant.end)
	}
	if time.Duration(relied-a.end) > extendedBy {
		a.lock.Relied = relied
		a.wakeAt(relied)
	}
}

// shrank reports whether the end of the majority moved back, and not by its holder, who then
// relies on the end as it was: a copy went, or its TTL was cut by the node's clock or by somebody
// else. A holder that extends to a shorter TTL does so on a quorum, within an attempt. What is
// less than an attempt may be the delay of a read.
func (t *Table) shrank(r *record, a *assessment) bool {
	g, attempt := &r.grant, packed.Moment(t.Attempt)
	if a.holder != g.token || g.seen == 0 || g.seen-a.end <= attempt {
		return false
	}
	var shorter []packed.Moment
	for i := range r.Copies {
		c := &r.Copies[i]
		if c.Kind == packed.LockCopy && int8(c.Token) == g.token && c.Expires != 0 && c.Expires < g.seen-attempt && t.nodes[i].stepped <= a.since {
			shorter = append(shorter, c.Expires)
		}
	}
	slices.Sort(shorter)
	for k := t.quorum - 1; k < len(shorter); k++ {
		if shorter[k]-shorter[k-t.quorum+1] <= attempt {
			return false
		}
	}
	return true
}

// recognize is the form of the lock with this holder.
func (t *Table) recognize(r *record, holder int8, now packed.Moment) *lockform.Form {
	typ := uint8(packed.StringType)
	for i := range r.Copies {
		if c := &r.Copies[i]; c.Kind == packed.LockCopy && int8(c.Token) == holder {
			typ = c.Type
		}
	}
	tok := r.Tokens[holder]
	return lockform.Recognize(r.key(), t.TypeName(typ), tok.Prefix, tok.Length, t.Time(now))
}

// recognizeForeign finds out what r is, which no copy makes a lock: something
// that a library keeps beside its locks, maybe.
func (t *Table) recognizeForeign(r *record, now packed.Moment) *lockform.Form {
	have := func(c packed.Copy) bool { return c.Have() }
	i := slices.IndexFunc(r.Copies, have)
	typ, was := t.TypeName(r.Copies[i].Type), ""
	if old := r.lock.Copies.Packed(); old != nil {
		if k := slices.IndexFunc(old.Copies, have); k >= 0 {
			was = t.TypeName(old.Copies[k].Type)
		}
	}
	tok := r.Tokens[r.Copies[i].Token]
	if r.form == nil || r.holder >= 0 || typ != was || tok.Prefix != "" {
		// What several hold keeps its holders; of anything else no value is kept.
		if f := lockform.Recognize(r.key(), typ, tok.Prefix, tok.Length, t.Time(now)); f == nil || r.form == nil || *f != *r.form {
			return f
		}
	}
	return r.form
}
