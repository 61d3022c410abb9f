package record

import (
	"fmt"
	"strings"
	"time"
)

// Version of the schema. A file of a newer version is refused.
const Version = 1

// schema has the tables; docs/record.md explains them for queries. Times are milliseconds
// since 1970 in UTC, by the clock of the recording host.
var schema = `
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE clusters (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, n INTEGER NOT NULL, quorum INTEGER NOT NULL, max_ttl_ms INTEGER NOT NULL);
CREATE TABLE nodes (             -- of the configuration; position: the order, from 0
  cluster INTEGER NOT NULL REFERENCES clusters, position INTEGER NOT NULL, node TEXT NOT NULL, addr TEXT NOT NULL, PRIMARY KEY (cluster, position)
) WITHOUT ROWID;
CREATE TABLE runs (              -- of recorders: between two, nothing was recorded
  id INTEGER PRIMARY KEY, cluster INTEGER NOT NULL REFERENCES clusters, by TEXT NOT NULL,
  began_ms INTEGER NOT NULL, seen_ms INTEGER NOT NULL,
  locks_ms INTEGER               -- since when it saw the locks; NULL: it did not
);
CREATE TABLE locks (id INTEGER PRIMARY KEY, cluster INTEGER NOT NULL REFERENCES clusters, name TEXT NOT NULL, UNIQUE (cluster, name));
CREATE TABLE owners (id INTEGER PRIMARY KEY, owner TEXT NOT NULL, library TEXT NOT NULL, UNIQUE (owner, library));
CREATE TABLE grants (
  id INTEGER PRIMARY KEY,
  lock INTEGER NOT NULL REFERENCES locks,
  token BLOB NOT NULL,             -- the first 8 bytes of the token's SHA-256, as in the audit log
  owner INTEGER REFERENCES owners, -- what the token tells of its owner; NULL: nothing
  began_ms INTEGER NOT NULL,
  partly INTEGER NOT NULL,         -- 1: it was there before the recording began
  until_ms INTEGER,                -- the majority end as last seen; NULL: no TTL
  extended_ms INTEGER,             -- the last extension that was seen
  extensions INTEGER NOT NULL,
  before INTEGER NOT NULL,         -- how many of them were seen before its last recorder began, or before it was out of sight
  copies TEXT,                     -- on which nodes, when it was first looked at: see lock_states; NULL: it never was
  ended_ms INTEGER,                -- NULL: not seen to end
  ended TEXT,                      -- released, expired, revoked, force-released, lost majority, not seen
  ends TEXT                        -- how it ends at until_ms if nothing else is told: its majority is seen no more; NULL: it is
);
CREATE INDEX grants_of_lock ON grants (lock, began_ms);
CREATE INDEX grants_ending ON grants (until_ms) WHERE ` + ending + `; -- the majority is no longer seen
CREATE INDEX grants_by_length ON grants (` + lengthClass + `, began_ms, ` + grantSum + `);
` + cutShortIndex + `
CREATE TABLE ends (              -- of grants that were extended: until when each was held, as known from a time on
  grant_id INTEGER NOT NULL REFERENCES grants, at_ms INTEGER NOT NULL,
  until_ms INTEGER,              -- NULL: no TTL
  extensions INTEGER NOT NULL,   -- so far
  PRIMARY KEY (grant_id, at_ms)
) WITHOUT ROWID;
CREATE TABLE lock_states (       -- what a lock was for a time, where its grant does not say it
  id INTEGER PRIMARY KEY, lock INTEGER NOT NULL REFERENCES locks,
  state TEXT NOT NULL,
  copies TEXT NOT NULL,          -- a letter for each node: A the holder's copy, B, C … of other tokens, small without a TTL; - none, ? not known; + and a time: until then one of several clients may rely on it
  tokens BLOB NOT NULL,          -- 8 bytes for each letter, as in grants
  began_ms INTEGER NOT NULL, ended_ms INTEGER
);
CREATE INDEX lock_states_by_length ON lock_states (` + lengthClass + `, began_ms);
CREATE INDEX lock_states_of_lock ON lock_states (lock, began_ms);
CREATE TABLE events (
  id INTEGER PRIMARY KEY, cluster INTEGER NOT NULL REFERENCES clusters,
  at_ms INTEGER NOT NULL, level TEXT NOT NULL, kind TEXT NOT NULL,
  node TEXT, lock INTEGER REFERENCES locks, text TEXT NOT NULL,
  own_ms INTEGER                 -- when it was, if it was told later: at_ms is since when it is known; NULL: at_ms
);
CREATE INDEX events_by_time ON events (cluster, at_ms);
CREATE INDEX events_of_lock ON events (lock, at_ms) WHERE lock IS NOT NULL;
CREATE TABLE states (            -- of a node, or of the cluster where node is ''
  cluster INTEGER NOT NULL REFERENCES clusters, node TEXT NOT NULL, at_ms INTEGER NOT NULL,
  state TEXT NOT NULL, text TEXT NOT NULL,
  guards TEXT NOT NULL,          -- the announcements of guards there; -: none; '': not known; of the cluster, what is missing for protection
  rejoins_ms INTEGER,            -- when the guard lets it rejoin, where that was known
  not_before_ms INTEGER,         -- while it is fenced, no guard lets it rejoin earlier; NULL: not known
  protection INTEGER NOT NULL,   -- what else protects it against restarts, in bits: see protectionOf
  PRIMARY KEY (cluster, node, at_ms)
) WITHOUT ROWID;
CREATE TABLE findings (
  id INTEGER PRIMARY KEY, cluster INTEGER NOT NULL REFERENCES clusters,
  finding TEXT NOT NULL, node TEXT NOT NULL, severity TEXT NOT NULL, title TEXT NOT NULL, evidence TEXT NOT NULL,
  consequence TEXT NOT NULL, remedy TEXT NOT NULL,
  lock TEXT, locks INTEGER NOT NULL,  -- of locks: the first that it concerned, and how many
  opened_ms INTEGER NOT NULL, cleared_ms INTEGER,
  since_ms INTEGER,              -- since when it was so; it is reported, and opened, when it has lasted
  seen_ms INTEGER                -- last found, by a recorder that ended; no later one found it; NULL: found until it was cleared
);
CREATE INDEX findings_by_time ON findings (cluster, opened_ms);
CREATE TABLE minutes (           -- of the grants that ended in this minute, by the pattern of their locks' names
  cluster INTEGER NOT NULL REFERENCES clusters, minute_ms INTEGER NOT NULL, pattern TEXT NOT NULL,
  grants INTEGER NOT NULL, lost INTEGER NOT NULL, orphaned INTEGER NOT NULL,
  held_p50_ms INTEGER NOT NULL, held_p99_ms INTEGER NOT NULL,
  wait_p50_ms INTEGER NOT NULL,  -- from the end of one grant to the next of the same lock
  PRIMARY KEY (cluster, minute_ms, pattern)
) WITHOUT ROWID;
`

const ending = `ends IS NOT NULL AND ended_ms IS NULL`

// grantSum is a checksum of what says until when a grant was held and how it ended: SQLite's check
// compares an index with its table, and so finds a number or a word that the disk has changed.
const grantSum = `((3 * coalesce(until_ms, -1) + 5 * coalesce(ended_ms, -1) + 7 * coalesce(extended_ms, -1) + 11 * extensions + 13 * before
	+ 17 * coalesce(instr('released expired revoked force-released lost majority not seen', ended), -1)) % 251)`

// lengths are the limits of the classes by which durations are indexed. A query for one
// time reads, of each class, only the rows that can reach that time: about as many as
// were present then, however many there are.
var lengths = []time.Duration{
	time.Second, 4 * time.Second, 16 * time.Second, 64 * time.Second, 256 * time.Second,
	17 * time.Minute, 68 * time.Minute, 273 * time.Minute, 18 * time.Hour,
}

// lengthClass is the class of a row in SQL; the last class is for rows that have not
// ended.
var lengthClass = func() string {
	var b strings.Builder
	b.WriteString("CASE WHEN ended_ms IS NULL THEN " + fmt.Sprint(len(lengths)+1))
	for i, d := range lengths {
		fmt.Fprintf(&b, " WHEN ended_ms - began_ms <= %d THEN %d", d.Milliseconds(), i)
	}
	return b.String() + fmt.Sprintf(" ELSE %d END", len(lengths))
}()

// classes returns the conditions, one per class, for rows present at a time.
func classes(at string) (conditions []string) {
	for i, d := range lengths {
		conditions = append(conditions, fmt.Sprintf("%s = %d AND began_ms BETWEEN %s - %d AND %[3]s AND ended_ms > %[3]s", lengthClass, i, at, d.Milliseconds()))
	}
	return append(conditions,
		fmt.Sprintf("%s = %d AND began_ms <= %s AND ended_ms > %[3]s", lengthClass, len(lengths), at),
		fmt.Sprintf("%s = %d AND began_ms <= %s", lengthClass, len(lengths)+1, at))
}

// inClass returns the condition for rows of one class that began from ?2 to ?1.
func inClass(class int) string {
	return fmt.Sprintf("%s = %d AND began_ms >= ?2 AND began_ms <= ?1", lengthClass, class)
}

// cutShort are the grants that ended while their holder may still have relied on the lock: no
// other grant overlaps with a later one.
const (
	cutShort      = `ended IN ('` + lostMajority + `', 'revoked', '` + forceReleased + `')`
	cutShortIndex = `CREATE INDEX IF NOT EXISTS grants_cut_short ON grants (lock, began_ms) WHERE ` + cutShort + `;`
)

// partLevel is the level of events that are part of another.
const partLevel = "part"

// How a grant ended: a kind of event, or one of these.
const (
	notSeen       = "not seen"
	forceReleased = "force-released" // its holder was not notified
)
