//go:build race

package sim

// raceOn: the race detector makes schedules ten times slower, and there is little
// for it to see: one schedule is one goroutine.
const raceOn = true
