// Package attempt holds the pure decisions of the lock algorithm: whether an attempt to
// acquire or extend a lock is granted ([Attempt]), and which copies of a kept lock count
// and may be put back ([Copies]). They have no clock, no goroutine and no connection, so
// that a simulator drives the same code as package redlock does.
//
// It is for this program and its proofs. It makes no promise to others: use package
// redlock.
package attempt
