//go:build !race

package simtest

// Race: the race detector is on. It makes schedules ten times slower, and there is
// little for it to see: one schedule is one goroutine.
const Race = false
