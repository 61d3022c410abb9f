package record

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"

	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/server/lockform"
)

// openGrant returns the open grant of a lock, or nil.
func (b *batch) openGrant(lock string) *grant {
	g := &b.grants
	one, known := g.open[lock]
	if known || g.all || b.taking.none(lock) || b.err != nil {
		return one
	}
	find := b.prepared(openGrantOf)
	if find == nil {
		return nil
	}
	one, err := scanGrant(find.QueryRow(b.cluster, lock))
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		b.err = err
	}
	g.open[lock] = one
	return one
}

// lostMajority is how a grant ended whose majority was lost: at its end, unless it was
// released before.
const lostMajority = "lost majority"

// begin opens a grant. An earlier open grant of the lock has ended unseen; or, if its
// majority was lost, it continues to its end, and two clients rely on the lock then.
func (b *batch) begin(lock, token string, at, until time.Time, partly bool) *grant {
	g := &b.grants
	if one := b.openGrant(lock); one != nil {
		if one.ends == "" {
			g.followed(one)
		}
		g.close(one, at, notSeen)
	}
	at = g.after(at)
	one := &grant{lock: lock, token: shortSHA(token), began: at, until: until, partly: partly}
	if f := lockform.Recognize(lock, "string", token, int64(len(token)), at); f != nil {
		one.owner, one.library = f.Owner.Raw(), f.Library
	}
	if last, ok := g.last[lock]; ok && !partly {
		one.wait = max(at.Sub(last), 1)
	}
	g.open[lock] = one
	g.change(one)
	return one
}

func (b *batch) follow(e monitor.Event) {
	lock := e.Key.Raw()
	if redlock.IsTombstone(e.Token.Raw()) {
		return // its grant has ended
	}
	if b.taking.noneOpen {
		b.taking.told[lock] = true
	}
	token := shortSHA(e.Token.Raw())
	one := b.openGrant(lock)
	switch e.Kind {
	case "acquired", "extended":
		if one == nil {
			one = b.grants.takeUp(lock, token)
		}
		switch same := one != nil && one.token == token; {
		case same && (e.Kind == "extended" || e.Until.Sub(one.until) > extendedBy):
			if e.Kind == "acquired" {
				one.before++ // it was extended while it was not seen
			}
			one.ends = ""
			b.told(one, e)
		case !same && e.Kind == "acquired":
			b.begin(lock, e.Token.Raw(), e.At, e.Until, b.pause.Includes(e.At))
		}
	case "released", "expired", "revoked", forceReleased, notSeen, lostMajority:
		if was := b.grants.takeFollowed(lock, token); was != nil && (one == nil || one.token != token) {
			b.endFollowed(was, e)
			return
		}
		switch {
		case e.Token.Empty():
		case one == nil && !b.follows: // it existed at the start
			one = b.begin(lock, e.Token.Raw(), b.began, e.Until, true)
		case e.Kind == lostMajority && (one == nil || one.token != token): // its majority was lost before it was seen
			one = b.begin(lock, e.Token.Raw(), e.At, e.Until, true)
		}
		switch {
		case one == nil || !e.Token.Empty() && one.token != token:
		case e.Kind == lostMajority: // it continues until then
			one.ends = lostMajority
			b.told(one, e)
			b.know(one, e.At, e.Until, one.extensions)
			b.grants.change(one)
		case e.Kind == notSeen: // nor is it known whether it ended at its end
			b.told(one, e)
			b.grants.end(one, e.Until, notSeen)
		case e.Kind == "expired":
			b.told(one, e)
			if one.ends == "" && !e.Until.IsZero() && one.until.Sub(e.Until) > extendedBy { // the nodes that did not answer had not got its last extension
				b.know(one, e.At, e.Until, one.extensions)
			}
			b.grants.close(one, e.At, e.Kind)
		default:
			b.told(one, e)
			b.grants.end(one, e.At, e.Kind)
		}
	}
}

// endFollowed records how a grant ended after which another one has begun: its end was told later.
func (b *batch) endFollowed(one *grant, e monitor.Event) {
	b.told(one, e)
	switch one.how = e.Kind; e.Kind {
	case lostMajority:
		if one.counted {
			b.minutes.of(one.lock).lost++
		}
		one.ends = lostMajority
		fallthrough
	case "expired", notSeen:
		if !one.until.IsZero() {
			one.ended = one.until
		}
	}
	b.grants.change(one)
}

// told records what an event says of the end of a grant and its extensions. An end that
// differs by less than an extension is the jitter of a read.
func (b *batch) told(one *grant, e monitor.Event) {
	b.takeExtensions(one)
	n, at, until := one.before+e.Times, e.At, e.Until
	if until.IsZero() && e.Kind != "acquired" && e.Kind != "extended" {
		until = one.until
	}
	if n > one.extensions && !e.Extended.IsZero() {
		at = e.Extended
	}
	switch {
	case n > one.extensions:
		b.know(one, at, until, n)
	case until.Sub(one.until) > extendedBy:
		b.know(one, at, until, one.extensions)
	}
}

// extendedBy is how much an end moves with an extension, more than the jitter of a read.
const extendedBy = 100 * time.Millisecond

// endGone ends the open grants of locks that are gone, as not seen: at the end of the TTL
// as last known, or now if that is later.
func (b *batch) endGone(s *monitor.Snapshot) {
	endIfGone := func(one *grant) {
		l := s.Locks.Get(one.lock)
		switch {
		case granted(l, s):
			return
		case l != nil && one.token == shortSHA(l.Holder.Raw()) && (unseen(l) || l.State == monitor.LockMayBeHeld):
			if one.ends == "" {
				one.ends = map[bool]string{true: notSeen, false: lostMajority}[unseen(l)]
				b.grants.change(one)
			}
			return
		case one.ends != "" && (one.until.IsZero() || one.until.After(b.now)):
			b.look(one.lock, l)
			return
		}
		at := b.now
		if !one.until.IsZero() && one.until.Before(at) {
			at = one.until
		}
		b.grants.close(one, at, notSeen)
	}
	for _, one := range b.grants.open {
		if one != nil {
			endIfGone(one)
		}
	}
	if !b.grants.all && b.err == nil {
		b.writeGrants()
		b.each(endIfGone, openGrants, b.cluster)
	}
}

// each calls do for open grants of the file.
func (b *batch) each(do func(*grant), query string, args ...any) {
	rows, err := b.conn.QueryContext(context.Background(), query, args...)
	if err != nil {
		b.err = err
		return
	}
	defer rows.Close()
	for rows.Next() {
		one, err := scanGrant(rows)
		if err != nil || b.ctx.Err() != nil {
			b.err = err
			return
		}
		do(one)
	}
	b.err = cmp.Or(b.err, rows.Err())
}

// endDue ends the grants whose majority is no longer seen and whose end has no event: a
// later monitor does not know of them.
func (b *batch) endDue(s *monitor.Snapshot) {
	if b.writeGrants(); b.err != nil {
		return
	}
	var due []string
	b.each(func(one *grant) { due = append(due, one.lock) }, dueGrants, b.cluster, millis(b.now.Add(-lag)))
	for _, lock := range due {
		one, l := b.openGrant(lock), s.Locks.Get(lock)
		switch {
		case one == nil || one.ends == "":
		case granted(l, s) && one.token == shortSHA(l.Holder.Raw()):
			b.takeInGrant(l)
		default:
			b.grants.close(one, one.until, one.ends)
			b.look(lock, l)
		}
	}
}

// granted reports whether somebody holds the lock, or relies on it without a majority.
// Copies that nodes may have loaded from disk do not count.
func granted(l *monitor.Lock, s *monitor.Snapshot) bool {
	switch {
	case l == nil, l.Nobody, l.State == monitor.LockOrphaned, l.State == monitor.LockMayBeHeld, l.State == monitor.LockRevoked:
		return false
	case l.Held < s.Cluster.Quorum:
		return l.LostMajority()
	case !l.HeldUntil().IsZero():
		return !l.MajorityEnd().IsZero()
	}
	for i, c := range l.Copies.All() {
		if c.State == monitor.CopyPresent && c.Token == l.Holder && (i >= len(s.Nodes) || s.Nodes[i].State != monitor.NodeFenced && s.Nodes[i].State != monitor.NodeCordoned) {
			return true
		}
	}
	return false
}

// unseen reports whether no majority of a lock is seen, but unreadable nodes may have the
// rest.
func unseen(l *monitor.Lock) bool {
	if l == nil || l.State != monitor.LockPartial && l.State != monitor.LockMayBeHeld {
		return false
	}
	for _, c := range l.Copies.All() {
		if c.State == monitor.CopyUnknown || c.State == monitor.CopyUnread {
			return true
		}
	}
	return false
}

// writeGrants writes the changes of grants, and counts those that ended. Then the file
// has all, and the memory drops what exceeds its limit, including what was only read.
func (b *batch) writeGrants() {
	g := &b.grants
	if b.err != nil {
		return
	}
	var added []*grant
	for _, one := range g.changed {
		one.dirty = false
		var how any
		if !one.ended.IsZero() {
			how = one.how
			b.minutes.ended(one)
		}
		if one.id == 0 {
			added = append(added, one)
			continue
		}
		b.exec(`UPDATE grants SET until_ms = ?, extended_ms = coalesce(?, extended_ms), extensions = ?, before = ?, copies = ?, ended_ms = ?, ended = ?, ends = ? WHERE id = ?`,
			null(one.until), null(one.extended), one.extensions, one.before, nothing(one.copies), null(one.ended), how, nothing(one.ends), one.id)
	}
	b.insert(added)
	for _, one := range g.changed {
		b.writeKnown(one)
	}
	if b.err != nil {
		return
	}
	for _, one := range g.changed {
		if g.all && !one.ended.IsZero() && g.open[one.lock] == nil {
			delete(g.open, one.lock)
		}
	}
	clear(g.changed)
	g.changed = g.changed[:0]
	g.forget()
}

// insert writes new grants, many with one statement: it takes half of what one statement
// for each takes.
func (b *batch) insert(added []*grant) {
	const columns = 13
	names := make([]string, len(added))
	for i, one := range added {
		names[i] = one.lock
	}
	b.locks(names)
	for len(added) > 0 {
		n := 1
		if len(added) >= atOnce {
			n = atOnce
		}
		args := make([]any, 0, columns*n)
		for _, one := range added[:n] {
			var owner, how any
			if one.owner+one.library != "" {
				owner = b.id(b.grants.owners, one.owner+"\x00"+one.library, `INSERT INTO owners (owner, library) VALUES (?, ?)
					ON CONFLICT (owner, library) DO UPDATE SET owner = owner RETURNING id`, one.owner, one.library)
			}
			if !one.ended.IsZero() {
				how = one.how
			}
			args = append(args, b.lock(one.lock), one.token[:], owner, millis(one.began), one.partly, null(one.until), null(one.extended),
				one.extensions, one.before, nothing(one.copies), null(one.ended), how, nothing(one.ends))
		}
		done := b.exec(`INSERT INTO grants (lock, token, owner, began_ms, partly, until_ms, extended_ms, extensions, before, copies, ended_ms, ended, ends) VALUES `+values(n, columns), args...)
		if b.err != nil {
			return
		}
		last, err := done.LastInsertId()
		if b.err = err; err != nil {
			return
		}
		for i, one := range added[:n] {
			one.id = last - int64(n-1-i) // rows of one statement are numbered in their order
		}
		added = added[n:]
	}
}

func (m *minutes) ended(one *grant) {
	if one.counted {
		return // it was reopened since
	}
	one.counted = true
	c := m.of(one.lock)
	c.total++
	if one.how == lostMajority || one.ends == lostMajority { // also if it was released later
		c.lost++
	}
	if len(c.held) < mostSamples && !one.partly {
		c.held = append(c.held, one.ended.Sub(one.began))
	}
	if one.wait > 0 && len(c.wait) < mostSamples {
		c.wait = append(c.wait, one.wait)
	}
}

func (b *batch) writeMinutes() {
	m := &b.minutes
	if at := b.now.Truncate(time.Minute).UnixMilli(); at != m.at {
		for p, c := range m.by {
			if c.held, c.wait = nil, nil; c.total+c.lost+c.orphaned == 0 {
				delete(m.by, p)
			}
		}
		m.at = at
	}
	for p, c := range m.by {
		if c.total+c.lost+c.orphaned == 0 {
			continue
		}
		b.exec(`INSERT INTO minutes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (cluster, minute_ms, pattern) DO UPDATE SET
			grants = grants + excluded.grants, lost = lost + excluded.lost, orphaned = orphaned + excluded.orphaned,
			held_p50_ms = excluded.held_p50_ms, held_p99_ms = excluded.held_p99_ms, wait_p50_ms = excluded.wait_p50_ms`,
			b.cluster, m.at, p, c.total, c.lost, c.orphaned, quantile(c.held, 0.5), quantile(c.held, 0.99), quantile(c.wait, 0.5))
		c.total, c.lost, c.orphaned = 0, 0, 0
	}
}
