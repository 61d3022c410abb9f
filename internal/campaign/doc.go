// Package campaign tries to make two clients hold one lock, on real
// redis-servers.
//
// Eager clients take a few short locks through package redlock, each over
// connections of its own. Masters that have just voted are killed with SIGKILL,
// one to three of them at a time, and come back at once and empty. A witness in
// the same process takes note of who believes what from when until when, on one
// monotonic clock; two beliefs of one lock that overlap are a violation.
//
// With a guard, the servers come up closed, and a watcher asks each new life of a
// server again and again until it is open: for SETs that were accepted while it
// was closed, of which there must be none, and for the moment at which it opened,
// which must not be sooner than D after its start. The guard runs inside this
// process, or in a process of its own that is killed and started again all the
// time, with the memory that it left behind or without.
//
// Without a guard the servers come up open, and the same campaign fails within
// seconds: that shows that it can.
package campaign
