package finding

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/clock"
	"redlockctl/redlock"
	"redlockctl/server/lockform"
	"redlockctl/server/safetext"
)

// The kinds of locks that findings are about.
const (
	badNoTTL = iota
	badSplit // two clients rely on it, or may
	badOverTTL
	badOrphan
	badLeft    // orphaned, and only on nodes that refuse writes
	badLost    // lost its majority; nobody else can acquire it before its end
	badExposed // lost its majority; another client can acquire it
	badMixed   // copies of several tokens, and at most one client relies on it
	badEndless // copies without a TTL that leave others a quorum
	badNumber
	badHuge
	badForeign
	badKinds
)

// ripens is how long a lock must have been in a bad state, unless [monitor.Lock.Lasts]: a
// failed attempt leaves copies for a moment, and the old SETNX pattern sets the TTL with a
// second command.
var ripens = [badKinds]time.Duration{
	badNoTTL:   1500 * time.Millisecond,
	badSplit:   2 * time.Second,
	badMixed:   2 * time.Second,
	badOverTTL: time.Second,
	badOrphan:  time.Second, // beyond the time that makes it one
	badLeft:    time.Second,
	badEndless: 1500 * time.Millisecond,
	badExposed: 100 * time.Millisecond,
	badNumber:  1500 * time.Millisecond,
	badHuge:    time.Second,
	badForeign: time.Second,
}

// youngView is how long after the first view a bad lock in it may not have lasted long
// enough.
const youngView = 3 * time.Second

const (
	hugeValue   = 1 << 20 // bytes or elements: not a token
	hugeName    = 4 << 10 // bytes of a key
	lookAtLocks = 20_000  // per check, in the order of their keys; the next check continues
	lookSlowly  = 500     // instead, once all have been checked: changed locks are checked anyway
	changesSeen = 100_000 // between two checks; if there are more, all are checked
	badKept     = 1000    // of one kind; more are counted by their state
)

// badLocks are the locks of one kind.
type badLocks struct {
	count    int
	sample   *monitor.Lock // which is named, see namedBefore
	lost     losses        // of those that lost their majority
	relied   bool          // a client relies on one of them, or may
	unending bool          // and without end
	perhaps  bool          // of those that lost their majority: another client may be able to get one of them
}

// badLock is one lock in a bad state.
type badLock struct {
	since [badKinds]time.Time
	marks string // its tokens: with other tokens it is another case
	lasts bool   // see [monitor.Lock]
	split bool   // its state is split
}

// lockWatch finds bad locks. Each check covers the known bad ones, those that changed,
// and some of the others in turn, so its cost does not depend on their number.
type lockWatch struct {
	changed []string // since the last check
	cursor  string
	slowly  bool // all have been checked since the cursor was last at the start
	bad     map[string]*badLock
	kept    [badKinds]int
	// ripening counts those of a dangerous kind that have not lasted long enough to be
	// reported.
	ripening int
	ttls     ttlWatch
	snap     *monitor.Snapshot // that is being checked
}

func (w *lockWatch) kindsOf(l *monitor.Lock) (kinds [badKinds]bool, any bool) {
	lost := l.LostMajority()
	if lost {
		kind := badLost
		if a := w.snap.Access(l); a.Now || !a.From.IsZero() {
			kind = badExposed
		}
		kinds[kind], any = true, true
	}
	if l.Over || l.State == monitor.LockOverTTL { // its state may be a worse one
		kinds[badOverTTL], any = true, true
	}
	switch l.State {
	case monitor.LockNoTTL, monitor.LockSplit: // one may be both
		switch copies, block := l.Endless(w.snap.Serves); {
		case copies == 0 && l.State == monitor.LockSplit:
		case block:
			kinds[badNoTTL] = true
		case !lost: // otherwise its advice to remove the copy would let a second client in
			kinds[badEndless] = true
		}
		kinds[several(l)], any = l.State == monitor.LockSplit || rivals(l), true
	case monitor.LockOrphaned:
		switch {
		case l.LeftByStep: // the step is reported, and no client left them
		case w.snap.BlocksNobody(l):
			kinds[badLeft], any = true, true
		default:
			kinds[badOrphan], any = true, true
		}
	case monitor.LockNotALock:
		switch {
		case l.Form == lockform.Number():
			kinds[badNumber], any = true, true
		case l.Form == nil || !l.Form.Companion && !l.Form.Shared:
			kinds[badForeign], any = true, true
		}
	}
	if len(l.Key.Raw()) > hugeName {
		kinds[badHuge], any = true, true
	}
	for _, c := range l.Copies.All() {
		if c.Len > hugeValue {
			kinds[badHuge], any = true, true
		}
	}
	return kinds, any
}

// several returns the kind of a lock with copies of several tokens.
func several(l *monitor.Lock) int {
	if l.Earlier != nil {
		return badSplit
	}
	return badMixed
}

// rivals reports whether copies of several holders are there. A tombstone has none.
func rivals(l *monitor.Lock) bool {
	var holder safetext.Text
	for _, c := range l.Copies.All() {
		switch {
		case c.Token.Empty() || redlock.IsTombstone(c.Token.Raw()):
		case holder.Empty():
			holder = c.Token
		case holder != c.Token:
			return true
		}
	}
	return false
}

// note adds the keys of locks that have changed.
func (w *lockWatch) note(keys []string) {
	if len(w.changed)+len(keys) > changesSeen {
		w.coverAll()
		return
	}
	w.changed = append(w.changed, keys...)
}

// coverAll makes the next checks cover all locks.
func (w *lockWatch) coverAll() { w.changed, w.cursor, w.slowly = nil, "", false }

// look updates the watch from a snapshot and returns the locks that have been bad for long
// enough, by kind, and the smallest TTL in use.
func (w *lockWatch) look(s *monitor.Snapshot, nodeTimeout time.Duration) (map[int]badLocks, time.Duration) {
	w.snap = s
	if w.bad == nil {
		w.bad = map[string]*badLock{}
	}
	now := s.At
	for key := range w.bad {
		w.take(key, s.Locks.Get(key), now)
	}
	// When all nodes had been seen: a lock that appears later is new.
	var sighted time.Time
	whole := true
	for i := range s.Nodes {
		whole = whole && s.Nodes[i].State.Readable()
		if since := s.Nodes[i].Since; since.After(sighted) {
			sighted = since
		}
	}
	w.ttls.begin(now)
	see := func(l *monitor.Lock) {
		if _, any := w.kindsOf(l); any && w.bad[l.Key.Raw()] == nil {
			w.take(l.Key.Raw(), l, now)
		}
		if whole && l.Since().After(sighted) {
			w.ttls.saw(l, now)
		}
	}
	for _, key := range w.changed {
		if l := s.Locks.Get(key); l != nil {
			see(l)
		}
	}
	clear(w.changed) // so that it keeps no key in memory
	w.changed = w.changed[:0]
	n, most, next := 0, lookAtLocks, ""
	switch {
	case w.slowly:
		most = lookSlowly
	case !w.slowly && s.Counts[monitor.LockNoTTL]+s.Counts[monitor.LockSplit]+s.Counts[monitor.LockOverTTL]+s.Counts[monitor.LockOrphaned]+s.Counts[monitor.LockLostMajority] > 0:
		most = s.Locks.Len() // there are bad ones: check all now
	}
	for l := range s.Locks.From(w.cursor) {
		if n++; n > most {
			next = l.Key.Raw()
			break
		}
		see(l)
	}
	w.cursor = next
	w.slowly = w.slowly || next == ""

	ripe := map[int]badLocks{}
	w.ripening = 0
	for key, b := range w.bad {
		for k := range badKinds {
			if b.since[k].IsZero() {
				continue
			}
			if !b.ripe(k, now, nodeTimeout) {
				if k == badNoTTL || k == badSplit || k == badMixed || k == badOverTTL || k == badExposed {
					w.ripening++
				}
				continue
			}
			these := ripe[k]
			these.count++
			l := s.Locks.Get(key)
			if k == badLost || k == badExposed {
				these.lost.add(l)
				these.perhaps = these.perhaps || s.Access(l).Perhaps
			}
			these.relied = these.relied || l != nil && l.ReliedOn()
			these.unending = these.unending || l != nil && (l.Unending || l.Earlier != nil && l.Earlier.Until.IsZero())
			if l != nil && (these.sample == nil || namedBefore(l, these.sample)) {
				these.sample = l
			}
			ripe[k] = these
		}
	}
	for k, state := range map[int]monitor.LockState{badNoTTL: monitor.LockNoTTL, badMixed: monitor.LockSplit, badOverTTL: monitor.LockOverTTL, badOrphan: monitor.LockOrphaned, badLeft: monitor.LockOrphaned, badForeign: monitor.LockNotALock, badLost: monitor.LockLostMajority} {
		if these := ripe[k]; these.count > 0 && w.kept[k] >= badKept {
			these.count = max(these.count, s.Counts[state])
			ripe[k] = these
		}
	}
	return ripe, w.ttls.shortest()
}

// namedBefore reports whether l is named rather than m: the first one by key, but none of which nobody is known to
// have a quorum where another one has two.
func namedBefore(l, m *monitor.Lock) bool {
	if l.Contested != m.Contested {
		return m.Contested
	}
	return l.Key.Raw() < m.Key.Raw()
}

// ripensAfter returns how long a lock must have been in a bad state of this kind.
func ripensAfter(kind int, nodeTimeout time.Duration) time.Duration {
	if kind == badSplit || kind == badMixed || kind == badOrphan || kind == badLeft {
		return max(ripens[kind], 2*nodeTimeout)
	}
	return ripens[kind]
}

// ripe reports whether the lock has been bad in this way for long enough.
func (b *badLock) ripe(kind int, now time.Time, nodeTimeout time.Duration) bool {
	return b.lasts && (kind <= badOverTTL || kind == badMixed && b.split) || now.Sub(b.since[kind]) >= ripensAfter(kind, nodeTimeout)
}

// awaits reports whether a lock that was first seen in a bad state before until has not
// been in it for long enough.
func (w *lockWatch) awaits(now, until time.Time, nodeTimeout time.Duration) bool {
	for _, b := range w.bad {
		for _, k := range [...]int{badNoTTL, badSplit, badMixed, badOverTTL, badOrphan, badLeft, badExposed, badEndless} {
			if since := b.since[k]; !since.IsZero() && since.Before(until) && !b.ripe(k, now, nodeTimeout) {
				return true
			}
		}
	}
	return false
}

// take records the present state of the lock under key; nil: it is gone.
func (w *lockWatch) take(key string, l *monitor.Lock, now time.Time) {
	var kinds [badKinds]bool
	any := false
	if l != nil {
		kinds, any = w.kindsOf(l)
	}
	b := w.bad[key]
	if b == nil {
		if !any {
			return
		}
		b = &badLock{}
	}
	b.split = l != nil && l.State == monitor.LockSplit
	if b.lasts = l != nil && l.Lasts; any {
		if marks := tokensOf(l); marks != b.marks {
			b.marks = marks
			w.set(b, badSplit, time.Time{})
			w.set(b, badMixed, time.Time{})
			w.set(b, badOrphan, time.Time{})
			w.set(b, badLeft, time.Time{})
		}
	}
	keep := false
	for k := range badKinds {
		switch {
		case !kinds[k]:
			w.set(b, k, time.Time{})
		case b.since[k].IsZero() && w.kept[k] < badKept:
			w.set(b, k, now)
		}
		keep = keep || !b.since[k].IsZero()
	}
	if keep {
		w.bad[key] = b
	} else {
		delete(w.bad, key)
	}
}

// discontinued restarts the wait for locks that had not been bad for long enough before
// the discontinuity.
func (w *lockWatch) discontinued(d clock.Discontinuity, nodeTimeout time.Duration) {
	for _, b := range w.bad {
		for k, since := range b.since {
			if !since.IsZero() && d.At.Add(-d.Gap).Sub(since) < ripensAfter(k, nodeTimeout) {
				b.since[k] = d.At
			}
		}
	}
}

func (w *lockWatch) set(b *badLock, kind int, at time.Time) {
	if was, is := !b.since[kind].IsZero(), !at.IsZero(); was && !is {
		w.kept[kind]--
	} else if !was && is {
		w.kept[kind]++
	}
	b.since[kind] = at
}

// tokensOf returns the different tokens of the copies of l.
func tokensOf(l *monitor.Lock) string {
	var tokens []string
	for _, c := range l.Copies.All() {
		if t := c.Token; !t.Empty() {
			tokens = append(tokens, t.Raw())
		}
	}
	slices.Sort(tokens)
	return strings.Join(slices.Compact(tokens), "\x00")
}

// ttlWatch estimates the TTLs with which locks are taken, from the remaining time of new
// locks. A lock that is seen late shows less than its TTL, so a few short ones prove nothing:
// what counts is the value that a tenth of them stays below.
type ttlWatch struct {
	seen  map[string]time.Time // key → Since of the counted lock
	now   ttlCounts
	last  ttlCounts
	begun time.Time
}

// ttlCounts counts TTLs in steps of a quarter of an octave, from a millisecond.
type ttlCounts struct {
	total int
	steps [128]int
}

const (
	ttlWindow = time.Minute // the last and the present window count
	ttlLeast  = 20          // locks needed for an estimate
	ttlKept   = 10_000      // locks that are remembered as counted
)

func (w *ttlWatch) begin(now time.Time) {
	if w.begun.IsZero() {
		w.begun = now
	}
	if now.Sub(w.begun) >= ttlWindow {
		w.last, w.now, w.begun = w.now, ttlCounts{}, now
		clear(w.seen)
	}
	if w.seen == nil {
		w.seen = map[string]time.Time{}
	}
}

func (w *ttlWatch) saw(l *monitor.Lock, now time.Time) {
	if now.Sub(l.Since()) > ttlWindow || len(w.seen) >= ttlKept || w.seen[l.Key.Raw()].Equal(l.Since()) {
		return
	}
	var longest time.Duration
	for _, c := range l.Copies.All() {
		if c.State == monitor.CopyPresent && c.Type == "string" && !c.Expires.IsZero() {
			longest = max(longest, c.Expires.Sub(l.Since()))
		}
	}
	if longest <= 0 {
		return
	}
	w.seen[l.Key.Raw()] = l.Since()
	w.now.total++
	w.now.steps[ttlStep(longest)]++
}

func ttlStep(d time.Duration) int {
	step := 0
	for at := time.Millisecond; at < d && step < 127; at += at / 4 {
		step++
	}
	return step
}

// shortest returns the TTL that a tenth of the locks stay below; 0: not known.
func (w *ttlWatch) shortest() time.Duration {
	total := w.now.total + w.last.total
	if total < ttlLeast {
		return 0
	}
	below, at := 0, time.Millisecond
	for step := range w.now.steps {
		below += w.now.steps[step] + w.last.steps[step]
		if 10*below >= total {
			return at
		}
		at += at / 4
	}
	return 0
}

// exampleOf returns the key of a lock and which copies are on which nodes. It is recorded:
// it has no token that somebody could use.
func exampleOf(l *monitor.Lock, nodes []monitor.Node) safetext.Text {
	var b strings.Builder
	b.WriteString(clip(l.Key.Raw(), 60))
	if len(l.Key.Raw()) > 60 {
		fmt.Fprintf(&b, " (a name of %d bytes)", len(l.Key.Raw()))
	}
	type group struct {
		what  string
		token safetext.Text
		nodes []string
	}
	var groups []group
	for i, c := range l.Copies.All() {
		if c.State != monitor.CopyPresent || i >= len(nodes) {
			continue
		}
		what := c.Token.Raw()
		if len(what) >= 8 { // a shorter one is no secret
			what = safetext.Short(what)
		}
		switch {
		case c.Type != "string":
			what = fmt.Sprintf("a %s of %d", c.Type, c.Len)
		case c.Len > hugeValue:
			what = fmt.Sprintf("a value of %d bytes", c.Len)
		case c.Expires.IsZero():
			what += " without TTL"
		}
		k := slices.IndexFunc(groups, func(g group) bool { return g.what == what && g.token == c.Token })
		if k < 0 {
			k = len(groups)
			groups = append(groups, group{what: what, token: c.Token})
		}
		groups[k].nodes = append(groups[k].nodes, nodes[i].Name)
	}
	slices.SortStableFunc(groups, func(a, b group) int { return cmp.Compare(len(b.nodes), len(a.nodes)) })
	for i, g := range groups {
		if i == 3 {
			fmt.Fprintf(&b, " and %d more", len(groups)-3)
			break
		}
		sep := ", "
		if i == 0 {
			sep = ": "
		}
		fmt.Fprintf(&b, "%s%s on %s", sep, g.what, strings.Join(g.nodes, " "))
	}
	return safetext.New(b.String())
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "…"
}

// forceReleased: the next client has a lock of which the former holder was not told that it is gone.
func forceReleased(k known, f *found) bool {
	keys := map[string]bool{}
	var first *monitor.Forced
	for i := range k.forced {
		one := &k.forced[i]
		l := k.Locks.Get(one.Lock)
		if !one.Stands(l, k.At) {
			continue
		}
		keys[one.Lock] = true
		if first == nil || one.Lock <= first.Lock { // of several of one lock, the last
			first, f.Key = one, l.Key
		}
	}
	if first == nil {
		return false
	}
	text := clip(first.Lock, 60) + ": " + first.Told(k.At) + ", and another client has it now"
	if f.Count = len(keys); f.Count == 1 {
		f.Title = "a lock that was force-released while its holder may work"
		return f.seen("%s", text)
	}
	return f.seen("%d; the first: %s", f.Count, text)
}
