// Package world plays one schedule: masters, the clients and guards that use them, and
// a witness, on a queue of events, by one goroutine.
//
// The product's code decides: [attempt.Attempt] every acquisition and every extension,
// [restartguard.Step] every fencing and every rejoin, and the product's functions
// compute D and the drift allowance. Everything around them is modelled: masters with
// their own wall clocks, connections that are ordered but may be late or break, the
// client's order of requests, the guard's order of probes and commands.
// proof/simulator.md says what the model assumes.
//
// The witness only watches. It records, in true time, from when to when each client may
// rely on the lock, and reports two at once. It also checks that nothing is left
// behind, and that guards let no master rejoin too early.
package world
