// Package record is the flight recorder: it stores what a monitor saw in an SQLite file
// that outlives the process and that sqlite3 and similar tools can read.
//
// A [Recorder] follows one monitor and writes once a second, in one transaction: events,
// states of nodes and of the cluster, findings, and each lock's grants with how they
// began, were extended and ended. It reports what it could not write (a full disk) and
// continues without it; nothing waits for it. A killed process loses its last second. Of
// a token, only the start of its SHA-256 is stored.
//
// A [Reader] answers what happened: the grants of a lock, the events of a period, and the
// state at a time.
package record
