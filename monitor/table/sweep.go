package table

import (
	"cmp"
	"container/heap"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/internal/packed"
	"redlockctl/redlock"
	"redlockctl/server/announce"
)

// Slice is how many locks are assessed without a break: a few milliseconds.
const Slice = 2000

// Refresh brings all states up to date, however long it takes.
func (t *Table) Refresh(now time.Time) {
	for t.Work(now, Slice) {
	}
}

// Work brings the states of at most budget locks up to date. It reports whether there is
// more to do.
func (t *Table) Work(at time.Time, budget int) (more bool) {
	now := t.Moment(at)
	if t.asked && now >= t.askNext {
		t.recheckWaiting(now)
	}
	for budget > 0 && len(t.timers) > 0 && t.timers[0].timer <= now {
		t.markDirty(heap.Pop(&t.timers).(*record))
		budget--
	}
	for budget > 0 && len(t.dirty) > 0 {
		t.orderDirty()
		last := len(t.dirty) - 1
		r := t.dirty[last]
		t.dirty[last] = nil
		t.dirty = t.dirty[:last]
		if !r.dirty {
			continue // already assessed
		}
		r.dirty = false
		if !r.buried {
			t.reassess(r, now)
			budget--
		}
	}
	if len(t.dirty) == 0 && cap(t.dirty) > 4*Slice {
		t.dirty = nil
	}
	t.sweepSome(now, budget)
	if t.firstAlarms != 0 && now >= t.firstAlarms && t.sweep == 0 && len(t.dirty) == 0 {
		t.firstAlarms = 0
		t.emitFirstAlarms(now, monitor.LockSplit, monitor.LockNoTTL)
	}
	t.emitUnreported(at)
	t.tellShort(now)
	if t.sweep == 0 && len(t.dirty) == 0 {
		t.whole = false
		t.emitRestarts(at)
	}
	return t.sweep > 0 || len(t.dirty) > 0 || (len(t.timers) > 0 && t.timers[0].timer <= now)
}

// orderMost is how many dirty locks are sorted at once.
const orderMost = 1 << 17

// orderDirty sorts the next of very many dirty locks by key, the first at the end. Locks
// published in this order are neighbours in the tree: they are found faster, and less of
// the tree that snapshots share is copied.
func (t *Table) orderDirty() {
	if t.ordered > 0 {
		t.ordered--
		return
	}
	if len(t.dirty) <= Slice {
		return
	}
	some := t.dirty[max(0, len(t.dirty)-orderMost):]
	t.ordered = len(some) - 1
	common := some[0].key()
	for _, r := range some {
		for !strings.HasPrefix(r.key(), common) {
			common = common[:len(common)-1]
		}
	}
	type place struct {
		at uint64 // the next bytes of the key
		r  *record
	}
	places := make([]place, len(some))
	for i, r := range some {
		var next [8]byte
		copy(next[:], r.key()[len(common):])
		places[i] = place{binary.BigEndian.Uint64(next[:]), r}
	}
	slices.SortFunc(places, func(a, b place) int {
		if a.at != b.at {
			return cmp.Compare(b.at, a.at)
		}
		return strings.Compare(b.r.key(), a.r.key())
	})
	for i := range places {
		some[i] = places[i].r
	}
}

// sweepSome continues the sweep and assesses at most budget locks.
func (t *Table) sweepSome(now packed.Moment, budget int) {
	// Start at the end: a buried record is replaced by the last one, which has been
	// visited.
	t.sweep = min(t.sweep, len(t.all))
	for budget > 0 && t.sweep > 0 {
		t.sweep--
		r := t.all[t.sweep]
		switch {
		case r.dirty, t.whole && r.round == t.round:
		case t.whole, t.stale(r):
			t.reassess(r, now)
			budget--
		}
		t.sweep = min(t.sweep, len(t.all))
	}
}

// emitRestarts reports the cost of restarts, now that all locks have been assessed.
func (t *Table) emitRestarts(at time.Time) {
	for i := range t.nodes {
		if n := &t.nodes[i]; t.costReady(i, t.Moment(at)) {
			cost := t.lossCost(i)
			n.restart = nil
			if t.OnRestart != nil {
				t.OnRestart(i, cost, at)
			}
		}
	}
}

// First assesses the changed ones of the first n locks before all others.
func (t *Table) First(at time.Time, n int) {
	now := t.Moment(at)
	// Start at the end: a buried record is replaced by a later one.
	for k := min(n, len(t.all)) - 1; k >= 0; k-- {
		if k < len(t.all) && t.all[k].dirty {
			t.all[k].dirty = false
			t.reassess(t.all[k], now)
		}
	}
}

// reassess derives what the copies of r mean now, publishes it if it looks different, and
// emits events.
func (t *Table) reassess(r *record, now packed.Moment) {
	r.round = t.round
	t.updateCopies(r, now)
	t.reviewGrant(r, r.changed, now)
	t.reviewLeaving(r, now)
	a := t.assessLock(r, now)
	gone := a.locks+a.others == 0 && a.holder < 0
	for gone && r.grant.token < 0 && r.earlier != nil && r.earlier.Until.IsZero() {
		r.dropEarlier(r.earlier.sum) // without a TTL: it ends when it is deleted
	}
	switch {
	case r.earlier != nil && r.grant.token < 0 && a.holder >= 0 && r.earlierOf(announce.TokenSum(r.Tokens[a.holder].Prefix)) != nil:
		t.holdEarlier(r, r.earlierOf(announce.TokenSum(r.Tokens[a.holder].Prefix)), now)
		a = t.assessLock(r, now)
	case r.earlier != nil && r.grant.token < 0 && (gone || a.lock.State == monitor.LockOrphaned || a.lock.Nobody):
		t.holdEarlier(r, r.earlier, now)
		a = t.assessLock(r, now)
	case gone:
		t.tellUnrevoked(r, now)
		t.concludeNobody(r, now)
		t.alarmEnds(r, &a)
		t.bury(r)
		return
	}
	if r.foreign != (a.locks == 0) {
		t.weigh(r, a.locks == 0)
	}
	if a.lock.State != monitor.LockRevoked {
		t.tellUnrevoked(r, now)
	}
	if a.holder != r.holder {
		t.changeHolder(r, a.holder)
	}
	r.holder, r.minority, r.early, r.form = a.holder, a.minority, a.early, a.form
	t.countExtension(r, &a)
	was, known := r.lock.State, r.known
	a.lock.Copies = monitor.CopiesOf(r.Set)
	a.wakeAt(t.trackAlarm(r, &a))
	if !known || !same(r.lock, &a.lock) {
		r.shared = true
		t.count(r, a.lock.Copies)
		shown := r.lock
		if known {
			shown = new(monitor.Lock)
		}
		*shown = a.lock
		t.publish(r, shown)
	}
	r.known = true
	if r.grant.went != 0 {
		a.wakeAt(r.changed + packed.Moment(t.Attempt))
	}
	t.trackGrant(r, &a)
	t.wakeToReview(r, &a)
	t.schedule(r, a.wake)
	if len(t.vouching) < 4*announce.MostLocks && t.vouchesFor(r, now) {
		t.vouching[r] = struct{}{}
	}
	if s := r.lock.State; t.settled && (s != was || !known) && s == monitor.LockOrphaned && was != monitor.LockRevoked && a.best.open > 0 && (a.best.never || a.best.end-now > packed.Moment(t.Attempt)) { // on nodes that refuse writes it blocks nobody
		t.emit(monitor.LockEvent(t.Time(now), monitor.LevelNotice, s.String(), r.key(), "%s", t.alarmText(r, r.lock)))
	}
	r.waits = !a.confirmed || r.grant.lost > 0 || r.overdue
	if r.waits && !r.listed {
		r.listed = true
		t.waiting = append(t.waiting, r)
	}
}

// countHits adds the locks that lost a copy on node i to the cost of that, by what is left of the copies
// of the token that lost it: another one may have a majority by now.
func (t *Table) countHits(i int, c *restartCost) {
	bit := uint64(1) << min(i, 63)
	for _, r := range t.all {
		if c.hits == 0 {
			return
		}
		if r.hit&bit == 0 {
			continue
		}
		c.hits--
		r.hit &^= bit
		k, lost := r.grant.token, r.Copies[i].Lost()
		if lost {
			k = int8(r.Copies[i].Token)
		}
		var displaced *earlier // another client got in since
		for e := r.earlier; e != nil && displaced == nil; e = e.next {
			if e.was.fell && (lost && e.sum == announce.TokenSum(r.Tokens[k].Prefix) || !lost && i < 32 && e.was.went&(1<<i) != 0) {
				displaced = e
			}
		}
		switch {
		case displaced != nil:
			c.fall(r, t.Moment(displaced.Until))
		case r.lock.LostMajority():
			c.fall(r, r.lock.Relied)
		case k >= 0 && redlock.IsTombstone(r.Tokens[k].Prefix):
			if r.lock.State != monitor.LockRevoked {
				c.unrevoked++
				c.freed = named(c.freed, r)
				continue
			}
			c.names = named(c.names, r) // a tombstone's majority is nobody's
		case r.lock.State != monitor.LockRevoked && r.lock.Held >= t.quorum && r.lock.Margin() <= 0:
			c.bare++
			c.bared = named(c.bared, r)
		default:
			c.names = named(c.names, r)
		}
	}
}

// updateCopies drops the copies of r that are gone, and updates the states of the others.
func (t *Table) updateCopies(r *record, now packed.Moment) {
	r.overdue = false
	for i := range r.Copies {
		t.dropVanished(r, i, now)
	}
	t.findStretched(r, now)
	t.extendUnseen(r, now)
	for i := range r.Copies {
		switch c := &r.Copies[i]; {
		case !c.Have() && !c.Lost() || c.Expires == 0 || c.Expires > now:
		case c.Lost(), t.nodes[i].provesEnd(c.Expires):
			if !c.Lost() && !t.nodes[i].reachable {
				t.noteExpired(r, i)
				t.age(r, int8(c.Token)) // it may have been extended there
			}
			t.short.hasExpired(i, r.key(), now)
			if !t.cutByStep(r, i, now) {
				r.drop(i)
			}
		default:
			r.overdue = true
		}
	}
	for at := &r.earlier; *at != nil; at = &(*at).next {
		if e := *at; !e.Until.IsZero() && t.Moment(e.Until) <= now {
			*at = nil // and all after it
			break
		}
	}
	if len(r.Tokens) > 1 {
		r.compact()
		t.weigh(r, r.foreign)
	}
	for i := range r.Copies {
		if state := t.stateOf(r, i); state != r.Copies[i].State {
			r.own()
			r.Copies[i].State = state
		}
	}
}

// extendUnseen assumes that a copy that cannot be seen was extended with the others: on a
// node that does not answer, or that lost it before it was read: a moment ago, or while
// the others were silent.
func (t *Table) extendUnseen(r *record, now packed.Moment) {
	for i := range r.Copies {
		c, n := &r.Copies[i], &t.nodes[i]
		at := max(n.restarted, n.wiped)
		lost := c.Lost() && monitor.LossCause(c.Type) != monitor.LostByDeletion && (now-at <= packed.Moment(t.Attempt) || r.unwatched != 0 && r.unwatched < at)
		silent := c.Kind == packed.LockCopy && !n.reachable && int8(c.Token) == r.grant.token && r.grant.seen != 0
		if c.Expires == 0 || i >= 64 || !lost && !silent {
			continue
		}
		end := packed.Moment(0)
		for k := range r.Copies {
			if o := &r.Copies[k]; k != i && (o.Lost() || t.seen(r, k)) && o.Kind != packed.OtherCopy && o.Token == c.Token {
				end = max(end, t.reliedOn(r, k))
			}
		}
		if time.Duration(end-c.Expires) > extendedBy && (lost || time.Duration(end-r.grant.seen) > extendedBy) {
			r.own()
			r.Copies[i].Expires = end
			if silent {
				r.presumed |= 1 << i
				if g := &r.grant; !g.supposed {
					g.supposed, g.seen = true, g.end
				}
			}
		}
	}
	r.unwatched = 0
}

// same reports whether a lock looks the same as before.
func same(old, next *monitor.Lock) bool {
	return old.State == next.State && old.Held == next.Held && old.Tokens == next.Tokens &&
		old.Nobody == next.Nobody && old.Contested == next.Contested && old.Supposed == next.Supposed && old.Lasts == next.Lasts && old.Over == next.Over && old.Unending == next.Unending && old.LeftByStep == next.LeftByStep && old.Lost == next.Lost && old.Extensions == next.Extensions && alikeReliance(old.Earlier, next.Earlier) && packed.Alike(old.Relied, next.Relied) && old.Holder == next.Holder && old.Form == next.Form && old.Span.Begin == next.Span.Begin &&
		packed.Alike(old.Span.End, next.Span.End) && old.Copies.Packed().Alike(next.Copies.Packed())
}

func alikeReliance(a, b *monitor.Reliance) bool {
	return a == b || a != nil && b != nil && a.Token == b.Token && a.Until.Sub(b.Until).Abs() < extendedBy
}

// recheckWaiting assesses locks that have been confirmed by now. If very many locks wait,
// it pauses before the next check.
func (t *Table) recheckWaiting(now packed.Moment) {
	t.asked, t.askNext = false, now+packed.Moment(len(t.waiting))*packed.Moment(askPause)
	kept := t.waiting[:0]
	for _, r := range t.waiting {
		if !r.waits {
			r.listed = false
			continue
		}
		kept = append(kept, r)
		if t.mayChange(r) {
			t.markDirty(r)
		}
	}
	clear(t.waiting[len(kept):])
	if t.waiting = kept; cap(kept) > 1024 && cap(kept) > 4*len(kept) {
		t.waiting = slices.Clone(kept)
	}
}

// askPause is the pause per waiting lock: about ten times the cost of its check.
const askPause = 500 * time.Nanosecond

// mayChange reports whether the confirmations so far may change the state of r.
func (t *Table) mayChange(r *record) bool {
	all, unread := true, false
	for i := range r.Copies {
		if t.nodes[i].reachable && !t.confirmed(r, i) {
			all = false
			unread = unread || !t.seen(r, i)
		}
	}
	return all || r.overdue || r.grant.lost > 0 || !unread && r.lock.State == monitor.LockHeld
}

// Unconfirmed reports whether any lock waits to be confirmed by the nodes.
func (t *Table) Unconfirmed() bool {
	for k := len(t.waiting) - 1; k >= 0; k-- {
		if t.waiting[k].waits {
			return true
		}
		t.waiting[k].listed = false
		t.waiting = t.waiting[:k]
	}
	return false
}

// Doubtful reports whether the first view has locks whose state another read of all nodes
// may change: several tokens, or a lock that changed hands meanwhile.
func (t *Table) Doubtful() bool {
	return slices.ContainsFunc(t.waiting, func(r *record) bool { return r.waits && r.changed != 0 })
}

// Pending reports whether there is something to do, now or soon.
func (t *Table) Pending() bool { return t.sweep > 0 || len(t.dirty) > 0 || t.asked }

// Due reports whether there is something to do now.
func (t *Table) Due(now time.Time) bool {
	return t.sweep > 0 || len(t.dirty) > 0 || t.asked && t.Moment(now) >= t.askNext
}

// Next returns the latest time at which the table has something to do; zero: nothing is
// due.
func (t *Table) Next() time.Time {
	due := t.firstAlarms
	if t.asked && (due == 0 || t.askNext < due) {
		due = t.askNext
	}
	if len(t.timers) > 0 && (due == 0 || t.timers[0].timer < due) {
		due = t.timers[0].timer
	}
	return t.Time(due)
}

// Settle records that the first view is complete. What is wrong from the start is
// reported in one event for each kind.
func (t *Table) Settle(at time.Time) {
	t.askNext = 0 // the confirmations so far count now
	t.Refresh(at)
	t.settled, t.settledAt = true, t.Moment(at)
	t.emitFirstAlarms(t.settledAt, monitor.LockOverTTL)
	t.firstAlarms = t.settledAt + packed.Moment(alarmPatience)
}
