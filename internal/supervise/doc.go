// Package supervise is the third way to fence a master that may have forgotten
// votes, for servers on which nobody has any right: the process is not started
// again before the votes of its last incarnation have run out.
//
// # The rule
//
// A vote that was lost was cast before the process ended. No client believes in
// it for longer than D after that (see package restartguard for D and the
// argument). So a server is started no sooner than D after a moment that is
// provably not before the end of its last process:
//
//   - the moment at which the supervisor, its parent, has waited for it, and has
//     seen that nothing which it started is left;
//   - now, where that moment is not known: no record, a damaged one, one of
//     another boot of the host, or one that says the server was started and not
//     how it ended, since the supervisor ended before it.
//
// Never from a pid file, a failed ping or a wall clock. Another boot is no
// earlier moment than now: the same files may have been moved from a host that
// ran until a moment ago.
//
// D is the longer of the one in force now and the one that was in force while
// the server ran: a shorter max TTL says nothing about locks from before.
//
// # The clock
//
// Moments are kept on CLOCK_BOOTTIME together with the boot that they belong
// to. It does not follow the wall clock, and counts the time for which the host
// was suspended, in which the clocks of all others went on.
//
// # What lives
//
// Two supervisors of one node exclude each other by a lock on a file. The server
// inherits a second such lock, which the kernel keeps for as long as the server
// or anything that it started lives: a server that outlived its supervisor, or
// put itself into the background, is seen by that, whatever its pid. On Linux
// the kernel also ends the server when its supervisor ends.
//
// What runs must be the server itself: a client program that has a server run
// elsewhere (docker run, ssh) says nothing about that server's end.
//
// [Begin] and [Step] are the whole decision, pure; [Run] is a thin shell around
// them.
package supervise
