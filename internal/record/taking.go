package record

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockctl/monitor"
)

// A pass records takeInSome locks at a time and pauses takeInPause times as long as that
// took, at most takeInRest: with the time between two writes it takes a quarter of a core, and 20 s for 100,000 locks.
// After takeInMost it commits.
const (
	takeInMost  = 800 * time.Millisecond
	takeInSome  = atOnce
	takeInPause = 3
	takeInRest  = 8 * time.Millisecond
)

// takeIn starts to match the open grants with the existing locks, and to look at each
// lock.
func (b *batch) takeIn(s *monitor.Snapshot) {
	b.endGone(s)
	b.looks.version = s.Version
	b.lookAtAll(s)
	b.taking.noneOpen, b.taking.told = b.grants.all && len(b.grants.open) == 0, map[string]bool{}
}

// lookAtAll starts a pass through all locks.
func (b *batch) lookAtAll(s *monitor.Snapshot) {
	for key := range b.looks.open {
		if s.Locks.Get(key) == nil {
			b.look(key, nil)
		}
	}
	b.taking = taking{on: true}
}

// goOn continues the pass for a while, with pauses, or until the context ends.
func (b *batch) goOn(s *monitor.Snapshot) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for begun := time.Now(); b.err == nil && b.ctx.Err() == nil; {
		from := time.Now()
		if b.takeInNext(s); !b.taking.on || time.Since(begun) >= b.most {
			return
		}
		pause.Reset(min(takeInPause*time.Since(from), takeInRest))
		select {
		case <-b.ctx.Done():
		case <-pause.C:
		}
	}
}

// takeInNext records the next locks, and writes their changes.
func (b *batch) takeInNext(s *monitor.Snapshot) {
	left := takeInSome
	for l := range s.Locks.From(b.taking.next) {
		if left--; left < 0 {
			b.writeGrants()
			b.taking.next = l.Key.Raw()
			return
		}
		if granted(l, s) {
			b.takeInGrant(l)
		}
		b.look(l.Key.Raw(), l)
		if b.err != nil {
			return
		}
	}
	if !b.follows || b.unsighted {
		b.follows, b.unsighted = true, false
		b.exec(`UPDATE runs SET locks_ms = ? WHERE id = ?`, millis(b.now), b.run) // in a pause, it tells of the run after it
	}
	if b.taking = (taking{on: b.taking.again}); b.taking.on {
		b.lookAtAll(s)
	}
}

// copiesOf returns a letter for each node: A for the holder's copy, B, C … for those of
// other tokens, in lower case without TTL, - for none, ! if the holder's was lost, ? if
// unknown; and for each letter the start of the SHA-256 of its token.
func copiesOf(l *monitor.Lock) (copies, tokens string) {
	var b strings.Builder
	known := []string{l.Holder.Raw()}
	sha := shortSHA(known[0])
	tokens = string(sha[:])
	for _, c := range l.Copies.All() {
		switch {
		case c.State == monitor.CopyAbsent:
			b.WriteByte('-')
		case c.State == monitor.CopyLost && c.Token == l.Holder:
			b.WriteByte('!')
		case c.State != monitor.CopyPresent:
			b.WriteByte('?')
		default:
			k := slices.Index(known, c.Token.Raw())
			if k < 0 {
				k = len(known)
				known = append(known, c.Token.Raw())
				sha := shortSHA(c.Token.Raw())
				tokens += string(sha[:])
			}
			letter := byte('A' + min(k, 25))
			if c.Expires.IsZero() {
				letter += 'a' - 'A'
			}
			b.WriteByte(letter)
		}
	}
	return b.String(), tokens
}

// reliedUntil is what stands in the copies of a split lock before the time in milliseconds
// until when one of its clients may rely on it: by votes of which no letter tells. 0: without end.
const reliedUntil = "+"

// lookOf returns the state of a lock that is worth recording; nil: nothing besides its
// grant, which gets the copies of its first read.
func (b *batch) lookOf(key string, l *monitor.Lock) *look {
	if l == nil {
		if one := b.openGrant(key); one != nil && one.ends == lostMajority { // which only the record knows
			return &look{state: monitor.LockLostMajority, tokens: string(one.token[:])}
		}
		return nil
	}
	if l.State == monitor.LockPartial && !unseen(l) || l.State == monitor.LockNotALock {
		return nil // being acquired or released, or not a lock
	}
	now := &look{state: l.State}
	now.copies, now.tokens = copiesOf(l)
	switch {
	case now.state == monitor.LockExpiring:
		now.state = monitor.LockHeld
	case l.Nobody && now.state != monitor.LockSplit:
		now.state = monitor.LockOrphaned // the rest of its state does not matter
	}
	if !unseen(l) && now.state != monitor.LockHeld && now.state != monitor.LockBareMajority {
		switch end := l.HeldUntil(); {
		case now.state != monitor.LockSplit || !l.ReliedOn():
		case !end.IsZero():
			now.copies += reliedUntil + strconv.FormatInt(millis(end.Round(extendedBy)), 10)
		case l.Unending:
			now.copies += reliedUntil + "0"
		}
		return now
	}
	one := b.openGrant(key)
	if one == nil || string(one.token[:]) != now.tokens[:8] {
		return nil
	}
	if one.ends != "" && !unseen(l) { // its majority is back
		one.ends = ""
		b.grants.change(one)
	}
	if end := l.HeldUntil(); unseen(l) && end.After(one.until) { // extended, as far as is seen
		b.know(one, b.now, end, one.extensions)
	}
	if one.copies == "" && !unseen(l) {
		one.copies = now.copies
		b.grants.change(one)
	}
	if one.copies == now.copies {
		return nil
	}
	return now
}

func (b *batch) look(key string, l *monitor.Lock) {
	if b.err != nil {
		return
	}
	if l != nil && (l.LostMajority() || l.State == monitor.LockMayBeHeld) {
		b.relied(l)
	}
	was, now := b.looks.open[key], b.lookOf(key, l)
	if was != nil && now != nil && was.state == now.state && was.tokens == now.tokens && was.copies == now.copies {
		return
	}
	at := after(b.looks.since(key, l, b.began, b.now), b.seen)
	if was != nil {
		if at.Before(was.began) {
			at = was.began
		}
		b.exec(`UPDATE lock_states SET ended_ms = ? WHERE id = ?`, millis(at), was.id)
		delete(b.looks.open, key)
	}
	if now == nil {
		return
	}
	lock := b.lock(key)
	if b.err != nil {
		return
	}
	b.scan(`INSERT INTO lock_states (lock, state, tokens, copies, began_ms) VALUES (?, ?, ?, ?, ?) RETURNING id`,
		[]any{lock, now.state.String(), []byte(now.tokens), now.copies, millis(at)}, &now.id)
	now.began = at
	b.looks.open[key] = now
}

// relied records until when the holder relies on a lock without a majority: not each
// extension has an event.
func (b *batch) relied(l *monitor.Lock) {
	one := b.openGrant(l.Key.Raw())
	if one != nil && one.token == shortSHA(l.Holder.Raw()) && !one.until.Equal(l.HeldUntil()) {
		b.know(one, b.now, l.HeldUntil(), one.extensions)
	}
}

func (b *batch) takeInGrant(l *monitor.Lock) {
	lock, token := l.Key.Raw(), l.Holder.Raw()
	one := b.openGrant(lock)
	if one == nil {
		one = b.grants.takeUp(lock, shortSHA(token))
	}
	if one == nil || one.token != shortSHA(token) {
		at := b.now
		if !l.Since().IsZero() {
			at = l.Since()
		}
		one = b.begin(lock, token, at, l.HeldUntil(), true)
	}
	ends := ""
	if l.LostMajority() {
		ends = lostMajority
	}
	b.takeExtensions(one)
	n, at := one.before+int(l.Extensions), b.now
	switch {
	case n > one.extensions: // none of them was collected
		at = l.ExtendedAt()
	case l.HeldUntil().Sub(one.until) > extendedBy && l.Extensions == 0: // while nobody recorded
		one.before++
		n++
	}
	b.know(one, at, l.HeldUntil(), n)
	if one.ends != ends {
		one.ends = ends
		b.grants.change(one)
	}
}
