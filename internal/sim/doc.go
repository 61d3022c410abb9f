// Package sim plays crashes against the product's own lock algorithm and its own
// guard, in simulated time.
//
// A schedule is a plan of choices drawn from one seed: how many masters, clients
// and guards, how wrong each clock is, how long each message takes, what fails
// and when. It is played by one goroutine on a queue of events. Nothing waits,
// nothing is contacted, and one seed is one schedule on every machine.
//
// What is the product's in it: [redlock.Attempt] decides every acquisition and
// every extension, [restartguard.Step] every closing and every lift, and D and
// the drift allowance come from their own functions. What is modelled around them
// is what they run on: masters with wall clocks of their own, connections that
// are ordered but may be late or break, the client's order of requests, the
// guard's order of looks and commands. docs/simulator.md says what the model
// assumes.
//
// The witness stands apart. It notes, in true time, from when to when each client
// may believe in the lock, and looks for two at once; and it checks that nothing
// is left behind and that guards open nothing too early ([Property]). To see that
// it would find something, [Mutants] break one rule each, in the drivers and
// never in the product's code.
//
// A violation is shortened before it is shown: faults, clients and attempts are
// left out, delays made short and numbers round, as long as the same property is
// still broken.
package sim
