package record

import (
	"database/sql"
	"encoding/hex"
	"fmt"
	"time"
)

// Overlaps are the grants of a span that began while the holder of an earlier grant of the
// same lock relied on it: two clients relied on the lock.
type Overlaps struct {
	Count, Locks int       // all, and of how many locks
	Longest      []Overlap // of each lock, the longest first
}

// Overlap is a time in which two clients relied on a lock.
type Overlap struct {
	Lock           string
	Earlier, Later Grant     // of both only who and the beginning
	Relied         time.Time // until when the earlier holder relied on it; zero: no TTL
	Both           time.Duration
	Others         int // further overlaps of the same lock, none of them longer
}

// relied is until when the holder of a grant relies on the lock, or may: that of a removed
// grant is not told, and an end that differs by less than an extension is the jitter of a read.
func relied(grant string) string {
	return fmt.Sprintf(`CASE WHEN %[1]s.ended_ms IS NULL OR %[1]s.until_ms IS NULL AND %[1]s.%[2]s THEN %[3]d
		WHEN %[1]s.ended IN ('revoked', '%[4]s') THEN max(%[1]s.ended_ms, %[1]s.until_ms - %[5]d) ELSE %[1]s.ended_ms END`,
		grant, cutShort, noEnd, forceReleased, extendedBy.Milliseconds())
}

// noEnd is after all times.
const noEnd = 1 << 60

// overlapping joins each grant g with the earlier grants e with which it overlaps. With one that
// had no TTL only the first grant after it does: its holder may be gone for long, and nothing
// will tell.
var overlapping = `FROM grants e CROSS JOIN grants g ON g.lock = e.lock AND g.began_ms >= e.began_ms AND g.began_ms <
		CASE WHEN e.until_ms IS NULL THEN max(e.ended_ms, coalesce((SELECT n.began_ms + 1 FROM grants n WHERE n.lock = e.lock AND n.began_ms >= e.ended_ms AND n.token != e.token ORDER BY n.began_ms LIMIT 1), 0))
		ELSE ` + relied("e") + ` END
	WHERE e.` + cutShort + ` AND g.token != e.token AND (g.began_ms > e.began_ms OR g.id > e.id)`

// overlapsOf are overlaps up to ?1 of cluster ?2 that go on at ?3 or later: the longest of each lock, of
// the ?4 locks with the longest, with the number of all, of their locks, and of the others of this lock.
// The plus keeps the range of an index for the overlap.
var overlapsOf = `WITH found AS MATERIALIZED (
		SELECT g.lock, e.token AS earlier, e.owner AS earlier_owner, e.began_ms AS earlier_began, e.until_ms, g.token, g.owner, g.began_ms, g.partly,
			max(` + relied("e") + `) AS until, ` + relied("g") + ` AS later_until ` + overlapping + ` AND +g.began_ms <= ?1 GROUP BY g.id),
	overlaps AS MATERIALIZED (SELECT *, min(until, later_until, ?1) - began_ms AS both FROM found CROSS JOIN locks l ON l.id = lock
		WHERE cluster = ?2 AND min(until, later_until, ?1) >= ?3),
	longest AS MATERIALIZED (SELECT *, max(both), count(*) AS of_lock FROM overlaps GROUP BY lock) -- SQLite takes the row of the maximum
	SELECT (SELECT count(*) FROM overlaps), (SELECT count(*) FROM longest), name, earlier, coalesce(x.owner, ''), earlier_began,
		token, coalesce(y.owner, ''), began_ms, partly, until_ms, both, of_lock - 1
	FROM longest LEFT JOIN owners x ON x.id = earlier_owner LEFT JOIN owners y ON y.id = longest.owner
	ORDER BY both DESC, began_ms LIMIT ?4`

// Overlaps returns the overlaps of a span, as known at its end: of the n locks with the longest,
// the longest with its holders.
func (r *Reader) Overlaps(in Span, n int) (all Overlaps, err error) {
	at, err := r.lastLocks(in.Until.Add(-time.Millisecond))
	if err != nil {
		return all, err
	}
	all.Longest, err = collect(r.db, func(row *sql.Rows, o *Overlap) error {
		var earlier, later []byte
		err := row.Scan(&all.Count, &all.Locks, &o.Lock, &earlier, &o.Earlier.Owner, (*ms)(&o.Earlier.Began),
			&later, &o.Later.Owner, (*ms)(&o.Later.Began), &o.Later.Partly, (*ms)(&o.Relied), (*msLong)(&o.Both), &o.Others)
		o.Earlier.Token, o.Later.Token = hex.EncodeToString(earlier), hex.EncodeToString(later)
		return err
	}, overlapsOf, millis(at), r.cluster, millis(in.Since), n)
	return all, err
}
