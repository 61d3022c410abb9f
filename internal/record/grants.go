package record

import (
	"cmp"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"redlockctl/internal/lockform"
	"redlockctl/monitor"
)

// grant is one holder's time with a lock.
type grant struct {
	id         int64 // of its row; 0: it has none yet
	lock       string
	token      [8]byte
	owner      string // with library
	library    string
	began      time.Time
	partly     bool
	until      time.Time // zero: no TTL
	extended   time.Time
	extensions int
	ended      time.Time
	how        string
	copies     string        // at the first look; "": there was none
	wait       time.Duration // since the grant before it ended; 0: not known
	dirty      bool
}

// grants follows the grants of all locks. Of those that are open it remembers the ones
// that changed last; the file has them all.
type grants struct {
	open    map[string]*grant    // by the name of the lock; nil: the lock has none
	all     bool                 // what is not in open is not open
	most    int                  // how many are remembered
	changed []*grant             // since they were written last
	last    map[string]time.Time // when the last grant of a lock ended
	locks   map[string]int64     // rows of locks by name
	owners  map[string]int64
}

func newGrants() grants {
	return grants{most: mostKnown, open: map[string]*grant{}, last: map[string]time.Time{}, locks: map[string]int64{}, owners: map[string]int64{}}
}

func shortSHA(token string) [8]byte {
	sum := sha256.Sum256([]byte(token))
	return [8]byte(sum[:8])
}

// Grants that are open, by what finds them; ?1 is the cluster.
var (
	openColumns = `SELECT g.id, l.name, g.token, g.began_ms, g.partly, g.until_ms, g.extensions, coalesce(g.copies, '') `
	openGrants  = openColumns + fmt.Sprintf(`FROM grants g INDEXED BY grants_by_length CROSS JOIN locks l ON l.id = g.lock
		WHERE %s = %d AND l.cluster = ?1`, lengthClass, len(lengths)+1)
	openGrantOf = openColumns + `FROM locks l CROSS JOIN grants g INDEXED BY grants_of_lock ON g.lock = l.id
		WHERE l.cluster = ?1 AND l.name = ?2 AND g.ended_ms IS NULL ORDER BY g.began_ms DESC LIMIT 1`
)

func scanGrant(row interface{ Scan(...any) error }) (*grant, error) {
	one := &grant{}
	var token []byte
	if err := row.Scan(&one.id, &one.lock, &token, (*ms)(&one.began), &one.partly, (*ms)(&one.until), &one.extensions, &one.copies); err != nil {
		return nil, err
	}
	copy(one.token[:], token)
	return one, nil
}

// resume takes up the grants that were open when the last recorder ended.
func (g *grants) resume(db *sql.DB, cluster int64) error {
	rows, err := db.Query(openGrants+` LIMIT ?2`, cluster, g.most+1)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		one, err := scanGrant(rows)
		if err != nil {
			return err
		}
		g.open[one.lock] = one
	}
	g.all = true
	g.forget()
	return rows.Err()
}

// forget drops what the file has, when too much is remembered.
func (g *grants) forget() {
	if len(g.open) > g.most {
		clear(g.open)
		g.all = false
	}
}

func (g *grants) change(one *grant) {
	if !one.dirty {
		one.dirty = true
		g.changed = append(g.changed, one)
	}
}

// openGrant is the open grant of a lock; nil: it has none.
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

// begin opens a grant; what was open of the lock has ended unseen.
func (b *batch) begin(lock, token string, at, until time.Time, partly bool) {
	g := &b.grants
	b.end(lock, at, notSeen)
	one := &grant{lock: lock, token: shortSHA(token), began: at, until: until, partly: partly}
	if f := lockform.Recognize(lock, "string", token, int64(len(token)), at); f != nil {
		one.owner, one.library = f.Owner.Raw(), f.Library
	}
	if last, ok := g.last[lock]; ok && !partly {
		one.wait = max(at.Sub(last), 1)
	}
	g.open[lock] = one
	g.change(one)
}

func (b *batch) end(lock string, at time.Time, how string) {
	if one := b.openGrant(lock); one != nil {
		b.grants.end(one, at, how)
	}
}

func (g *grants) end(one *grant, at time.Time, how string) {
	if at.Before(one.began) {
		at = one.began
	}
	one.ended, one.how = at, how
	g.open[one.lock] = nil
	if len(g.last) >= mostKnown {
		clear(g.last)
	}
	g.last[one.lock] = at
	g.change(one)
}

func (b *batch) follow(e monitor.Event) {
	lock := e.Key.Raw()
	if b.taking.noneOpen {
		b.taking.told[lock] = true
	}
	switch e.Kind {
	case "acquired":
		if one := b.openGrant(lock); one == nil || one.token != shortSHA(e.Token.Raw()) {
			b.begin(lock, e.Token.Raw(), e.At, e.Until, false)
		}
	case "extended":
		if one := b.openGrant(lock); one != nil {
			one.until, one.extended = e.Until, e.At
			one.extensions += max(1, e.Times)
			b.grants.change(one)
		}
	case "released", "expired", "revoked", "force-released", "lost majority":
		if !b.follows && !e.Token.Empty() && b.openGrant(lock) == nil { // it was there at the start
			b.begin(lock, e.Token.Raw(), b.began, e.Until, true)
		}
		b.end(lock, e.At, e.Kind)
	}
}

// granted reports whether a lock is one that somebody holds.
func granted(l *monitor.Lock, quorum int) bool {
	return l != nil && l.Held >= quorum && !l.Nobody
}

func (b *batch) takeInGrant(l *monitor.Lock) {
	lock, token := l.Key.Raw(), l.Holder.Raw()
	if one := b.openGrant(lock); one != nil && one.token == shortSHA(token) {
		if !one.until.Equal(l.MajorityEnd()) {
			one.until = l.MajorityEnd()
			b.grants.change(one)
		}
		return
	}
	at := b.now
	if !l.Since().IsZero() {
		at = l.Since()
	}
	b.begin(lock, token, at, l.MajorityEnd(), true)
}

// endGone ends the open grants of locks that are gone: unseen, at the last moment at which
// they were known, or at the TTL's end where that came first.
func (b *batch) endGone(s *monitor.Snapshot) {
	gone := func(lock string) bool { return !granted(s.Locks.Get(lock), s.Cluster.Quorum) }
	ended := func(one *grant) {
		at := b.seen
		if !one.until.IsZero() && one.until.Before(at) {
			at = one.until
		}
		b.grants.end(one, at, notSeen)
	}
	for lock, one := range b.grants.open {
		if one != nil && gone(lock) {
			ended(one)
		}
	}
	if b.grants.all || b.err != nil {
		return
	}
	b.writeGrants()
	rows, err := b.tx.Query(openGrants, b.cluster)
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
		if gone(one.lock) {
			ended(one)
		}
	}
	b.err = cmp.Or(b.err, rows.Err())
}

// writeGrants writes what has changed of grants, and counts those that ended. Then the file
// has all, and what is too much to be remembered is forgotten, also what was only read.
func (b *batch) writeGrants() {
	g := &b.grants
	if b.err != nil {
		return
	}
	for _, one := range g.changed {
		one.dirty = false
		var how any
		if !one.ended.IsZero() {
			how = one.how
			b.minutes.ended(one)
		}
		if one.id != 0 {
			b.exec(`UPDATE grants SET until_ms = ?, extended_ms = coalesce(?, extended_ms), extensions = ?, copies = ?, ended_ms = ?, ended = ? WHERE id = ?`,
				null(one.until), null(one.extended), one.extensions, nothing(one.copies), null(one.ended), how, one.id)
		} else {
			var owner any
			if one.owner+one.library != "" {
				owner = b.id(g.owners, one.owner+"\x00"+one.library, `INSERT INTO owners (owner, library) VALUES (?, ?)
					ON CONFLICT (owner, library) DO UPDATE SET owner = owner RETURNING id`, one.owner, one.library)
			}
			lock := b.lock(one.lock)
			done := b.exec(`INSERT INTO grants (lock, token, owner, began_ms, partly, until_ms, extended_ms, extensions, copies, ended_ms, ended) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
				lock, one.token[:], owner, millis(one.began), one.partly, null(one.until), null(one.extended), one.extensions, nothing(one.copies), null(one.ended), how)
			if b.err == nil {
				one.id, b.err = done.LastInsertId()
			}
		}
		if b.err != nil {
			return
		}
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
