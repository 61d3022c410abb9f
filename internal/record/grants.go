package record

import (
	"crypto/sha256"
	"database/sql"
	"time"

	"redlockctl/internal/lockform"
	"redlockctl/monitor"
)

// How a grant ended, beside the kinds of the events that tell it.
const notSeen = "not seen"

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

// grants follows the grants of all locks.
type grants struct {
	open    map[string]*grant    // by the name of the lock
	changed []*grant             // since they were written last
	last    map[string]time.Time // when the last grant of a lock ended
	locks   map[string]int64     // rows of locks by name
	owners  map[string]int64
}

func newGrants() grants {
	return grants{open: map[string]*grant{}, last: map[string]time.Time{}, locks: map[string]int64{}, owners: map[string]int64{}}
}

func shortSHA(token string) [8]byte {
	sum := sha256.Sum256([]byte(token))
	return [8]byte(sum[:8])
}

// resume takes up the grants that were open when the last recorder ended.
func (g *grants) resume(db *sql.DB, cluster int64) error {
	rows, err := db.Query(`SELECT g.id, l.name, g.token, g.began_ms, g.until_ms, g.extensions, coalesce(g.copies, '') FROM grants g JOIN locks l ON l.id = g.lock
		WHERE g.ended_ms IS NULL AND l.cluster = ?`, cluster)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		one := &grant{}
		var token []byte
		var began int64
		var until sql.NullInt64
		if err := rows.Scan(&one.id, &one.lock, &token, &began, &until, &one.extensions, &one.copies); err != nil {
			return err
		}
		copy(one.token[:], token)
		one.began = time.UnixMilli(began)
		if until.Valid {
			one.until = time.UnixMilli(until.Int64)
		}
		g.open[one.lock] = one
	}
	return rows.Err()
}

func (g *grants) change(one *grant) {
	if !one.dirty {
		one.dirty = true
		g.changed = append(g.changed, one)
	}
}

// begin opens a grant; what was open of the lock has ended unseen.
func (g *grants) begin(lock, token string, at, until time.Time, partly bool) {
	g.end(lock, at, notSeen)
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

// end ends the open grant of a lock, if there is one.
func (g *grants) end(lock string, at time.Time, how string) {
	one := g.open[lock]
	if one == nil {
		return
	}
	if at.Before(one.began) {
		at = one.began
	}
	one.ended, one.how = at, how
	delete(g.open, lock)
	if len(g.last) >= mostKnown {
		clear(g.last)
	}
	g.last[lock] = at
	g.change(one)
}

// follow goes on by an event of a lock.
func (g *grants) follow(e monitor.Event, now time.Time) {
	lock, one := e.Key.Raw(), g.open[e.Key.Raw()]
	switch e.Kind {
	case "acquired":
		if one == nil || one.token != shortSHA(e.Token.Raw()) || one.how != "" {
			g.begin(lock, e.Token.Raw(), e.At, e.Until, false)
		}
	case "extended":
		if one != nil {
			one.until, one.extended = e.Until, e.At
			one.extensions += max(1, e.Times)
			g.change(one)
		}
	case "released", "expired", "revoked", "force-released", "lost majority":
		g.end(lock, e.At, e.Kind)
	}
}

// takeIn brings the open grants in line with what is there. What is gone has ended unseen,
// at the last moment at which it was known, or at its TTL's end where that came first.
func (g *grants) takeIn(s *monitor.Snapshot, seen, now time.Time) {
	there := make(map[string]bool)
	for l := range s.Locks.All() {
		if l.Held < s.Cluster.Quorum || l.Nobody {
			continue
		}
		lock, token := l.Key.Raw(), l.Holder.Raw()
		there[lock] = true
		if one := g.open[lock]; one != nil && one.token == shortSHA(token) {
			if !one.until.Equal(l.MajorityEnd()) {
				one.until = l.MajorityEnd()
				g.change(one)
			}
			continue
		}
		at := now
		if !l.Since().IsZero() {
			at = l.Since()
		}
		g.begin(lock, token, at, l.MajorityEnd(), true)
	}
	for lock, one := range g.open {
		if !there[lock] {
			at := seen
			if !one.until.IsZero() && one.until.Before(at) {
				at = one.until
			}
			g.end(lock, at, notSeen)
		}
	}
}

func nothing(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func null(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return millis(t)
}

// writeGrants writes what has changed of grants, and counts those that ended.
func (b *batch) writeGrants() {
	g := &b.grants
	if len(g.changed) == 0 || b.err != nil {
		return
	}
	insert, err := b.tx.Prepare(`INSERT INTO grants (lock, token, owner, began_ms, partly, until_ms, extended_ms, extensions, copies, ended_ms, ended) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	if err == nil {
		defer insert.Close()
	} else {
		b.err = err
		return
	}
	update, err := b.tx.Prepare(`UPDATE grants SET until_ms = ?, extended_ms = coalesce(?, extended_ms), extensions = ?, copies = ?, ended_ms = ?, ended = ? WHERE id = ?`)
	if err == nil {
		defer update.Close()
	} else {
		b.err = err
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
			_, b.err = update.Exec(null(one.until), null(one.extended), one.extensions, nothing(one.copies), null(one.ended), how, one.id)
		} else {
			var owner any
			if one.owner+one.library != "" {
				owner = b.id(g.owners, one.owner+"\x00"+one.library, `INSERT INTO owners (owner, library) VALUES (?, ?)
					ON CONFLICT (owner, library) DO UPDATE SET owner = owner RETURNING id`, one.owner, one.library)
			}
			lock := b.lock(one.lock)
			if b.err != nil {
				return
			}
			var done sql.Result
			if done, b.err = insert.Exec(lock, one.token[:], owner, millis(one.began), one.partly, null(one.until), null(one.extended), one.extensions, nothing(one.copies), null(one.ended), how); b.err == nil {
				one.id, b.err = done.LastInsertId()
			}
		}
		if b.err != nil {
			return
		}
	}
	g.changed = g.changed[:0]
}
