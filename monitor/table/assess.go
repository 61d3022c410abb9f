package table

import (
	"cmp"
	"slices"
	"time"

	"redlockctl/internal/lockform"
	"redlockctl/internal/safetext"
	"redlockctl/monitor"
	"redlockctl/monitor/internal/packed"
	"redlockctl/redlock"
)

// assessment is what the copies of a record amount to.
type assessment struct {
	now  packed.Moment
	lock monitor.Lock  // without its copies
	wake packed.Moment // when to look again at the latest; zero: no need

	locks, others int            // copies of a lock, and those that are none
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
	never         bool           // the majority has no end
	majority      bool
	perhaps       bool // a majority, if the nodes that do not answer kept their copies
}

// tally is how many copies a token has.
type tally struct {
	present int // known to be there
	last    int // at last sight, of nodes that do not answer
}

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
	if a.locks+a.others == 0 {
		return a
	}
	a.chooseHolder(r, tallies)
	if a.locks == 0 {
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
	if a.majority = a.best.present >= t.quorum; a.majority {
		a.end, a.never = t.majorityEnd(r, a.holder, deadline)
	}
	// A node that does not answer may have kept its copy, and the holder counts
	// on it.
	a.perhaps = !a.majority && a.best.present+a.best.last >= t.quorum
	a.lock.Key, a.lock.Form, a.lock.Held = r.lock.Key, form, a.best.present
	a.lock.Span = packed.Span{Begin: a.since, End: a.end}
	if a.holder >= 0 {
		a.lock.Holder = safetext.New(r.Tokens[a.holder].Prefix)
	}
	a.lock.State = t.lockState(r, &a, deadline)
	a.lock.Nobody = a.lock.State == monitor.LockSplit && a.holders > 1 && !a.majority && !a.perhaps
	for k := 0; k < len(r.Tokens) && a.lock.Nobody; k++ {
		a.lock.Nobody = tallies[k].present+t.possible(r, &a, int8(k)) < t.quorum
	}
	return a
}

// countCopies counts the copies of r, and those of each token.
func (t *Table) countCopies(r *record, a *assessment, tallies []tally) {
	a.confirmed = true
	for i := range r.Copies {
		c := &r.Copies[i]
		if t.nodes[i].reachable && !t.confirmed(r, i) {
			a.confirmed = false
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
		tok := &r.Tokens[c.Token]
		if c.Expires == 0 {
			a.endless = true
			if c.Type == packed.StringType && lockform.IsNumber(tok.Prefix, tok.Length) {
				a.numbers++
			}
		} else if t.maxTTL > 0 && !redlock.IsTombstone(tok.Prefix) && time.Duration(c.Expires-a.now) > t.maxTTL {
			a.over = true
			a.wakeAt(c.Expires - packed.Moment(t.maxTTL))
		}
		if c.State == monitor.CopyPresent {
			tallies[c.Token].present++
		} else {
			tallies[c.Token].last++
		}
	}
}

// chooseHolder takes the token with most copies for the holder; among equals the one
// that was it, so that the screen does not swap them. What a revocation left holds
// nothing.
func (a *assessment) chooseHolder(r *record, tallies []tally) {
	for k := range r.Tokens {
		v := tallies[k]
		if v.present+v.last == 0 {
			continue
		}
		a.lock.Tokens++
		if redlock.IsTombstone(r.Tokens[k].Prefix) {
			a.revoked = true
		} else {
			a.holders++
		}
		if d := cmp.Or(cmp.Compare(v.present, a.best.present), cmp.Compare(v.last, a.best.last)); d > 0 ||
			(d == 0 && int8(k) == r.holder) {
			a.best, a.holder = v, int8(k)
		}
	}
}

// lockState is the state of the lock, the worst of those that it is in.
func (t *Table) lockState(r *record, a *assessment, deadline packed.Moment) monitor.LockState {
	if f := a.lock.Form; a.locks == 0 || f != nil && f.Companion {
		return monitor.LockNotALock
	}
	state := t.holderState(r, a)
	switch {
	case !a.endless:
	case deadline == 0:
		state = max(state, monitor.LockNoTTL)
	case deadline <= a.now:
		state = max(state, monitor.LockOrphaned) // nobody holds it, and it stays until somebody takes it
	}
	if a.over {
		state = max(state, monitor.LockOverTTL)
	}
	if (a.holders > 1 || a.holders == 1 && a.others > 0) && a.confirmed {
		state = max(state, monitor.LockSplit)
	}
	return state
}

// holderState is the state of the lock as far as it follows from what its holder
// has.
func (t *Table) holderState(r *record, a *assessment) monitor.LockState {
	if a.revoked && (redlock.IsTombstone(r.Tokens[a.holder].Prefix) || (!a.majority && !a.perhaps)) {
		a.minority = 0
		return monitor.LockRevoked
	}
	if a.majority || a.perhaps {
		a.minority = 0
	}
	if a.majority && !a.never {
		a.wakeAt(a.end - packed.Moment(time.Second))
	}
	margin := monitor.CrashMargin(len(t.nodes), t.quorum, a.best.present)
	switch {
	case a.perhaps:
		return monitor.LockPartial // its majority is not seen, and nobody left it behind
	case a.majority && margin <= 0 && margin+t.possibleNews(r, a.holder) <= 0:
		return monitor.LockBareMajority
	case a.majority && !a.never && time.Duration(a.end-a.now) <= time.Second:
		return monitor.LockExpiring
	case a.majority:
		return monitor.LockHeld
	}
	if a.minority == 0 {
		a.minority = a.now
	}
	ripe := a.minority + packed.Moment(t.Attempt)
	a.wakeAt(ripe)
	if ripe <= a.now && a.confirmed && a.best.present+t.possible(r, a, a.holder) < t.quorum {
		return monitor.LockOrphaned
	}
	return monitor.LockPartial
}

// possible is how many more copies of tok there may be on nodes that do not
// answer: where it was last seen there, or where nobody looked between its
// first sight and the node's silence.
func (t *Table) possible(r *record, a *assessment, tok int8) int {
	k := 0
	for i := range t.nodes {
		n := &t.nodes[i]
		switch c := &r.Copies[i]; {
		case n.reachable:
		case c.Have():
			if c.Kind == packed.LockCopy && int8(c.Token) == tok {
				k++
			}
		case n.lostSight == 0: // never seen at all
			if a.early {
				k++
			}
		case a.since < n.lostSight && n.looked() < a.since:
			k++
		}
	}
	return k
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

// majorityEnd is the quorum-th latest expiry of the copies of tok, which has a
// quorum. never: a quorum of them has no TTL. A copy without TTL whose value
// tells its deadline ends then.
func (t *Table) majorityEnd(r *record, tok int8, deadline packed.Moment) (end packed.Moment, never bool) {
	var few [8]packed.Moment
	ends := few[:0]
	forever := 0
	for i := range r.Copies {
		c := &r.Copies[i]
		switch {
		case c.Kind != packed.LockCopy || int8(c.Token) != tok:
		case c.Expires != 0:
			ends = append(ends, c.Expires)
		case deadline != 0:
			ends = append(ends, deadline)
		default:
			forever++
		}
	}
	if forever >= t.quorum {
		return 0, true
	}
	slices.Sort(ends)
	return ends[len(ends)-(t.quorum-forever)], false
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
