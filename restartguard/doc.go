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
// error of its clock, after the loss. A node is therefore kept closed for D
// ([Delay]) from a moment that is provably after the loss: the guard's first
// sight of the new run_id. Not from when it was last seen, not from a failed
// ping, and not by the server's uptime, which is wall-clock time in whole seconds.
//
// A node may have been open for a while before it was closed. The votes that it
// gave in that time belong to its new life, which remembers them as any open
// master does; only what the former life knew is lost, and that loss was over
// at the first sight. So D counts from the first sight of the life, not from
// the moment at which the closing was confirmed. What closing late cannot undo
// is a second vote that was given while the node was open: how long that was,
// at most, is shown. For that reason a node should come up closed, by
// min-replicas-to-write 2147483647 on its command line or in an included file.
//
// For the same reason a node that could not be closed for the whole of D is let
// go: by then there is nothing left to protect.
//
// # What counts as a loss
//
// A new run_id, whatever the cause; FLUSHALL, FLUSHDB or SWAPDB, counted by INFO
// commandstats (the server refuses them while it is closed); a change between
// master and replica. Each loss starts D anew, also inside the fence. A counter
// that went back to 0 (CONFIG RESETSTAT) is a new base line; one that went back
// and is above 0 has counted a wipe since.
//
// # First contact, other guards, people
//
// A guard that starts has no memory: a node that it finds closed waits D from
// then. An open one is adopted, not verified, or closed if [Fence] is asked for.
//
// Several guards may watch the same nodes, each by its own clock. A node that
// was seen closed and is then open in the same life was opened by a guard whose
// own safe moment had come, or by a person, and stays open. A node that turns
// closed without our doing waits D from then, since whoever closed it may know
// of a loss that we did not see.
//
// An operator's hold is never lifted by a guard. A restart makes the server
// forget it, so a guard that saw it puts it up again in the new life. Redis has
// no compare-and-set for parameters: a close or a lift reads the value in the same
// pipeline in which it writes, and puts back a hold that came in between.
//
// Any other value of min-replicas-to-write is the operator's own and counts as
// open. A guard that has to close over it remembers it, and sets it again
// when it lifts; if the guard ends in between, the lift sets 0.
//
// # One connection, one life
//
// A fence or a lift meant for one life of a server must not reach the next. Each
// travels on the very connection that read the run_id, which is dialled once and
// never again ([redlock.Node.OneLife]). This needs a direct connection: a proxy
// that shares its connections among clients breaks it.
//
// # The proof
//
// After closing, the parameters are read back and a canary write is tried. Only
// NOREPLICAS proves the fence. Another refusal (OOM, READONLY, NOPERM, …) says that
// nothing was written now, not that nothing will be: the node counts as closed
// since its parameters read so, is not proven, and the canary is tried again. A
// canary that gets through leaves a key that is gone after 1 ms.
//
// [Step] is the whole decision, pure; [Guard] is a thin shell around it.
package restartguard
