package redlock

import "time"

// shortestSleep of the machine is what is taken for one: the clocks by which it
// is measured are not read at the same moment.
const shortestSleep = time.Millisecond

// sleptSince is for how long the machine has slept since suspended said before.
func sleptSince(before time.Duration, suspended func() time.Duration) time.Duration {
	if d := suspended() - before; d >= shortestSleep {
		return d
	}
	return 0
}
