package table

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/internal/packed"
	"redlockctl/monitor/words"
	"redlockctl/redlock"
	"redlockctl/server/announce"
	"redlockctl/server/lockform"
	"redlockctl/server/safetext"
)

// trackGrant emits events for changes to the grant of r since the last assessment.
func (t *Table) trackGrant(r *record, a *assessment) {
	g, holds := &r.grant, a.majority && a.locks > 0
	if f := a.lock.Form; f != nil && f.Companion || holds && redlock.IsTombstone(r.Tokens[a.holder].Prefix) {
		holds = false
	}
	if holds && g.token >= 0 && a.holder != g.token && (g.fell || g.deleted == 0 && (g.end == 0 || g.end > a.now)) {
		// Another client got the lock before the grant ended.
		if !g.fell {
			t.emitLostMajority(r, 0, a.now)
		}
		g.fell = true
		r.dropEarlier(announce.TokenSum(r.Tokens[a.holder].Prefix))
		r.addEarlier(earlier{Reliance: monitor.Reliance{Token: safetext.New(r.Tokens[g.token].Prefix), Until: t.Time(g.end)}, sum: r.sumOf(g), was: *g})
		*g = grant{token: -1}
		t.markDirty(r)
	}
	at := a.now
	if holds && g.token >= 0 && a.holder != g.token && g.deleted != 0 && (g.end == 0 || g.end > a.now) && t.setAside(r, a) {
		at = r.changed // its copies were read by then
	}
	switch {
	case a.fell && g.token < 0: // copies and lost votes prove a majority that was not seen
		*g = grant{token: a.holder, end: a.lock.Relied, seen: a.lock.Relied, fell: true}
		t.emitLostMajority(r, 0, a.now)
	case holds && g.token < 0:
		*g = grant{token: a.holder, end: max(a.end, a.lock.Relied), shown: a.end}
		r.noteEnd(a.end)
		delete(t.endings, r.key())
		t.ended.take(r.key(), announce.TokenSum(r.Tokens[a.holder].Prefix))
		t.forgetLeaving(r, r.Tokens[a.holder])
		if t.settled && !r.early {
			kind, text, in := "acquired", "acquired by %s%s", " for "
			if t.lapsed.take(r.key(), announce.TokenSum(r.Tokens[a.holder].Prefix)) {
				kind, text, in = "extended", "extended by %s while it was not seen%s", ": ends in "
				g.extensions, g.reported, g.extended = 1, 1, a.now
			}
			t.emit(t.grantEvent(r, a.end, monitor.LockEvent(t.Time(at), monitor.LevelInfo, kind, r.key(), text, holderName(r, a.holder, a.lock.Form), left(in, a.end, at))))
		}
		r.early = false
	case !holds && a.holder == g.token && g.end != 0 && a.lock.Relied > g.end && t.settled: // before, nodes are not met yet
		g.end = a.lock.Relied // by an extension whose majority was not seen
	case holds && a.holder == g.token:
		delete(t.late, r)
		t.tellExtensions(r, a)
		g.shown = max(g.shown, a.end)
		if !a.shrank && g.end-max(a.end, a.lock.Relied) > packed.Moment(t.Attempt) {
			t.shortened[r] = shortened{r.Tokens[g.token], g.end, a.now}
		}
		if g.end, g.shrank = max(a.end, a.lock.Relied), a.shrank; !a.shrank {
			r.noteEnd(a.end)
		}
		g.lost, g.fell, g.parted, g.freed, g.perhaps, g.supposed = 0, false, false, false, false, g.supposed && r.presumed != 0
		if a.lock.Relied <= a.end {
			g.veiled = 0
		}
		t.emitLostCopies(r, a.now, a.confirmed)
	}
}

// countExtension counts an extension of the grant of r, before the lock is published with
// their number.
func (t *Table) countExtension(r *record, a *assessment) {
	g := &r.grant
	if a.holder < 0 || a.holder != g.token {
		return
	}
	if t.settled && a.majority && a.locks > 0 && g.seen != 0 && time.Duration(a.end-max(g.seen, g.latest)) > extendedBy {
		if g.extensions++; g.extended != 0 {
			g.extending += uint32(time.Duration(a.now-g.extended) / time.Millisecond)
		}
		g.extended = a.now
	}
	a.lock.Extensions, a.lock.Extending, a.lock.Extended = g.extensions, g.extending, g.extended
}

// holderName names the holder for people: the owner, if the token tells it, otherwise the
// token.
func holderName(r *record, token int8, f *lockform.Form) string {
	if f != nil && !f.Owner.Empty() {
		return f.Owner.Raw()
	}
	return r.shortToken(token)
}

// tellExtensions reports the last extensions, unless some were reported just now.
func (t *Table) tellExtensions(r *record, a *assessment) {
	g := &r.grant
	if g.extended != a.now || g.reported == g.extensions || g.reportedAt != 0 && time.Duration(a.now-g.reportedAt) < extendedEvery {
		return
	}
	t.emitExtensions(r, a.end, a.now, holderName(r, a.holder, a.lock.Form)+left(", ends in ", a.end, a.now))
}

// tellLastExtensions reports the extensions of a grant that has ended which were not reported yet.
func (t *Table) tellLastExtensions(r *record, now packed.Moment) {
	g := &r.grant
	if g.reported == g.extensions {
		return
	}
	form := r.lock.Form
	if r.holder != g.token {
		form = nil
	}
	t.emitExtensions(r, g.end, now, fmt.Sprintf("%s, last %s ago", holderName(r, g.token, form), time.Duration(now-g.extended).Round(10*time.Millisecond)))
}

func (t *Table) emitExtensions(r *record, end, now packed.Moment, by string) {
	g, often := &r.grant, ""
	if n := g.extensions - g.reported; n > 1 {
		often = fmt.Sprintf(" ×%d", n)
	}
	t.emit(t.grantEvent(r, end, monitor.LockEvent(t.Time(now), monitor.LevelInfo, "extended", r.key(), "extended%s by %s", often, by)))
	g.reportedAt, g.reported = now, g.extensions
}

// standing counts what is left of the copies of a grant.
type standing struct {
	there      int  // copies on nodes that accept writes
	silent     int  // nodes that do not answer
	unread     bool // a node answers again and has not been read yet
	lost       int  // lost votes
	stuck      int  // copies on nodes that refuse writes: a release leaves them there
	outlast    int  // copies of both kinds that end later than the grant, as by an extension
	unknown    int  // copies on nodes that are not read
	tombstones int
	deleted    bool // copies were deleted, not lost
	confirmed  bool // every node that answers was read since the last change
}

func (t *Table) standingOf(r *record) standing {
	s := standing{confirmed: true, deleted: r.grant.deleted != 0}
	for i := range r.Copies {
		c, n := &r.Copies[i], &t.nodes[i]
		switch {
		case !n.reachable:
			s.silent++
		case n.scanned != n.epoch:
			s.unread = true
			fallthrough
		case !t.confirmed(r, i):
			s.confirmed = false
		}
		switch {
		case !c.Lost() || int8(c.Token) != r.grant.token:
		case n.loads:
			s.unknown++ // it may be on the node's disk
		default:
			s.lost++
		}
		if c.Kind != packed.LockCopy {
			continue
		}
		seen, late := t.seen(r, i), c.Expires == 0 || time.Duration(c.Expires-r.grant.end) > extendedBy
		if seen && late && int8(c.Token) == r.grant.token {
			s.outlast++
		}
		switch {
		case int8(c.Token) != r.grant.token:
			if redlock.IsTombstone(r.Tokens[c.Token].Prefix) {
				s.tombstones++
			}
		case seen && n.closed:
			s.stuck++
		case seen:
			s.there++
			// The lock may be released right after a restart: read it again first.
			s.confirmed = s.confirmed && (r.grant.lost == 0 || max(c.Sent, n.synced) >= t.restartedAt)
		default:
			s.unknown++
		}
	}
	return s
}

// reviewGrant ends the grant of r if it was released, removed or has expired, and reports
// a lost majority, each as soon as it is certain. since is when the last copy changed: a release may
// take some time from then on.
func (t *Table) reviewGrant(r *record, since, now packed.Moment) {
	g := &r.grant
	if g.token < 0 {
		return
	}
	s := t.standingOf(r)
	rest := s.there + s.stuck + s.unknown
	if g.supposed && s.confirmed && !s.unread && s.silent == 0 && rest+s.lost+len(t.unseen(r, &assessment{now: now}, g.token, true)) < t.quorum {
		g.end, g.supposed = g.seen, false // it was extended on too few nodes
	}
	switch {
	case rest >= t.quorum:
		return // it may still be held
	case g.end != 0 && now >= g.end && t.goesOn(r, &s, now):
		return
	case g.end != 0 && now >= g.end && s.silent > 0 && s.outlast+s.silent+int(g.lost) >= t.quorum:
		t.lapse(r, now)
	case g.end != 0 && now >= g.end && !g.fell && g.end > t.stopped.Begin && g.end <= t.stopped.End:
		t.lapse(r, now) // it may have been released
	case g.end != 0 && now >= g.end:
		t.endGrant(r, now, monitor.LevelInfo, "expired", "expired")
	case !s.confirmed && (rest > 0 || g.lost > 0):
		return // wait for the other nodes
	case s.deleted && t.tombstonesHold(r):
		t.endGrant(r, now, monitor.LevelNotice, "revoked", "revoked"+t.by(r, g.token, "revoke")+": others wait until the TTL expires")
	case s.deleted && s.there == 0 && s.tombstones == 0 && (g.freed || !g.fell || g.end == 0): // otherwise what was left has expired
		if g.fell && g.parted {
			t.releases = learned{2 * releasePatience, now} // it was a slow release
		}
		if by := t.by(r, g.token, "force-release"); by != "" {
			t.endGrant(r, now, monitor.LevelNotice, "force-released", "force-released"+by)
			return
		}
		t.endGrant(r, now, monitor.LevelInfo, "released", "released") // on all nodes that could release it and can be seen
	case s.deleted && now < since+t.releaseTakes(now):
		return // a release may be in progress
	case !g.fell && s.lost == 0 && !s.deleted && rest+t.expiredUnseen(r) >= t.quorum:
		return // no copy is known to be lost: what was seen last has expired, and its holder may have extended it there
	case t.expires(r, now):
		return
	case !g.fell:
		g.fell, g.parted, g.perhaps = true, s.deleted, s.tombstones > 0
		t.emitLostMajority(r, s.tombstones, now)
	}
}

// expires reports whether the last majority of r is expiring and was not lost: an attempt sets its copies one
// after the other, so they expire so, and none was lost or deleted since it had a majority.
func (t *Table) expires(r *record, now packed.Moment) bool {
	g := &r.grant
	return !g.fell && g.lost == 0 && g.deleted == 0 && g.end > now && g.end-now <= packed.Moment(t.Attempt)
}

// expiredUnseen counts the nodes that do not answer and have no copy of r that is still unexpired as last seen.
func (t *Table) expiredUnseen(r *record) (k int) {
	for i := range r.Copies {
		if c := &r.Copies[i]; !t.nodes[i].reachable && (c.Kind != packed.LockCopy || int8(c.Token) != r.grant.token) {
			k++
		}
	}
	return k
}

// releaseTakes returns for how long copies may be deleted and others still be there while a client
// releases a lock: it asks all nodes at once. Copies that are still there later, on nodes that answer
// and take writes, were not released.
func (t *Table) releaseTakes(now packed.Moment) packed.Moment {
	return packed.Moment(max(releasePatience, t.releases.quick(now, 2*releasePatience)))
}

// tellUnrevoked reports that somebody has force-released a revoked lock: others can get in, while the
// client from which it was revoked may still work.
func (t *Table) tellUnrevoked(r *record, now packed.Moment) {
	if !t.settled || !r.known || r.lock.State != monitor.LockRevoked || r.holder < 0 || r.lock.Span.End <= now {
		return
	}
	by := t.by(r, r.holder, "force-release")
	if by == "" {
		return // copies of it were lost
	}
	e := monitor.LockEvent(t.Time(now), monitor.LevelNotice, "force-released", r.key(), "force-released%s: it was revoked, and its holder may rely on it until %s; others can get in",
		by, words.Moment(t.Time(r.lock.Span.End), t.Time(now)))
	e.Token, e.Until = safetext.New(r.Tokens[r.holder].Prefix), t.Time(r.lock.Span.End)
	t.emitTaken(r, r.holder, e)
}

// goesOn reports whether the grant of r, whose last known end has passed, may have been
// extended: a node has yet to be read, or its copies and lost votes say so by now.
func (t *Table) goesOn(r *record, s *standing, now packed.Moment) bool {
	g, votes := &r.grant, s.lost
	for i := range r.Copies {
		c := &r.Copies[i]
		if c.Kind != packed.LockCopy || int8(c.Token) != g.token {
			continue
		}
		if votes++; r.overdue && t.seen(r, i) && c.Expires != 0 && c.Expires <= now {
			return true
		}
	}
	if votes >= t.quorum {
		g.end, _ = t.majorityEnd(r, g.token, 0, true, nil)
	}
	return s.unread || g.end == 0 || g.end > now
}

// endGrant ends the grant of r and reports why.
func (t *Table) endGrant(r *record, now packed.Moment, level monitor.Level, kind, text string) {
	token := r.Tokens[r.grant.token].Prefix
	if t.settled {
		t.tellLastExtensions(r, now)
		t.emitTaken(r, r.grant.token, t.grantEvent(r, r.grant.end, monitor.LockEvent(t.Time(now), level, kind, r.key(), "%s (%s)", text, r.shortToken(r.grant.token))))
	}
	sum, g := announce.TokenSum(token), &r.grant
	for i := range r.Copies {
		if c := &r.Copies[i]; kind == "expired" && c.Kind == packed.LockCopy && int8(c.Token) == g.token && !t.nodes[i].reachable {
			t.noteExpired(r, i) // a moment later
		}
	}
	t.ended.add(r.key(), sum)
	room := announce.MostLocks
	if !g.fell && g.lost == 0 {
		room /= 2 // the end of a lock that lost copies is more news
	}
	if (g.fell || g.lost > 0 || t.outOfReach(r, g.token, kind == "released")) && (g.end == 0 || g.end > now) && len(t.endings) < room {
		t.endings[r.key()] = ending{token: sum, until: cmp.Or(g.end, now+packed.Moment(t.maxTTL))}
	}
	r.dropVotes(g.token)
	r.grant = grant{token: -1}
}

// outOfReach reports whether a copy of this token is on a node that does not answer or, with closed,
// one that refused its release.
func (t *Table) outOfReach(r *record, token int8, closed bool) bool {
	for i := range r.Copies {
		if c := &r.Copies[i]; c.Kind == packed.LockCopy && int8(c.Token) == token && (!t.nodes[i].reachable || closed && t.nodes[i].closed) {
			return true
		}
	}
	return false
}

// concludeNobody records that nobody relies on r, which may have been held and has no copy
// left, before its last known end: what guards announced of it meanwhile, this one too,
// must not bring it back, and others do not know it.
func (t *Table) concludeNobody(r *record, now packed.Moment) {
	until := r.lock.Relied
	if !r.known || r.lock.State != monitor.LockMayBeHeld || r.holder < 0 || until <= now {
		return
	}
	sum := announce.TokenSum(r.Tokens[r.holder].Prefix)
	t.ended.add(r.key(), sum)
	if len(t.endings) < announce.MostLocks {
		e := ending{token: sum, until: until}
		if begin := r.lock.Span.Begin; r.grant.token < 0 && begin > t.settledAt && !r.aged {
			e.attempt = begin + packed.Moment(t.Attempt)
		}
		t.endings[r.key()] = e
	}
}

// reopen takes back that nobody relies on a lock: a further vote shows that the attempt goes on.
func (t *Table) reopen(r *record, token string, now packed.Moment) {
	if e, ok := t.endings[r.key()]; ok && now < e.attempt && e.token == announce.TokenSum(token) {
		delete(t.endings, r.key())
		t.ended.take(r.key(), e.token)
	}
}

// lapse ends the grant of r at its last known end without certainty: its holder may have
// extended it on nodes that do not answer, or done anything while this process did not run.
func (t *Table) lapse(r *record, now packed.Moment) {
	g := &r.grant
	var since packed.Moment
	if g.end > t.stopped.Begin && g.end <= t.stopped.End {
		since = t.stopped.Begin
	}
	for i := range t.nodes {
		if n := &t.nodes[i]; !n.reachable {
			since = max(since, n.lostSight)
		}
	}
	token := r.Tokens[g.token].Prefix
	if t.settled {
		t.tellLastExtensions(r, now)
		t.emit(t.grantEvent(r, g.end, monitor.LockEvent(t.Time(now), monitor.LevelInfo, "not seen", r.key(), "held until %s as last known, or longer: nodes were not seen from here since %s (%s)",
			words.Moment(t.Time(g.end), t.Time(now)), words.Moment(t.Time(since), t.Time(now)), r.shortToken(g.token))))
	}
	t.lapsed.add(r.key(), announce.TokenSum(token))
	r.dropVotes(g.token)
	r.grant = grant{token: -1}
}

// emitLostMajority reports that the majority of the grant of r was lost while its holder
// may rely on it.
func (t *Table) emitLostMajority(r *record, tombstones int, now packed.Moment) {
	if !t.settled {
		return
	}
	t.tellLastExtensions(r, now)
	g := &r.grant
	until := "without end"
	if g.end != 0 {
		until = "until " + words.Moment(t.Time(g.end), t.Time(now))
	}
	text, part := "lost its majority: held "+until+", cannot be extended", false
	for i := range t.nodes {
		part = part || t.nodes[i].justRestarted(now) || t.nodes[i].justWiped(now) // the event of the loss reports it
	}
	switch {
	case tombstones > 0:
		part, text = false, fmt.Sprintf("revoked on %d of %s only: others can get in; may be held %s", tombstones, words.Count(len(t.nodes), "node", "nodes"), until)
	case g.parted:
		text, part = "copies were deleted or expired early, and others are still there: held "+until+", cannot be extended", false
	}
	e := t.grantEvent(r, g.end, monitor.LockEvent(t.Time(now), monitor.LevelAlarm, monitor.LockLostMajority.String(), r.key(), "%s (%s)", text, r.shortToken(g.token)))
	e.Part = part
	t.emit(e)
}

// grantEvent adds the details of the grant of r to an event.
func (t *Table) grantEvent(r *record, end packed.Moment, e monitor.Event) monitor.Event {
	g := &r.grant
	e.Token, e.Times = safetext.New(r.Tokens[g.token].Prefix), int(g.extensions)
	if end != 0 {
		e.Until = t.Time(end)
	}
	if g.extended != 0 {
		e.Extended = t.Time(g.extended)
	}
	return e
}

// left says after the word in how long a grant lasts, or that it has no end.
func left(in string, end, now packed.Moment) string {
	if end == 0 {
		return ", without a TTL"
	}
	return in + time.Duration(end-now).Round(100*time.Millisecond).String()
}

// by says who removed the lock from the holder of a token in this way, and why, if known:
// " by ops@host (host burnt down)".
func (t *Table) by(r *record, tok int8, act string) string {
	if taking, ok := t.taken(r, tok); ok && taking.Act == act && taking.Only == nil {
		return taking.By()
	}
	return ""
}

// taken returns who removed the lock from the holder of a token. Some clients use a token again: what
// was removed before its copies were written was an earlier grant.
func (t *Table) taken(r *record, tok int8) (monitor.Action, bool) {
	if t.TakenBy == nil || tok < 0 || !r.Tokens[tok].Whole() {
		return monitor.Action{}, false
	}
	taking, ok := t.TakenBy(r.key(), r.Tokens[tok].Prefix)
	since, aged := r.lock.Span.Begin, r.aged
	if v := t.rivalOf(r, tok); v != nil {
		since, aged = v.since, v.aged
	}
	return taking, ok && (aged || taking.At.IsZero() || t.Moment(taking.At) >= since)
}

// emitTaken emits an event that may name who removed the lock from the holder of a token. If several
// try, it waits until it is known who did.
func (t *Table) emitTaken(r *record, tok int8, e monitor.Event) {
	taking, ok := t.taken(r, tok)
	if !ok || !taking.Undecided || t.Await == nil || !strings.Contains(e.Text.Raw(), taking.By()) {
		t.emit(e)
		return
	}
	key, token, takenBy := r.key(), r.Tokens[tok].Prefix, t.TakenBy
	t.Await(e, func() (safetext.Text, bool) {
		now, ok := takenBy(key, token)
		if !ok || now.Act != taking.Act {
			return e.Text, true
		}
		return safetext.New(strings.Replace(e.Text.Raw(), taking.By(), now.By(), 1)), !now.Undecided
	})
}

// byOn is [Table.by] for the copy on node i, which a removal of only some copies may have reached.
func (t *Table) byOn(r *record, i int, tok int8, act string) string {
	if taking, ok := t.taken(r, tok); ok && taking.Act == act && (taking.Only == nil || slices.Contains(taking.Only, t.names[i])) {
		return taking.By()
	}
	return ""
}

// emitLostCopies reports lost copies of a lock that is still held: once all nodes have
// confirmed it, and once a release would have finished.
func (t *Table) emitLostCopies(r *record, now packed.Moment, all bool) {
	if r.grant.went == 0 || !all || !t.settled || now < r.changed+packed.Moment(t.Attempt) {
		return
	}
	for i := range r.Copies {
		c := &r.Copies[i]
		if i >= 32 || r.grant.went&(1<<i) == 0 || c.Kind == packed.LockCopy && int8(c.Token) == r.grant.token {
			continue // it is back
		}
		if e := t.lostCopyEvent(r, i, now); t.nodes[i].justRestarted(now) || t.nodes[i].justWiped(now) {
			e.Part = true // the event of the restart or wipe reports it
			t.emit(e)
			continue
		}
		l := &t.nodes[i].lost
		if now-l.since >= packed.Moment(time.Second) {
			l.since, l.reported = now, 0
		}
		if l.reported++; l.reported > mostReported {
			l.unreported++
			continue
		}
		t.emitTaken(r, r.grant.token, t.lostCopyEvent(r, i, now))
	}
	r.grant.went, r.grant.deleted = 0, 0
}

// lostCopyEvent returns the event for the copy that r has lost on node i.
func (t *Table) lostCopyEvent(r *record, i int, now packed.Moment) monitor.Event {
	why := "lost: it disappeared before its TTL expired, and was not released"
	switch c := &r.Copies[i]; {
	case c.Kind == packed.LockCopy && redlock.IsTombstone(r.Tokens[c.Token].Prefix):
		why = "revoked there" + t.byOn(r, i, r.grant.token, "revoke")
	case c.Have():
		why = "something else is there"
	case t.nodes[i].justRestarted(now):
		why = "it restarted"
	case t.nodes[i].justWiped(now):
		why = "its data were wiped"
	case c.Lost() && monitor.LossCause(c.Type) == monitor.LostByClock:
		why = "its clock was stepped"
	default:
		if by := t.byOn(r, i, r.grant.token, "force-release"); by != "" {
			why = "force-released there" + by
		}
	}
	e := monitor.LockEvent(t.Time(now), monitor.LevelNotice, lostCopy, r.key(), "lost its copy on %s (%s): %d left", t.names[i], why, r.lock.Held)
	e.Node = t.names[i]
	return e
}

// mostReported is how many lost copies of a node are reported one by one in a second.
const mostReported = 20

// emitUnreported reports how many more copies a node has lost than were reported one by one.
func (t *Table) emitUnreported(at time.Time) {
	for i := range t.nodes {
		if l := &t.nodes[i].lost; l.unreported > 0 && t.Moment(at)-l.since >= packed.Moment(time.Second) {
			t.emit(monitor.NodeEvent(at, monitor.LevelNotice, lostCopy, t.names[i], "%s: %s of held locks lost: gone before their TTL expired, and not released",
				t.names[i], words.Count(l.unreported, "more copy", "more copies")))
			l.unreported = 0
		}
	}
}

const lostCopy = "lost copy"

const (
	extendedBy    = 100 * time.Millisecond // the end of the majority moved by more than the jitter of a read
	extendedEvery = 10 * time.Second       // a watched lock is extended constantly: report the first extension, then one per interval
)
