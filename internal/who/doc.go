// Package who finds out who holds a lock. Each answer has a method: told (by the token or
// a connection's name), inferred (by which connections were active when the lock
// changed), seen (in the traffic of one node). An inference is a probability from a
// number of events; below [Sure], it names candidates and gives no answer.
//
// The inference ([Tally]) is pure: lists of connections in, probabilities out. [Observe]
// is the thin shell that reads the lists from the nodes, [Monitor] the one that reads the
// traffic.
package who
