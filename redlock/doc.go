// Package redlock takes, extends and releases locks over N independent Redis
// masters by the Redlock algorithm.
//
// A lock on a resource is a key of that name, with a random token as its value
// and a TTL, on a quorum of the masters: ⌊N/2⌋ + 1 of the configured N,
// whatever is up. Even N work, and N = 1 is the single-instance lock.
//
//	client, err := redlock.New(nodes, redlock.Options{})
//	defer client.Close()
//	lock, err := client.Acquire(ctx, "job:1", 30*time.Second)
//	if err != nil { … errors.Is(err, redlock.ErrContended) … }
//	defer lock.Release(ctx)
//	… work, as long as lock.Valid(time.Now()) …
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
// # Waiting
//
// Who finds a lock held does not poll. Those of one client stand in a line, first
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
// nodes; other libraries that lock the same resource go whenever they like. All of it
// decides when an attempt is made and never whether the lock is granted: no message
// that is lost, late or false can make two holders.
//
// # The rules
//
//   - A token names one attempt. A retry draws a new one.
//   - On a node, requests travel in order on one connection, so that no SET
//     arrives behind its own release. A connection on which a reply failed to
//     come is thrown away, and nothing is ever sent twice.
//   - A node that does not answer within its timeout counts as failed, one that
//     keeps failing is not asked for a while; both count in N.
//   - No request blocks its caller longer than its timeouts, however many nodes
//     hang, and none costs a goroutine. A full queue is a failed node.
//   - An extension counts only with a quorum, and before the validity that it
//     extends has ended. It never makes a missing copy anew and never shortens
//     one.
//   - A release is sent although the caller's context is over, and one that a
//     node did not hear of is sent again when the node answers.
//   - Validity is counted on the monotonic clock from before the first request,
//     and expiry is left to the nodes (PX); no wall clock decides anything.
//
// The decision itself, [Attempt], is a pure step machine without clock,
// goroutine or connection.
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
// reached for its release stays there until its TTL ends.
package redlock
