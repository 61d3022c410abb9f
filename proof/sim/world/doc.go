// Package world plays one schedule: masters, the clients and guards that use them, and
// a witness, on a queue of events, by one goroutine.
//
// What is the product's in it: [attempt.Attempt] decides every acquisition and
// every extension, [restartguard.Step] every fencing and every rejoin, and D and
// the drift allowance come from their own functions. What is modelled around them
// is what they run on: masters with wall clocks of their own, connections that
// are ordered but may be late or break, the client's order of requests, the
// guard's order of looks and commands. proof/simulator.md says what the model
// assumes.
//
// The witness stands apart. It notes, in true time, from when to when each client
// may believe in the lock, and looks for two at once; and it checks that nothing
// is left behind and that guards let nothing rejoin too early.
package world
