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
	"sync"
	"time"

	"redlockctl/monitor"
)

// Reader reads a record, even one that is being written, or a copy from another host.
type Reader struct {
	db      *sql.DB // with one connection
	once    sync.Mutex
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
	db.SetMaxOpenConns(1)
	r := &Reader{db: db}
	err = r.choose(name)
	if err != nil {
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
	Partly         bool      // it existed before the recording started, or may have begun while the recorder was stopped
	Until          time.Time // as last seen; zero: no TTL
	Extended       time.Time // last extension; zero: none
	Extensions     int
	// EndUnknown: it may have been extended beyond Until, at a time that was not recorded.
	EndUnknown bool
	Ended      time.Time // zero: not ended, as far as is known
	// How it ended: "released", "expired", …; with no Ended, "lost majority": its holder still
	// relies on it, and another one got in.
	How string
	// Copies has a letter for each node at the first read: A for a copy; "": it was never
	// read.
	Copies string
	// Overlaps: it began while the holder of an earlier grant of the lock relied on it, see
	// [Reader.Overlaps].
	Overlaps bool
	id       int64
}

// grantColumns are those of grants as known at ?1: a grant that was extended has a row for
// each end, k is the one that was known then, n the next one.
const grantColumns = `SELECT g.id, l.name, g.token, coalesce(o.owner, ''), coalesce(o.library, ''), g.began_ms, g.partly, g.ended_ms, coalesce(g.ended, ''), coalesce(g.ends, ''), coalesce(g.copies, ''),
	g.until_ms, g.extended_ms, g.extensions, ` + extendedAt + `, k.until_ms, k.extensions, n.extensions, g.ended_ms > ?1 AND ` + fellBefore + ` FROM grants g `

// extendedAt is when the number of extensions that k has was reached: later rows with the same number tell of
// ends that moved without an extension that can have succeeded.
const extendedAt = `(SELECT min(at_ms) FROM ends WHERE grant_id = g.id AND at_ms <= k.at_ms AND at_ms >
	coalesce((SELECT at_ms FROM ends WHERE grant_id = g.id AND at_ms < k.at_ms AND extensions < k.extensions ORDER BY at_ms DESC LIMIT 1), -1))`

// fellBefore: the majority of a grant was lost, as the next one tells, at ?1 already.
const fellBefore = `g.ended = '` + lostMajority + `' AND EXISTS (SELECT 1 FROM grants x WHERE x.lock = g.lock AND x.began_ms BETWEEN g.began_ms AND ?1 AND (x.began_ms > g.began_ms OR x.id > g.id))`

// ofLocks joins grants with the rows that they refer to; a CROSS before it makes SQLite
// find the grants first.
const ofLocks = `JOIN locks l ON l.id = g.lock LEFT JOIN owners o ON o.id = g.owner
	LEFT JOIN ends k ON k.grant_id = g.id AND k.at_ms = (SELECT max(at_ms) FROM ends WHERE grant_id = g.id AND at_ms <= ?1)
	LEFT JOIN ends n ON n.grant_id = g.id AND n.at_ms = (SELECT min(at_ms) FROM ends WHERE grant_id = g.id AND at_ms > ?1) `

// grants returns grants as known at a time, which is ?1 of the query.
func (r *Reader) grants(query string, at time.Time, args ...any) ([]Grant, error) {
	return collect(r.db, func(row *sql.Rows, g *Grant) error {
		var token []byte
		var extended, until time.Time
		var then, next sql.NullInt64
		var fell sql.NullBool
		var ends string
		err := row.Scan(&g.id, &g.Lock, &token, &g.Owner, &g.Library, (*ms)(&g.Began), &g.Partly, (*ms)(&g.Ended), &g.How, &ends, &g.Copies,
			(*ms)(&g.Until), (*ms)(&g.Extended), &g.Extensions, (*ms)(&extended), (*ms)(&until), &then, &next, &fell)
		g.Token = hex.EncodeToString(token)
		if then.Valid {
			// An extension whose time was not recorded may have been known then.
			later := int64(g.Extensions)
			if next.Valid {
				later = next.Int64 - 1
			}
			g.EndUnknown = later > then.Int64 && (next.Valid || g.Ended.IsZero() || g.Ended.After(at))
			g.Until, g.Extensions, g.Extended = until, int(then.Int64), time.Time{}
			if g.Extensions > 0 {
				g.Extended = extended
			}
		}
		if g.Ended.After(at) {
			g.Ended, g.How = time.Time{}, ""
			if fell.Bool {
				g.How = lostMajority
			}
		}
		if !g.Until.IsZero() && g.Ended.Sub(g.Until) > extendedBy && g.How == "expired" {
			g.Ended = g.Until // which was known later
		}
		switch over := !g.Until.IsZero() && g.Ended.IsZero(); {
		case over && ends != "" && !g.Until.After(at): // what will be written
			g.Ended, g.How = g.Until, ends
		case over && !g.Until.Add(overdue).After(at): // it was out of sight then
			g.Ended, g.How = g.Until, notSeen
		}
		return err
	}, grantColumns+query, append([]any{millis(at)}, args...)...)
}

// overdue is how long after its end a grant is told to have ended, at most.
const overdue = 2 * time.Second

// GrantsOf returns the last n grants of a lock in a span, oldest first, as known at its
// end, and those that were revoked or force-released before and on which somebody may rely in it.
func (r *Reader) GrantsOf(lock string, in Span, n int) ([]Grant, error) {
	at, err := r.lastLocks(in.Until.Add(-time.Millisecond))
	if err != nil {
		return nil, err
	}
	all, err := r.grants(ofLocks+`WHERE l.cluster = ?2 AND l.name = ?3 AND g.began_ms <= ?1 AND (g.ended_ms IS NULL OR g.ended_ms >= ?4 OR g.ended IN ('revoked', 'force-released') AND g.until_ms >= ?4) ORDER BY g.began_ms DESC, g.id DESC LIMIT ?5`,
		at, r.cluster, lock, millis(in.Since), n)
	slices.Reverse(all)
	if err != nil {
		return nil, err
	}
	overlaps, err := collect(r.db, func(row *sql.Rows, id *int64) error { return row.Scan(id) },
		`SELECT DISTINCT g.id `+overlapping+` AND e.lock = (SELECT id FROM locks WHERE cluster = ? AND name = ?) ORDER BY g.id`, r.cluster, lock)
	for i := range all {
		_, all[i].Overlaps = slices.BinarySearch(overlaps, all[i].id)
	}
	return all, err
}

const byLength = `INDEXED BY grants_by_length CROSS ` + ofLocks + `WHERE `

// HeldAt returns the grants at a time, by the names of their locks, the oldest first.
func (r *Reader) HeldAt(t time.Time) (all []Grant, err error) {
	err = r.atOnce(func() error { all, err = r.heldAt(t, t); return err })
	return all, err
}

// atOnce asks several questions of the same state of a file that is being written: a grant
// that ends in between would be missing.
func (r *Reader) atOnce(ask func() error) error {
	r.once.Lock()
	defer r.once.Unlock()
	if _, err := r.db.Exec(`BEGIN`); err != nil {
		return err
	}
	err := ask()
	_, ended := r.db.Exec(`COMMIT`)
	return errors.Join(err, ended)
}

// heldAt returns the grants at a time, as known at another.
func (r *Reader) heldAt(t, known time.Time) (all []Grant, err error) {
	for _, condition := range classes(`?2`) {
		some, err := r.grants(byLength+condition+` AND l.cluster = ?3`, known, millis(t), r.cluster)
		if err != nil {
			return nil, err
		}
		all = append(all, slices.DeleteFunc(some, func(g Grant) bool { return !g.Ended.IsZero() && !g.Ended.After(t) })...)
	}
	slices.SortStableFunc(all, func(a, b Grant) int { return cmp.Or(strings.Compare(a.Lock, b.Lock), a.Began.Compare(b.Began)) })
	return all, nil
}

// Event is a recorded event, except the events of one grant. One that was told late is in the spans
// since it is known, with the time at which it was.
type Event struct {
	At          time.Time
	Level, Kind string
	Part        bool   // another event reports it too
	Node, Lock  string // "": none
	Text        string
	Count       int       // how many events of locks this one stands for; 0: it is one
	Last        time.Time // of those, the time of the last one
}

// Events returns the last n events of a span, oldest first; only of one node or lock if
// given.
func (r *Reader) Events(node, lock string, in Span, n int) ([]Event, error) {
	return collect(r.db, func(row *sql.Rows, e *Event) error {
		err := row.Scan((*ms)(&e.At), &e.Level, &e.Kind, &e.Node, &e.Lock, &e.Text)
		e.Part = e.Level == partLevel
		return err
	}, `SELECT at_ms, level, kind, node, name, text FROM (SELECT e.id, coalesce(e.own_ms, e.at_ms) AS at_ms, e.level, e.kind, coalesce(e.node, '') AS node, coalesce(l.name, '') AS name, e.text FROM events e LEFT JOIN locks l ON l.id = e.lock
		WHERE e.cluster = ?1 AND e.at_ms >= ?2 AND e.at_ms < ?3 AND (?4 = '' OR e.node = ?4) AND (?5 = '' OR l.name = ?5) ORDER BY e.at_ms DESC, e.id DESC LIMIT ?6)
		ORDER BY at_ms, id`, r.cluster, millis(in.Since), millis(in.Until), node, lock, n)
}

// Restarts returns the restarts of nodes in a span, oldest first.
func (r *Reader) Restarts(in Span) ([]Event, error) {
	return collect(r.db, func(row *sql.Rows, e *Event) error { return row.Scan((*ms)(&e.At), &e.Node) },
		`SELECT at_ms, node FROM events WHERE cluster = ? AND at_ms >= ? AND at_ms < ? AND kind = 'restart' AND node IS NOT NULL ORDER BY at_ms, id`, r.cluster, millis(in.Since), millis(in.Until))
}

// State is the state of a node from a time on; with an empty Node, the cluster's verdict.
type State struct {
	Node, State, Text string
	At                time.Time
	// Guards are the announcements of guards there, one per line; of the cluster, what is
	// missing for protection against restarts.
	Guards  string
	Rejoins time.Time // when a guard lets it rejoin, as it announced then; zero: unknown
	// NotBefore: while it is fenced, no guard lets it rejoin earlier; zero: unknown.
	NotBefore  time.Time
	protection int64 // see [protectionOf]
}

// StatesAt returns the cluster's verdict and the state of each node at a time.
func (r *Reader) StatesAt(t time.Time) ([]State, error) {
	return r.states(`WHERE cluster = ?1 AND at_ms = (SELECT max(at_ms) FROM states AS s WHERE s.cluster = ?1 AND s.node = states.node AND s.at_ms <= ?2) ORDER BY node`, r.cluster, millis(t))
}

// stateSince returns since when a node has its state: it may have a newer row because something else
// about it changed. As in the live view, a cordon lasts beyond a restart, after which the server is
// down or fenced until a guard cordons it again.
func (r *Reader) stateSince(s State) (since time.Time, err error) {
	other := `state != ?4`
	if s.State == monitor.NodeCordoned.String() {
		other = fmt.Sprintf(`(state = '%s' OR state = '%s' AND NOT EXISTS (SELECT 1 FROM events WHERE cluster = ?1 AND kind = 'restart' AND events.node = ?2
			AND events.at_ms BETWEEN states.at_ms - %d AND states.at_ms + %[3]d))`, monitor.NodeServing, monitor.NodeFenced, stateDelay.Milliseconds())
	}
	err = r.db.QueryRow(`SELECT min(at_ms) FROM states WHERE cluster = ?1 AND node = ?2 AND state = ?4 AND at_ms <= ?3 AND at_ms >
		coalesce((SELECT max(at_ms) FROM states WHERE cluster = ?1 AND node = ?2 AND at_ms < ?3 AND `+other+`), -1)`,
		r.cluster, s.Node, millis(s.At), s.State).Scan((*ms)(&since))
	return since, err
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

func (r *Reader) states(query string, args ...any) ([]State, error) {
	return collect(r.db, func(row *sql.Rows, s *State) error {
		return row.Scan(&s.Node, (*ms)(&s.At), &s.State, &s.Text, &s.Guards, (*ms)(&s.Rejoins), (*ms)(&s.NotBefore), &s.protection)
	}, `SELECT node, at_ms, state, text, guards, rejoins_ms, not_before_ms, protection FROM states `+query, args...)
}

// Finding is an assumption that did not hold.
type Finding struct {
	ID, Node, Severity, Title, Evidence string
	Consequence, Remedy                 string
	Lock                                string    // of locks: the first one affected
	Locks                               int       // of locks: the number affected
	Opened, Cleared                     time.Time // zero: not cleared
	Since                               time.Time // since when it was so; zero: in a file of an older program
	// Seen is when it was last found, if a recorder ended then and no later one has found it: it was
	// cleared at an unknown time after that.
	Seen time.Time
}

// Findings returns the findings that held at any time in a span, oldest first.
func (r *Reader) Findings(in Span) ([]Finding, error) {
	return collect(r.db, func(row *sql.Rows, f *Finding) error {
		return row.Scan(&f.ID, &f.Node, &f.Severity, &f.Title, &f.Evidence, &f.Consequence, &f.Remedy, &f.Lock, &f.Locks, (*ms)(&f.Opened), (*ms)(&f.Cleared), (*ms)(&f.Since), (*ms)(&f.Seen))
	}, `SELECT finding, node, severity, title, evidence, consequence, remedy, coalesce(lock, ''), locks, opened_ms, cleared_ms, since_ms, seen_ms FROM findings
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
func (r *Reader) Longest(in Span, n int) (all []Grant, err error) {
	err = r.atOnce(func() error { all, err = r.longest(in, n); return err })
	return all, err
}

func (r *Reader) longest(in Span, n int) ([]Grant, error) {
	at, err := r.lastLocks(in.Until.Add(-time.Millisecond))
	if err != nil {
		return nil, err
	}
	all, err := r.heldAt(in.Since.Add(-1), at)
	for class := len(lengths) + 1; class >= 0 && err == nil; class-- {
		var some []Grant
		some, err = r.grants(byLength+inClass(class)+` AND l.cluster = ?3 ORDER BY min(coalesce(g.ended_ms, ?1), ?1) - g.began_ms DESC LIMIT ?4`,
			at, millis(in.Since), r.cluster, n)
		if all = append(all, some...); class <= len(lengths) && len(some) == n {
			break // the others are shorter
		}
	}
	lasted := func(g *Grant) time.Duration {
		if g.Ended.IsZero() {
			return at.Sub(g.Began)
		}
		return g.Ended.Sub(g.Began)
	}
	slices.SortStableFunc(all, func(a, b Grant) int { return cmp.Compare(lasted(&b), lasted(&a)) })
	return all[:min(n, len(all))], err
}

// Use is how often a lock was granted, how many of these grants lost their majority, and of how many the end was not
// seen.
type Use struct {
	Lock                  string
	Grants, Lost, NotSeen int
}

// Busiest returns the n locks that were granted most often in a span.
func (r *Reader) Busiest(in Span, n int) ([]Use, error) {
	return collect(r.db, func(row *sql.Rows, u *Use) error { return row.Scan(&u.Lock, &u.Grants, &u.Lost, &u.NotSeen) },
		`SELECT l.name, most.times, sum(g.ended IS 'lost majority' OR g.ends IS 'lost majority'), sum(g.ended IS 'not seen') FROM
		(SELECT lock, count(*) AS times FROM grants INDEXED BY grants_of_lock WHERE lock IN (SELECT id FROM locks WHERE cluster = ?1) AND began_ms >= ?2 AND began_ms < ?3
			GROUP BY lock ORDER BY count(*) DESC, lock LIMIT ?4) AS most
		JOIN locks l ON l.id = most.lock JOIN grants g ON g.lock = most.lock AND g.began_ms >= ?2 AND g.began_ms < ?3
		GROUP BY most.lock ORDER BY most.times DESC, l.name`, r.cluster, millis(in.Since), millis(in.Until), n)
}
