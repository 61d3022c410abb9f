// Package redlock acquires, extends and releases locks over N independent Redis
// masters by the Redlock algorithm.
//
//	client, err := redlock.New(nodes, redlock.Options{}) // see NewNode and NodeOf
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//	err = client.Do(ctx, "job:1", redlock.AcquireOptions{TTL: 30 * time.Second},
//		func(ctx context.Context, lock *redlock.Lock) error {
//			return work(ctx) // the lock is extended meanwhile; ctx ends if it is lost
//		})
//	switch {
//	case errors.Is(err, redlock.ErrContended): // another client holds it
//	case errors.Is(err, redlock.ErrNoQuorum): // too few masters serve; err says why of each
//	case errors.Is(err, redlock.ErrLost): // lost while work ran: what it did last may overlap
//	}
//
// A lock on a resource is a key of that name, with a random token as its value and a
// TTL, on a quorum of the masters: ⌊N/2⌋ + 1 of the configured N, however many are up.
// An even N works, and N = 1 is the single-instance lock.
//
// [Client.Do] works under one lock and [Client.DoAll] under several. [Client.Acquire],
// [Lock.Extend] and [Lock.Release] do it step by step; [Lock.Keep] extends a lock until it
// is released. [Client.AcquireFenced] is for a resource that can check a number. Each
// error is an [Error], with the answer of each node. Package redlocktest has masters in
// memory for tests. The proofs are at the end of this page.
//
// # The algorithm
//
// An attempt draws a fresh token, reads the monotonic clock, and sends
// SET resource token NX PX ttl to all N nodes at the same time. With a quorum of
// yes the lock is held for ttl − time spent − drift allowance; the attempt does
// not wait for the other nodes. As soon as a quorum cannot be reached any more,
// or validity is used up, it has failed, and a release is sent to all N nodes.
// Attempts are repeated after a random pause that grows, and in between whenever
// the lock looks free.
//
// A release compares the token and deletes, an extension compares the token and
// sets the TTL anew, each as a script on every node. Neither needs to know
// anything but the resource and the token.
//
// The names and the commands are those of the Redlock specification, so that a
// lock of this package and one of another library on the same key exclude each
// other.
//
// # Tokens
//
// A token is 27 characters: 18 bytes from crypto/rand and two that are a note to
// those who wait (see below), in base64url. Each attempt draws one, just before
// its SET, so that no late message of one attempt can touch the copies of another.
// Only two tokens of the same resource that are about at the same time must
// differ. Of n drawn, 144 random bits give two that are the same with a
// probability below n²/2^145: after a thousand million attempts on one resource in
// each second for a century (n < 2^62) less than one in two million, whichever of
// them were about together. The note is no part of that argument. It is not
// believed in either: what it says can only make a waiter early or late. The 20
// bytes of other clients spend these 16 bits on chance, where they buy nothing.
// With [Options.Owner] a colon and the owner stand behind the 27 characters, 64 bytes
// in all at most: for people, and no part of the argument either.
//
// # Waiting
//
// Who finds a lock held does not poll. Those of one client stand in a queue, first
// in, first out, and only the first makes attempts. It reads the copies over one
// more connection for each node, which tells of their next change (CLIENT
// TRACKING), and is woken by the release, or by the end of their TTL, of which nodes
// do not tell. That connection is opened when somebody has to wait, and closed when
// nobody has for two seconds. Where a node cannot tell (it is down, denies
// tracking, or knows no RESP3) the pauses are left.
//
// Clients take turns without having to know of each other: a token carries, besides
// 18 random bytes, how often the lock had changed hands while its owner waited, and
// who has waited as long goes next, at once; the others hold back, and look before
// they try. This is fair among clients of this package, as far as they can see the
// nodes; other libraries that lock the same resource go whenever they like. Those that
// poll rarely find a lock free that waiters of this package pass on at once: while
// both lock the same busy resource, as during a migration, eight waiters here leave one
// client of redsync 1 to 4.5 grants in a second. All of it
// decides when an attempt is made and never whether the lock is granted: no message
// that is lost, late or false can make two holders.
//
// # The rules
//
// Those of the algorithm, and how a lock travels, stand in docs/design.md. Besides:
//
//   - A connection on which a reply failed to come is thrown away, by a reset, so that
//     the operating system does not deliver later what the network has lost; and
//     nothing is ever sent twice.
//   - A node that does not answer within its timeout counts as failed, as does one
//     that refuses (it is fenced, it is loading, the user lacks a right), and one
//     that keeps failing is not asked for a while; all count in N. A node hangs when
//     nothing has come from it for the timeout although this process has looked. When
//     it was this process that had no time to read the answers, the attempt fails as
//     any other that is late, and is made again.
//   - A burst costs time and no failures: the slowest node that is well sets the pace. A
//     node that is not connected is waited for by nobody, nor one that hangs: no caller
//     is held up for longer than the node timeout, however many nodes hang. None costs a
//     goroutine.
//   - An extension counts only with a quorum, and before the validity that it
//     extends has ended. It never makes a missing copy anew and never shortens
//     one. Only a [Keeper] does, behind an extension; see below.
//   - A server that is reached by two addresses has one voice: by the second it is
//     refused, as far as the user may ask for its run_id (INFO).
//   - Expiry is left to the nodes (PX); no wall clock decides anything. On Linux a sleep
//     of the machine, for which the monotonic clock stands still, counts too.
//
// # What it cannot promise
//
// Two holders exclude each other while the nodes keep what they were told. A
// node that forgets its copies (a crash without durable persistence, a flush,
// an eviction, a clock set forward) and comes back at once can vote a second
// time; the restart guard of this program is there to prevent that. A holder
// that is paused after its last look at the clock, or that ignores the validity,
// acts on a lock that it no longer has: only the resource itself can turn it
// away then, by checking a fencing token. A copy on a node that could not be
// reached for its release, or refused it, stays there until its TTL ends.
//
// # Putting copies back
//
// A lock that is kept for long outlives the incarnations of its nodes: restarted
// one by one, all of them forget it in the end. So a [Keeper] puts a copy back with
// SET NX PX, with the same token and the TTL of the extension, on a node that lacks
// it. The rules ([redlockctl/redlock/attempt.Copies]):
//
//   - It is sent behind an extension that was granted, within the validity, and
//     before whatever releases the lock, on the same stream.
//   - Only to a node that has just answered that it has no copy, in an incarnation
//     (run_id) in which there can never have been one: it was restarted, or it was
//     not reached or refused when the lock was acquired. A copy that is gone in the
//     same incarnation was deleted, by a person, a flush or an eviction, and stays
//     gone. A user who may not run INFO does not know the incarnation, and puts
//     nothing back.
//   - A node that is fenced refuses it, as it refuses any vote.
//   - What was put back is no part of the quorum of the extension before it, and
//     none of those after it until it has settled: until an extension was granted
//     without it that began at least two seconds (attempt.SettleTime) after the copy was known to be
//     there.
//
// Why two clients do not hold one lock by it: a belief is backed by a quorum of
// nodes, each of which had the token's copy at some moment c after the belief's start,
// with at least the TTL to go. Two beliefs of different tokens share a node x. Let
// its moment for the first be the earlier one. At the second moment another token's
// copy is there, so that of the first has expired or was released, and its
// belief was over; or x has forgotten it, and a restart guard lets x take part again
// only when that belief is over. So it was over before the second began. It does
// not matter there how a copy came to be, by an acquisition or by being put back,
// nor whether it was there before and gone in between.
//
// What rested on «a copy, once gone, never comes back» is the word of whoever takes a
// lock from its holder. [Client.ForceRelease] has deleted the copies on a quorum C
// of nodes, or found none there, and says that the lock is gone. A node of C that had
// none might get one right behind that. But it does not count: let y be the first
// node of C that is put back after its part in the force-release and settles. The
// extension by which it settles was confirmed by a quorum of nodes that counted
// before, so by one of C, which confirmed it before its own copy was deleted. That
// was at least SettleTime after y's part in the force-release, which counts nothing
// that comes later than half of that. So there is no such y: no extension that
// begins when the force-release is done is granted, and the keeper says that the
// lock is lost. A revoke is the same, with a tombstone in the place of the copy. So is a
// copy of the acquisition that comes late, behind a force-release that began when the
// attempt was over: one counts at once only if the node told of it before that.
// Copies that were deleted by other means, one after the other, stay gone by the
// second rule, but for those on nodes that are restarted after that; delete with
// this program, or look again.
//
// The argument for fencing tokens below is about copies that are there when a grant
// is confirmed, and nothing is put back before that. With the copy a keeper writes
// the fencing counter anew, so that a restart of all masters does not lose it. Early
// rejoin (package restartguard) asks that the copies that somebody relies on stay
// where they are; that there may come more of them makes it later, and never unsafe.
//
// # Fencing tokens
//
// A fencing token is a number that grows with each grant of a resource. The
// holder sends it along with whatever it does to the resource, which refuses a
// number lower than the highest it has seen: so it turns away a holder that was
// paused and does not know yet that its lock has ended. It is what Redlock
// lacks by itself, and costs one round trip more: see [Client.AcquireFenced].
//
// Behind the SET of each node goes a read of the counter that the node keeps
// for the resource, and of the node's clock in microseconds. All three are one
// request on one connection: if that ends between their replies, the node has
// given neither vote nor number. When the attempt
// is granted, and a quorum of nodes that gave their vote have also told their
// numbers, the token is the greatest of all those numbers plus one. It is then
// written to all nodes, each of which takes it only where the lock's own token
// still is and no higher number stands. With a quorum of those the grant is
// confirmed; without, it is released.
//
// Let grant 1 be confirmed before grant 2, with tokens t1 and t2. The nodes W
// that took t1 and the nodes R whose vote and number grant 2 counts are quorums,
// so they share a node x. On x the copy of grant 1 was there when t1 was
// written, and the SET of grant 2 found no copy. If the SET of grant 2 came
// later, then its read, behind it on the same connection, came after t1 was
// written: t2 > t1. If it came earlier, the copy of grant 2 had gone again
// before grant 1 voted on x, so grant 2 had ended or expired before grant 1 was
// confirmed, and was not confirmed after it. No copy of either was put back by then,
// since only locks that are confirmed are kept. (Who deletes copies by force ends this
// argument, as exclusion itself.)
//
// That x must have kept its memory. A node that lost it while the restart guard
// watches votes again only after every grant that it knew of has ended. Two
// things carry the numbers over such a loss. The write goes to all nodes, and
// waits for one more than a quorum where that many answer, so that W and R share
// a second node. And a token is never below the clock of any node in R: tokens
// run with the time, a grant adds one microsecond and takes longer than that, so
// after a loss of the memory of all masters the numbers still grow, as long as
// the clocks of the masters agree better than the time that has passed since
// the last grant before (for a loss of which the guard knows: better than D, or with early rejoin
// better than half the longest attempt, which that guard makes sure of).
//
// For the same reason a counter may expire, but not before the clock of its own
// node has passed the number by a day. A clock that was ahead for one grant makes
// a number that lies in the future; all nodes that took it keep it until their
// clocks have come as far. So of the nodes in both W and R each has the counter, or
// has had a clock that was above it; only one that was set back by more than a day
// since then would tell less.
//
// Tokens stay below 2^53 until the year 2255, so that every language can hold
// them in a float.
package redlock
