// Package restartguard keeps a master that may have forgotten votes out of the
// quorum until nobody can believe in those votes any more.
//
// A master without durable persistence forgets its locks when it crashes. If
// it comes back at once, it can give a vote a second time, and two clients hold
// one lock. The Redlock specification asks for a delayed restart: out of the
// quorum for a bit more than the longest TTL in use. This package does that.
//
// # The rule
//
// Every vote that was lost was cast at or before the loss; its request was sent
// earlier still, and a client counts validity from sending. So no client
// believes in a lost vote for longer than the longest TTL, stretched by the
// error of its clock, after the loss. A node is therefore kept fenced for D
// ([Delay]) from a moment that is provably after the loss: the guard's first
// sight of the new run_id. Not from when it was last seen, not from a failed
// ping, and not by the server's uptime, which is wall-clock time in whole seconds.
//
// A node may have been open for a while before it was closed. The votes that it
// gave in that time belong to its new incarnation, which remembers them as any open
// master does; only what the former incarnation knew is lost, and that loss was over
// at the first sight. So D counts from the first sight of the life, not from
// the moment at which the closing was confirmed. What closing late cannot undo
// is a second vote that was given while the node was open: how long that was,
// at most, is shown. For that reason a node should start fenced, by
// min-replicas-to-write 2147483647 on its command line or in an included file.
//
// For the same reason a node that could not be fenced for the whole of D is let
// go: by then there is nothing left to protect.
//
// # What counts as a loss
//
// A new run_id, whatever the cause; FLUSHALL, FLUSHDB, SWAPDB and DEBUG, counted
// by INFO commandstats (the server refuses the first three while it is closed by
// [MinReplicas]); evicted keys; a change between master and replica; a forward step
// of the node's wall clock, since expiry is decided by it; a counter key that went
// back or is gone, which shows memory that was put back to an earlier state. Each
// loss starts D anew, also inside the fence. A counter of INFO that went back to 0
// (CONFIG RESETSTAT) is a new base line; one that is above 0 after a reset, which the
// count of all commands shows as well, has counted since. A server that was a
// replica between two looks shows it by the replication id before its promotion.
//
// The wall clock is read by TIME, on the guard's own connection, and compared
// with [BootTime], which nobody sets. A reading is exact to half its round trip; a
// step is one that two readings in a row show beyond the error of both, 5 ms, what
// is configured, and what a clock may gain by its rate: 0.8 %, which is what two
// clocks that are each wrong by 0.4 % differ by. What is gained beyond that adds up
// over many readings, so that small steps and a clock that runs too fast are noticed
// when together they are more than the error. A step back is told and is no loss,
// since locks live longer by it.
//
// # Orders that come late
//
// What was sent on a connection may arrive after its sender gave it up. A lift that
// does could open a node that was closed again since, in the same incarnation. So an order
// that has no answer is remembered, in the file too, before it is sent ([InFlightCommand]), and
// the next connection to that incarnation ends the one on which it was sent (CLIENT KILL
// ID) and waits for the answer before anything else is sent. A guard that starts
// ends in the same way all connections that bear the name of its own state
// directory. The connections of guards end by a reset, also with their process, so
// that the kernel drops what it has not delivered. Where the server does not let us
// end a connection, no other lift is sent for D, a node that turns open before its
// time is closed again, and it is told; after D the order is taken to be lost.
//
// A lift of another guard may come late as well. One that was decided on before a loss
// that leaves the run_id as it is would open what this guard has closed for that loss
// since. So whoever closes a node for such a loss ends the connections of all other
// guards behind it, by their names, reads the fence, and closes again if one of them
// was faster. Each names its connection before its first look, on that connection. So
// a connection that is not in the list has looked at nothing yet, and will see the loss
// first. Of two guards that do so at once one at least has its answer, so it ends. What
// is left is a lift that lands between the closing and the end of its connection; the
// exposure that is told goes on until the fence is read behind that. A loss that one
// guard sees sooner than another is a step of the clock, which takes two readings: so
// nobody lifts while one shows a step and the next has not decided.
//
// # The guard's own time
//
// Deadlines are on the monotonic clock of this process. A guard that is suspended,
// with its machine or alone, waits longer, never shorter. A virtual machine that is
// paused while its clocks stand still sees the clocks of all nodes step forward
// when it goes on, and closes them: it cannot tell that from a step of all clocks.
//
// # Memory
//
// What a guard must not forget is in a file ([Memory]), written before anything is
// done because of it: the run_id, so that a restart while no guard ran is noticed;
// the deadline, on the clock of the machine's boot; an operator's hold. In another
// boot, and without a file or with a damaged one, a node that waits waits for D from
// now. The reading of a node's clock is written every D/4 at least, and a guard that
// was away compares with it: the first look that shows a step behind its back is a loss.
// Who was away for longer than D allows clocks to have drifted apart meanwhile, and
// may miss a step of less than 0.1 % of its absence beside what D allows.
//
// # First contact, other guards, people
//
// A node that a guard does not know and finds closed waits D from then. An open
// one is adopted, not verified, or closed if [Fence] is asked for.
//
// Several guards may watch the same nodes, each by its own clock. A node that
// was seen closed and is then open in the same incarnation was opened by a guard whose
// own safe moment had come, or by a person, and stays open. A node that turns
// closed without our doing waits D from then, since whoever closed it may know
// of a loss that we did not see.
//
// # One D for all guards
//
// Of several guards the one with the shortest D would decide, and a guard with an old
// configuration would open a node while locks with a longer TTL are still believed
// in. So guards see each other: each announces itself on every node that it can close
// (package announce), reads there what others announce, and waits for the greatest D
// that it sees, counted from its own safe moment as ever. Guards of other clusters on
// the same servers count too: a fence is the server's.
//
// What was heard on one node counts for all, since a node that has just restarted
// knows of nobody yet; and for [PeerKept] after it was last heard, since nodes and
// guards may come back together. A D that is heard while a node waits lengthens its
// fence, and what has counted once in a fence counts to its end, over restarts of node
// and guard: that the other guard went away, or has a shorter D by now, does not mean
// that the locks with long TTLs are gone.
//
// A guard that sees nobody, since there is none or since it may not look, waits for its
// own D; the latter it says. So two guards agree as long as each has announced itself
// before the other's D has passed, which takes one look.
//
// An absurd D must not keep nodes out for ever. The configuration refuses one of more
// than a day ([announce.MostDelay]), so an announced D above it is no guard's, and
// counts as a day. To ignore it would be wrong: who writes nonsense may be a guard that
// means something. It is told as an alarm, and a person who knows better opens the
// node. Whoever can announce anything is allowed the channels of the guards, and with
// them no more than this: to keep nodes closed for a day.
//
// # A person's hold
//
// An operator's hold is never lifted by a guard. A restart makes the server
// forget it, so a guard that saw it puts it up again in the new incarnation. Redis has
// no compare-and-set for parameters: a close or a lift reads the value in the same
// pipeline in which it writes, and puts back a hold that came in between.
//
// Any other value of min-replicas-to-write is the operator's own and counts as
// open. A guard that has to close over it remembers it, and sets it again
// when it lifts; if the guard ends in between, the lift sets 0.
//
// # Early rejoin
//
// D is the longest that anybody may believe in a vote that a node has lost. If
// [Early] allows it, the node rejoins sooner, by [Evidence] that nobody's belief
// needs that vote. The argument, for a node X whose loss was first seen at T:
//
// A grant, or an extension, that counts a vote of X from before the loss began
// before T. So it is granted before T + A, where A is the bound of an attempt,
// stretched by clock errors ([EarlyAfter]); nothing that is granted later counts
// such a vote. Who was granted it before relies on a quorum Q of votes, of which X's
// is one. The other Q − 1 copies are on other nodes, and stay there for as long as
// it believes: nobody but the holder deletes or shortens them, a revoke leaves
// something in their place that ends with them, and anything else is a loss of those
// nodes. So a scan of each other node that begins after T + A meets them all: SCAN
// brings what is there throughout. They need not be read at the same moment, since
// each of them is there from T + A to the end of the belief.
//
// The belief ends before the earliest of those Q − 1 copies does, and so no later
// than the copy with the (Q − 1)th latest end of all that are found under that key,
// whatever their token. If Q copies of one token last for so long, no second client
// gets a quorum before the belief is over, whether X votes or not: the lock is
// covered. That token is the holder's, if there is a holder, since all but Q − 1 of
// the other nodes are too few for Q copies of another; so nobody takes its copies
// away before. It is not enough to count copies: after an extension that a quorum
// without one node has confirmed, the copy on that one is still there, and ends
// sooner. Nor is it enough if two clients may write the same value: the copy of a
// failed attempt, which goes away with its release, would pass for the holder's. So
// the value must be of a form that a library draws for each attempt anew.
//
// Ends are compared with what clocks may be wrong by: a holder, who takes off 1 % at
// least, stops before 0.994 of what is left of a copy that it counts, and the
// slowest copy lives for 0.996 of what is left; readings that are far apart in time
// cost more. A key that is not covered is read again until it is, or is gone: it may
// be an attempt under way, or a lock that ends. What has fewer than Q − 1 copies
// cannot be believed in, and is waited for all the same; so is one without a TTL
// that has no quorum of such copies. If every key is covered, or none is found, X
// may vote. N = 1 has nobody to ask, and with N = 2 any lock means waiting.
//
// What is sent but has not arrived changes nothing. A SET that lands on another node
// behind the scan belongs to an attempt that began after T, or is over by T + A
// without it; on X it is a vote of the new incarnation, if X is open by then. An extension
// that makes a copy anew where it misses one votes like any other: X remembers that.
//
// A keeper of package redlock puts copies back on nodes that have restarted, behind
// an extension that a quorum has confirmed. What is above asks that copies stay, and
// nowhere that none come: no belief rests on a vote of X that is lost because of one.
// One more copy under a key can only make the (Q − 1)th latest end later. And Q
// copies of one token are the holder's, if there is a holder, whoever has made them.
// And evidence does not age: while X is closed nobody gets its vote, so what was
// covered stays so, however late X is opened, also by a guard that was suspended.
//
// All that rests on the other nodes having forgotten nothing. So each of them must
// be open, seen by this guard, a master, a server of its own, its clock read to 50
// ms, and without a loss or first contact within the last D, unless this guard
// itself has opened it by evidence: then, too, each lock that anybody believes in
// has Q copies that last, so that one node later Q − 1 of them are left, which is
// all that the argument for that node asks for. Of two nodes that are closed at once
// neither is helped. A guard takes nobody's word for it: what another guard, or an
// earlier run of its own, has rejoined early it trusts D after the loss. And what a
// node told counts only after a look, on the same connection and begun later, has
// found no loss. A node that loses something after that is closed by its own right,
// with a quorum less one of copies left beside it: what Redlock with a guard has at
// any time.
//
// Fencing tokens (package redlock) go on growing over a loss as long as the clocks
// of the masters differ by less than the time for which a node that lost its numbers
// stays away. That is A instead of D, so no two clocks may differ by more than half
// of A.
//
// Any doubt means waiting, for D at most: a node that does not answer or is not
// watched, a key that is no string or whose value is of no form that is known, a
// scan that fails. The patterns must cover all locks, and A all clients. A client
// that counts an answer which comes later than A, because it has no timeout of its
// own or was suspended, breaks the argument, and so does one that takes off less
// than 1 %. The state says why a node waits.
//
// # One connection, one incarnation
//
// A fence or a lift meant for one incarnation of a server must not reach the next. Each
// travels on the very connection that read the run_id, which is dialled once and
// never again ([redlock.Node.OneConnection]). This needs a direct connection: a proxy
// that shares its connections among clients breaks it.
//
// # Methods
//
// [Step] knows a fence by the numbers of min-replicas-to-write alone. The method
// [ACL] translates: a user that may not write reads as [FenceUp], one that
// carries the mark of a hold as well as [FenceCordon]. [Advice] decides like the
// others, and drops what would be sent.
//
// # The proof
//
// After closing, the parameters are read back and a canary write is tried. Only
// NOREPLICAS proves the fence. Another refusal (OOM, READONLY, NOPERM, …) says that
// nothing was written now, not that nothing will be: the node counts as closed
// since its parameters read so, is not proven, and the canary is tried again. A
// canary that gets through leaves a key that is gone after 1 ms. By [ACL] the canary
// is ACL DRYRUN, which writes nothing: the server's word on what the user could do.
//
// [Step] is the whole decision, pure; [Guard] is a thin shell around it.
package restartguard
