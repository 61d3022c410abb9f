package record

import (
	"cmp"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Reader reads a record, even one that is being written, or a copy from another host.
type Reader struct {
	db      *sql.DB
	cluster int64
	// Cluster is the recorded cluster.
	Cluster Cluster
}

// Cluster is a cluster as last recorded.
type Cluster struct {
	Name      string
	N, Quorum int
	MaxTTL    time.Duration
	// First and Last are the first and the last recorded time.
	First, Last time.Time
}

// OpenReader opens a record; name is the cluster's, "" for the only one. It fails with
// [ErrNoRecord], [ErrOther] or [ErrNewer].
func OpenReader(path, name string) (*Reader, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: there is no %s", ErrNoRecord, path)
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: %w: it is not a file", path, ErrOther)
	}
	var version int
	var db *sql.DB
	// First try a file that another process may be writing; then a file on a read-only
	// file system, whose log is empty.
	for _, mode := range []url.Values{{"mode": {"ro"}}, {"mode": {"ro"}, "immutable": {"1"}}} {
		mode.Set("_pragma", "busy_timeout(2000)")
		if db, err = sql.Open("sqlite", source(path, mode)); err != nil {
			return nil, err
		}
		if version, err = versionOf(db); err == nil {
			break
		}
		_ = db.Close()
	}
	switch {
	case errors.Is(err, ErrNoRecord):
		return nil, fmt.Errorf("%s: %w in it", path, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w: %w", path, ErrOther, err)
	case version > Version:
		_ = db.Close()
		return nil, fmt.Errorf("%s: %w", path, ErrNewer)
	}
	r := &Reader{db: db}
	if err := r.choose(name); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// Refresh reads how far the record goes now.
func (r *Reader) Refresh() error { return r.choose(r.Cluster.Name) }

// Close closes the file.
func (r *Reader) Close() error { return r.db.Close() }

func (r *Reader) choose(name string) error {
	type known struct {
		Cluster
		id int64
	}
	all, err := collect(r.db, func(row *sql.Rows, c *known) error {
		return row.Scan(&c.id, &c.Name, &c.N, &c.Quorum, (*msLong)(&c.MaxTTL), (*ms)(&c.Last), (*ms)(&c.First))
	}, `SELECT id, name, n, quorum, max_ttl_ms, coalesce((SELECT max(seen_ms) FROM runs WHERE cluster = clusters.id), 0),
		coalesce((SELECT min(began_ms) FROM runs WHERE cluster = clusters.id), 0) FROM clusters`)
	if err != nil {
		return err
	}
	var names []string
	for _, c := range all {
		names = append(names, c.Name)
		if name == "" || name == c.Name {
			r.cluster, r.Cluster = c.id, c.Cluster
		}
	}
	switch {
	case len(names) == 0, name != "" && r.Cluster.Name != name:
		return fmt.Errorf("%w of a cluster %q (have: %s)", ErrNoRecord, name, strings.Join(names, ", "))
	case name == "" && len(names) > 1:
		return fmt.Errorf("the record has several clusters, name one: %s", strings.Join(names, ", "))
	}
	return nil
}

// Grant is the time for which one holder has a lock.
type Grant struct {
	Lock string
	// Token is the start of the token's SHA-256 in hex, as in the audit log.
	Token          string
	Owner, Library string // as far as the token says; "": unknown
	Began          time.Time
	Partly         bool      // it existed before the recording started
	Until          time.Time // as last seen; zero: no TTL
	Extended       time.Time // last extension; zero: none
	Extensions     int
	Ended          time.Time // zero: not ended, as far as is known
	How            string    // how it ended: "released", "expired", …
	// Copies has a letter for each node at the first read: A for a copy; "": it was never
	// read.
	Copies string
	// Overlaps: it began before another token's grant of the same lock had ended, or
	// would have expired if it had not been force-released.
	Overlaps bool
}

const grantColumns = `SELECT l.name, g.token, coalesce(o.owner, ''), coalesce(o.library, ''), g.began_ms, g.partly, g.until_ms, g.extended_ms, g.extensions, g.ended_ms, coalesce(g.ended, ''), coalesce(g.copies, '')
	FROM grants g `

// ofLocks joins grants with the rows that they refer to; a CROSS before it makes SQLite
// find the grants first.
const ofLocks = `JOIN locks l ON l.id = g.lock LEFT JOIN owners o ON o.id = g.owner `

func (r *Reader) grants(query string, args ...any) ([]Grant, error) {
	return collect(r.db, func(row *sql.Rows, g *Grant) error {
		var token []byte
		err := row.Scan(&g.Lock, &token, &g.Owner, &g.Library, (*ms)(&g.Began), &g.Partly, (*ms)(&g.Until), (*ms)(&g.Extended), &g.Extensions, (*ms)(&g.Ended), &g.How, &g.Copies)
		g.Token = hex.EncodeToString(token)
		return err
	}, grantColumns+query, args...)
}

// Span is a period from Since (inclusive) to Until (exclusive).
type Span struct{ Since, Until time.Time }

// GrantsOf returns the last n grants of a lock in a span, oldest first.
func (r *Reader) GrantsOf(lock string, in Span, n int) ([]Grant, error) {
	all, err := r.grants(ofLocks+`WHERE l.cluster = ? AND l.name = ? AND g.began_ms < ? AND (g.ended_ms IS NULL OR g.ended_ms >= ?) ORDER BY g.began_ms DESC, g.id DESC LIMIT ?`,
		r.cluster, lock, millis(in.Until), millis(in.Since), n)
	slices.Reverse(all)
	var last *Grant // the longest-lasting one so far
	for i := range all {
		g := &all[i]
		g.Overlaps = last != nil && last.Token != g.Token && last.lastsBeyond(g.Began)
		if last == nil || g.Ended.IsZero() || !last.lastsBeyond(g.Ended) {
			last = g
		}
	}
	return all, err
}

// lastsBeyond reports whether the holder relied on a grant at this time after its start,
// or may have: a holder is not notified of a force-release.
func (g *Grant) lastsBeyond(t time.Time) bool {
	return g.Ended.IsZero() || g.How != notSeen && g.Ended.After(t) || g.How == lostMajority && g.Until.IsZero() ||
		g.How == forceReleased && g.Until.After(t)
}

const byLength = `INDEXED BY grants_by_length CROSS ` + ofLocks + `WHERE `

// HeldAt returns the grants at a time, by the names of their locks, the oldest first.
func (r *Reader) HeldAt(t time.Time) (all []Grant, err error) {
	for _, condition := range classes() {
		some, err := r.grants(byLength+condition+` AND l.cluster = ?2`, millis(t), r.cluster)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	slices.SortStableFunc(all, func(a, b Grant) int { return cmp.Or(strings.Compare(a.Lock, b.Lock), a.Began.Compare(b.Began)) })
	return all, nil
}

// Event is a recorded event, except the events of one grant.
type Event struct {
	At          time.Time
	Level, Kind string
	Part        bool   // another event reports it too
	Node, Lock  string // "": none
	Text        string
}

// Events returns the last n events of a span, oldest first; only of one node or lock if
// given.
func (r *Reader) Events(node, lock string, in Span, n int) ([]Event, error) {
	return collect(r.db, func(row *sql.Rows, e *Event) error {
		err := row.Scan((*ms)(&e.At), &e.Level, &e.Kind, &e.Node, &e.Lock, &e.Text)
		e.Part = e.Level == partLevel
		return err
	}, `SELECT at_ms, level, kind, node, name, text FROM (SELECT e.id, e.at_ms, e.level, e.kind, coalesce(e.node, '') AS node, coalesce(l.name, '') AS name, e.text FROM events e LEFT JOIN locks l ON l.id = e.lock
		WHERE e.cluster = ?1 AND e.at_ms >= ?2 AND e.at_ms < ?3 AND (?4 = '' OR e.node = ?4) AND (?5 = '' OR l.name = ?5) ORDER BY e.at_ms DESC, e.id DESC LIMIT ?6)
		ORDER BY at_ms, id`, r.cluster, millis(in.Since), millis(in.Until), node, lock, n)
}

// State is the state of a node from a time on; with an empty Node, the cluster's verdict.
type State struct {
	Node, State, Text string
	At                time.Time
	// Guards are the announcements of guards there, one per line; of the cluster, what is
	// missing for protection against restarts.
	Guards  string
	Rejoins time.Time // when a guard lets it rejoin, as it announced then; zero: unknown
}

// StatesAt returns the cluster's verdict and the state of each node at a time.
func (r *Reader) StatesAt(t time.Time) ([]State, error) {
	return r.states(`WHERE cluster = ?1 AND at_ms = (SELECT max(at_ms) FROM states AS s WHERE s.cluster = ?1 AND s.node = states.node AND s.at_ms <= ?2) ORDER BY node`, r.cluster, millis(t))
}

// States returns the changes of state in a span, oldest first.
func (r *Reader) States(in Span) ([]State, error) {
	return r.states(`WHERE cluster = ? AND at_ms >= ? AND at_ms < ? ORDER BY at_ms, node`, r.cluster, millis(in.Since), millis(in.Until))
}

// Nodes returns the names of the nodes in the order of the configuration.
func (r *Reader) Nodes() (names []string, err error) {
	return collect(r.db, func(row *sql.Rows, name *string) error { return row.Scan(name) },
		`SELECT node FROM nodes WHERE cluster = ? ORDER BY position`, r.cluster)
}

// Gaps returns the parts of a span in which nothing was recorded, oldest first.
func (r *Reader) Gaps(in Span) (gaps []Span, err error) {
	runs, err := collect(r.db, func(row *sql.Rows, run *Span) error { return row.Scan((*ms)(&run.Since), (*ms)(&run.Until)) },
		`SELECT began_ms, seen_ms FROM runs WHERE cluster = ? AND began_ms < ? AND seen_ms >= ? ORDER BY began_ms`, r.cluster, millis(in.Until), millis(in.Since))
	if err != nil {
		return nil, err
	}
	from := in.Since
	gap := func(to time.Time) {
		if to.Sub(from) > slack {
			gaps = append(gaps, Span{from, to})
		}
	}
	for _, run := range runs {
		gap(run.Since)
		from = run.Until
	}
	gap(in.Until)
	return gaps, nil
}

// SawLocks reports whether locks were recorded at any time in a span.
func (r *Reader) SawLocks(in Span) (saw bool, err error) {
	err = r.db.QueryRow(`SELECT count(*) > 0 FROM runs WHERE cluster = ? AND locks_ms < ? AND seen_ms >= ?`, r.cluster, millis(in.Until), millis(in.Since)).Scan(&saw)
	return saw, err
}

func (r *Reader) states(query string, args ...any) ([]State, error) {
	return collect(r.db, func(row *sql.Rows, s *State) error {
		return row.Scan(&s.Node, (*ms)(&s.At), &s.State, &s.Text, &s.Guards, (*ms)(&s.Rejoins))
	}, `SELECT node, at_ms, state, text, guards, rejoins_ms FROM states `+query, args...)
}

// Finding is an assumption that did not hold.
type Finding struct {
	ID, Node, Severity, Title, Evidence string
	Consequence, Remedy                 string
	Lock                                string    // of locks: the first one affected
	Locks                               int       // of locks: the number affected
	Opened, Cleared                     time.Time // zero: not cleared
}

// Findings returns the findings that held at any time in a span, oldest first.
func (r *Reader) Findings(in Span) ([]Finding, error) {
	return collect(r.db, func(row *sql.Rows, f *Finding) error {
		return row.Scan(&f.ID, &f.Node, &f.Severity, &f.Title, &f.Evidence, &f.Consequence, &f.Remedy, &f.Lock, &f.Locks, (*ms)(&f.Opened), (*ms)(&f.Cleared))
	}, `SELECT finding, node, severity, title, evidence, consequence, remedy, coalesce(lock, ''), locks, opened_ms, cleared_ms FROM findings
		WHERE cluster = ? AND opened_ms < ? AND (cleared_ms IS NULL OR cleared_ms >= ?) ORDER BY opened_ms, id`, r.cluster, millis(in.Until), millis(in.Since))
}

// Minute sums up the locks of a pattern in one minute or several.
type Minute struct {
	Pattern                string
	Grants, Lost, Orphaned int
	HeldP50, HeldP99       time.Duration
	WaitP50                time.Duration // from the end of one grant to the next of the same lock
}

// Patterns returns the sums of a span by pattern, the most grants first; quantiles are
// the greatest of its minutes.
func (r *Reader) Patterns(in Span, n int) ([]Minute, error) {
	return collect(r.db, func(row *sql.Rows, m *Minute) error {
		return row.Scan(&m.Pattern, &m.Grants, &m.Lost, &m.Orphaned, (*msLong)(&m.HeldP50), (*msLong)(&m.HeldP99), (*msLong)(&m.WaitP50))
	}, `SELECT pattern, sum(grants), sum(lost), sum(orphaned), max(held_p50_ms), max(held_p99_ms), max(wait_p50_ms) FROM minutes
		WHERE cluster = ? AND minute_ms >= ? AND minute_ms < ? GROUP BY pattern ORDER BY sum(grants) DESC LIMIT ?`,
		r.cluster, in.Since.Truncate(time.Minute).UnixMilli(), millis(in.Until), n)
}

// Longest returns the n grants of a span that lasted longest, including those that began
// earlier.
func (r *Reader) Longest(in Span, n int) ([]Grant, error) {
	all, err := r.HeldAt(in.Since.Add(-1))
	for class := len(lengths) + 1; class >= 0 && err == nil; class-- {
		var some []Grant
		some, err = r.grants(byLength+inClass(class)+` AND l.cluster = ?3 ORDER BY coalesce(g.ended_ms, ?2) - g.began_ms DESC LIMIT ?4`,
			millis(in.Since), millis(in.Until), r.cluster, n)
		if all = append(all, some...); class <= len(lengths) && len(some) == n {
			break // the others are shorter
		}
	}
	lasted := func(g *Grant) time.Duration {
		if g.Ended.IsZero() {
			return in.Until.Sub(g.Began)
		}
		return g.Ended.Sub(g.Began)
	}
	slices.SortStableFunc(all, func(a, b Grant) int { return cmp.Compare(lasted(&b), lasted(&a)) })
	return all[:min(n, len(all))], err
}

// Use is how often a lock was granted.
type Use struct {
	Lock         string
	Grants, Lost int
}

// Busiest returns the n locks that were granted most often in a span.
func (r *Reader) Busiest(in Span, n int) ([]Use, error) {
	return collect(r.db, func(row *sql.Rows, u *Use) error { return row.Scan(&u.Lock, &u.Grants, &u.Lost) },
		`SELECT l.name, most.times, sum(g.ended IS 'lost majority') FROM
		(SELECT lock, count(*) AS times FROM grants INDEXED BY grants_of_lock WHERE lock IN (SELECT id FROM locks WHERE cluster = ?1) AND began_ms >= ?2 AND began_ms < ?3
			GROUP BY lock ORDER BY count(*) DESC, lock LIMIT ?4) AS most
		JOIN locks l ON l.id = most.lock JOIN grants g ON g.lock = most.lock AND g.began_ms >= ?2 AND g.began_ms < ?3
		GROUP BY most.lock ORDER BY most.times DESC, l.name`, r.cluster, millis(in.Since), millis(in.Until), n)
}

// slack is how long after a second its data may be written: the recorder writes once a
// second.
const slack = 3 * time.Second
