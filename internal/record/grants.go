package record

import (
	"crypto/sha256"
	"database/sql"
	"fmt"
	"slices"
	"time"
)

// grant is the time for which one holder has a lock.
type grant struct {
	id         int64 // row; 0: none yet
	lock       string
	token      [8]byte
	owner      string // with the library
	library    string
	began      time.Time
	partly     bool
	until      time.Time // zero: no TTL
	extended   time.Time
	extensions int
	before     int // extensions before the monitor began to count them
	ended      time.Time
	how        string
	ends       string        // how it ends at until without a further event, because its majority is no longer seen; "": it is seen
	copies     string        // at the first read; "": none yet
	wait       time.Duration // since the grant before it ended; 0: unknown
	knew       []known       // not written yet
	rows       bool          // it has rows in ends
	dirty      bool
	counted    bool // in the counts of its minute
}

// grants follows the grants of all locks. It remembers the open ones that changed last;
// the file has them all.
type grants struct {
	seen    time.Time            // all is recorded up to then, by this recorder or the one before; zero: nothing yet
	open    map[string]*grant    // by lock name; nil: no open grant
	all     bool                 // a grant that is not in open is not open
	most    int                  // limit of open
	changed []*grant             // since the last write
	last    map[string]time.Time // end of the last grant of a lock
	lapsed  map[string]*grant    // last grants whose end nobody saw
	// overlaid are the last grants of a lock after which another one began before their end was told.
	overlaid map[string][]*grant
	locks    map[string]int64 // rows of locks, by name
	owners   map[string]int64
}

// mostKnown limits the remembered row numbers.
const mostKnown = 1 << 16

func newGrants() grants {
	return grants{most: mostKnown, open: map[string]*grant{}, last: map[string]time.Time{}, lapsed: map[string]*grant{}, overlaid: map[string][]*grant{}, locks: map[string]int64{}, owners: map[string]int64{}}
}

func shortSHA(token string) [8]byte {
	sum := sha256.Sum256([]byte(token))
	return [8]byte(sum[:8])
}

// Queries for open grants; ?1 is the cluster.
var (
	openColumns = `SELECT g.id, l.name, g.token, g.began_ms, g.partly, g.until_ms, g.extensions, g.before, coalesce(g.copies, ''), coalesce(g.ends, '') `
	openGrants  = openColumns + fmt.Sprintf(`FROM grants g INDEXED BY grants_by_length CROSS JOIN locks l ON l.id = g.lock
		WHERE %s = %d AND l.cluster = ?1`, lengthClass, len(lengths)+1)
	openGrantOf = openColumns + `FROM locks l CROSS JOIN grants g INDEXED BY grants_of_lock ON g.lock = l.id
		WHERE l.cluster = ?1 AND l.name = ?2 AND g.ended_ms IS NULL ORDER BY g.began_ms DESC LIMIT 1`
	dueGrants = openColumns + `FROM grants g INDEXED BY grants_ending CROSS JOIN locks l ON l.id = g.lock
		WHERE ` + ending + ` AND g.until_ms < ?2 AND l.cluster = ?1 LIMIT 1000`
)

func scanGrant(row interface{ Scan(...any) error }) (*grant, error) {
	one := &grant{}
	var token []byte
	if err := row.Scan(&one.id, &one.lock, &token, (*ms)(&one.began), &one.partly, (*ms)(&one.until), &one.extensions, &one.before, &one.copies, &one.ends); err != nil {
		return nil, err
	}
	copy(one.token[:], token)
	return one, nil
}

// resume loads the grants that were open when the last recorder ended.
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

// followed remembers a grant after which another one begins.
func (g *grants) followed(one *grant) {
	if len(g.overlaid) >= mostKnown {
		clear(g.overlaid)
	}
	const most = 8 // as many as a monitor decides on later
	all := g.overlaid[one.lock]
	g.overlaid[one.lock] = append(all[max(0, len(all)+1-most):], one)
}

// takeFollowed returns the grant with this token after which another one began, and forgets it; nil:
// none is known.
func (g *grants) takeFollowed(lock string, token [8]byte) *grant {
	all := g.overlaid[lock]
	k := slices.IndexFunc(all, func(one *grant) bool { return one.token == token })
	if k < 0 {
		return nil
	}
	one := all[k]
	if all = slices.Delete(all, k, k+1); len(all) == 0 {
		delete(g.overlaid, lock)
	} else {
		g.overlaid[lock] = all
	}
	return one
}

func (g *grants) change(one *grant) {
	if !one.dirty {
		one.dirty = true
		g.changed = append(g.changed, one)
	}
}

func (g *grants) end(one *grant, at time.Time, how string) {
	if one.ends == "" || !at.Equal(one.until) { // otherwise it was known to end then
		at = g.after(at)
	}
	if at.Before(one.began) {
		at = one.began
	}
	one.ended, one.how = at, how
	g.open[one.lock] = nil
	if len(g.last) >= mostKnown {
		clear(g.last)
	}
	g.last[one.lock] = at
	if delete(g.lapsed, one.lock); how == notSeen {
		if len(g.lapsed) >= mostKnown {
			clear(g.lapsed)
		}
		g.lapsed[one.lock] = one
	}
	g.change(one)
}

// close ends a grant of which nothing more is known: at a given time, or at its end if
// its holder relies on it until then.
func (g *grants) close(one *grant, at time.Time, how string) {
	if one.ends != "" {
		how = one.ends
		if !one.until.IsZero() {
			at = one.until
		}
	}
	g.end(one, at, how)
}

// takeUp reopens the last grant of a lock if nobody saw its end and it has this token.
func (g *grants) takeUp(lock string, token [8]byte) *grant {
	one := g.lapsed[lock]
	if one == nil || one.token != token {
		return nil
	}
	delete(g.lapsed, lock)
	one.ended, one.how, one.ends = time.Time{}, "", ""
	one.before = one.extensions // the monitor begins to count anew
	g.open[lock] = one
	g.change(one)
	return one
}
