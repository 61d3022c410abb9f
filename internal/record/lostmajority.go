package record

import (
	"database/sql"
	"slices"
	"strings"
	"time"

	"redlockctl/monitor/words"
)

// lostEnd is a lock that lost its majority: until when its holder relied on it, as was told then, and
// as was known at the end of a span.
type lostEnd struct {
	Event
	told, known time.Time
}

// later returns the later of two ends.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// more says until when a holder relied on its lock, if that is later than was told.
func more(told, known, at time.Time) string {
	until := words.Moment(known, at)
	if known.Sub(told) <= extendedBy || until == words.Moment(told, at) {
		return ""
	}
	return "; held to " + until + " by an extension that may have come before the loss"
}

// LostMajorities returns the locks that lost their majority in a span, oldest first, also those that
// the event of a restart only counts.
func (r *Reader) LostMajorities(in Span) ([]Event, error) {
	all, err := r.lostEnds(in)
	var events []Event
	for _, l := range all {
		l.Text += more(l.told, l.known, l.At)
		events = append(events, l.Event)
	}
	return events, err
}

func (r *Reader) lostEnds(in Span) ([]lostEnd, error) {
	return collect(r.db, func(row *sql.Rows, l *lostEnd) error {
		return row.Scan((*ms)(&l.At), &l.Lock, &l.Text, (*ms)(&l.told), (*ms)(&l.known))
	}, `SELECT e.at_ms, l.name, e.text,
		coalesce((SELECT until_ms FROM ends WHERE grant_id = g.id AND at_ms <= e.at_ms ORDER BY at_ms DESC LIMIT 1), g.until_ms),
		coalesce((SELECT until_ms FROM ends WHERE grant_id = g.id AND at_ms < ?3 ORDER BY at_ms DESC LIMIT 1), g.until_ms)
		FROM events e INDEXED BY events_by_time CROSS JOIN locks l ON l.id = e.lock
		LEFT JOIN grants g ON g.id = (SELECT id FROM grants WHERE lock = e.lock AND began_ms <= e.at_ms ORDER BY began_ms DESC, id DESC LIMIT 1) AND (g.ended = ?4 OR g.ended IS NULL AND g.ends = ?4)
		WHERE e.cluster = ?1 AND e.at_ms >= ?2 AND e.at_ms < ?3 AND e.kind = ?4 ORDER BY e.at_ms, e.id`,
		r.cluster, millis(in.Since), millis(in.Until), lostMajority)
}

// tellLater adds to the events of restarts and wipes the end of the locks that lost their majority with
// them, if it became known later.
func (r *Reader) tellLater(events []Event, in Span) error {
	costs := func(e Event) bool { return strings.Contains(e.Text, " majority: held to ") }
	if !slices.ContainsFunc(events, costs) {
		return nil
	}
	ends, err := r.lostEnds(in)
	if err != nil {
		return err
	}
	for i := range events {
		e := &events[i]
		if !costs(*e) {
			continue
		}
		var told, known time.Time
		for _, l := range ends {
			if within(l.At.Sub(e.At)) {
				told, known = later(told, l.told), later(known, l.known)
			}
		}
		e.Text += more(told, known, e.At)
	}
	return nil
}

// LostNow returns the grants, at most n, that lost their majority and on which their holders rely
// now: perhaps no copy of them is left, or another client has the lock.
func (r *Reader) LostNow(now time.Time, n int) (all []Grant, err error) {
	closed := classes(`?2`)
	closed = closed[:len(closed)-1]
	queries := []string{`INDEXED BY grants_ending CROSS ` + ofLocks + `WHERE ` + ending + ` AND ends = '` + lostMajority + `' AND (g.until_ms IS NULL OR g.until_ms > ?2)`}
	for _, condition := range closed { // at a time to come
		queries = append(queries, byLength+condition+` AND g.ended = '`+lostMajority+`'`)
	}
	for _, query := range queries {
		some, err := r.grants(query+` AND l.cluster = ?3 LIMIT ?4`, now, millis(now), r.cluster, n-len(all))
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// NotSeen returns the grants of a span, at most n, whose end came while locks were recorded and was not seen, as
// their majority did not answer; left is how many more there are.
func (r *Reader) NotSeen(in Span, recorded []Span, n int) (all []Grant, left int, err error) {
	at, err := r.lastLocks(in.Until.Add(-time.Millisecond))
	for class := len(lengths); class >= 0 && err == nil; class-- {
		var some []Grant
		some, err = r.grants(byLength+inClass(class)+` AND l.cluster = ?3 AND g.ended = '`+notSeen+`' AND g.ended_ms >= ?2 AND g.ended_ms <= ?1`, at, millis(in.Since), r.cluster)
		all = append(all, some...)
	}
	all = slices.DeleteFunc(all, func(g Grant) bool {
		return !slices.ContainsFunc(recorded, func(s Span) bool { return g.Ended.After(s.Since) && g.Ended.Before(s.Until) })
	})
	slices.SortStableFunc(all, func(a, b Grant) int { return a.Ended.Compare(b.Ended) })
	left = max(0, len(all)-n)
	return all[:len(all)-left], left, err
}
