// Package record is the flight recorder: what a monitor saw, in an SQLite file that
// outlives the process and that sqlite3 and every other tool of that kind can read.
//
// A [Recorder] follows one monitor and writes once a second, in one transaction: events,
// states of nodes and of the cluster, findings, and each lock's grants with how they began,
// were extended and ended. What it could not write (a full disk) it says and goes without;
// nothing waits for it. A killed process loses what it saw in its last second. A token is
// kept as the beginning of its SHA-256 alone.
//
// A [Reader] answers what happened: the grants of a lock, the events of a time, and what
// held at a moment.
package record
