package record

import (
	"slices"
	"strings"

	"redlockctl/monitor"
)

// looks follows what the locks are where their grants do not say it.
type looks struct {
	version uint64           // of the snapshot that was looked at last
	open    map[string]*look // by the name of the lock
}

// look is a state that a lock is in for a time.
type look struct {
	id     int64 // of its row
	state  monitor.LockState
	tokens string // 8 bytes for each letter of copies
	copies string
}

// copiesOf has a letter for each node: A where the holder's copy is, B, C … for those of
// other tokens, small where the copy has no TTL, - for none, ? where it is not known; and
// for each letter the beginning of the SHA-256 of its token.
func copiesOf(l *monitor.Lock) (copies, tokens string) {
	var b strings.Builder
	known := []string{l.Holder.Raw()}
	sha := shortSHA(known[0])
	tokens = string(sha[:])
	for _, c := range l.Copies.All() {
		switch {
		case c.State == monitor.CopyAbsent:
			b.WriteByte('-')
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

// lookOf is what a lock is worth to be recorded as; nil: nothing beside its grant, which
// takes the copies of its first look.
func (b *batch) lookOf(l *monitor.Lock) *look {
	if l == nil || l.State == monitor.LockPartial || l.State == monitor.LockNotALock {
		return nil // on its way, or no lock
	}
	now := &look{state: l.State}
	now.copies, now.tokens = copiesOf(l)
	if now.state == monitor.LockExpiring {
		now.state = monitor.LockHeld
	}
	if now.state != monitor.LockHeld && now.state != monitor.LockBareMajority {
		return now
	}
	one := b.openGrant(l.Key.Raw())
	if one == nil || string(one.token[:]) != now.tokens[:8] {
		return nil
	}
	if one.copies == "" {
		one.copies = now.copies
		b.grants.change(one)
	}
	if one.copies == now.copies {
		return nil
	}
	return now
}

func (b *batch) lookAtLocks(from Source, s *monitor.Snapshot) {
	keys, known := from.ChangedSince(b.looks.version)
	b.looks.version = s.Version
	switch {
	case known:
		for _, key := range keys {
			b.look(key, s.Locks.Get(key))
		}
	case b.taking.on:
		b.taking.again = true
	default:
		b.lookAtAll(s)
	}
}

func (b *batch) look(key string, l *monitor.Lock) {
	if b.err != nil {
		return
	}
	was, now := b.looks.open[key], b.lookOf(l)
	if was != nil && now != nil && was.state == now.state && was.tokens == now.tokens && was.copies == now.copies {
		return
	}
	if was != nil {
		b.exec(`UPDATE lock_states SET ended_ms = ? WHERE id = ?`, millis(b.now), was.id)
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
		[]any{lock, now.state.String(), []byte(now.tokens), now.copies, millis(b.now)}, &now.id)
	b.looks.open[key] = now
}
