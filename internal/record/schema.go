package record

// Version of the schema. A file of a newer version is refused; one of an older is brought up.
const Version = 1

// schema is what stands in the file; docs/record.md explains it to those who query it. Times
// are milliseconds since 1970 in UTC, by the clock of the recording host.
const schema = `
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE clusters (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, n INTEGER NOT NULL, quorum INTEGER NOT NULL, max_ttl_ms INTEGER NOT NULL);
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
  ended_ms INTEGER,                -- NULL: not seen to end
  ended TEXT                       -- released, expired, revoked, force-released, lost majority, not seen
);
CREATE INDEX grants_of_lock ON grants (lock, began_ms);
CREATE INDEX grants_by_time ON grants (began_ms);
CREATE INDEX grants_long ON grants (began_ms) WHERE ended_ms IS NULL OR ended_ms - began_ms > 10000;
CREATE TABLE events (
  id INTEGER PRIMARY KEY, cluster INTEGER NOT NULL REFERENCES clusters,
  at_ms INTEGER NOT NULL, level TEXT NOT NULL, kind TEXT NOT NULL,
  node TEXT, lock INTEGER REFERENCES locks, text TEXT NOT NULL
);
CREATE INDEX events_by_time ON events (cluster, at_ms);
CREATE INDEX events_of_lock ON events (lock, at_ms) WHERE lock IS NOT NULL;
CREATE TABLE states (            -- of a node, or of the cluster where node is ''
  cluster INTEGER NOT NULL REFERENCES clusters, node TEXT NOT NULL, at_ms INTEGER NOT NULL,
  state TEXT NOT NULL, text TEXT NOT NULL, PRIMARY KEY (cluster, node, at_ms)
) WITHOUT ROWID;
CREATE TABLE findings (
  id INTEGER PRIMARY KEY, cluster INTEGER NOT NULL REFERENCES clusters,
  finding TEXT NOT NULL, node TEXT NOT NULL, severity TEXT NOT NULL, title TEXT NOT NULL, evidence TEXT NOT NULL,
  opened_ms INTEGER NOT NULL, cleared_ms INTEGER
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
