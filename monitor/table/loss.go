package table

import (
	"hash/maphash"
	"slices"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/internal/packed"
	"redlockctl/redlock"
	"redlockctl/server/announce"
	"redlockctl/server/safetext"
)

// loss is a moment at which a node may have forgotten votes: it restarted, its data was
// wiped, or a guard fenced it for a loss that only the guard saw.
type loss struct {
	known bool
	at    packed.Moment // provably after the loss
	// before is a moment before the loss up to which all copies on the node had been
	// read; zero: there is none.
	before packed.Moment
}

// Incarnation is what the first answer of an incarnation of a server says.
type Incarnation struct {
	Started time.Time // it did not start later
	Fenced  bool      // by a guard or since its start: it refuses writes, and somebody knows of a loss
	Lost    time.Time // if Fenced: it lost no vote since; zero: that is not known
	Keys    bool      // it has keys
	Fresh   bool      // it says that it loaded none from disk
	Durable bool      // a restart that kept all data of the previous incarnation: every write was on disk before it was answered
}

// Met records the first answer ever of node i.
func (t *Table) Met(i int, s Incarnation, now time.Time) {
	n := &t.nodes[i]
	n.sealed = s.Fenced && !s.Fresh
	switch {
	case s.Fenced:
		n.loss = loss{known: true, at: t.Moment(now)}
		if !s.Lost.IsZero() {
			n.loss.at = min(n.loss.at, t.Moment(s.Lost))
		}
	default:
		n.loss = loss{known: true, at: t.Moment(s.Started)}
	}
}

// Restarted records the first answer of another incarnation of node i. Its copies are
// lost, unless the next full read finds them, loaded from disk. OnRestart gets the cost
// once all locks have been assessed.
func (t *Table) Restarted(i int, s Incarnation, now time.Time) {
	n := &t.nodes[i]
	n.restarted = t.Moment(now)
	t.restartedAt = n.restarted
	n.sealed, n.loads = s.Fenced && !s.Fresh, s.Keys
	if !s.Durable {
		n.note(loss{known: true, at: n.restarted, before: n.lookedBefore()})
	}
	n.epoch++
	n.incarnation = n.epoch
	n.scanned, n.began, n.synced = 0, 0, 0
	n.count(monitor.LostByRestart, s.Keys, n.restarted)
	n.restart.expired, n.expired = n.expired, expiredCopies{}
	t.sweepAll()
	t.Work(now, Slice)
}

// Wiped records that the data of node i was wiped before now, while its server ran on.
// The loss is known when the node has been read again.
func (t *Table) Wiped(i int, now time.Time) {
	n := &t.nodes[i]
	n.wiped = t.Moment(now)
	n.note(loss{known: true, at: n.wiped, before: n.lookedBefore()})
	n.count(monitor.LostByWipe, true, n.wiped)
}

// Stepped records that the clock of node i was stepped before now. Forward, its copies
// expire that much earlier: those that are gone already were not deleted.
func (t *Table) Stepped(i int, by time.Duration, now time.Time) {
	if by <= 0 {
		t.noteBack(i, -by, t.Moment(now))
		return
	}
	n := &t.nodes[i]
	n.stepped, n.stepBy = t.Moment(now), by
	l := loss{known: true, at: n.stepped, before: n.lookedBefore()}
	if l.before > l.at {
		l.before = 0 // a guard told it, who saw it before
	}
	n.note(l)
	t.sweepAll() // holders rely on locks for longer than their copies show to others
	for r, s := range t.shortened {
		if s.at < n.stepped-stepSeen {
			delete(t.shortened, r)
		} else if g, c := &r.grant, &r.Copies[i]; g.token >= 0 && r.Tokens[g.token] == s.token && c.Kind == packed.LockCopy && int8(c.Token) == g.token && g.end != 0 && s.end > g.end {
			g.end, g.seen, g.latest = s.end, s.end, s.end // it was the step
			t.markDirty(r)
		}
	}
	for _, r := range t.all {
		c := r.Copies[i]
		if !c.Lost() || monitor.LossCause(c.Type) != monitor.LostByDeletion || c.Sent < n.stepped-stepSeen || c.Expires == 0 || time.Duration(c.Expires-c.Sent) > by+extendedBy {
			continue
		}
		r.own()
		r.Copies[i].Type = uint8(monitor.LostByClock)
		r.grant.deleted &^= 1 << min(i, 63)
		t.markDirty(r)
	}
}

// endBeforeSteps returns until when the holder of r may rely on a majority of copies that a step of their nodes'
// clocks cut short before they were first read here: a holder gives all of them one end. Zero: none was.
func (t *Table) endBeforeSteps(r *record, a *assessment) packed.Moment {
	if t.settled && a.since > t.settledAt && !r.aged || r.grant.extensions > 0 {
		return 0
	}
	var few [8]packed.Moment
	ends, latest, cut := few[:0], packed.Moment(0), 0
	for i := range r.Copies {
		c, n := &r.Copies[i], &t.nodes[i]
		switch end := c.Expires + packed.Moment(n.stepBy); {
		case c.Kind != packed.LockCopy || int8(c.Token) != a.holder || c.Expires == 0:
			continue
		case n.stepped != 0 && n.stepped < a.since && (t.maxTTL == 0 || end <= n.stepped+packed.Moment(t.maxTTL)):
			cut++
			ends = append(ends, end)
		default:
			latest = max(latest, t.reliedOn(r, i))
			ends = append(ends, t.reliedOn(r, i))
		}
	}
	if cut == 0 || len(ends) < t.quorum {
		return 0
	}
	slices.Sort(ends)
	end := ends[len(ends)-t.quorum]
	if cut < len(ends) {
		end = min(end, latest)
	}
	return end
}

// shortened is the end of a grant before its holder was taken to have extended it to a shorter TTL.
type shortened struct {
	token   packed.Token
	end, at packed.Moment // at: when that was seen
}

// stepSeen is how much later than its effects a clock step may be seen.
const stepSeen = packed.Moment(time.Second)

// Suspected records that somebody fenced node i while its server ran on: a guard knows of
// a loss that was not seen here.
func (t *Table) Suspected(i int, now time.Time) {
	n := &t.nodes[i]
	n.note(loss{known: true, at: t.Moment(now), before: n.lookedBefore()})
}

// count starts to count the cost of a loss on the node.
func (n *node) count(cause monitor.LossCause, read bool, now packed.Moment) {
	if n.restart == nil {
		n.restart = &restartCost{}
	}
	n.restart.cause, n.restart.read, n.restart.since = cause, read, now
}

// note records a loss. Of all losses before it, only the latest time and the earliest
// read are kept.
func (n *node) note(l loss) {
	older := n.loss
	if n.older.known {
		older.before = min(older.before, n.older.before)
	}
	n.loss, n.older = l, older
}

// lookedBefore returns when the node was last fully read before a loss; zero: it was not.
func (n *node) lookedBefore() packed.Moment {
	if n.scanned == 0 {
		return 0
	}
	return n.looked()
}

// far is later than all relevant times.
const far = packed.Moment(1<<63 - 1)

// mayHaveForgotten returns until when a vote would be valid that node i, which has no
// copy of a token, may have given and lost; zero: there is none. since is when the token
// was first seen; certain: since when a guard knows that there is none; early: it may be
// older; over: a copy has no TTL, or one above the cluster's maximum. Such a vote counts until the node serves, and
// for max TTL after the loss: later it is no reason to take copies that a client left behind for a lock that is held.
func (t *Table) mayHaveForgotten(i int, since, now, certain packed.Moment, early, over bool) (until packed.Moment) {
	attempt := packed.Moment(t.Attempt)
	for _, l := range [...]loss{t.nodes[i].loss, t.nodes[i].older} {
		switch {
		case !l.known, l.at <= certain:
		case !early && since > l.at+attempt && (l.before != 0 || over): // acquired after the loss, and no copy that its holder has put back
		case l.before != 0 && l.before > since+attempt: // no copy before the loss either
		case t.maxTTL == 0 || over && t.nodes[i].closed:
			return far
		case now < l.at+packed.Moment(t.maxTTL)+attempt:
			until = max(until, l.at+packed.Moment(t.maxTTL)+attempt)
		}
	}
	return until
}

// mayBeOlder reports whether a token that is first read on node i now may have been
// acquired before a loss on some node: node i was not read without the token since that
// loss.
func (t *Table) mayBeOlder(i int) bool {
	n := &t.nodes[i]
	if n.scanned != n.epoch {
		return true
	}
	return slices.ContainsFunc(t.nodes, func(o node) bool { return o.loss.known && o.loss.at+packed.Moment(t.Attempt) >= n.looked() })
}

// vanish records that copy i of r is gone before its TTL expired: it becomes a lost vote.
// A copy of a token that was never granted is only deleted.
func (t *Table) vanish(r *record, i int, cause monitor.LossCause, now packed.Moment) {
	if cause == monitor.LostByDeletion && i < 64 && r.presumed&(1<<i) != 0 {
		r.drop(i) // it expired without an extension there
		return
	}
	r.noteGone(i, cause, now)
	c := &r.Copies[i]
	if c.Expires != 0 && c.Expires <= now { // seen before its node reports it
		t.short.hasExpired(i, r.key(), now)
	}
	if c.Kind != packed.LockCopy || c.Expires != 0 && c.Expires <= now || t.hasEnded(r, int8(c.Token)) {
		if !t.cutByStep(r, i, now) {
			r.drop(i)
		}
		return
	}
	token := c.Token
	if cause == monitor.LostByDeletion && int8(token) != r.grant.token {
		r.drop(i)
		r.forgetVotes(int8(token))
		r.dropEarlier(announce.TokenSum(r.Tokens[token].Prefix)) // it was released after all
		return
	}
	if int8(token) != r.grant.token {
		r.changed = now // it may have been lost on other nodes too
	}
	end := t.reliedOn(r, i)
	if end != 0 && t.nodes[i].lostSight > c.Sent { // it may have been extended with the others before it was lost
		r.veil(i)
		for k := range r.Copies {
			if o := &r.Copies[k]; (o.Kind == packed.LockCopy || o.Lost()) && o.Token == token {
				end = max(end, t.reliedOn(r, k))
			}
		}
	}
	r.own()
	r.Copies[i] = packed.Copy{Kind: packed.LostVote, Type: uint8(cause), Token: token, Sent: now, Expires: end, Epoch: c.Epoch}
	r.loaded &^= 1 << i
	r.presumed &^= 1 << i
}

// cutByStep makes copy i of r, which has expired, a lost vote if a step of its node's clock had cut it short: its
// holder relies on it for as much longer. It reports whether it did.
func (t *Table) cutByStep(r *record, i int, now packed.Moment) bool {
	c, n, g := &r.Copies[i], &t.nodes[i], &r.grant
	if c.Kind != packed.LockCopy || !g.shrank || int8(c.Token) != g.token || n.stepped == 0 {
		return false
	}
	end := min(g.end, c.Expires+packed.Moment(n.stepBy))
	if end <= now || time.Duration(end-c.Expires) <= extendedBy {
		return false
	}
	r.own()
	r.Copies[i] = packed.Copy{Kind: packed.LostVote, Type: uint8(monitor.LostByClock), Token: c.Token, Sent: now, Expires: end, Epoch: c.Epoch}
	r.loaded &^= 1 << i
	return true
}

// noteOverwritten records that copy i of r, or a lost vote of it, is replaced by another
// token's copy. If it was lost and its client may have a majority, that client may still
// rely on the lock.
func (t *Table) noteOverwritten(r *record, i int, cause monitor.LossCause, now packed.Moment) {
	c := &r.Copies[i]
	k := int8(c.Token)
	lost := c.Lost() || c.Kind == packed.LockCopy && cause != monitor.LostByDeletion
	if g := &r.grant; lost && k == g.token && g.end != 0 {
		if g.supposed = false; t.nodes[i].lostSight > c.Sent {
			r.veil(i)
		}
		for j := range r.Copies { // an extension seen elsewhere may have reached it before
			if c.Lost() && t.endBefore(r, k, i) != far {
				break
			}
			if o := &r.Copies[j]; t.seen(r, j) && o.Kind == packed.LockCopy && int8(o.Token) == k && time.Duration(t.reliedOn(r, j)-g.seen) > extendedBy {
				g.end = max(g.end, t.reliedOn(r, j))
			}
		}
	}
	if !lost || c.Expires != 0 && c.Expires <= now || k == r.grant.token || t.isAside(r, k) || t.hasEnded(r, k) || redlock.IsTombstone(r.Tokens[k].Prefix) {
		return
	}
	votes := len(t.unseen(r, &assessment{now: now, since: r.lock.Span.Begin, holder: r.holder}, k, true)) + t.possibleNews(r, k)
	for j := range r.Copies {
		if o := &r.Copies[j]; (o.Kind == packed.LockCopy || o.Lost()) && int8(o.Token) == k {
			votes++
		}
	}
	if votes >= t.quorum {
		token := r.Tokens[k].Prefix
		r.addEarlier(earlier{Reliance: monitor.Reliance{Token: safetext.New(token), Until: t.Time(t.reliedOn(r, i))}, sum: announce.TokenSum(token)})
	}
}

// veil notes that the copy of the grant on node i, which is lost, may have been extended unseen.
func (r *record) veil(i int) {
	if c := &r.Copies[i]; r.grant.token >= 0 && int8(c.Token) == r.grant.token && i < 32 {
		r.grant.veiled |= 1 << i
	}
}

// holdEarlier makes e the holder of r, whose last holder is gone.
func (t *Table) holdEarlier(r *record, e *earlier, now packed.Moment) {
	k := r.tokenOfSum(e.sum)
	if k < 0 {
		token := e.Token.Raw()
		r.own()
		r.Tokens = append(slices.Clip(r.Tokens), packed.Token{Prefix: token, Length: int64(len(token))})
		k = int8(len(r.Tokens) - 1)
	}
	until := t.Moment(e.Until)
	r.changed = now
	r.grant = grant{token: k, end: until, seen: until, fell: true, parted: true, perhaps: true, heard: e.sum}
	if w := &e.was; w.fell { // it is the lost majority again that it was
		r.grant.perhaps = w.perhaps
		r.grant.extensions, r.grant.reported, r.grant.extending, r.grant.extended, r.grant.reportedAt = w.extensions, w.reported, w.extending, w.extended, w.reportedAt
	}
	r.dropEarlier(e.sum)
}

// forgetVotes drops the lost votes of a token that has no copy left: it was released.
func (r *record) forgetVotes(token int8) {
	for i := range r.Copies {
		if c := &r.Copies[i]; c.Kind == packed.LockCopy && int8(c.Token) == token {
			return
		}
	}
	r.dropVotes(token)
}

// dropVotes drops the lost votes of a token.
func (r *record) dropVotes(token int8) {
	for i := range r.Copies {
		if c := &r.Copies[i]; c.Lost() && int8(c.Token) == token {
			r.drop(i)
		}
	}
}

// voteLost reports whether node i has a lost vote of r: not a copy that may still be read
// from its disk, and not a deletion that may be part of a release.
func (t *Table) voteLost(r *record, i int) bool {
	c := &r.Copies[i]
	if !c.Lost() || t.nodes[i].loads && t.nodes[i].reachable {
		return false
	}
	return monitor.LossCause(c.Type) != monitor.LostByDeletion || r.grant.parted && int8(c.Token) == r.grant.token
}

// lossOf returns why copy c, which node i no longer has, was lost.
func (t *Table) lossOf(i int, c *packed.Copy, now packed.Moment) monitor.LossCause {
	switch n := &t.nodes[i]; {
	case n.wiped != 0 && c.Sent <= n.wiped:
		return monitor.LostByWipe
	case n.stepped != 0 && c.Sent <= n.stepped && c.Expires != 0 && time.Duration(c.Expires-now) <= n.stepBy+extendedBy:
		return monitor.LostByClock
	}
	return monitor.LostByDeletion
}

// ended remembers which grants have ended: a copy of one that a node loads from disk is a
// left-over. It keeps the latest, in two generations, by key and token sum.
type ended struct {
	seed       maphash.Seed
	young, old map[uint64]struct{}
}

const endedKept = 1 << 17 // per generation

func (e *ended) of(key string, token [8]byte) uint64 {
	if e.young == nil {
		e.seed, e.young = maphash.MakeSeed(), map[uint64]struct{}{}
	}
	var h maphash.Hash
	h.SetSeed(e.seed)
	_, _ = h.WriteString(key)
	_ = h.WriteByte(0)
	_, _ = h.Write(token[:])
	return h.Sum64()
}

func (e *ended) add(key string, token [8]byte) {
	k := e.of(key, token)
	if len(e.young) >= endedKept {
		e.young, e.old = map[uint64]struct{}{}, e.young
	}
	e.young[k] = struct{}{}
}

// take removes a grant, and reports whether it was known.
func (e *ended) take(key string, token [8]byte) bool {
	had := e.has(key, token)
	if had {
		k := e.of(key, token)
		delete(e.young, k)
		delete(e.old, k)
	}
	return had
}

func (e *ended) has(key string, token [8]byte) bool {
	k := e.of(key, token)
	_, young := e.young[k]
	_, old := e.old[k]
	return young || old
}

// hasEnded reports whether the grant of token k of r is known to have ended.
func (t *Table) hasEnded(r *record, k int8) bool {
	if t.ended.has(r.key(), announce.TokenSum(r.Tokens[k].Prefix)) {
		return true
	}
	taking, ok := t.taken(r, k)
	return ok && taking.Act == "force-release" && taking.Only == nil
}
