package record

import (
	"database/sql"
	"time"
)

// Span is a period from Since (inclusive) to Until (exclusive).
type Span struct{ Since, Until time.Time }

// Coverage says for which parts of a span something was recorded. All are in order, and
// none is nil.
type Coverage struct {
	Recorded []Span
	Gaps     []Span // nothing was recorded
	Locks    []Span // locks were recorded
	LockGaps []Span // they were not; these include Gaps
}

// lag is how long after a time its data may be written while a recorder runs: it writes
// once a second.
const lag = 3 * time.Second

// Coverage returns what was recorded of a span.
func (r *Reader) Coverage(in Span) (c Coverage, err error) {
	type run struct{ began, seen, locks time.Time }
	runs, err := collect(r.db, func(row *sql.Rows, one *run) error {
		return row.Scan((*ms)(&one.began), (*ms)(&one.seen), (*ms)(&one.locks))
	}, `SELECT began_ms, seen_ms, locks_ms FROM runs WHERE cluster = ? AND began_ms < ? AND seen_ms >= ? ORDER BY began_ms`, r.cluster, millis(in.Until), millis(in.Since))
	if err != nil {
		return c, err
	}
	var all, locks []Span
	for _, one := range runs {
		all = append(all, Span{one.began, one.seen})
		if !one.locks.IsZero() {
			if one.locks.Before(one.began) { // the run goes on after a pause
				one.locks = one.began
			}
			if one.seen.After(one.locks) {
				locks = append(locks, Span{one.locks, one.seen})
			}
		}
	}
	c.Recorded, c.Gaps = cover(all, in, r.Cluster.Last)
	c.Locks, c.LockGaps = cover(locks, in, r.Cluster.Last)
	return c, nil
}

// cover returns the parts of a span that parts cover, and the others. The end of the
// record is no gap while it may be written.
func cover(parts []Span, in Span, last time.Time) (covered, gaps []Span) {
	covered, gaps = []Span{}, []Span{}
	from := in.Since
	for _, p := range parts {
		if p.Since.Before(in.Since) {
			p.Since = in.Since
		}
		if p.Until.After(in.Until) {
			p.Until = in.Until
		}
		if p.Since.After(from) {
			gaps = append(gaps, Span{from, p.Since})
		}
		if p.Until.After(p.Since) {
			covered = append(covered, p)
		}
		from = p.Until
	}
	least := time.Duration(0)
	if !from.Before(last) {
		least = lag
	}
	if in.Until.Sub(from) > least {
		gaps = append(gaps, Span{from, in.Until})
	}
	return covered, gaps
}

// lastLocks returns the last time up to t at which locks were recorded; zero: there is
// none. An answer about a span says what was known then.
func (r *Reader) lastLocks(t time.Time) (last time.Time, err error) {
	var at sql.NullInt64
	err = r.db.QueryRow(`SELECT max(min(seen_ms, ?2)) FROM runs WHERE cluster = ?1 AND locks_ms <= ?2 AND began_ms <= ?2`, r.cluster, millis(t)).Scan(&at)
	if err != nil || !at.Valid {
		return last, err
	}
	return time.UnixMilli(at.Int64), nil
}
