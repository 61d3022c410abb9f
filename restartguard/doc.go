// Package restartguard keeps a master that may have forgotten votes out of the
// quorum until nobody can believe in those votes any more: for D ([Delay]), counted
// from the guard's first sight of the new run_id, which is provably after the loss.
//
// [Step] is the whole decision, pure; [Guard] is a thin shell around it. Why the rule is
// right, what counts as a loss, how commands are kept from coming late, early rejoin and
// the known gaps: docs/guard-proof.md. What follows is what the code must keep.
//
// # The moment
//
// The votes that a node gave between its start and its fence belong to its new
// incarnation, which remembers them as any serving master does; only what the former
// one knew is lost. So D counts from the first sight, not from the moment at which
// the fence was confirmed. What a late fence cannot undo is a second vote that was given
// before it: how long that was possible, at most, is shown. For that reason a node should
// start fenced. A node that could not be fenced for the whole of D is let go: by then
// there is nothing left to protect.
//
// Deadlines are on the monotonic clock of this process, so a guard that is suspended
// waits longer, never shorter. What it must not forget is in a file ([Memory]), written
// before anything is done because of it; moments in it are on the clock of the machine's
// boot ([BootTime]), and without that boot a node that waits waits for D from now.
//
// # First contact, other guards, people
//
// A node that a guard does not know and finds fenced waits D from then. A serving
// one is adopted, not verified, or fenced if [Fence] is asked for.
//
// Several guards may watch the same nodes, each by its own clock. A node that
// was seen fenced and then serves in the same incarnation was let in by a guard whose
// own safe moment had come, or by a person, and goes on serving. A node that turns
// fenced without our doing waits D from then, since whoever fenced it may know
// of a loss that we did not see.
//
// Guards announce their D (package announce), and each waits for the greatest that it
// has heard: [MayVoteFrom]. What was heard on one node counts for all, since a node that has
// just restarted knows of nobody yet; until that guard is seen with a smaller D, or an operator
// has it forgotten, also over restarts ([Peers], [Memory]); and once heard in a fence, to
// the end of that fence.
//
// A guard never lifts an operator's cordon. A restart makes the server forget it, so a
// guard that saw it puts it up again in the new incarnation. Redis has no compare-and-set
// for parameters: a command reads the value in the same pipeline in which it writes, and
// puts back a cordon that came in between. Any other value of min-replicas-to-write is
// the operator's own and no fence; a guard that has to fence over it remembers it, and
// sets it again when the node rejoins; if the guard ends in between, it sets 0.
//
// # Commands
//
// A command travels on the very connection that read the run_id ([redlock.Node.OneConnection]).
// What has no answer may still arrive ([InFlightCommand]): the next connection to that
// incarnation ends the one on which it was sent, before anything else is sent.
// Of two guards that end each other's connections after a loss one at least has its
// answer, so it ends.
//
// # Methods
//
// [Step] knows a fence by the numbers of min-replicas-to-write alone. The method
// [MethodACL] translates: a user that may not write reads as [FenceUp], one that
// carries the mark of a cordon as well as [FenceCordon]. [MethodNone] decides like the
// others, and drops what would be sent.
//
// After a fence is up, the parameters are read back and a canary write is tried. Only
// NOREPLICAS proves the fence. Another refusal (OOM, READONLY, NOPERM, …) says that
// nothing was written now, not that nothing will be: the node counts as fenced
// since its parameters read so, is not proven, and the canary is tried again. A
// canary that gets through leaves a key that is gone after 1 ms. By [MethodACL] the canary
// is ACL DRYRUN, which writes nothing: the server's word on what the user could do.
package restartguard
