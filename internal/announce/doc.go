// Package announce says how restart guards are seen by each other and by who
// looks at a cluster.
//
// On each node that a guard watches it holds a connection that is subscribed to one
// channel. Nobody publishes there: the name of the channel is the announcement. It
// begins with [Prefix] and a version, behind which stand the guard's id, its delay D,
// its host and process, its cluster, and what it knows of the node's boot fence.
// Others read it by PUBSUB CHANNELS redlockctl:guard:*. That costs little however
// many clients a node has, writes nothing, works while the node is fenced, and ends
// with the guard's connection, so that a guard that has died announces nothing.
//
// The package is a pure codec. What it reads comes from a server, so that anybody
// may have written it: [Decode] accepts no more than what [Guard.Channel] could have
// made, and [DecodeAll] keeps a bounded number of it.
//
// An announced D above [MostDelay] is no guard's, since the configuration refuses
// one; it counts as [MostDelay]. It is not ignored: the safe mistake is to wait for
// too long. Nor is it believed: a wrong number must not keep a node out for ever. Who
// can announce one can subscribe to the channels of the guards, which are a right of
// their own (&redlockctl:guard:*).
package announce
