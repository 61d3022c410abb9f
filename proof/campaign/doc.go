// Package campaign tries to make two clients hold one lock, on real
// redis-servers.
//
// Eager clients take a few short locks through package redlock, each over
// connections of its own. Masters that have just voted are killed with SIGKILL,
// one to three of them at a time, and come back empty. A witness in the same process
// notes who believes what from when until when, on one monotonic clock; two beliefs
// of one lock that overlap are a violation.
//
// Behind a fence (min-replicas-to-write, or an ACL user) the servers start fenced and
// come back at once. A watcher asks each incarnation of a server again and again until
// it serves: for SETs that were accepted before, of which there must be none, and for
// the moment at which it serves, which must not be sooner than D after its start,
// unless guards may let it rejoin early. Guards run inside this process, or in
// processes of their own that are killed and started again all the time, with the
// memory that they left behind or without. With "redlockctl node wait
// --before-start" there is no fence: a server starts D after its end, by systemd's
// ExecStartPre or the entrypoint of a container; a wait is killed, too.
//
// Without a guard, with a D that is too short, and where early rejoin looks for the
// locks in the wrong place, the same campaign fails: that shows that it can.
package campaign
