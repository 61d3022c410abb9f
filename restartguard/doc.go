// Package restartguard keeps a master that may have forgotten votes out of the quorum until
// nobody can rely on those votes any more: for D ([Delay]), counted from when a guard first saw
// the new run_id, which is provably after the loss.
//
// [Step] is the whole decision: an observation of a node in, actions on it out. It is pure, so
// that a simulator can run it. Package watch is the guard around it: guard.go starts a watcher for
// each node; watcher.go keeps a connection and repeats observe.go, Step and apply.go. Why the rule
// is right, what counts as a loss, how late commands are handled, early rejoin and the known gaps
// are in docs/guard-proof.md. What follows is what the code must keep.
//
// # When D begins
//
// The votes that a node gave between its start and its fence belong to its new incarnation, which
// remembers them. Only the votes of the former incarnation are lost. So D counts from when the
// guard first saw the new one, not from when the fence was confirmed. A late fence cannot undo a
// second vote that was given before it; the guard reports how long that was possible, at most.
// Therefore a node should start fenced. A node that could not be fenced for the whole of D may
// serve: by then there is nothing left to protect.
//
// Deadlines are on the monotonic clock of this process, so a guard that was suspended waits
// longer, never shorter. What a guard must not forget is in a file (package memory), written
// before anything is done because of it. Times in the file are on the boot clock of the machine
// (package boottime); after another boot, a node that waits waits for D from now.
//
// # First contact, other guards, operators
//
// A node that a guard does not know and finds fenced waits for D from then. A serving one is
// adopted with its start not seen, or fenced if [Fence] is configured.
//
// Several guards may watch the same nodes, each by its own clock. If a node was seen fenced and
// then serves in the same incarnation, another guard let it rejoin at its own deadline, or an
// operator did, and it goes on serving. If a node becomes fenced without this guard, it waits for
// D from then, because whoever fenced it may know of a loss that this guard did not see.
//
// Guards announce their D (package announce), and each guard waits for the greatest that it has
// seen, see [MayVoteFrom]. A D seen on one node counts for all, because a node that has just
// restarted has no announcements yet. It counts until that guard is seen with a smaller D, or an
// operator has it forgotten, also after restarts of this guard ([Peers]); and once it counted in
// a fence, until that fence ends.
//
// No guard removes an operator's cordon. A restart makes the server forget it, so a guard that
// saw it cordons the new incarnation again. Redis has no compare-and-set for parameters: a command
// reads the value in the same pipeline in which it writes, and restores a cordon that it has
// overwritten. Any other value of min-replicas-to-write is the operator's own, and no fence. A
// guard that fences over it remembers it, and restores it when the node rejoins; a guard that ends
// meanwhile has forgotten it, and the next one sets 0.
//
// # Commands
//
// A command travels on the connection that read the run_id ([redlock.ConnectOnce]). A
// command without an answer may still arrive ([InFlightCommand]): the next connection to that
// incarnation closes the one on which it was sent, before anything else is sent. If two guards
// close each other's connections after a loss, at least one of them has its answer, so this ends.
//
// # Methods
//
// [Step] knows a fence only by the numbers of min-replicas-to-write. [fences.ACL] translates: a
// user that may not write reads as a fence, and one that is marked as cordoned as a cordon.
// [fences.None] decides like the others and sends nothing.
//
// After a fence is set, it is read back and a canary write is tried. Only NOREPLICAS proves the
// fence. Another refusal (OOM, READONLY, NOPERM, …) means that nothing was written now, not that
// nothing will be: the node counts as fenced since it reads so, is not proven, and the canary is
// tried again. A canary that is accepted leaves a key that expires after 1 ms. With [fences.ACL]
// the canary is ACL DRYRUN, which writes nothing.
package restartguard
