package table

import (
	"fmt"
	"time"

	"redlockctl/internal/safetext"
	"redlockctl/internal/words"
	"redlockctl/monitor"
	"redlockctl/monitor/internal/packed"
	"redlockctl/redlock"
)

// trackGrant makes events of what became of the grant of r since the last look.
func (t *Table) trackGrant(r *record, a *assessment) {
	g, holds := &r.grant, a.majority && a.locks > 0
	if f := a.lock.Form; f != nil && f.Companion || holds && redlock.IsTombstone(r.Tokens[a.holder].Prefix) {
		holds = false
	}
	if g.token >= 0 && (!holds || a.holder != g.token) {
		t.endGrant(r, a.now, a.confirmed)
	}
	switch {
	case holds && g.token < 0:
		*g = grant{token: a.holder, end: a.end}
		if t.settled && !r.early {
			t.emit(t.grantEvent(r, a.holder, a.end, 0, monitor.LockEvent(t.Time(a.now), monitor.LevelInfo, "acquired", r.key(), "acquired by %s for %s", r.Tokens[a.holder].Prefix, left(a.end, a.now))))
		}
		r.early = false
	case holds && a.holder == g.token:
		t.trackExtension(r, a)
		g.end, g.lost = a.end, 0
		t.emitLostCopies(r, a.now, a.confirmed)
	}
}

// trackExtension tells of an extension, if it was not told of one just now.
func (t *Table) trackExtension(r *record, a *assessment) {
	g := &r.grant
	if !t.settled || g.end == 0 || time.Duration(a.end-g.end) <= extendedBy {
		return
	}
	g.extensions = min(g.extensions, 1<<15) + 1
	if g.extended != 0 && time.Duration(a.now-g.extended) < extendedEvery {
		return
	}
	often := ""
	if g.extensions > 1 {
		often = fmt.Sprintf(" (%d times since this was last reported)", g.extensions)
	}
	t.emit(t.grantEvent(r, a.holder, a.end, int(g.extensions), monitor.LockEvent(t.Time(a.now), monitor.LevelInfo, "extended", r.key(), "extended by %s: ends in %s%s", r.Tokens[a.holder].Prefix, left(a.end, a.now), often)))
	g.extended, g.extensions = a.now, 0
}

// endGrant tells how the grant of r ended, as soon as that is certain.
func (t *Table) endGrant(r *record, now packed.Moment, all bool) {
	if r.grant.token < 0 {
		return
	}
	// Copies that are there; that may be there; and that are there because the
	// node takes no DEL either.
	there, unknown, stuck, tombstones := 0, 0, 0, 0
	for i := range r.Copies {
		c := &r.Copies[i]
		if c.Kind != packed.LockCopy {
			continue
		}
		switch seen := t.seen(r, i); {
		case int8(c.Token) != r.grant.token:
			if redlock.IsTombstone(r.Tokens[c.Token].Prefix) {
				tombstones++
			}
		case seen && t.nodes[i].closed:
			stuck++
		case seen:
			there++
			// After a restart a lock may just be on its way out: look again.
			all = all && (r.grant.lost == 0 || max(c.Sent, t.nodes[i].synced) >= t.restartedAt)
		default:
			unknown++
		}
	}
	var kind, text string
	level := monitor.LevelInfo
	switch {
	case there+stuck+unknown >= t.quorum:
		return // it may still be held
	case r.grant.end != 0 && now >= r.grant.end:
		kind, text = "expired", "its time ran out"
	case !all && (there+stuck+unknown > 0 || r.grant.lost > 0):
		return // the other nodes will say
	case tombstones > 0:
		kind, level = "revoked", monitor.LevelNotice
		text = "revoked" + t.by(r, r.grant.token, "revoke") + ": nobody gets in before its TTL ends"
	case there+stuck+int(r.grant.lost) >= t.quorum:
		kind, text, level = "lost majority", "lost its majority by a restart", monitor.LevelAlarm
	case there == 0:
		kind, text = "released", "released" // wherever that could be seen and done
		if by := t.by(r, r.grant.token, "force-release"); by != "" {
			kind, text, level = "force-released", "force-released"+by, monitor.LevelNotice
		}
	default:
		kind, text, level = "lost majority", "copies are missing: no majority, and not released", monitor.LevelAlarm
	}
	if t.settled {
		e := monitor.LockEvent(t.Time(now), level, kind, r.key(), "%s (%s)", text, r.Tokens[r.grant.token].Prefix)
		e.Token = safetext.New(r.Tokens[r.grant.token].Prefix)
		t.emit(e)
	}
	r.grant.token, r.grant.lost, r.grant.went = -1, 0, 0
}

// grantEvent is an event with what it tells of the grant of a holder.
func (t *Table) grantEvent(r *record, holder int8, end packed.Moment, times int, e monitor.Event) monitor.Event {
	e.Token, e.Times = safetext.New(r.Tokens[holder].Prefix), times
	if end != 0 {
		e.Until = t.Time(end)
	}
	return e
}

func left(end, now packed.Moment) string {
	if end == 0 {
		return "ever"
	}
	return time.Duration(end - now).Round(100 * time.Millisecond).String()
}

// by says by whom the lock was taken from the holder of a token in this way, and
// why, where that is known: " by ops@host (host burnt down)".
func (t *Table) by(r *record, tok int8, act string) string {
	if t.TakenBy == nil || !r.Tokens[tok].Whole() {
		return ""
	}
	taking, ok := t.TakenBy(r.key(), r.Tokens[tok].Prefix)
	if !ok || taking.Act != act {
		return ""
	}
	by := " by " + taking.Actor
	if taking.Reason != "" {
		by += ": " + taking.Reason
	}
	return by
}

// emitLostCopies tells of the copies that a lock has lost which is held on without
// them: when all nodes have confirmed it, and when a release would have come to
// its end.
func (t *Table) emitLostCopies(r *record, now packed.Moment, all bool) {
	if r.grant.went == 0 || !all || !t.settled || now < r.changed+packed.Moment(t.Attempt) {
		return
	}
	for i := range r.Copies {
		c := &r.Copies[i]
		if i >= 32 || r.grant.went&(1<<i) == 0 || c.Kind == packed.LockCopy && int8(c.Token) == r.grant.token {
			continue // it is back
		}
		if e := t.lostCopyEvent(r, i, now); t.nodes[i].justRestarted(now) {
			e.Part = true // the restart tells it
			t.emit(e)
			continue
		}
		l := &t.nodes[i].lost
		if now-l.since >= packed.Moment(time.Second) {
			l.since, l.told = now, 0
		}
		if l.told++; l.told > lostTold {
			l.untold++
			continue
		}
		t.emit(t.lostCopyEvent(r, i, now))
	}
	r.grant.went = 0
}

// lostCopyEvent tells of the copy that r has lost on node i.
func (t *Table) lostCopyEvent(r *record, i int, now packed.Moment) monitor.Event {
	why := "lost: it disappeared before its TTL expired, and was not released"
	switch c := &r.Copies[i]; {
	case c.Kind == packed.LockCopy && redlock.IsTombstone(r.Tokens[c.Token].Prefix):
		why = "revoked there"
	case c.Have():
		why = "something else is there"
	case t.nodes[i].justRestarted(now):
		why = "it restarted"
	}
	e := monitor.LockEvent(t.Time(now), monitor.LevelNotice, lostCopy, r.key(), "lost its copy on %s (%s): %d left", t.names[i], why, r.lock.Held)
	e.Node = t.names[i]
	return e
}

// lostTold is how many lost copies of a node are told one by one in a second.
const lostTold = 20

// emitUntold tells how many more copies a node has lost than were told one by
// one.
func (t *Table) emitUntold(at time.Time) {
	for i := range t.nodes {
		if l := &t.nodes[i].lost; l.untold > 0 && t.Moment(at)-l.since >= packed.Moment(time.Second) {
			t.emit(monitor.NodeEvent(at, monitor.LevelNotice, lostCopy, t.names[i], "%s: %s of held locks lost: gone before their TTL expired, and not released",
				t.names[i], words.Count(l.untold, "more copy", "more copies")))
			l.untold = 0
		}
	}
}

const lostCopy = "lost copy"

const (
	extendedBy    = 100 * time.Millisecond // the majority end moved by more: not the jitter of a read
	extendedEvery = 10 * time.Second       // a watched lock is extended all the time: the first is told, then one once in a while
)
