package table

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/internal/packed"
	"redlockctl/redlock"
	"redlockctl/server/announce"
	"redlockctl/server/safetext"
)

// Vouches returns the locks of which this table knows more than their copies say: a grant
// that continues although copies were lost, or copies on nodes that may have forgotten
// votes, when it is known that nobody relies on them. A guard announces them, so that a
// first view says the same. The most urgent state comes first, and their number is
// limited; Until is by our clock.
func (t *Table) Vouches(at time.Time) []announce.Lock {
	now := t.Moment(at)
	all := t.endedLocks(now)
	all = all[:min(len(all), announce.MostLocks/4)]
	records := make([]*record, 0, len(t.vouching))
	for r := range t.vouching {
		records = append(records, r)
	}
	slices.SortFunc(records, func(a, b *record) int {
		return cmp.Or(cmp.Compare(b.lock.State, a.lock.State), strings.Compare(a.key(), b.key()))
	})
	for _, r := range records {
		if len(all) >= announce.MostLocks {
			break
		}
		if !t.vouchesFor(r, now) {
			delete(t.vouching, r)
			continue
		}
		all = t.vouch(all, r, now)
	}
	return all
}

// vouch appends what is known of r.
func (t *Table) vouch(all []announce.Lock, r *record, now packed.Moment) []announce.Lock {
	for e := r.earlier; e != nil; e = e.next {
		if e.sum == announce.TokenSum(e.Token.Raw()) { // its whole token is known
			all = append(all, announceLock(r.key(), e.Token.Raw(), e.Until))
		}
	}
	if g := &r.grant; g.perhaps && r.lostMajority() { // others believe no more than this view
		v := announceLock(r.key(), r.Tokens[g.token].Prefix, t.Time(g.end))
		v.Certain, v.Token = true, r.sumOf(g)
		if g.heard == v.Token {
			v.Short = startOf(r.Tokens[g.token].Prefix) // which is all that is known of it
		}
		if v.Short != "" && g.end != 0 {
			all = append(all, v)
		}
	} else if r.lostMajority() {
		v := announceLock(r.key(), r.Tokens[g.token].Prefix, t.Time(g.end))
		if v.Token = r.sumOf(g); g.heard == v.Token {
			v.Short = startOf(r.Tokens[g.token].Prefix) // which is all that is known of it
		}
		for i := range r.Copies {
			if c := &r.Copies[i]; c.Lost() && int8(c.Token) == g.token {
				v.Lost = append(v.Lost, t.names[i])
			}
		}
		all = append(all, v)
		_, _, ends, _ := t.seenFirst(r, g.token, now)
		if g.heard != v.Token && t.settled && ends != nil && !t.outlasts(r, now) {
			v.Certain, v.Short, v.Lost = true, "", nil // an extension of the copies that are left makes it no longer
			all = append(all, v)
		}
	}
	if g := &r.grant; g.end > now && t.showsLess(r) && !r.lostMajority() {
		all = append(all, announceLock(r.key(), r.Tokens[g.token].Prefix, t.Time(g.end)))
	}
	if until, hidden := t.hiddenUntil(r, now); hidden {
		v := announceLock(r.key(), r.Tokens[r.holder].Prefix, until)
		if v.Certain = true; v.Short != "" { // else others take that for more than it is
			all = append(all, v)
		}
		return all
	}
	for k := range r.Tokens {
		if r.lock.State == monitor.LockOrphaned && int8(k) == r.holder {
			v := announceLock(r.key(), r.Tokens[k].Prefix, time.Time{})
			v.Ended, v.LeftByStep = true, r.lock.LeftByStep
			all = append(all, v)
		} else if t.leavesCopy(r, int8(k)) {
			v := announceLock(r.key(), r.Tokens[k].Prefix, time.Time{})
			v.Ended = true
			all = append(all, v)
			continue
		}
		if !t.certainOf(r, int8(k), now) {
			continue
		}
		v := announceLock(r.key(), r.Tokens[k].Prefix, time.Time{})
		if v.Certain = true; int8(k) == r.holder {
			v.Until = r.lock.HeldUntil()
		}
		switch perhaps := r.lock.State == monitor.LockMayBeHeld; {
		case !perhaps:
			v.Short = "" // its copies say it
		case v.Short == "":
			continue // others take that for more than it is
		}
		all = append(all, v)
	}
	return all
}

func announceLock(key, token string, until time.Time) announce.Lock {
	return announce.Lock{Key: safetext.New(key), Token: announce.TokenSum(token), Short: announce.ShortToken(token), Until: until}
}

// ending is a grant that ended early. A monitor that did not see that may report until
// its Until that its holder relies on the lost copies.
type ending struct {
	token [8]byte
	until packed.Moment
	// attempt is until when its client may still get votes, if it was never granted.
	attempt packed.Moment
}

// endedLocks returns the endings that others may not know.
func (t *Table) endedLocks(now packed.Moment) (all []announce.Lock) {
	for _, key := range slices.Sorted(maps.Keys(t.endings)) {
		e := t.endings[key]
		if e.until <= now {
			delete(t.endings, key)
			continue
		}
		all = append(all, announce.Lock{Key: safetext.New(key), Token: e.token, Ended: true})
	}
	return all
}

// lostMajority reports whether the grant of r continues without its majority, even if
// that is not confirmed yet.
func (r *record) lostMajority() bool {
	return r.grant.token >= 0 && (r.grant.fell || r.lock.LostMajority() && r.holder == r.grant.token)
}

// vouchesFor reports whether more is known of r than its copies say.
func (t *Table) vouchesFor(r *record, now packed.Moment) bool {
	switch {
	case r.buried:
		return false
	case r.lostMajority(), r.earlier != nil, t.showsLess(r):
		return true
	}
	if _, hidden := t.hiddenUntil(r, now); hidden {
		return true
	}
	if r.lock.State == monitor.LockOrphaned {
		return t.lossWithin(now) || redlock.IsTombstone(r.Tokens[r.holder].Prefix) || r.lock.LeftByStep
	}
	for k := range r.Tokens {
		if t.leavesCopy(r, int8(k)) {
			return true
		}
	}
	return t.lossWithin(now) && t.anyCertain(r, now)
}

// hiddenUntil returns until when a client may rely on r, if all its copies are on nodes that do not answer: who
// looks for the first time sees nothing of it. One without an end is not announced so.
func (t *Table) hiddenUntil(r *record, now packed.Moment) (until time.Time, hidden bool) {
	if !t.settled || r.holder < 0 || r.lock.Relied <= now || !r.lock.ReliedOn() || r.lostMajority() || redlock.IsTombstone(r.Tokens[r.holder].Prefix) {
		return time.Time{}, false
	}
	for i := range r.Copies {
		if r.Copies[i].Have() {
			if hidden = !t.nodes[i].reachable; !hidden {
				return time.Time{}, false
			}
		}
	}
	until = r.lock.HeldUntil()
	if e := r.lock.Earlier; e != nil && e.Until.After(until) {
		until = e.Until
	}
	return until, hidden
}

// showsLess reports whether the copies of r show others an earlier end than its holder relies on: they were
// cut short, or the clock of their node was stepped forward since they were read. While copies are being deleted
// it may be released, and what is announced now would be heard when another client has it.
func (t *Table) showsLess(r *record) bool {
	k := r.grant.token
	if k < 0 || r.grant.deleted != 0 {
		return false
	}
	if r.grant.shrank {
		return true
	}
	for i := range r.Copies {
		if c := &r.Copies[i]; c.Kind == packed.LockCopy && int8(c.Token) == k && c.Expires != 0 && c.Sent <= t.nodes[i].stepped {
			return true
		}
	}
	return false
}

// leavesCopy reports whether a copy of token k of r is left over beside the holder's, see leftOver.
func (t *Table) leavesCopy(r *record, k int8) bool {
	if len(r.Tokens) < 2 || k == r.holder {
		return false
	}
	var v tally
	for i := range r.Copies {
		if c := &r.Copies[i]; (c.Kind == packed.LockCopy || c.Lost()) && int8(c.Token) == k {
			v.present++
		}
	}
	return v.present > 0 && t.leftOver(r, k, &v)
}

// anyCertain reports whether certainOf is true of a token of r.
func (t *Table) anyCertain(r *record, now packed.Moment) bool {
	for k := range r.Tokens {
		if t.certainOf(r, int8(k), now) {
			return true
		}
	}
	return false
}

// certainOf reports whether a first view would have to assume more lost votes of token k of
// r than there can be: it says held for longer, or that its client may hold the lock, or
// it sees no copy at all.
func (t *Table) certainOf(r *record, k int8, now packed.Moment) bool {
	holds, s := k == r.holder, r.lock.State
	beside := !holds && (s == monitor.LockSplit || s == monitor.LockMayBeHeld || r.lock.LostMajority())
	if !t.settled || r.holder < 0 || !holds && !beside || r.earlier != nil || holds && r.lostMajority() || redlock.IsTombstone(r.Tokens[k].Prefix) || !t.lossWithin(now) {
		return false
	}
	copies, lost, ends, endless := t.seenFirst(r, k, now)
	if endless {
		return false
	}
	switch {
	case s == monitor.LockMayBeHeld && holds:
		return copies == 0 && r.lock.Relied > now
	case beside, s == monitor.LockPartial, s == monitor.LockSplit && copies < t.quorum:
		seen := t.unseen(r, &assessment{now: now}, k, true) // by this view
		return (r.grant.token < 0 || s != monitor.LockPartial && k != r.grant.token) && copies+lost+len(seen) < t.quorum && copies+lost+len(ends) >= t.quorum
	case s <= monitor.LockBareMajority, s == monitor.LockSplit && holds:
		end, never := t.majorityEnd(r, k, 0, true, ends)
		return !never && time.Duration(end-t.Moment(r.lock.HeldUntil())) > extendedBy
	}
	return false
}

// seenFirst counts the copies and lost votes of token k of r, and returns the ends of those that
// a first view has to assume besides; endless: a copy has no TTL.
func (t *Table) seenFirst(r *record, k int8, now packed.Moment) (copies, lost int, ends []packed.Moment, endless bool) {
	for i := range r.Copies {
		switch c := &r.Copies[i]; {
		case c.Kind == packed.LockCopy && int8(c.Token) == k:
			copies++
			endless = endless || c.Expires == 0
		case c.Lost() && int8(c.Token) == k:
			lost++
		default:
			if until := t.mayHaveForgotten(i, now, now-packed.Moment(uptimeError), 0, true, false); until != 0 {
				ends = append(ends, until+packed.Moment(uptimeError))
			}
		}
	}
	return copies, lost, ends, endless
}

// certain is what a guard knows of the lost votes of a token, see [announce.Lock].
type certain struct {
	token     [8]byte
	at, until packed.Moment // when it was heard, and announce.Lock.Until
}

// certainKept is how long such knowledge counts after it was last heard: a guard that
// notices another loss takes it back.
const certainKept = 3 * HearTime

// certainAt returns since when it is certain which votes of a token were lost, and until
// when its holder relies on them; zero: it is not.
func (t *Table) certainAt(r *record, a *assessment, tok int8) (at, until packed.Moment) {
	known := t.certain[r.key()]
	if known == nil {
		return 0, 0
	}
	sum := announce.TokenSum(r.Tokens[tok].Prefix)
	for _, c := range known {
		if c.token == sum && a.now-c.at <= packed.Moment(certainKept) {
			a.wakeAt(c.at + packed.Moment(certainKept) + 1)
			return c.at, c.until
		}
	}
	return 0, 0
}

// hearCertain records which votes of a token were lost; or, if it has the start of the
// token, that the lock may be held although no copy is left. The latter says nothing of
// votes: a guard that hears itself must not conclude that there are no more.
func (t *Table) hearCertain(r *record, v announce.Lock, now packed.Moment) {
	var until packed.Moment
	if !v.Until.IsZero() {
		if until = t.Moment(v.Until); until <= now {
			return
		}
	}
	if v.Short != "" {
		switch {
		case until == 0, t.ended.has(v.Key.Raw(), v.Token):
		case r == nil:
			t.hearPerhaps(v, until)
		case r.grant.heard == v.Token && time.Duration(until-r.grant.end) > extendedBy:
			r.grant.end = until
			t.markDirty(r)
		}
		return
	}
	if len(t.certain) >= 4*announce.MostLocks {
		clear(t.certain)
	}
	kept, was := t.certain[v.Key.Raw()][:0], certain{}
	for _, c := range t.certain[v.Key.Raw()] {
		if c.token == v.Token {
			was = c
		} else if now-c.at <= packed.Moment(certainKept) {
			kept = append(kept, c)
		}
	}
	t.certain[v.Key.Raw()] = append(kept, certain{v.Token, now, until})
	if r != nil && (was.at == 0 || !packed.Alike(was.until, until) || now-was.at > packed.Moment(certainKept)) {
		t.markDirty(r)
	}
}

// hearPerhaps records a lock that may be held until then, of which nothing is known here:
// all copies were lost, perhaps on nodes that are not seen from here.
func (t *Table) hearPerhaps(v announce.Lock, until packed.Moment) {
	r := t.newRecord(v.Key.Raw())
	r.own()
	r.Tokens = []packed.Token{heardToken(v.Short)}
	r.grant = grant{token: 0, end: until, seen: until, fell: true, parted: true, perhaps: true, heard: v.Token}
	t.weigh(r, false)
	t.markDirty(r)
}

// HearTime is how long it takes to learn what a guard has found: until the guard
// announces it, and until the announcement is read.
const HearTime = 300 * time.Millisecond

// uptimeError is how much later than the real one a first view may take the start of a
// server to be: uptime is in whole seconds.
const uptimeError = 2 * time.Second

// lossWithin reports whether a node may have forgotten a vote that would not have expired
// yet, also as seen by a first view.
func (t *Table) lossWithin(now packed.Moment) bool {
	for i := range t.nodes {
		if n := &t.nodes[i]; n.loss.known && (t.maxTTL == 0 || now-n.loss.at < packed.Moment(t.maxTTL+t.Attempt+uptimeError)) {
			return true
		}
	}
	return false
}

// Heard records what guards know of locks, with Until by our clock.
func (t *Table) Heard(all []announce.Lock, at time.Time) {
	now := t.Moment(at)
	for _, v := range all {
		r := t.records[v.Key.Raw()]
		if v.Ended {
			t.hearEnd(r, v, now)
			continue
		}
		if v.Certain {
			t.hearCertain(r, v, now)
			continue
		}
		// A guard may have announced a lock that has ended here before the guard knew.
		if end := t.Moment(v.Until); (end == 0 || end > now) && !t.ended.has(v.Key.Raw(), v.Token) {
			t.hearGrant(r, v, end, now)
		}
	}
}

// hearEnd records that nobody relies on a token any more. It ends a grant without a visible
// majority.
func (t *Table) hearEnd(r *record, v announce.Lock, now packed.Moment) {
	known := t.ended.has(v.Key.Raw(), v.Token)
	if !known {
		t.ended.add(v.Key.Raw(), v.Token)
	}
	news := v.LeftByStep && !t.leftBySteps.has(v.Key.Raw(), v.Token)
	if news {
		t.leftBySteps.add(v.Key.Raw(), v.Token)
	}
	if r == nil {
		return
	}
	k := r.tokenOfSum(v.Token)
	if k < 0 && r.grant.heard == v.Token {
		k = r.grant.token
	}
	if news {
		t.markDirty(r)
	}
	switch {
	case k >= 0 && k == r.grant.token && (r.grant.fell || r.lock.State == monitor.LockMayBeHeld):
		t.endGrant(r, now, monitor.LevelInfo, "released", "released, by what a guard saw")
	case r.dropEarlier(v.Token):
	case known:
		return
	case k >= 0 && k != r.grant.token:
		r.forgetVotes(k)
	}
	t.markDirty(r)
}

// hearGrant records a grant that lost copies, unless the table knows one itself.
func (t *Table) hearGrant(r *record, v announce.Lock, end, now packed.Moment) {
	if r == nil {
		if t.settled && v.Short == "" {
			return
		}
		r = t.newRecord(v.Key.Raw())
	}
	k := r.tokenOfSum(v.Token)
	if k < 0 && r.grant.heard == v.Token {
		k = r.grant.token // of which no copy has been read
	}
	switch {
	case k >= 0 && k == r.grant.token: // already known; more copies of it may be lost by now
		if g := &r.grant; g.end != 0 && (end == 0 || time.Duration(end-g.end) > extendedBy) {
			g.end = end // extended, which was not seen, or cut short
			if !g.fell && end != 0 {
				g.seen = end
			}
			t.markDirty(r)
		}
		// Who says so since the client that got in after it has gone saw that it lost its majority. While
		// that client was there, less was enough to say it.
		if g := &r.grant; g.perhaps && g.heard == v.Token && time.Duration(now-r.changed) > certainKept {
			g.perhaps = false
			t.markDirty(r)
		}
	case r.grant.token >= 0:
		if r.earlierOf(v.Token) != nil || k >= 0 && t.isAside(r, k) {
			return
		}
		token := heardToken(v.Short).Prefix
		if k >= 0 {
			token = r.Tokens[k].Prefix
		}
		r.addEarlier(earlier{Reliance: monitor.Reliance{Token: safetext.New(token), Until: t.Time(end)}, sum: v.Token})
		t.markDirty(r)
		return
	default:
		if k < 0 {
			r.own()
			r.Tokens = append(slices.Clip(r.Tokens), heardToken(v.Short))
			k = int8(len(r.Tokens) - 1)
		}
		r.grant = grant{token: k, end: end, seen: end, fell: true, heard: v.Token}
		t.weigh(r, false)
		t.markDirty(r)
	}
	for _, name := range v.Lost {
		if i := slices.Index(t.names, name); i >= 0 && t.acceptsLoss(r, i, k) {
			cause, seen, known := t.lossSeen(r, i, k)
			c := packed.Copy{Kind: packed.LostVote, Type: uint8(cause), Token: uint8(k), Expires: end, Sent: seen, Epoch: explained}
			if !known && !t.nodes[i].reachable {
				c.Epoch = t.nodes[i].epoch
			}
			r.own()
			r.Copies[i] = c
			if known {
				t.charge(r, i)
			}
			t.markDirty(r)
		}
	}
}

// acceptsLoss reports whether the vote of token k on node i counts as lost because a guard announces
// it: nothing is known of the node here, or only the copy from before it became silent.
func (t *Table) acceptsLoss(r *record, i int, k int8) bool {
	c := &r.Copies[i]
	if c.Kind == packed.LockCopy && int8(c.Token) == k {
		return !t.nodes[i].reachable
	}
	return !c.Have() && !c.Lost() && r.grant.deleted == 0
}

// explained is the epoch of an announced lost vote whose loss will not be seen here any more:
// it was seen, or the node was read without it.
const explained = ^uint32(0)

// lossSeen returns the cause and the time of the loss in which node i lost the vote of token k of
// r, if it was seen here: the last one, unless the lock or its copy was first seen after it.
func (t *Table) lossSeen(r *record, i int, k int8) (cause monitor.LossCause, at packed.Moment, known bool) {
	n, since := &t.nodes[i], packed.Moment(0)
	switch c := &r.Copies[i]; {
	case c.Kind == packed.LockCopy:
		since = c.Sent
	case r.known && r.holder == k:
		since = r.lock.Span.Begin
	}
	at = max(n.restarted, n.wiped)
	switch {
	case since == 0 || at < since:
		return monitor.LostUnseen, n.loss.at, false
	case n.wiped > n.restarted:
		return monitor.LostByWipe, at, true
	}
	return monitor.LostByRestart, at, true
}

// awaited reports whether copy i of r is a lost vote that was announced while its node was
// silent, and whose loss may be seen once the node answers.
func (r *record) awaited(i int) bool {
	c := &r.Copies[i]
	return c.Lost() && monitor.LossCause(c.Type) == monitor.LostUnseen && c.Epoch != explained
}

// explain completes an awaited lost vote by the restart or the wipe that took it, and adds it to
// the cost of that.
func (t *Table) explain(r *record, i int) {
	n, cause, at := &t.nodes[i], monitor.LostUnseen, r.Copies[i].Sent
	switch {
	case r.Copies[i].Epoch < n.incarnation:
		cause, at = monitor.LostByRestart, n.restarted
	case !n.reachable || n.scanned != n.epoch:
		return
	case n.wiped > n.lostSight:
		cause, at = monitor.LostByWipe, n.wiped
	}
	votes, token := 0, r.Copies[i].Token // of its holder, as if those that are awaited were there
	for k := range r.Copies {
		if c := &r.Copies[k]; c.Token == token && (c.Kind == packed.LockCopy || r.awaited(k)) {
			votes++
		}
	}
	r.own()
	c := &r.Copies[i]
	c.Type, c.Sent, c.Epoch = uint8(cause), at, explained
	if cause == monitor.LostUnseen {
		return
	}
	if cost := n.restart; cost != nil && votes == t.quorum && r.lock.LostMajority() {
		cost.fall(r, r.lock.Relied)
		cost.copies++
		return
	}
	t.charge(r, i)
}

// tokenOfSum returns the token of r with this sum; −1: none.
func (r *record) tokenOfSum(sum [8]byte) int8 {
	for k := range r.Tokens {
		if announce.TokenSum(r.Tokens[k].Prefix) == sum {
			return int8(k)
		}
	}
	return -1
}

// heardToken returns the token of an announced grant, of which only the start is known.
func heardToken(start string) packed.Token {
	if start != "" {
		start += monitor.TokenCut
	}
	return packed.Token{Prefix: start, Length: int64(len(start))}
}

// startOf returns the start of the token of an announced grant.
func startOf(heard string) string { return strings.TrimSuffix(heard, monitor.TokenCut) }

// shortToken returns the beginning of token k of r, for sentences.
func (r *record) shortToken(k int8) string {
	token := r.Tokens[k].Prefix
	if k == r.grant.token && r.grant.heard != [8]byte{} && announce.TokenSum(token) != r.grant.heard {
		return token // it is cut already
	}
	return safetext.Short(token)
}

// learnToken sets the token of an announced grant, once a copy of it has been read.
func (r *record) learnToken(tok packed.Token) (k int8, ok bool) {
	heard := r.grant.heard
	if k = r.grant.token; k < 0 || announce.TokenSum(tok.Prefix) != heard || announce.TokenSum(r.Tokens[k].Prefix) == heard || !strings.HasPrefix(tok.Prefix, startOf(r.Tokens[k].Prefix)) {
		return -1, false
	}
	r.Tokens = slices.Clone(r.Tokens) // shared with others
	r.Tokens[k] = tok
	return k, true
}
