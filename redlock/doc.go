// Package redlock acquires, extends and releases locks over N independent Redis
// masters by the Redlock algorithm.
//
//	client, err := redlock.New(nodes, redlock.Options{}) // nodes: see NewNode and NodeOf
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//	err = client.Do(ctx, "job:1", redlock.AcquireOptions{TTL: 30 * time.Second},
//		func(ctx context.Context, lock *redlock.Lock) error {
//			return work(ctx) // the lock is extended meanwhile; ctx ends if it is lost
//		})
//
// The error is [ErrContended] if another client holds the lock, [ErrNoQuorum] if too few
// masters serve (it says why for each), and [ErrLost] if the lock was lost while work ran:
// another client may have worked at the same time.
//
// A lock on a resource is a key of that name, with a random token as its value and
// a TTL, on a quorum of the masters: ⌊N/2⌋ + 1 of the configured N, however many
// are up. An even N works, and N = 1 is the single-instance lock.
//
// [Client.Do] works under one lock and [Client.DoAll] under several.
// [Client.Acquire], [Lock.Extend] and [Lock.Release] are the single steps;
// [Lock.Keep] extends a lock until it is released. [Client.AcquireFenced] is for a
// resource that can check a number. Each error is an [Error], with the answer of
// each node. [Options.Observe] is called after each operation, for logs, metrics and
// traces. Package redlocktest has masters in memory for tests. The proofs are at
// the end of this page.
//
// # The algorithm
//
// An attempt draws a fresh token, reads the monotonic clock, and sends SET resource
// token NX PX ttl to all N nodes at the same time. When a quorum says yes, the lock is
// held for ttl − time spent − drift allowance; the attempt does not wait for the other
// nodes. The attempt fails as soon as it cannot reach a quorum, or when its validity is
// used up. Then it sends a release to all N nodes. Attempts are repeated after a random
// pause that grows, and within the pause whenever the lock looks free.
//
// A release compares the token and deletes. An extension compares the token and sets
// the TTL. Each is a script on every node, and needs only the resource and the token.
//
// The key names and the commands are those of the Redlock specification. So a lock of
// this package and a lock of another library on the same key exclude each other.
//
// # Tokens
//
// A token is 27 characters in base64url: 18 bytes from crypto/rand, and two bytes that
// are a note to waiting clients (see below). Each attempt draws one just before its SET,
// so that no late message of one attempt can touch the copies of another. Two tokens must
// differ only if they are for the same resource and in use at the same time. Among n
// tokens of 144 random bits, the probability that two are equal is below n²/2^145: less
// than one in two million for a thousand million attempts per second on one resource
// over a century (n < 2^62), even if all of them were in use at the same time. The note
// is no part of that argument. Nor is it trusted: a false note can only make a waiter
// early or late. Other clients use 20 random bytes; the 16 bits that are missing here
// would add nothing. With [Options.Owner], a colon and the owner follow the 27
// characters, at most 64 bytes in all. The owner is for people to read, and no part of
// the argument.
//
// # Waiting
//
// A client that finds a lock held does not poll. The waiters of one client queue, first
// in, first out, and only the first makes attempts. It reads the copies over a second
// connection to each node, which reports their next change (CLIENT TRACKING). It wakes
// when the lock is released, or when the TTL of the copies ends, which nodes do not
// report. The second connection is opened when somebody has to wait, and closed after two
// seconds without waiters. Where a node cannot report changes (it is down, denies
// tracking, or does not know RESP3), the random pauses remain.
//
// Clients take turns without knowing each other. Besides its 18 random bytes, a token
// says how often the lock changed hands while its owner waited. A client that has waited
// as long goes next, at once; the others hold back, and read the copies before they try.
// This is fair among clients of this package, as far as they can see the nodes. Other
// libraries that lock the same resource try whenever they like. Libraries that poll
// rarely find a lock free if waiters of this package pass it on at once: while both lock
// the same busy resource, as during a migration, eight waiters here leave one client of
// redsync 1 to 4.5 grants per second. All of this decides when an attempt is made, and
// never whether the lock is granted: no lost, late or false message can make two holders.
//
// # The rules
//
// The rules of the algorithm, and what happens to a lock on its way, are in
// docs/design.md. Besides:
//
//   - A connection on which a reply is missing is closed with a reset, so that the
//     operating system does not deliver later what the network has lost. Nothing is ever
//     sent twice.
//   - A node that does not answer within its timeout counts as failed. So does a node
//     that refuses (it is fenced, it is loading, the user lacks a right). A node that
//     keeps failing is not asked for a while. All of them count in N. A node hangs if
//     nothing came from it within the timeout although this process was ready to read.
//     If this process had no time to read the answers, the attempt fails as any late
//     attempt does, and is made again.
//   - A burst costs time and no failures: the slowest healthy node sets the pace. Nobody
//     waits for a node that is not connected or hangs: no caller waits longer than the
//     node timeout, however many nodes hang. No node costs a goroutine per request.
//   - An extension counts only with a quorum, and only before the validity that it
//     extends has ended. It never creates a missing copy and never shortens a TTL. Only a
//     [Keeper] puts a copy back, after an extension; see below.
//   - A server that is reached by two addresses has one vote: the second address is
//     refused, if the user may read the run_id (INFO).
//   - Expiry is left to the nodes (PX); no wall clock decides anything. On Linux a
//     suspended machine, whose monotonic clock does not advance, counts too.
//
// # What it cannot promise
//
// Two holders exclude each other while the nodes keep their copies. A node that forgets
// its copies (a crash without durable persistence, a flush, an eviction, a clock set
// forward) and serves again at once can vote a second time; the restart guard of this
// program prevents that. A holder that is paused after it last checked the clock, or that
// ignores the validity, works under a lock that it no longer has. Only the resource itself
// can refuse it then, by checking a fencing token. A copy on a node that could not be
// reached for its release, or refused it, stays there until its TTL ends.
//
// # Putting copies back
//
// A lock that is kept for long outlives the incarnations of its nodes: if they are
// restarted one by one, all of them forget it in the end. So a [Keeper] puts a copy back
// with SET NX PX, with the same token and the TTL of the extension, on a node that has
// none. The rules (redlockctl/redlock/attempt.Copies):
//
//   - It is sent after an extension that was granted, within the validity, and before any
//     release of the lock, in the same stream.
//   - It is sent only to a node that has just answered that it has no copy, in an
//     incarnation (run_id) that never had one: the node was restarted, or it was not
//     reached or refused when the lock was acquired. A copy that disappeared in the same
//     incarnation was deleted, by a person, a flush or an eviction, and is not put back,
//     with one exception: it expired while the node was fenced. So it was if the last
//     extension before found it there and the node refused to write, and it was missed only
//     after its own end, which counts from the last request that may have moved it. The
//     holder extends at once when a node reports a change, so a deletion is seen before that
//     end; without such reports, one between the last refusal and the end is not seen.
//     A user without the right to INFO does not know the incarnation, and puts nothing
//     back.
//   - A fenced node refuses it, as it refuses any vote.
//   - A copy that was put back does not count for the extension before it. It counts
//     for later ones only after it has settled: after an extension was granted without
//     it that began at least two seconds (attempt.SettleTime) after the copy was known to
//     be there.
//
// Why this cannot make two holders: a client relies on a lock because of a quorum of
// nodes. Each of them had the token's copy at some moment c after the client's start,
// with at least the remaining TTL. Two clients with different tokens share a node x. Let
// x's moment for the first client be the earlier one. At the second moment the other
// token's copy is there. Then either the first copy has expired or was released, and the
// first client no longer relies on it; or x has forgotten it, and a restart guard lets x
// vote again only when no client relies on it. So the first client's validity had ended
// before the second one's began. It does not matter how a copy got there, by an
// acquisition or by a keeper, nor whether it was there before and disappeared in between.
//
// One promise relied on «a copy that has disappeared never returns»: that of a forced
// removal. [Client.ForceRelease] has deleted the copies on a quorum C of nodes, or found
// none there, and says that the lock is gone. A keeper might put a copy on a node of C
// right after that. But that copy does not count. Suppose that some do, and let y be the
// first node of C whose copy is put back after the force-release reached it, and settles.
// The extension by which it settles was confirmed by a quorum of nodes that counted
// before. One of them is in C, and confirmed the extension before its own copy was
// deleted. That was at least SettleTime after the force-release reached y. But the
// force-release counts only answers that come within half of SettleTime. So y does not
// exist: no extension that begins after the force-release is granted, and the keeper says
// that the lock is lost. A revoke works the same, with a tombstone instead of the copy. The
// same holds for a copy of the acquisition that arrives late, after a force-release that
// began when the attempt had ended: a copy counts at once only if the node confirmed it
// before that. Copies that were deleted by other means, one after the other, are not put
// back, by the second rule, except on nodes that are restarted later. The proof above does
// not need that rule, or its exception. So delete with this
// program, or check again.
//
// The argument for fencing tokens below is about copies that are there when a grant is
// confirmed, and no copy is put back before that. With the copy, a keeper writes the
// fencing counter, so that a restart of all masters does not lose it. Early rejoin
// (package restartguard) requires that the copies that a client relies on stay where they
// are; more copies make it later, and never unsafe.
//
// # Fencing tokens
//
// A fencing token is a number that grows with each grant of a resource. The holder sends
// it with everything that it does to the resource. The resource refuses a number lower
// than the highest that it has seen, and so refuses a holder that was paused and does not
// know yet that its lock has ended. Redlock alone has no such number. It costs one more
// round trip: see [Client.AcquireFenced].
//
// After the SET, the same request to a node reads the counter that the node keeps for
// the resource, and the node's clock in microseconds. If the connection ends between
// these replies, the node has given neither vote nor number. When the attempt is granted,
// and a quorum of nodes gave both vote and number, the token is the greatest of all
// numbers plus one. It is then written to all nodes. A node accepts it only if it still
// has the lock's own token and no higher number. The grant is confirmed when a quorum
// has accepted the number; otherwise the lock is released.
//
// Let grant 1 be confirmed before grant 2, with tokens t1 and t2. The nodes W that
// accepted t1 and the nodes R whose vote and number grant 2 counts are quorums, so they
// share a node x. On x the copy of grant 1 was there when t1 was written, and the SET of
// grant 2 found no copy. If the SET of grant 2 came later, then its read, which follows on
// the same connection, came after t1 was written: t2 > t1. If it came earlier, the copy of
// grant 2 had disappeared before grant 1 voted on x. So grant 2 had ended or expired
// before grant 1 was confirmed, and was not confirmed after it. No copy of either had been
// put back by then, since only confirmed locks are kept. (Deleting copies by force ends
// this argument, as it ends exclusion itself.)
//
// This requires that x kept its memory. A node that lost it while the restart guard
// watches votes again only after every grant that it knew has ended. Two more things carry
// the numbers over such a loss. The write goes to all nodes, and waits for one more than a
// quorum where that many answer, so that W and R share a second node. And a token is never
// below the clock of any node in R. Tokens grow with time: a grant adds one microsecond and
// takes longer than that. So even if all masters lose their memory, the numbers still grow,
// if the clocks of the masters differ by less than the time since the last grant before
// the loss. (For a loss that the guard has seen: by less than D, or with early rejoin by
// less than half the longest attempt, which that guard checks.)
//
// For the same reason a counter may expire, but only a day after the clock of its own
// node has passed the number. A clock that was ahead for one grant makes a number in the
// future; all nodes that accepted it keep it until their clocks have reached it. So each
// of the nodes in both W and R has the counter, or has had a clock above it. Only a node
// whose clock was set back by more than a day since then would answer less.
//
// Tokens stay below 2^53 until the year 2255, so that every language can hold them in a
// float.
package redlock
