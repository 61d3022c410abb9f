package table

import (
	"slices"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/internal/packed"
	"redlockctl/redlock"
)

// lockState returns the worst of the lock's states.
func (t *Table) lockState(r *record, a *assessment, deadline packed.Moment) monitor.LockState {
	if f := a.lock.Form; a.locks == 0 && a.others > 0 || f != nil && f.Companion {
		return monitor.LockNotALock
	}
	state := t.holderState(r, a)
	// A holder without a majority relies on the lock, or may. Copies of others, of whom none has or may
	// have a quorum, make no second holder: an attempt left them, or is under way.
	contended := (state == monitor.LockLostMajority || state == monitor.LockMayBeHeld) && a.others == 0 && a.lock.Earlier == nil
	if (a.over || a.endless) && a.lock.Relied == 0 && !a.lock.Unending {
		contended = false // that is its state, and then nobody is known to rely on it
	}
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
	// Copies on nodes that refuse writes are left-overs: none of them completes an
	// attempt. But each of several tokens may have completed one before.
	if a.contenders > 1 && a.confirmed && state == monitor.LockMayBeHeld {
		state = monitor.LockSplit
	}
	if (a.rivals > 1 && !contended || a.rivals == 1 && a.others > 0) && a.confirmed || a.majority && r.earlier != nil {
		if state == monitor.LockPartial && !a.majority && a.holder >= 0 && a.best.known()+a.best.lost+len(t.unseen(r, a, a.holder, true)) >= t.quorum {
			t.mayBeHeld(r, a) // the state is not decided yet
		}
		if state = max(state, monitor.LockSplit); a.lock.Earlier != nil {
			state = monitor.LockSplit // two clients may rely on it: worse than a copy without a TTL
		}
	}
	return state
}

// holderState returns the state of the lock by the copies that its holder has, and may
// have.
func (t *Table) holderState(r *record, a *assessment) monitor.LockState {
	if a.revoked && t.tombstonesHold(r) && (redlock.IsTombstone(r.Tokens[a.holder].Prefix) || !a.majority && a.best.known() < t.quorum) {
		a.minority = 0
		if !a.majority { // tombstones were lost: the others still say until when the last holder may work
			for i := range r.Copies {
				if c := &r.Copies[i]; c.Kind == packed.LockCopy || c.Lost() {
					a.lock.Relied = max(a.lock.Relied, t.reliedOn(r, i))
				}
			}
		}
		return monitor.LockRevoked
	}
	if a.majority {
		a.minority = 0
		if !a.never {
			a.wakeAt(max(a.end, a.lock.Relied) - packed.Moment(time.Second))
		}
		margin := monitor.CrashMargin(len(t.nodes), t.quorum, a.best.present)
		switch {
		case margin <= 0 && (margin+t.possibleNews(r, a.holder) <= 0 || r.wasBare(a.holder)):
			return monitor.LockBareMajority
		case !a.never && time.Duration(max(a.end, a.lock.Relied)-a.now) <= time.Second:
			return monitor.LockExpiring
		}
		return monitor.LockHeld
	}
	if redlock.IsTombstone(r.Tokens[a.holder].Prefix) && t.hasEnded(r, a.holder) {
		return monitor.LockOrphaned
	}
	if redlock.IsTombstone(r.Tokens[a.holder].Prefix) { // too few to keep others out, and the holder may rely on the lock until they end
		a.perhaps, a.lock.Relied = true, a.best.end
		if a.best.never {
			a.lock.Relied = 0
		}
		return monitor.LockMayBeHeld
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
		a.lock.Unending = t.unending(r, a)
		return monitor.LockPartial // being read again
	case !a.granted && t.hasEnded(r, a.holder) && (a.best.open == 0 || ripe <= a.now):
		return monitor.LockOrphaned // left behind, perhaps where a release is refused
	case known >= t.quorum, a.granted && r.grant.perhaps, !a.granted && known == 0:
		return t.mayBeHeld(r, a)
	case a.granted && a.holder == r.grant.token && r.grant.end != 0 && r.grant.end <= a.now:
		a.perhaps = true
		return monitor.LockPartial // it expired while nodes are read again
	case a.granted && a.holder == r.grant.token && t.expires(r, a.now):
		a.perhaps = true
		a.wakeAt(r.grant.end)
		t.relyUntil(r, a)
		return monitor.LockPartial
	case a.granted && r.grant.deleted != 0 && !r.grant.fell:
		a.perhaps = true
		a.wakeAt(r.changed + t.releaseTakes(a.now))
		return monitor.LockPartial // a release is in progress, or will fail
	case a.granted && known+len(t.unseen(r, a, a.holder, false)) >= t.quorum:
		return t.mayBeHeld(r, a)
	case a.granted:
		a.minority = 0
		a.fell = true
		t.relyUntil(r, a)
		a.lock.Unending = t.unending(r, a)
		return monitor.LockLostMajority
	case ripe > a.now && !a.over: // an over-long TTL is reported at once
		return monitor.LockPartial
	case !a.best.written:
		return t.mayBeHeld(r, a)
	case known+a.best.lost+len(t.unseen(r, a, a.holder, true)) >= t.quorum:
		if heard := ripe + packed.Moment(HearTime); heard > a.now && !a.over {
			a.wakeAt(heard)
			return monitor.LockPartial // a guard that saw it all may know, and says so
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

// lookedSince reports whether all nodes that answer have been read since then.
func (t *Table) lookedSince(then packed.Moment) bool {
	return !slices.ContainsFunc(t.nodes, func(n node) bool { return n.reachable && (n.scanned != n.epoch || n.looked() < then) })
}

// mayBeHeld returns the state of a lock whose holder may have a majority that cannot be
// seen: until the end of its last known grant or, if none is known, of its last copy.
func (t *Table) mayBeHeld(r *record, a *assessment) monitor.LockState {
	a.perhaps = true
	if a.granted {
		t.relyUntil(r, a)
	}
	end, never := t.majorityEnd(r, a.holder, 0, true, t.unseen(r, a, a.holder, true))
	a.lock.Relied = max(a.lock.Relied, end)
	switch {
	case never, a.best.never:
		a.lock.Relied = 0
	case a.lock.Relied == 0: // too few votes are known so far
		a.lock.Relied = a.best.end
	}
	a.lock.Unending = t.unending(r, a)
	return monitor.LockMayBeHeld
}

// unending reports whether the holder, whose majority is not seen, may rely on the lock without end: a copy or
// a lost vote has no TTL, and it was granted the lock, or would have a quorum with nodes that do not serve. One
// that serves and has no copy may have lost a vote long ago, as every node may that ever restarted: that is
// no reason to take a copy that a client left behind for a lock that is held.
func (t *Table) unending(r *record, a *assessment) bool {
	if a.lock.Relied != 0 || !a.best.never {
		return false
	}
	votes := a.best.known() + a.best.lost
	for i := range t.nodes {
		c, n := &r.Copies[i], &t.nodes[i]
		if own := (c.Kind == packed.LockCopy || c.Lost()) && int8(c.Token) == a.holder; !own && (!n.reachable || n.closed) {
			votes++
		}
	}
	return a.granted || votes >= t.quorum
}

// relyUntil sets until when the holder may rely on a granted lock without a majority: the
// end of its last majority, or of the one that its copies and lost votes make.
func (t *Table) relyUntil(r *record, a *assessment) {
	if a.holder == r.grant.token && r.grant.end == 0 {
		return // no end
	}
	if a.holder == r.grant.token {
		a.lock.Relied = r.grant.end
	}
	if unseen := t.unseen(r, a, a.holder, true); a.best.known()+a.best.lost+len(unseen) >= t.quorum {
		end, never := t.majorityEnd(r, a.holder, 0, true, unseen)
		if a.lock.Relied = max(a.lock.Relied, end); never {
			a.lock.Relied = 0
		}
	}
	a.wakeAt(a.lock.Relied)
}

// tombstonesHold reports whether the tombstones of a revocation keep everybody else from
// a quorum: they are on at least N − Q + 1 nodes, or were lost on nodes that refuse
// writes. A view that began after the revocation does not know which nodes lost one: if no
// copy of a holder is there, any that refuses writes and has none may have.
func (t *Table) tombstonesHold(r *record) bool {
	k, forgot, holders := 0, 0, false
	for i := range r.Copies {
		c, closed := &r.Copies[i], t.nodes[i].reachable && t.nodes[i].closed
		switch {
		case (c.Kind == packed.LockCopy || c.Lost() && closed) && redlock.IsTombstone(r.Tokens[c.Token].Prefix):
			k++
		case c.Kind == packed.LockCopy || c.Lost():
			holders = true
		case closed && !c.Have():
			forgot++
		}
	}
	if r.grant.token < 0 && !holders {
		k += forgot
	}
	return k >= len(t.nodes)-t.quorum+1
}

// wasBare reports whether a majority of this holder was seen without a margin. Another copy of it counts once it
// is read: a client whose attempts fail on the other nodes makes news of them again and again.
func (r *record) wasBare(holder int8) bool {
	return r.holder == holder && (r.lock.State == monitor.LockBareMajority || r.lock.State == monitor.LockSplit)
}
