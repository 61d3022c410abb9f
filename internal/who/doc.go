// Package who finds out who holds a lock. Each answer has a method: told (by the token or
// a connection's name), inferred (by which connections were active when the lock
// changed), seen (in the traffic of one node). An inference is a probability with the
// number of events behind it; below [Sure], there are candidates instead of an answer.
//
// The inference ([Tally]) is pure: lists of connections in, probabilities out. [Observe]
// is the thin shell that reads the lists from the nodes, [Monitor] the one that reads the
// traffic.
package who
