package table

import (
	"cmp"
	"slices"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/internal/packed"
	"redlockctl/redlock"
	"redlockctl/server/announce"
	"redlockctl/server/lockform"
	"redlockctl/server/safetext"
)

// assessment is the meaning of a record's copies.
type assessment struct {
	now  packed.Moment
	lock monitor.Lock  // without its copies
	wake packed.Moment // latest time of the next check; zero: none needed

	locks, others int            // copies of a lock, and copies that are not a lock
	rivals        int            // tokens with a copy on a node that accepts writes, or may
	confirmed     bool           // every node that answers was read since the last change
	endless       bool           // a copy has no TTL
	over          bool           // a TTL is longer than the cluster's maximum, of a token whose grant has not ended
	numbers       int            // copies that are numbers without a TTL
	best          tally          // of the holder
	holder        int8           // token; −1: none
	contenders    int            // tokens with copies, of which none is known to have a majority and each may have one
	holders       int            // different tokens, without tombstones
	revoked       bool           // there is a tombstone among the tokens
	since         packed.Moment  // of the holder
	minority      packed.Moment  // since when the holder has no majority; zero while it has one
	early         bool           // see record
	form          *lockform.Form // as recognized; the form in lock may be more specific
	end           packed.Moment  // of the majority; zero: no majority, or no end
	shrank        bool           // the end of the majority moved back, and not by its holder
	never         bool           // the majority does not expire
	majority      bool
	double        bool // another client than the holder has a majority too, with the votes that it lost
	granted       bool // the holder was granted the lock, and the grant has neither ended nor been released
	perhaps       bool // no majority is seen, but one may exist
	fell          bool // the holder has lost its majority and relies on the lock
}

// tally counts the copies of a token.
type tally struct {
	present int           // known to be there
	unread  int           // as last read, on nodes that are being read again
	silent  int           // as last read, on nodes that do not answer
	lost    int           // lost votes that would not have expired yet
	end     packed.Moment // latest expiry of its copies and lost votes; never: one has no TTL
	never   bool
	over    bool // a lost vote would last for longer than the cluster's maximum
	written bool // at least one copy or lost vote was not loaded from disk
	open    int  // copies on nodes that accept writes
}

// known returns the number of copies, if nodes that cannot be read now kept theirs.
func (v *tally) known() int { return v.present + v.unread + v.silent }

// wakeAt schedules a check at this time, if it is in the future and comes.
func (a *assessment) wakeAt(at packed.Moment) {
	if at > a.now && at < far && (a.wake == 0 || at < a.wake) {
		a.wake = at
	}
}

// assessLock derives what the copies of r mean now. It changes neither table nor record.
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
		if was := t.rivalOf(r, a.holder); was != nil {
			a.since, a.minority = was.since, was.minority
		}
		a.form = t.recognize(r, a.holder, now)
	} else if a.holder >= 0 && r.lock.Holder.Raw() != r.Tokens[a.holder].Prefix { // a guard announced its start, and a copy told the rest
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
		a.lock.Unending = a.never
	}
	a.lock.Key, a.lock.Form, a.lock.Held = r.lock.Key, form, a.best.present
	a.lock.Supposed = r.presumed != 0
	a.lock.Lost, a.lock.Earlier = a.best.lost, r.earlier.reliance()
	if a.lock.Earlier == nil {
		a.lock.Earlier = t.mayRelyBeside(r, &a, tallies)
	}
	known := a.granted || r.granted(now) // who was granted the lock
	for k := 0; k < len(r.Tokens) && a.holders > 1 && !a.majority && !known; k++ {
		if v := &tallies[k]; v.known() > 0 && t.mayHold(r, &a, int8(k), v) {
			a.contenders++
		}
	}
	a.lock.Span = packed.Span{Begin: a.since, End: a.end}
	if a.holder >= 0 {
		a.lock.Holder = safetext.New(r.Tokens[a.holder].Prefix)
	}
	a.lock.State = t.lockState(r, &a, deadline)
	if a.lock.Over = a.lock.State != monitor.LockNotALock && (a.over || a.fell && a.best.over); a.lock.Over && a.best.over {
		a.wakeAt(a.best.end - packed.Moment(t.bound))
	}
	a.lock.LeftByStep = a.lock.State == monitor.LockOrphaned && t.leftByStep(r, a.holder)
	several := (a.lock.State == monitor.LockSplit || a.lock.State == monitor.LockNoTTL) && a.holders > 1
	a.lock.Nobody = several && !a.majority && !a.perhaps && !a.granted && r.earlier == nil
	for k := 0; k < len(r.Tokens) && a.lock.Nobody; k++ {
		a.lock.Nobody = tallies[k].present+tallies[k].lost+len(t.unseen(r, &a, int8(k), true)) < t.quorum
	}
	a.lock.Contested = several && !a.majority && !known && !a.lock.Nobody && a.lock.Earlier != nil
	if a.lock.State == monitor.LockNoTTL && a.holders == 1 && !a.majority && !a.granted {
		a.lock.Nobody = t.hasEnded(r, a.holder)
	}
	return a
}

// mayRelyBeside returns a client that may rely on the lock besides its holder, by votes
// that were lost or cannot be seen; nil: none.
func (t *Table) mayRelyBeside(r *record, a *assessment, tallies []tally) *monitor.Reliance {
	if g := &r.grant; a.holder >= 0 && g.token != a.holder && r.granted(a.now) {
		return &monitor.Reliance{Token: safetext.New(r.Tokens[g.token].Prefix), Until: t.Time(g.end)} // other tokens' copies have replaced its votes
	}
	for k := range r.Tokens {
		v := &tallies[k]
		if v.known()+v.lost == 0 || int8(k) == a.holder || !t.mayHold(r, a, int8(k), v) {
			continue
		}
		a.double = v.known()+v.lost >= t.quorum
		until := monitor.Reliance{Token: safetext.New(r.Tokens[k].Prefix)}
		if end, never := t.majorityEnd(r, int8(k), 0, true, t.unseen(r, a, int8(k), true)); !never && !v.never {
			until.Until = t.Time(end)
		}
		return &until
	}
	return nil
}

// granted reports whether a grant of r was seen that goes on, also if other tokens' copies have
// replaced its votes.
func (r *record) granted(now packed.Moment) bool {
	g := &r.grant
	return g.token >= 0 && (g.deleted == 0 || g.fell) && g.end > now
}

// countCopies counts the copies of r and of each token.
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
				v.over = v.over || t.isOver(r, i, a.now)
				v.written, v.end, v.never = true, max(v.end, c.Expires), v.never || c.Expires == 0
			} else if n.loads {
				tallies[c.Token].unread++
			}
		}
		if !c.Have() {
			continue
		}
		if a.wakeAt(c.Expires); t.forgotten(r, i) {
			continue
		}
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
		} else if t.isOver(r, i, a.now) {
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
		v.end = max(v.end, t.reliedOn(r, i))
		v.written = v.written || i >= 64 || r.loaded&(1<<i) == 0
		if n.reachable && !n.closed {
			v.open++
		}
	}
}

// forgotten reports whether copy i of r is on a node that does not answer, and its grant has ended: it
// keeps nobody out, and a view that begins now does not know it.
func (t *Table) forgotten(r *record, i int) bool {
	c := &r.Copies[i]
	return !t.nodes[i].reachable && c.Kind == packed.LockCopy && t.ended.has(r.key(), announce.TokenSum(r.Tokens[c.Token].Prefix))
}

// isOver reports whether a copy or a lost vote lasts for longer than the cluster's maximum, and its
// grant has not ended.
func (t *Table) isOver(r *record, i int, now packed.Moment) bool {
	c := &r.Copies[i]
	s, _ := t.stretchOf(r, i)
	return t.bound > 0 && time.Duration(c.Expires-now)-s.by > t.bound && !redlock.IsTombstone(r.Tokens[c.Token].Prefix) && !t.hasEnded(r, int8(c.Token))
}

// chooseHolder picks as holder, in this order: the token with a majority, the token that
// was granted the lock and may still rely on it, one that may have a majority, the one
// with most copies, the one on the first node. A tombstone may be picked, but holds
// nothing.
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
			} else if a.holders++; v.open+v.silent > 0 && !t.leftOver(r, int8(k), v) {
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
		if d := cmp.Or(cmp.Compare(c, bc), cmp.Compare(g, bg), cmp.Compare(m, bm), cmp.Compare(p, bp), cmp.Compare(n, bn)); d > 0 || d == 0 && r.first(int8(k)) < r.first(int8(best)) {
			best = k
		}
	}
	if best >= 0 {
		a.holder, a.best, a.granted = int8(best), tallies[best], t.granted(r, int8(best), &tallies[best])
	}
}

// leftOver reports whether the copies of token k of r rival nobody, also on nodes that accept writes:
// its grant was released or has expired, and they stayed where that was not possible. A client whose
// lock was force-released does not know that, so it is still a rival.
func (t *Table) leftOver(r *record, k int8, v *tally) bool {
	return v.known()+v.lost < t.quorum && t.ended.has(r.key(), announce.TokenSum(r.Tokens[k].Prefix)) && t.by(r, k, "force-release") == ""
}

// mayHold reports whether token k of r, whose grant has not ended, would have a quorum if
// all votes that may exist do.
func (t *Table) mayHold(r *record, a *assessment, k int8, v *tally) bool {
	return !redlock.IsTombstone(r.Tokens[k].Prefix) && v.known()+v.lost+len(t.unseen(r, a, k, true)) >= t.quorum && !t.hasEnded(r, k)
}

// granted reports whether token k of r was granted the lock and the grant has neither
// been released nor ended: it had a majority, or its copies and lost votes make one.
func (t *Table) granted(r *record, k int8, v *tally) bool {
	return k == r.grant.token || v.lost > 0 && v.present+v.unread+v.lost >= t.quorum && v.written && !redlock.IsTombstone(r.Tokens[k].Prefix)
}

// unseen returns the expiries of votes that a token may have besides the known ones: on
// nodes that do not answer and, if forgotten is set, votes that nodes may have lost.
func (t *Table) unseen(r *record, a *assessment, tok int8, forgotten bool) (ends []packed.Moment) {
	early, since, certain := true, a.now, packed.Moment(0)
	begin, aged := r.lock.Span.Begin, r.aged
	if was := t.rivalOf(r, tok); was != nil {
		begin, aged = was.since, was.aged
	} else if tok != r.holder {
		begin = 0 // it is unknown since when the token exists
	}
	if begin != 0 {
		if early = !t.settled || begin <= t.settledAt || aged; !aged {
			since = begin
		}
	}
	if early && len(t.certain) > 0 {
		certain, _ = t.certainAt(r, a, tok)
	}
	own := func(c packed.Copy) bool { return (c.Kind == packed.LockCopy || c.Lost()) && int8(c.Token) == tok }
	endless := a.endless && slices.ContainsFunc(r.Copies, func(c packed.Copy) bool { return own(c) && c.Expires == 0 })
	for i := range t.nodes {
		if own(r.Copies[i]) {
			continue
		}
		if !t.nodes[i].reachable || forgotten && i < 32 && tok == r.grant.token && r.grant.veiled&(1<<i) != 0 {
			ends = append(ends, t.endBefore(r, tok, i))
		} else if forgotten {
			if until := t.mayHaveForgotten(i, since, a.now, certain, early, a.over || endless); until != 0 {
				ends = append(ends, min(until, t.endBefore(r, tok, i)))
				a.wakeAt(until)
			}
		}
	}
	return ends
}

// possibleNews counts further copies of tok that may exist on nodes that answer and have
// not confirmed the last change yet.
func (t *Table) possibleNews(r *record, tok int8) int {
	k := 0
	for i := range r.Copies {
		if c := &r.Copies[i]; t.nodes[i].reachable && !t.confirmed(r, i) && !(t.seen(r, i) && c.Kind == packed.LockCopy && int8(c.Token) == tok) {
			k++
		}
	}
	return k
}

// majorityEnd returns until when tok has a quorum, as far as is seen: the quorum-th
// latest expiry of its copies. With supposed, it returns until when tok may have one,
// with lost votes, extensions that were not seen, and unseen votes, which last no longer
// than the latest copy, unless all copies are on nodes that refuse extensions. never means
// that a quorum has no TTL. A copy without TTL whose value is a deadline ends at that
// deadline.
func (t *Table) majorityEnd(r *record, tok int8, deadline packed.Moment, supposed bool, unseen []packed.Moment) (end packed.Moment, never bool) {
	var few [8]packed.Moment
	ends := few[:0]
	forever, silent, latest, open := 0, 0, packed.Moment(0), false
	for i := range r.Copies {
		c := &r.Copies[i]
		if c.Kind != packed.LockCopy && !(supposed && c.Lost()) || int8(c.Token) != tok {
			continue
		}
		expires := cmp.Or(t.reliedOn(r, i), deadline)
		if !supposed && i < 64 && r.presumed&(1<<i) != 0 {
			expires = min(expires, r.grant.seen)
		}
		open = open || c.Lost() || !t.nodes[i].closed
		switch latest = max(latest, expires); {
		case expires == 0:
			forever++
		case supposed && !t.nodes[i].reachable && !(c.Lost() && t.endBefore(r, tok, i) != far): // it may have been extended with the others
			silent++
		default:
			ends = append(ends, expires)
		}
	}
	for range silent {
		ends = append(ends, latest)
	}
	for _, until := range unseen {
		if open || latest == 0 || until == far {
			until = min(until, latest)
		}
		ends = append(ends, until)
	}
	if forever >= t.quorum {
		return 0, true
	}
	if slices.Sort(ends); len(ends)+forever >= t.quorum {
		end = ends[len(ends)-(t.quorum-forever)]
	}
	return end, false
}

// relyBeyond sets until when the holder relies on a lock whose majority ends sooner: by
// lost votes, by copies that may have been extended unseen, or because the majority
// shrank.
func (t *Table) relyBeyond(r *record, a *assessment, deadline packed.Moment) {
	if a.never {
		return
	}
	relied := a.end
	if unseen := t.unseen(r, a, a.holder, true); unseen != nil || a.best.lost+a.best.unread+a.best.silent > 0 || r.presumed != 0 {
		relied, _ = t.majorityEnd(r, a.holder, deadline, true, unseen)
	}
	relied = max(relied, t.endBeforeSteps(r, a))
	if a.shrank = t.shrank(r, a); a.shrank {
		relied = max(relied, r.grant.end)
	}
	if len(t.certain) > 0 {
		_, until := t.certainAt(r, a, a.holder)
		relied = max(relied, until)
	}
	if time.Duration(relied-a.end) > extendedBy {
		a.lock.Relied = relied
		a.wakeAt(relied)
	}
}

// shrank reports whether the end of the majority moved back, and not by its holder, who
// then relies on the earlier end: a copy was lost, or its TTL was cut by the node's clock
// or by another client. A holder that extends to a shorter TTL does so on a quorum,
// within one attempt. A difference shorter than an attempt may be the delay of a read.
func (t *Table) shrank(r *record, a *assessment) bool {
	g, attempt := &r.grant, packed.Moment(t.Attempt)
	if a.holder != g.token || g.seen == 0 || g.seen-a.end <= attempt {
		return false
	}
	if g.shown-a.end <= attempt {
		return true // the copies were cut before they were first read here: only a guard knows by whom
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

// recognize returns the form of the lock with this holder.
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

// recognizeForeign identifies r, which has no copy of a lock: it may be something that a
// library keeps beside its locks.
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
		// A shared lock keeps its holders; no value of anything else is kept.
		if f := lockform.Recognize(r.key(), typ, tok.Prefix, tok.Length, t.Time(now)); f == nil || r.form == nil || *f != *r.form {
			return f
		}
	}
	return r.form
}
