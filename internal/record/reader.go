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

// Reader reads a record, also one that is being written, or a copy from another host.
type Reader struct {
	db      *sql.DB
	cluster int64
	// Cluster is what the record is about.
	Cluster Cluster
}

// Cluster is a cluster as it was when it was recorded last.
type Cluster struct {
	Name      string
	N, Quorum int
	MaxTTL    time.Duration
	// First and Last are the first moment of which something is known, and the last.
	First, Last time.Time
}

// OpenReader opens a record; name is that of the cluster, "" for the only one. It fails
// with [ErrNoRecord], [ErrOther] or [ErrNewer].
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
		return nil, fmt.Errorf("%s: %w: it is no file", path, ErrOther)
	}
	var version int
	var db *sql.DB
	// A file that is written by somebody else, and then one in a place that may not be
	// written, whose log is empty.
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

// Refresh looks how far the record goes by now.
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

// Grant is one holder's time with a lock.
type Grant struct {
	Lock string
	// Token is the beginning of the token's SHA-256 in hex, as in the audit log.
	Token          string
	Owner, Library string // what the token tells; "": nothing
	Began          time.Time
	Partly         bool      // it was there before the recording began
	Until          time.Time // as last seen; zero: no TTL
	Extended       time.Time // the last extension; zero: none
	Extensions     int
	Ended          time.Time // zero: it goes on, as far as is known
	How            string    // it ended: "released", "expired", …
	// Copies has a letter for each node, when it was first looked at: A where its copy was;
	// "": it never was looked at.
	Copies string
	// Overlaps says that it began before the grant of another token of the same lock had
	// ended, or before that would have expired which was force-released.
	Overlaps bool
}

const grantColumns = `SELECT l.name, g.token, coalesce(o.owner, ''), coalesce(o.library, ''), g.began_ms, g.partly, g.until_ms, g.extended_ms, g.extensions, g.ended_ms, coalesce(g.ended, ''), coalesce(g.copies, '')
	FROM grants g `

// ofLocks joins to grants what they refer to; a CROSS before it has the grants found first.
const ofLocks = `JOIN locks l ON l.id = g.lock LEFT JOIN owners o ON o.id = g.owner `

func (r *Reader) grants(query string, args ...any) ([]Grant, error) {
	return collect(r.db, func(row *sql.Rows, g *Grant) error {
		var token []byte
		err := row.Scan(&g.Lock, &token, &g.Owner, &g.Library, (*ms)(&g.Began), &g.Partly, (*ms)(&g.Until), (*ms)(&g.Extended), &g.Extensions, (*ms)(&g.Ended), &g.How, &g.Copies)
		g.Token = hex.EncodeToString(token)
		return err
	}, grantColumns+query, args...)
}

// Span is a time from Since (inclusive) to Until (exclusive).
type Span struct{ Since, Until time.Time }

// GrantsOf are the last n grants of a lock that were there in a span, oldest first.
func (r *Reader) GrantsOf(lock string, in Span, n int) ([]Grant, error) {
	all, err := r.grants(ofLocks+`WHERE l.cluster = ? AND l.name = ? AND g.began_ms < ? AND (g.ended_ms IS NULL OR g.ended_ms >= ?) ORDER BY g.began_ms DESC, g.id DESC LIMIT ?`,
		r.cluster, lock, millis(in.Until), millis(in.Since), n)
	slices.Reverse(all)
	var last *Grant // of those so far, the one that lasted longest
	for i := range all {
		g := &all[i]
		g.Overlaps = last != nil && last.Token != g.Token && last.lastsBeyond(g.Began)
		if last == nil || g.Ended.IsZero() || !last.lastsBeyond(g.Ended) {
			last = g
		}
	}
	return all, err
}

// lastsBeyond reports whether its holder relied on a grant at a moment after it began, or may have:
// nobody tells it of a force-release.
func (g *Grant) lastsBeyond(t time.Time) bool {
	return g.Ended.IsZero() || g.How != notSeen && g.Ended.After(t) || g.How == lostMajority && g.Until.IsZero() ||
		g.How == forceReleased && g.Until.After(t)
}

const byLength = `INDEXED BY grants_by_length CROSS ` + ofLocks + `WHERE `

// HeldAt are the grants that were there at a moment, by the names of their locks, the oldest first.
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

// Event is something that happened, but for a grant's life.
type Event struct {
	At          time.Time
	Level, Kind string
	Part        bool   // another event tells it too
	Node, Lock  string // "": of none
	Text        string
}

// Events are the last n events of a span, oldest first; of a node or a lock alone if it is
// not "".
func (r *Reader) Events(node, lock string, in Span, n int) ([]Event, error) {
	return collect(r.db, func(row *sql.Rows, e *Event) error {
		err := row.Scan((*ms)(&e.At), &e.Level, &e.Kind, &e.Node, &e.Lock, &e.Text)
		e.Part = e.Level == partLevel
		return err
	}, `SELECT at_ms, level, kind, node, name, text FROM (SELECT e.id, e.at_ms, e.level, e.kind, coalesce(e.node, '') AS node, coalesce(l.name, '') AS name, e.text FROM events e LEFT JOIN locks l ON l.id = e.lock
		WHERE e.cluster = ?1 AND e.at_ms >= ?2 AND e.at_ms < ?3 AND (?4 = '' OR e.node = ?4) AND (?5 = '' OR l.name = ?5) ORDER BY e.at_ms DESC, e.id DESC LIMIT ?6)
		ORDER BY at_ms, id`, r.cluster, millis(in.Since), millis(in.Until), node, lock, n)
}

// State is what a node was from a moment on; of the cluster, its verdict, where Node is "".
type State struct {
	Node, State, Text string
	At                time.Time
	// Guards are the announcements of guards there, a line each; of the cluster, what is
	// missing for protection against restarts.
	Guards  string
	Rejoins time.Time // when a guard lets it rejoin, as it said then; zero: not known
}

// StatesAt is the cluster's verdict and the state of each node at a moment.
func (r *Reader) StatesAt(t time.Time) ([]State, error) {
	return r.states(`WHERE cluster = ?1 AND at_ms = (SELECT max(at_ms) FROM states AS s WHERE s.cluster = ?1 AND s.node = states.node AND s.at_ms <= ?2) ORDER BY node`, r.cluster, millis(t))
}

// States are the changes of state in a span, oldest first.
func (r *Reader) States(in Span) ([]State, error) {
	return r.states(`WHERE cluster = ? AND at_ms >= ? AND at_ms < ? ORDER BY at_ms, node`, r.cluster, millis(in.Since), millis(in.Until))
}

// Nodes are the names of the nodes in the order of the configuration.
func (r *Reader) Nodes() (names []string, err error) {
	return collect(r.db, func(row *sql.Rows, name *string) error { return row.Scan(name) },
		`SELECT node FROM nodes WHERE cluster = ? ORDER BY position`, r.cluster)
}

// Gaps are the times of a span in which nothing was recorded, oldest first.
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

// SawLocks reports whether somebody recorded the locks at some moment of a span.
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
	Lock                                string    // of locks: the first that it concerned
	Locks                               int       // and how many
	Opened, Cleared                     time.Time // zero: not cleared
}

// Findings are those that held at some moment of a span, oldest first.
func (r *Reader) Findings(in Span) ([]Finding, error) {
	return collect(r.db, func(row *sql.Rows, f *Finding) error {
		return row.Scan(&f.ID, &f.Node, &f.Severity, &f.Title, &f.Evidence, &f.Consequence, &f.Remedy, &f.Lock, &f.Locks, (*ms)(&f.Opened), (*ms)(&f.Cleared))
	}, `SELECT finding, node, severity, title, evidence, consequence, remedy, coalesce(lock, ''), locks, opened_ms, cleared_ms FROM findings
		WHERE cluster = ? AND opened_ms < ? AND (cleared_ms IS NULL OR cleared_ms >= ?) ORDER BY opened_ms, id`, r.cluster, millis(in.Until), millis(in.Since))
}

// Minute is what became of the locks of a pattern in a minute, or in several.
type Minute struct {
	Pattern                string
	Grants, Lost, Orphaned int
	HeldP50, HeldP99       time.Duration
	WaitP50                time.Duration // from the end of one grant to the next of the same lock
}

// Patterns are the sums of a span by pattern, the most grants first; the quantiles are the
// greatest of its minutes.
func (r *Reader) Patterns(in Span, n int) ([]Minute, error) {
	return collect(r.db, func(row *sql.Rows, m *Minute) error {
		return row.Scan(&m.Pattern, &m.Grants, &m.Lost, &m.Orphaned, (*msLong)(&m.HeldP50), (*msLong)(&m.HeldP99), (*msLong)(&m.WaitP50))
	}, `SELECT pattern, sum(grants), sum(lost), sum(orphaned), max(held_p50_ms), max(held_p99_ms), max(wait_p50_ms) FROM minutes
		WHERE cluster = ? AND minute_ms >= ? AND minute_ms < ? GROUP BY pattern ORDER BY sum(grants) DESC LIMIT ?`,
		r.cluster, in.Since.Truncate(time.Minute).UnixMilli(), millis(in.Until), n)
}

// Longest are the n grants of a span that lasted the longest, those that were there when it
// began too.
func (r *Reader) Longest(in Span, n int) ([]Grant, error) {
	all, err := r.HeldAt(in.Since.Add(-1))
	for class := len(lengths) + 1; class >= 0 && err == nil; class-- {
		var some []Grant
		some, err = r.grants(byLength+inClass(class)+` AND l.cluster = ?3 ORDER BY coalesce(g.ended_ms, ?2) - g.began_ms DESC LIMIT ?4`,
			millis(in.Since), millis(in.Until), r.cluster, n)
		if all = append(all, some...); class <= len(lengths) && len(some) == n {
			break // what follows is shorter
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

// Busiest are the n locks that were granted most often in a span.
func (r *Reader) Busiest(in Span, n int) ([]Use, error) {
	return collect(r.db, func(row *sql.Rows, u *Use) error { return row.Scan(&u.Lock, &u.Grants, &u.Lost) },
		`SELECT l.name, most.times, sum(g.ended IS 'lost majority') FROM
		(SELECT lock, count(*) AS times FROM grants INDEXED BY grants_of_lock WHERE lock IN (SELECT id FROM locks WHERE cluster = ?1) AND began_ms >= ?2 AND began_ms < ?3
			GROUP BY lock ORDER BY count(*) DESC, lock LIMIT ?4) AS most
		JOIN locks l ON l.id = most.lock JOIN grants g ON g.lock = most.lock AND g.began_ms >= ?2 AND g.began_ms < ?3
		GROUP BY most.lock ORDER BY most.times DESC, l.name`, r.cluster, millis(in.Since), millis(in.Until), n)
}

// slack is how much later than it is seen a moment is still known: it is written once a
// second.
const slack = 3 * time.Second
