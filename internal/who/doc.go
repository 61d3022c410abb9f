// Package who answers who holds a lock. Each answer carries its method: told (by
// the token or a connection's name), inferred (from which connections were active
// at the moments at which the lock changed), seen (in the traffic of one node).
// What is inferred is a probability with the number of events behind it, and below
// [Sure] there are candidates and no answer.
//
// The inference ([Tally]) is pure: lists of connections go in, probabilities come
// out. [Observe] is the thin shell that reads the lists from the nodes, [Monitor]
// the one that reads the traffic.
package who
