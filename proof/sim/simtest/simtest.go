// Package simtest says how much of a simulation a test can afford.
package simtest

import "testing"

// NotUnderRace leaves a test to the run without the race detector, which plays all of
// the simulator: one schedule is one goroutine, and there is nothing more to see in many.
func NotUnderRace(t *testing.T) {
	t.Helper()
	if Race {
		t.Skip("the run without the race detector has it")
	}
}
