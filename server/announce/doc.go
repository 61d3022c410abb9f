// Package announce encodes and decodes how restart guards announce themselves to each
// other and to monitors.
//
// A guard keeps a connection to each node that it watches, subscribed to one channel.
// Nobody publishes there: the name of the channel is the announcement. It consists of
// [Prefix], a version, the guard's id, its delay D, its host and process, its cluster,
// and what it knows about the node's boot fence. Others read it with PUBSUB CHANNELS
// redlockctl:guard:*. That is cheap however many clients a node has, writes nothing,
// works on a fenced node, and disappears with the guard's connection.
//
// The package does no I/O. Anybody may have created a channel, so [Decode] accepts only
// what [Guard.Channel] can produce, and [DecodeAll] returns a bounded number.
//
// No guard has a D above [MostDelay], because the configuration rejects it. An announced
// D above it counts as [MostDelay]: ignoring it could let a node rejoin too early, and
// trusting it could keep a node out for ever. Creating such a channel needs the right to
// the guards' channels (&redlockctl:guard:*).
package announce
